//! Services that deliver under one channel id: each gets only its own answers.

use crate::actors::{Scene, TIMEOUT};
use std::io::{Read, Write};

/// Posts a delivery to a connection string, as a service does.
fn deliver(connection: &str, callback: &str, content: &str) {
    let body = serde_json::json!({ "channel": { "id": "C1", "name": "board" }, "callback": callback,
        "message": { "id": content, "sender": "operator", "content": content } });
    post_delivery(connection, "", &body.to_string());
}

/// The same with further headers; also a call of the tools that came with a delivery.
pub fn post_delivery(connection: &str, headers: &str, body: &str) {
    let (address, path) = connection
        .strip_prefix("http://")
        .and_then(|rest| rest.split_once('/'))
        .unwrap();
    let mut socket = std::net::TcpStream::connect(address).unwrap();
    let head = format!(
        "POST /{path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\n{headers}content-length: {}\r\n\r\n",
        body.len()
    );
    socket.write_all((head + body).as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 2"), "{answer}");
}

/// A service that takes one answer: its callback, and what was posted there.
fn start_service() -> (String, std::sync::mpsc::Receiver<String>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let callback = format!("http://{}/answers/tok_1", listener.local_addr().unwrap());
    let (answer_sender, answers) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let mut request = String::new();
        let mut buffer = [0; 4096];
        while !request.ends_with('}') {
            let read = socket.read(&mut buffer).unwrap();
            request.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
        }
        let answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
        socket.write_all(answer.as_bytes()).unwrap();
        answer_sender.send(request).unwrap();
    });
    (callback, answers)
}

// A service may deliver under any channel id; the answer goes to the service that the agent means.
#[test]
fn a_channel_id_of_two_services_must_be_named_with_its_service() {
    let scene = Scene::open();
    let bob = scene.agent("bob");
    let connection = bob.run(&["connection"]).ok().out.trim().to_owned();
    let (callback, answers) = start_service();
    deliver(&connection, &callback, "how much?");
    deliver(&connection, "http://127.0.0.1:1/answers/tok_2", "tell us");
    let heard = bob.json(&["listen", "--count", "2"]);
    assert_eq!(heard[1]["origin"], "http://127.0.0.1:1");
    for channel in ["C1", "board"] {
        let asked = bob.run(&["say", "--channel", channel, "42"]);
        assert_eq!(asked.code, 1, "{asked:?}");
        assert!(
            asked
                .err
                .contains("--channel C1 --service http://127.0.0.1:1"),
            "{asked:?}"
        );
        assert!(!asked.err.contains("tok_"), "{asked:?}");
    }
    let service = heard[0]["origin"].as_str().unwrap();
    bob.run(&["say", "--channel", "C1", "--service", service, "42"])
        .ok();
    let posted = answers.recv_timeout(TIMEOUT).unwrap();
    assert!(
        posted.starts_with("POST /answers/tok_1") && posted.contains("42"),
        "{posted}"
    );
    deliver(&connection, "http://127.0.0.1:1/answers/tok_3", "once more");
    let shown = bob.run(&["listen", "--once"]).ok().out;
    assert_eq!(shown, "#board at http://127.0.0.1:1 operator: once more\n");
}

// CHN-34: a delivery that the service did not sign is not shown and not answered.
#[test]
fn with_the_secret_of_a_service_only_what_it_signed_is_heard() {
    const SECRET: &str = "whsec_dGhpcyBpcyBub3QgYSByZWFsIHNlY3JldA==";
    let scene = Scene::open();
    let bob = scene.agent("bob");
    let connection = bob.run(&["connection"]).ok().out.trim().to_owned();
    let origin = "http://127.0.0.1:1";
    bob.run_with_input(&["connection", "--verify", origin], SECRET)
        .ok();
    deliver(&connection, "http://127.0.0.1:1/answers/tok_1", "forged");
    let body =
        serde_json::json!({"channel": {"id": "C1"}, "callback": "http://127.0.0.1:1/answers/tok_2",
        "message": {"id": "2", "sender": "operator", "content": "signed"}})
        .to_string();
    let signature = standardwebhooks::Webhook::new(SECRET)
        .unwrap()
        .sign("2", 7, body.as_bytes())
        .unwrap();
    let headers =
        format!("webhook-id: 2\r\nwebhook-timestamp: 7\r\nwebhook-signature: {signature}\r\n");
    post_delivery(&connection, &headers, &body);
    let heard = bob.json(&["listen", "--once"]);
    assert_eq!(heard[0]["delivery"]["message"]["content"], "signed");
    assert_eq!(heard[0]["verified"], true);
    bob.run(&["connection", "--no-verify", origin]).ok();
    deliver(&connection, "http://127.0.0.1:1/answers/tok_3", "unchecked");
    let heard = bob.json(&["listen", "--once"]);
    assert_eq!(heard[0]["delivery"]["message"]["content"], "unchecked");
    assert_eq!(heard[0].get("verified"), None);
}

// a relay serves several services at one origin. A service chooses its name, so the name alone selects none.
#[test]
fn two_services_of_one_origin_are_answered_by_origin_and_name() {
    let scene = Scene::open();
    let bob = scene.agent("bob");
    let connection = bob.run(&["connection"]).ok().out.trim().to_owned();
    let (callback, answers) = start_service();
    let origin = callback.strip_suffix("/answers/tok_1").unwrap();
    for (service, token) in [("Slack", "tok_1"), ("Discord", "tok_2")] {
        let body = serde_json::json!({"channel": {"id": "C1", "service": service}, "callback": format!("{origin}/answers/{token}"),
            "message": {"id": "1", "sender": "operator", "content": service}});
        post_delivery(&connection, "", &body.to_string());
    }
    bob.run(&["listen", "--count", "2"]).ok();
    let asked = bob.run(&["say", "--channel", "C1", "42"]);
    assert_eq!(asked.code, 1, "{asked:?}");
    for service in ["Slack", "Discord"] {
        let choice = format!("--channel C1 --service '{origin} {service}'");
        assert!(asked.err.contains(&choice), "{asked:?}");
    }
    let by_name = bob.run(&["say", "--channel", "C1", "--service", "Slack", "42"]);
    assert_eq!(by_name.code, 1, "{by_name:?}");
    let slack = format!("{origin} Slack");
    bob.run(&["say", "--channel", "C1", "--service", &slack, "42"])
        .ok();
    let posted = answers.recv_timeout(TIMEOUT).unwrap();
    assert!(
        posted.starts_with("POST /answers/tok_1") && posted.contains("42"),
        "{posted}"
    );
}
