//! A minimal HTTP/1.1 server and client for these tests: one request per connection, a body with a length.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

pub struct Request {
    /// The request line and the headers, unchanged.
    pub head: Vec<String>,
    pub body: Vec<u8>,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        let has_name = |line: &&String| {
            line.split(':')
                .next()
                .is_some_and(|key| key.eq_ignore_ascii_case(name))
        };
        self.head[1..]
            .iter()
            .find(has_name)
            .and_then(|line| line.split_once(':'))
            .map(|(_, value)| value.trim())
    }

    pub fn path(&self) -> &str {
        self.head[0].split(' ').nth(1).unwrap_or_default()
    }

    fn read(stream: &TcpStream) -> Option<Self> {
        let mut reader = BufReader::new(stream);
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let line = line.trim_end().to_owned();
            if line.is_empty() {
                break;
            }
            head.push(line);
        }
        let mut request = Self {
            head,
            body: Vec::new(),
        };
        let length = request
            .header("content-length")
            .and_then(|text| text.parse().ok())
            .unwrap_or(0);
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        request.body = body;
        Some(request)
    }
}

/// Serves on a free port until the test ends; returns its address.
pub fn serve(answer: impl Fn(Request, &mut TcpStream) + Send + Sync + Clone + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let answer = answer.clone();
            std::thread::spawn(move || {
                let mut stream = stream;
                let _ = stream.set_read_timeout(Some(Duration::from_secs(60)));
                if let Some(request) = Request::read(&stream) {
                    answer(request, &mut stream);
                }
            });
        }
    });
    address
}

/// Sends one request to a hub and returns the body of its answer, which must be a success.
pub fn call(hub: &str, key: &str, method: &str, path: &str, body: &Value) -> String {
    let address = hub.trim_start_matches("http://");
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 2"),
        "{method} {path}: {answer}"
    );
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    body.to_owned()
}
