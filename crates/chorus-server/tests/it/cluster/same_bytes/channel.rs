//! The channel part of the script: channels, local and remote members, callbacks of both kinds, the agent host.

use super::envelope::agent;
use super::mcp;
use super::transcript::{RawStream, Transcript, raw_request};
use crate::support::actors::{Reply, Webhook};
use crate::support::hub::OPERATOR_KEY;
use serde_json::{Value, json};

pub async fn run(transcript: &mut Transcript) {
    let (ivan, judy) = (
        agent(transcript, "ivan@chorus").await,
        agent(transcript, "judy@chorus").await,
    );
    let room = channels(transcript, &ivan, &judy).await;
    let mut oak = Webhook::replying(Reply::typed(200, "text/plain", "")).await;
    transcript
        .placeholders
        .assign(&format!("127.0.0.1:{}", oak.port()), "oaks-place");
    members(transcript, &ivan, &judy, &room, oak.port()).await;
    let mut stream = transcript
        .open_stream(raw_request("GET", &format!("{room}/stream")).key(&ivan))
        .await;
    let mut inbox = transcript
        .open_stream(raw_request("GET", "/agent/inbox").key(&judy))
        .await;
    let delivery = messages(
        transcript,
        &ivan,
        &judy,
        &room,
        (&mut stream, &mut inbox),
        &mut oak,
    )
    .await;
    callbacks(transcript, &ivan, &room, &delivery).await;
    persistent_callbacks(transcript, &ivan, &judy, &room, &mut inbox).await;
    mcp::in_a_room(transcript, &room, &delivery).await;
    artifacts(transcript, &ivan, &room).await;
    agent_host(transcript, &judy, &mut inbox).await;
    drop(inbox);
    deletion(transcript, &ivan, &judy, &room, stream, &delivery).await;
}

async fn channels(transcript: &mut Transcript, ivan: &str, judy: &str) -> String {
    let new = json!({"name": "ops-team", "service": "Chorus", "context": "Where the team talks."});
    let room = format!(
        "/channels/{}",
        transcript
            .post(ivan, "/channels", &new)
            .await
            .expect_status(201)
            .text_at("/data/id")
    );
    let second = transcript
        .post(OPERATOR_KEY, "/channels", &json!({"name": "desk"}))
        .await
        .expect_status(201)
        .text_at("/data/id");
    for (key, body) in [
        ("", new),
        (ivan, json!({})),
        (ivan, json!({"name": "a\u{0}b"})),
        (ivan, json!({"name": 5})),
    ] {
        transcript.post(key, "/channels", &body).await;
    }
    for key in ["", ivan, judy, OPERATOR_KEY] {
        for path in [
            "/channels",
            "/channels?limit=1",
            "/channels?after=none",
            "/channels?limit=x",
            "/channels/ch_none",
            &room,
        ] {
            transcript.get(key, path).await;
        }
        transcript
            .record(
                raw_request("PATCH", &room)
                    .key(key)
                    .json(&json!({"context": format!("as {}", key.len())})),
            )
            .await;
    }
    transcript
        .get(OPERATOR_KEY, &format!("/channels?after={second}"))
        .await
        .expect_status(200);
    transcript
        .record(
            raw_request("PATCH", &room)
                .key(ivan)
                .json(&json!({"name": null})),
        )
        .await
        .expect_status(400);
    room
}

async fn members(transcript: &mut Transcript, ivan: &str, judy: &str, room: &str, port: u16) {
    let path = format!("{room}/members");
    let away = format!("http://127.0.0.1:{port}/inbox/sk_a1b2c3d4e5f6");
    for (key, body) in [
        (judy, json!({"agent_id": "judy@chorus"})),
        (ivan, json!({"agent_id": "judy@chorus"})),
        (ivan, json!({"agent_id": "judy@chorus"})),
        (ivan, json!({"agent_id": "absent@chorus"})),
        (
            ivan,
            json!({"connection": away, "name": "oak", "deliver": "all", "signing_secret": "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"}),
        ),
        (ivan, json!({"connection": away, "name": "oak"})),
        (ivan, json!({"connection": "nowhere", "name": "elm"})),
        (ivan, json!({"connection": away, "name": "e\u{0}m"})),
        (ivan, json!({})),
        ("", json!({})),
    ] {
        transcript.post(key, &path, &body).await;
    }
    for (key, name) in [(ivan, "judy"), (judy, "judy"), (judy, "judy"), ("", "judy")] {
        transcript
            .post(key, &format!("{path}/{name}/accept"), &json!({}))
            .await;
    }
    for key in ["", ivan, judy, OPERATOR_KEY] {
        transcript.get(key, &path).await;
    }
}

/// What is said reaches a stream, an inbox and somewhere else; the last delivery to an inbox comes back.
async fn messages(
    transcript: &mut Transcript,
    ivan: &str,
    judy: &str,
    room: &str,
    (stream, inbox): (&mut RawStream, &mut RawStream),
    oak: &mut Webhook,
) -> Value {
    let path = format!("{room}/messages");
    let mut delivery = Value::Null;
    for text in ["hello, all of you", "@judy and @oak, look"] {
        transcript
            .post(ivan, &path, &json!({"content": text}))
            .await
            .expect_status(201);
        transcript.record_events(stream, 1).await;
        delivery = transcript.record_events(inbox, 1).await;
        let heard = oak.next_request().await;
        transcript.add_entry(
            "heard at oak's",
            &format!("{}\n\n{}", heard.head, heard.text),
        );
    }
    for number in ["1", "1", "2"] {
        let once = raw_request("POST", &path)
            .key(judy)
            .header("idempotency-key", "r-1");
        transcript
            .record(once.json(&json!({"content": number, "parts": [{"text": "more"}]})))
            .await;
    }
    transcript.record_events(stream, 1).await;
    for body in [
        json!({}),
        json!({"content": 5}),
        json!({"content": "a\u{0}b"}),
        json!({"content": "x", "parts": [{}]}),
    ] {
        transcript.post(ivan, &path, &body).await;
    }
    transcript
        .post("", &path, &json!({"content": "x"}))
        .await
        .expect_status(401);
    read_messages(transcript, ivan, judy, room).await;
    delivery
}

/// What was said is read in pages, and replayed by a stream.
async fn read_messages(transcript: &mut Transcript, ivan: &str, judy: &str, room: &str) {
    for key in [ivan, judy, OPERATOR_KEY, ""] {
        for query in [
            "",
            "?limit=1",
            "?since=0&limit=2",
            "?before=9999",
            "?since=1&before=2",
            "?since=x",
        ] {
            transcript
                .get(key, &format!("{room}/messages{query}"))
                .await;
        }
    }
    let replayed = raw_request("GET", &format!("{room}/stream")).key(judy);
    let mut replayed = transcript
        .open_stream(replayed.header("last-event-id", "0"))
        .await;
    transcript.record_events(&mut replayed, 5).await;
    transcript
        .record(
            raw_request("GET", &format!("{room}/stream"))
                .key(judy)
                .header("last-event-id", "x"),
        )
        .await
        .expect_status(400);
    transcript
        .get("", &format!("{room}/stream"))
        .await
        .expect_status(401);
    transcript
        .get(ivan, "/channels/ch_none/stream")
        .await
        .expect_status(404);
}

/// A path below this hub.
pub fn below(transcript: &Transcript, url: &Value) -> String {
    url.as_str()
        .unwrap()
        .strip_prefix(&transcript.hub.url)
        .expect("on this hub")
        .to_owned()
}

async fn callbacks(transcript: &mut Transcript, ivan: &str, room: &str, delivery: &Value) {
    let back = below(transcript, &delivery["callback"]);
    for event in [
        json!({"type": "status", "status": "reading"}),
        json!({"type": "tool_call", "name": "search", "id": "c1", "args": {"q": "x"}}),
        json!({"type": "tool_result", "id": "c1", "content": "found"}),
        json!({"type": "error", "message": "oh", "code": "x"}),
        json!({"type": "message", "content": "done", "agent": {"name": "Judy", "capabilities": ["x"]}}),
        json!({"type": "dance"}),
        json!({"type": "message"}),
        json!([]),
    ] {
        transcript.post("", &back, &event).await;
    }
    let lines = "{\"type\":\"status\",\"status\":\"a\"}\n{\"type\":\"message\",\"content\":\"b\"}\n{\"type\":\"dance\"}\n";
    transcript
        .record(
            raw_request("POST", &back)
                .header("content-type", "application/x-ndjson")
                .bytes(lines),
        )
        .await;
    transcript
        .post(
            "",
            &format!("{room}/inbox/tok_none"),
            &json!({"type": "status", "status": "x"}),
        )
        .await
        .expect_status(404);
    transcript
        .post(
            "",
            &format!("{room}/inbox/%00"),
            &json!({"type": "status", "status": "x"}),
        )
        .await;
    transcript
        .get(ivan, &format!("{room}/messages"))
        .await
        .expect_status(200);
}

async fn persistent_callbacks(
    transcript: &mut Transcript,
    ivan: &str,
    judy: &str,
    room: &str,
    inbox: &mut RawStream,
) {
    for (key, name) in [
        (judy, "judy"),
        (ivan, "judy"),
        (ivan, "oak"),
        (ivan, "ivan"),
        (ivan, "none"),
        (ivan, "%00"),
        ("", "judy"),
    ] {
        let response = transcript
            .post(key, &format!("{room}/members/{name}/callback"), &json!({}))
            .await;
        if response.status == 201 {
            let back = below(transcript, &response.json()["data"]["callback"]);
            transcript
                .post(
                    "",
                    &back,
                    &json!({"type": "message", "content": format!("@judy, by itself, {name}")}),
                )
                .await
                .expect_status(200);
            if name == "oak" {
                transcript.record_events(inbox, 1).await;
            }
        }
    }
}

async fn artifacts(transcript: &mut Transcript, ivan: &str, room: &str) {
    let new = json!({"slug": "plan", "content": "one"});
    for status in [201, 409] {
        let path = format!("{room}/artifacts");
        let made = transcript.post(ivan, &path, &new);
        made.await.expect_status(status);
    }
    let edit = json!({"version": 1, "find": "one", "replace": "two"});
    for status in [200, 409] {
        let path = format!("{room}/artifacts/plan");
        let edited = raw_request("PATCH", &path).key(ivan).json(&edit);
        transcript.record(edited).await.expect_status(status);
    }
    for (name, status) in [("trace.bin", 200), ("none", 404)] {
        let path = format!("{room}/files/{name}");
        let file = transcript.get(ivan, &path);
        file.await.expect_status(status);
    }
    for (name, status) in [("oak", 200), ("ivan", 409), ("none", 404)] {
        let path = format!("{room}/members/{name}");
        let change = raw_request("PATCH", &path).key(ivan);
        let change = change.json(&json!({"deliver": "mentions"}));
        transcript.record(change).await.expect_status(status);
    }
    for key in [ivan, "", OPERATOR_KEY] {
        for rest in [
            "",
            "/spec",
            "/spec?version=1",
            "/spec?version=9",
            "/spec?version=x",
            "/none",
            "/%00",
        ] {
            transcript
                .get(key, &format!("{room}/artifacts{rest}"))
                .await;
        }
    }
}

async fn agent_host(transcript: &mut Transcript, judy: &str, inbox: &mut RawStream) {
    transcript
        .post("", "/agent/connection", &json!({}))
        .await
        .expect_status(401);
    transcript
        .post(OPERATOR_KEY, "/agent/connection", &json!({}))
        .await;
    let response = transcript
        .post(judy, "/agent/connection", &json!({}))
        .await
        .expect_status(200);
    let place = below(transcript, &response.json()["data"]["connection_string"]);
    let delivery = json!({"channel": {"id": "c1"}, "message": {"id": "m1", "sender": "alice", "content": "from a service"},
        "callback": "https://service.example.com/cb/tok_1"});
    for _ in 0..2 {
        transcript
            .post("", &place, &delivery)
            .await
            .expect_status(200);
    }
    transcript.record_events(inbox, 1).await;
    transcript
        .post("", &place, &json!({"channel": {}}))
        .await
        .expect_status(400);
    transcript
        .post("", "/inbox/sk_none", &delivery)
        .await
        .expect_status(404);
    transcript.post("", "/inbox/%00", &delivery).await;
    transcript
        .delete("", "/agent/connection")
        .await
        .expect_status(401);
    for _ in 0..2 {
        transcript.delete(judy, "/agent/connection").await;
    }
    transcript
        .post("", &place, &delivery)
        .await
        .expect_status(404);
}

async fn deletion(
    transcript: &mut Transcript,
    ivan: &str,
    judy: &str,
    room: &str,
    stream: RawStream,
    delivery: &Value,
) {
    let back = below(transcript, &delivery["callback"]);
    for (key, name) in [
        ("", "judy"),
        (judy, "oak"),
        (ivan, "none"),
        (ivan, "ivan"),
        (ivan, "%00"),
        (judy, "judy"),
        (ivan, "oak"),
    ] {
        transcript
            .delete(key, &format!("{room}/members/{name}"))
            .await;
    }
    transcript
        .post(
            "",
            &back,
            &json!({"type": "message", "content": "too late"}),
        )
        .await
        .expect_status(410);
    transcript.get(judy, room).await.expect_status(404);
    for key in ["", judy, ivan] {
        transcript.delete(key, room).await;
    }
    transcript.record_end(stream).await;
    transcript.get(ivan, room).await.expect_status(404);
    transcript.delete(ivan, "/channels/%00").await;
}
