//! What the generator says on the wire: HTTP/1.1 + SSE, and for context the NATS and MQTT 3.1.1
//! equivalents. The scheme of the URL (http, nats, mqtt) chooses; its path is the topic.
use crate::template::{BenchAgent, MessageParties, MessageStamp, RequestTemplate, write_decimal};
use std::net::SocketAddrV4;

#[derive(Clone, Copy, PartialEq)]
pub enum WireScheme {
    Http,
    Nats,
    Mqtt,
}

pub struct LoadTarget {
    pub scheme: WireScheme,
    pub addr: SocketAddrV4,
    pub path: String,
}

impl LoadTarget {
    pub fn parse(url: &str) -> LoadTarget {
        let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let addr = host.parse().unwrap_or_else(|_| {
            crate::exit_with_error(&format!("{url}: want scheme://IPV4:PORT/path"))
        });
        match scheme {
            "http" => LoadTarget {
                scheme: WireScheme::Http,
                addr,
                path: format!("/{path}"),
            },
            "nats" => LoadTarget {
                scheme: WireScheme::Nats,
                addr,
                path: path.into(),
            },
            "mqtt" => LoadTarget {
                scheme: WireScheme::Mqtt,
                addr,
                path: path.into(),
            },
            _ => crate::exit_with_error(&format!("{url}: unknown scheme")),
        }
    }

    /// The bytes that open a subscription.
    pub fn subscriber_greeting(&self, headers: &[&str], who: &MessageParties) -> Vec<u8> {
        let path = render_text(&self.path, who);
        match self.scheme {
            WireScheme::Http => {
                let head: String = headers
                    .iter()
                    .map(|h| format!("{}\r\n", render_text(h, who)))
                    .collect();
                format!(
                    "GET {path} HTTP/1.1\r\nHost: {}\r\nAccept: text/event-stream\r\n{head}\r\n",
                    self.addr
                )
                .into_bytes()
            }
            WireScheme::Nats => format!(
                "CONNECT {{\"verbose\":false,\"pedantic\":false}}\r\nSUB {path} 1\r\nPING\r\n"
            )
            .into_bytes(),
            WireScheme::Mqtt => {
                let mut b = render_mqtt_connect("s", who.index);
                let mut body = vec![0, 1];
                write_mqtt_text(&mut body, path.as_bytes());
                body.push(0);
                write_mqtt_packet(&mut b, 0x82, &body);
                b
            }
        }
    }

    /// The bytes that open a publishing connection (none for HTTP).
    pub fn publisher_greeting(&self, index: usize) -> Vec<u8> {
        match self.scheme {
            WireScheme::Http => Vec::new(),
            WireScheme::Nats => {
                b"CONNECT {\"verbose\":true,\"pedantic\":false}\r\nPING\r\n".to_vec()
            }
            WireScheme::Mqtt => render_mqtt_connect("p", index),
        }
    }

    pub fn request(
        &self,
        headers: &[&str],
        body: &str,
        size: usize,
        who: &MessageParties,
    ) -> RequestForm {
        let head = match self.scheme {
            WireScheme::Http => {
                let head: String = headers.iter().map(|h| format!("{h}\r\n")).collect();
                format!(
                    "POST {} HTTP/1.1\r\nHost: {}\r\n{head}Content-Length: ",
                    self.path, self.addr
                )
            }
            WireScheme::Nats => format!("PUB {} ", self.path),
            WireScheme::Mqtt => self.path.clone(),
        };
        RequestForm {
            scheme: self.scheme,
            head: RequestTemplate::bind(&head, who, 0),
            body: RequestTemplate::bind(body, who, size),
        }
    }
}

fn render_text(t: &str, who: &MessageParties) -> String {
    let mut out = Vec::new();
    let mut m = MessageStamp {
        ts: 0,
        publisher: 0,
        seq: 0,
        rng: crate::measurements::monotonic_nanos() | 1,
    };
    RequestTemplate::bind(t, who, 0).render(&mut out, &mut m);
    String::from_utf8(out).unwrap_or_default()
}

/// One kind of message, ready to be rendered again and again.
pub struct RequestForm {
    scheme: WireScheme,
    head: RequestTemplate,
    body: RequestTemplate,
}

impl RequestForm {
    pub fn render(&self, out: &mut Vec<u8>, scratch: &mut Vec<u8>, m: &mut MessageStamp) {
        out.clear();
        scratch.clear();
        self.body.render(scratch, m);
        if self.scheme == WireScheme::Mqtt {
            let mut topic = Vec::new();
            let mut body = Vec::new();
            self.head.render(&mut topic, m);
            write_mqtt_text(&mut body, &topic);
            body.extend_from_slice(&((m.seq % 65535 + 1) as u16).to_be_bytes());
            body.extend_from_slice(scratch);
            return write_mqtt_packet(out, 0x32, &body);
        }
        self.head.render(out, m);
        write_decimal(out, scratch.len() as u64);
        out.extend_from_slice(if self.scheme == WireScheme::Http {
            b"\r\n\r\n"
        } else {
            b"\r\n"
        });
        out.extend_from_slice(scratch);
        if self.scheme == WireScheme::Nats {
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// Has the server accepted the subscription?
pub fn check_subscription(scheme: WireScheme, buf: &[u8]) -> Option<Result<(), String>> {
    let ok = match scheme {
        WireScheme::Http => find_bytes(buf, b"\r\n\r\n").map(|_| buf.get(9..12) == Some(b"200")),
        WireScheme::Nats => {
            find_bytes(buf, b"PONG\r\n").map(|_| find_bytes(buf, b"-ERR").is_none())
        }
        WireScheme::Mqtt => buf.get(8).map(|code| buf[3] == 0 && *code < 3),
    };
    ok.map(|ok| {
        if ok {
            Ok(())
        } else {
            Err(String::from_utf8_lossy(buf).into_owned())
        }
    })
}

/// Is the publishing connection ready? (HTTP ones always are.)
pub fn check_publisher(scheme: WireScheme, buf: &[u8]) -> Option<usize> {
    match scheme {
        WireScheme::Http => Some(0),
        WireScheme::Nats => find_bytes(buf, b"PONG\r\n").map(|i| i + 6),
        WireScheme::Mqtt => (buf.len() >= 4).then_some(4),
    }
}

/// One whole acknowledgement at the start of `buf`: Some((its length, was it a success)).
pub fn parse_ack(scheme: WireScheme, buf: &[u8]) -> Option<(usize, bool)> {
    match scheme {
        WireScheme::Http => parse_http_ack(buf),
        WireScheme::Nats => {
            let end = find_bytes(buf, b"\r\n")? + 2;
            match buf[0] {
                b'+' | b'-' => Some((end, buf[0] == b'+')),
                _ => parse_ack(scheme, &buf[end..]).map(|(n, ok)| (n + end, ok)), // a PING from the server
            }
        }
        WireScheme::Mqtt => (buf.len() >= 4).then(|| (4, buf[0] == 0x40)),
    }
}

fn parse_http_ack(buf: &[u8]) -> Option<(usize, bool)> {
    let end = find_bytes(buf, b"\r\n\r\n")? + 4;
    let status = buf.get(9..12)?;
    let mut length = 0usize;
    let mut chunked = false;
    for line in buf[..end].split(|&c| c == b'\n') {
        if line.len() > 16 && line[..15].eq_ignore_ascii_case(b"content-length:") {
            let digits = line[15..].iter().filter(|c| c.is_ascii_digit());
            length = digits.fold(0, |a, &c| a * 10 + (c - b'0') as usize);
        } else if line.len() > 18 && line[..18].eq_ignore_ascii_case(b"transfer-encoding:") {
            chunked = true;
        }
    }
    let total = match chunked {
        true => end + find_bytes(&buf[end - 2..], b"\r\n0\r\n\r\n")? + 5,
        false => end + if status == b"204" { 0 } else { length },
    };
    (buf.len() >= total).then_some((total, status[0] == b'2'))
}

pub fn find_bytes(hay: &[u8], needle: &[u8]) -> Option<usize> {
    let p = unsafe {
        libc::memmem(
            hay.as_ptr() as *const _,
            hay.len(),
            needle.as_ptr() as *const _,
            needle.len(),
        )
    };
    (!p.is_null()).then(|| p as usize - hay.as_ptr() as usize)
}

fn write_mqtt_text(out: &mut Vec<u8>, s: &[u8]) {
    out.extend_from_slice(&(s.len() as u16).to_be_bytes());
    out.extend_from_slice(s);
}

fn write_mqtt_packet(out: &mut Vec<u8>, kind: u8, body: &[u8]) {
    out.push(kind);
    let mut n = body.len();
    loop {
        let more = n >= 128;
        out.push((n % 128) as u8 | if more { 128 } else { 0 });
        n /= 128;
        if !more {
            break;
        }
    }
    out.extend_from_slice(body);
}

fn render_mqtt_connect(prefix: &str, index: usize) -> Vec<u8> {
    let mut body = b"\0\x04MQTT\x04\x02\0\0".to_vec();
    write_mqtt_text(&mut body, format!("{prefix}{index}").as_bytes());
    let mut out = Vec::new();
    write_mqtt_packet(&mut out, 0x10, &body);
    out
}

/// The key file: a JSON array of {"id": ..., "key": ...}; strings without escapes.
pub fn read_keys(path: &str) -> Vec<BenchAgent> {
    let s = std::fs::read_to_string(path)
        .unwrap_or_else(|e| crate::exit_with_error(&format!("{path}: {e}")));
    s.split('}')
        .filter_map(|o| {
            Some(BenchAgent {
                id: find_json_text(o, "id")?,
                key: find_json_text(o, "key")?,
            })
        })
        .collect()
}

/// The string value of the first `"name"` in a JSON text.
pub fn find_json_text(json: &str, name: &str) -> Option<String> {
    let after = json.split_once(&format!("\"{name}\""))?.1;
    let value = after
        .trim_start()
        .strip_prefix(':')?
        .trim_start()
        .strip_prefix('"')?;
    Some(value.split_once('"')?.0.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledgements() {
        let one = b"HTTP/1.1 202 Accepted\r\ncontent-length: 2\r\n\r\nok";
        assert_eq!(parse_ack(WireScheme::Http, one), Some((one.len(), true)));
        assert_eq!(parse_ack(WireScheme::Http, &one[..one.len() - 1]), None);
        let chunked = b"HTTP/1.1 500 X\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
        assert_eq!(
            parse_ack(WireScheme::Http, chunked),
            Some((chunked.len(), false))
        );
        assert_eq!(
            parse_ack(WireScheme::Http, b"HTTP/1.1 204 No\r\n\r\n"),
            Some((19, true))
        );
        assert_eq!(
            parse_ack(WireScheme::Nats, b"PING\r\n+OK\r\n"),
            Some((11, true))
        );
    }
}
