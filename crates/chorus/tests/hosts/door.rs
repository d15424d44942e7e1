//! A way in for programs that cannot be given a key: what comes here goes to the hub with one.

use crate::http::{Request, serve};
use std::io::Write;
use std::net::{Shutdown, TcpStream};

/// The URL of the hub's tools for whoever comes without a key.
pub fn open(hub: &str, key: &str) -> String {
    let (hub, key) = (hub.trim_start_matches("http://").to_owned(), key.to_owned());
    let address = serve(move |request, back| pass(&request, back, &hub, &key));
    format!("http://{address}/mcp")
}

fn pass(request: &Request, back: &mut TcpStream, hub: &str, key: &str) {
    let own = back
        .local_addr()
        .map(|address| address.to_string())
        .unwrap_or_default();
    let mut head = vec![request.head[0].clone()];
    for line in &request.head[1..] {
        let name = line
            .split(':')
            .next()
            .unwrap_or_default()
            .to_ascii_lowercase();
        match name.as_str() {
            "connection" | "authorization" => {}
            // Only our own name is the hub's; a foreign one is what some of the checks are about.
            "host" if request.header("host") == Some(&own) => head.push(format!("Host: {hub}")),
            _ => head.push(line.clone()),
        }
    }
    head.push(format!("Authorization: Bearer {key}"));
    head.push("Connection: close".into());
    let Ok(mut there) = TcpStream::connect(hub) else {
        return;
    };
    let sent = there
        .write_all(format!("{}\r\n\r\n", head.join("\r\n")).as_bytes())
        .and_then(|()| there.write_all(&request.body));
    if sent.is_ok() {
        let _ = std::io::copy(&mut there, back);
    }
    let _ = back.shutdown(Shutdown::Both);
}
