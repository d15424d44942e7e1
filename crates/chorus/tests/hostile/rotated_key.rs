//! A thief with a copy of a key: after the rotation nothing works that was made with it (R-94, finding F6).

use crate::support_compute::{AttackedHub, HubClient, registration};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Opens the inbox stream with a key and reads its first event.
fn open_inbox(hub: &AttackedHub, key: &str) -> TcpStream {
    let mut stream = TcpStream::connect(hub.address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    let request = format!(
        "GET /agent/inbox HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {key}\r\n\r\n",
        hub.address
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut start = [0; 12];
    stream.read_exact(&mut start).unwrap();
    assert_eq!(&start, b"HTTP/1.1 200");
    stream
}

fn deliver(client: HubClient, connection: &str, id: &str) -> u16 {
    let path = connection.split_once("/inbox/").unwrap().1;
    let delivery = json!({"channel": {"id": "c"}, "callback": "https://service.example.com/cb",
        "message": {"id": id, "sender": "x", "content": "x"}});
    let path = format!("/inbox/{path}");
    client.request("POST", &path, None, &delivery).0
}

#[test]
fn nothing_that_was_made_with_the_old_key_works_after_a_rotation() {
    let hub = AttackedHub::start(&[]);
    let client = hub.client();
    let stolen = client.register(&registration("alice@chorus", None), None);
    let as_thief = |path: &str| client.request("POST", path, Some(&stolen), &json!({}));
    let (_, connection) = as_thief("/agent/connection");
    let connection = connection["data"]["connection_string"].as_str().unwrap();
    let (_, session) = as_thief("/agent/session");
    let session = session["data"]["session_token"].as_str().unwrap();
    let mut stream = open_inbox(&hub, &stolen);
    assert_eq!(deliver(client, connection, "before"), 200);

    let again = registration("alice@chorus", None);
    let (status, rotated) = client.request("POST", "/register", Some(&stolen), &again);
    assert_eq!(status, 200, "{rotated}");
    let renewed = rotated["data"]["api_key"].as_str().unwrap();

    // The stream ends by itself and says why.
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("key_rotated"), "{rest}");
    assert_eq!(deliver(client, connection, "after"), 404);
    let read = |path: &str, key: Option<&str>| client.request("GET", path, key, &Value::Null).0;
    assert_eq!(read(&format!("/agent/inbox?session={session}"), None), 401);
    assert_eq!(read("/agent/messages", Some(&stolen)), 401);
    assert_eq!(read("/agent/messages", Some(renewed)), 200);
}
