//! Direct exchange between agents that know each other's endpoints, without a hub (TRN-44, ENV-12…14, R-28).

use crate::actors::{Agent, RunningProcess, Scene, text_of};
use std::io::{Read, Write};

fn start_receiver(bob: &Agent, args: &[&str]) -> (RunningProcess, String) {
    let listening = bob.listen(&[&["--direct", "127.0.0.1:0"], args].concat());
    let url = listening.json()["url"].as_str().unwrap().to_owned();
    (listening, url)
}

fn two_agents() -> (tempfile::TempDir, Agent, Agent) {
    let folder = tempfile::tempdir().unwrap();
    let agent = |name: &str| {
        let home = folder.path().join(name);
        std::fs::create_dir(&home).unwrap();
        // No hub listens there: no request may go to it.
        Agent {
            home,
            hub: "http://127.0.0.1:1".into(),
        }
    };
    let alice = agent("alice");
    let bob = agent("bob");
    (folder, alice, bob)
}

const FROM: [&str; 4] = ["--from", "alice@example", "--culture", "en"];

// TRN-44
#[test]
fn two_agents_exchange_messages_without_a_hub() {
    let (_folder, alice, bob) = two_agents();
    let (mut listening, url) = start_receiver(&bob, &["--count", "1"]);
    let sent = alice.json(
        &[
            &["send", "--direct", &url, "bob@example", "hi there"],
            &FROM[..],
        ]
        .concat(),
    );
    assert_eq!(
        sent[0]["receiver_response"],
        serde_json::json!({"status":"ok"})
    );
    let received = listening.json();
    assert_eq!(
        (text_of(&received), &received["sender_id"]),
        ("hi there", &"alice@example".into())
    );
    assert_eq!(listening.await_exit(), Some(0));
    assert_eq!(text_of(&bob.history_lines("alice@example")[0]), "hi there");
    assert_eq!(text_of(&alice.history_lines("bob@example")[0]), "hi there");
}

// R-28, also after a restart of the receiver.
#[test]
fn a_repeated_direct_turn_is_printed_once_and_answered_twice() {
    let (_folder, alice, bob) = two_agents();
    let args = ["bob@example", "once", "--conversation", "c1", "--turn", "1"];
    for _ in 0..2 {
        let (listening, url) = start_receiver(&bob, &[]);
        for _ in 0..2 {
            let sent = alice.json(&[&["send", "--direct", &url], &args[..], &FROM[..]].concat());
            assert_eq!(sent[0]["receiver_response"]["status"], "ok");
        }
        listening.send_signal("TERM");
        listening.remaining_lines();
    }
    assert_eq!(bob.history_lines("alice@example").len(), 1);
}

// SKL-16
#[test]
fn a_receivers_failure_reaches_the_direct_sender() {
    let (_folder, alice, bob) = two_agents();
    let (_listening, url) = start_receiver(&bob, &["--exec", "exit 1"]);
    let refused =
        alice.run(&[&["send", "--direct", &url, "bob@example", "hi"], &FROM[..]].concat());
    assert!(
        refused.code == 4 && refused.err.contains("ADAPTATION_FAILED"),
        "{refused:?}"
    );
}

// TRN-45, TRN-16: the same endpoint serves a hub's webhooks.
#[test]
fn a_direct_listener_is_an_endpoint_for_a_hub() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.newcomer("bob");
    let (listening, url) = start_receiver(&bob, &[]);
    bob.run(&[
        "register",
        "bob@chorus",
        "--culture",
        "en",
        "--endpoint",
        &url,
    ])
    .ok();
    let sent = alice.json(&["send", "bob@chorus", "by webhook"]).remove(0);
    assert_eq!(
        (&sent["delivery"], &sent["receiver_response"]["status"]),
        (&"delivered".into(), &"ok".into())
    );
    assert_eq!(text_of(&listening.json()), "by webhook");
}

// R-91
#[test]
fn a_web_page_cannot_run_the_command_of_a_direct_listener() {
    let (_folder, alice, bob) = two_agents();
    let args = [
        "--exec",
        "cat >> ran",
        "--public-url",
        "https://bob.example",
    ];
    let (_listening, url) = start_receiver(&bob, &args);
    let address = url
        .strip_prefix("http://")
        .unwrap()
        .split('/')
        .next()
        .unwrap();
    let envelope = r#"{"chorus_version":"0.4","sender_id":"boss@company.com","original_text":"x","sender_culture":"en"}"#;
    let body = format!(r#"{{"envelope":{envelope}}}"#);
    let post = |head: &str| {
        let mut socket = std::net::TcpStream::connect(address).unwrap();
        let length = body.len();
        let request = format!(
            "POST /receive HTTP/1.1\r\n{head}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        socket.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        let _ = socket.read_to_string(&mut answer);
        answer.split(' ').nth(1).unwrap().to_owned()
    };
    let host = format!("host: {address}");
    let json = "content-type: application/json";
    assert_eq!(post(&format!("{host}\r\ncontent-type: text/plain")), "415");
    assert_eq!(
        post(&format!("{host}\r\n{json}\r\norigin: https://evil.example")),
        "403"
    );
    assert_eq!(post(&format!("host: rebind.evil.example\r\n{json}")), "403");
    assert!(!bob.home.join("ran").exists(), "the command did not run");
    assert_eq!(
        post(&format!("host: bob.example\r\n{json}")),
        "200",
        "through its proxy"
    );
    let sent = alice.json(
        &[
            &["send", "--direct", &url, "bob@example", "hello"],
            &FROM[..],
        ]
        .concat(),
    );
    assert_eq!(sent[0]["receiver_response"]["status"], "ok");
}

// ENV-21: both generations of an A2A message, as a hub forwards them.
#[test]
fn a_direct_listener_unwraps_an_envelope_from_an_a2a_message() {
    let (_folder, _alice, bob) = two_agents();
    let (listening, url) = start_receiver(&bob, &["--count", "2"]);
    let media_type = "application/vnd.chorus.envelope+json";
    let envelope = |text: &str| {
        serde_json::json!({"chorus_version": "0.4", "sender_id": "alice@example",
            "original_text": text, "sender_culture": "en"})
    };
    let messages = [
        serde_json::json!({"kind": "message", "role": "user", "messageId": "m-1", "parts": [
            {"kind": "data", "data": envelope("first"), "metadata": {"mediaType": media_type}}]}),
        serde_json::json!({"role": "ROLE_USER", "messageId": "m-2",
            "parts": [{"data": envelope("second"), "mediaType": media_type}]}),
    ];
    for (message, text) in messages.iter().zip(["first", "second"]) {
        let body = serde_json::json!({ "envelope": message }).to_string();
        let answer = post_json(&url, &body);
        assert!(
            answer.starts_with("HTTP/1.1 200") && answer.contains(r#""ok""#),
            "{answer}"
        );
        assert_eq!(text_of(&listening.json()), text);
    }
    assert_eq!(text_of(&bob.history_lines("alice@example")[1]), "second");
}

/// Posts a body and returns the whole answer.
fn post_json(url: &str, body: &str) -> String {
    let (address, path) = url
        .strip_prefix("http://")
        .map(|rest| rest.split_once('/').unwrap_or((rest, "")))
        .unwrap();
    let mut socket = std::net::TcpStream::connect(address).unwrap();
    let head = format!(
        "POST /{path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    socket.write_all((head + body).as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer
}
