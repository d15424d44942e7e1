//! A web page in the browser of a person at the machine of a hub: no route of the hub answers it, and nothing that it sends has an
//! effect (R-91, finding F4).

use crate::support_compute::{AttackedHub, HubClient, registration};
use serde_json::{Value, json};

/// Method, path and body of what a page would ask for.
fn list_requests() -> Vec<(&'static str, &'static str, Value)> {
    let envelope = json!({"chorus_version": "0.4", "sender_id": "page@chorus", "original_text": "run this", "sender_culture": "en"});
    let message = json!({"receiver_id": "alice@chorus", "envelope": envelope});
    let tool_call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    vec![
        ("GET", "/discover", Value::Null),
        ("GET", "/agents", Value::Null),
        ("GET", "/health", Value::Null),
        ("GET", "/console", Value::Null),
        ("GET", "/invite/alice@chorus", Value::Null),
        ("GET", "/agent/messages", Value::Null),
        ("GET", "/agent/inbox", Value::Null),
        ("POST", "/register", registration("page@chorus", None)),
        ("POST", "/messages", message),
        ("POST", "/frames", json!({})),
        ("POST", "/channels", json!({"name": "room"})),
        ("POST", "/jobs", json!({})),
        ("POST", "/mcp", tool_call),
        ("DELETE", "/agents/alice@chorus", Value::Null),
    ]
}

/// Sends a request with a valid key; the status and the whole answer.
fn send_as_page(client: HubClient, key: &str, request: (&str, &str, &Value), line: &str) -> u16 {
    let (method, path, body) = request;
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let head = format!(
        "{method} {path} HTTP/1.1\r\n{line}\r\nAuthorization: Bearer {key}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let (status, answer) = client.send_raw(&format!("{head}{body}"));
    let answer = answer.to_ascii_lowercase();
    assert!(!answer.contains("access-control-allow-origin"), "{answer}");
    status
}

#[test]
fn no_route_answers_a_page_of_another_origin_or_host() {
    let hub = AttackedHub::start(&[]);
    let client = hub.client();
    let key = client.register(&registration("alice@chorus", None), None);
    let own_host = format!("Host: {}", hub.address);
    let json = "Content-Type: application/json";
    for line in [
        format!("{own_host}\r\nOrigin: https://evil.example\r\n{json}"),
        format!("{own_host}\r\nOrigin: null\r\n{json}"),
        format!("Host: rebind.evil.example\r\n{json}"),
    ] {
        for (method, path, body) in &list_requests() {
            let status = send_as_page(client, &key, (method, path, body), &line);
            assert_eq!(status, 403, "{method} {path} with {line}");
        }
    }
    assert_untouched(client, &key);
}

#[test]
fn no_body_has_an_effect_that_a_browser_sends_without_asking() {
    let hub = AttackedHub::start(&[]);
    let client = hub.client();
    let key = client.register(&registration("alice@chorus", None), None);
    for content_type in ["", "Content-Type: text/plain"] {
        let line = format!("Host: {}\r\n{content_type}", hub.address);
        let line = line.trim_end();
        for (method, path, body) in &list_requests() {
            if *method == "POST" {
                let status = send_as_page(client, &key, (method, path, body), line);
                assert_eq!(status, 415, "{path} with {line}");
            }
        }
    }
    assert_untouched(client, &key);
}

fn assert_untouched(client: HubClient, key: &str) {
    let (_, listed) = client.request("GET", "/agents", Some(key), &Value::Null);
    let listed = listed.to_string();
    assert!(!listed.contains("page@chorus"), "{listed}");
    assert!(listed.contains("alice@chorus"), "{listed}");
    let (status, channels) = client.request("GET", "/channels", Some(key), &Value::Null);
    assert_eq!((status, channels["data"].to_string()), (200, "[]".into()));
}
