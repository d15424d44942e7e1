//! A proxy for programs that cannot send a key: it forwards requests to the hub with one.

use crate::http::{Request, serve};
use std::io::Write;
use std::net::{Shutdown, TcpStream};

/// Starts the proxy and returns the URL of the hub's tools without a key.
pub fn start_proxy(hub: &str, key: &str) -> String {
    let hub = hub.trim_start_matches("http://").to_owned();
    let key = key.to_owned();
    let address = serve(move |request, client| forward(&request, client, &hub, &key));
    format!("http://{address}/mcp")
}

fn forward(request: &Request, client: &mut TcpStream, hub: &str, key: &str) {
    let own_address = client
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
            // Replace only our own host name; some checks send a foreign one on purpose.
            "host" if request.header("host") == Some(&own_address) => {
                head.push(format!("Host: {hub}"))
            }
            // A page of the proxy is one of the hub; another port is another origin.
            "origin" if request.header("origin") == Some(&format!("http://{own_address}")) => {
                head.push(format!("Origin: http://{hub}"));
            }
            _ => head.push(line.clone()),
        }
    }
    head.push(format!("Authorization: Bearer {key}"));
    head.push("Connection: close".into());
    let Ok(mut upstream) = TcpStream::connect(hub) else {
        return;
    };
    let sent = upstream
        .write_all(format!("{}\r\n\r\n", head.join("\r\n")).as_bytes())
        .and_then(|()| upstream.write_all(&request.body));
    if sent.is_ok() {
        let _ = std::io::copy(&mut upstream, client);
    }
    let _ = client.shutdown(Shutdown::Both);
}
