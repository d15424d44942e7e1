//! Rooms, those in them from here and elsewhere, callbacks of both kinds, and the hub as the host of an agent.

use super::envelope::agent;
use super::mcp;
use super::tale::{Listening, Tale, ask};
use crate::actors::{Reply, Webhook};
use crate::hub::OPERATOR_KEY;
use serde_json::{Value, json};

pub async fn tell(tale: &mut Tale) {
    let (ivan, judy) = (
        agent(tale, "ivan@chorus").await,
        agent(tale, "judy@chorus").await,
    );
    let room = rooms(tale, &ivan, &judy).await;
    let mut oak = Webhook::that(Reply::typed(200, "text/plain", "")).await;
    tale.names
        .call(&format!("127.0.0.1:{}", oak.port()), "oaks-place");
    members(tale, &ivan, &judy, &room, oak.port()).await;
    let mut stream = tale
        .opens(ask("GET", &format!("{room}/stream")).key(&ivan))
        .await;
    let mut inbox = tale.opens(ask("GET", "/agent/inbox").key(&judy)).await;
    let delivery = said(
        tale,
        &ivan,
        &judy,
        &room,
        (&mut stream, &mut inbox),
        &mut oak,
    )
    .await;
    callbacks(tale, &ivan, &room, &delivery).await;
    standing(tale, &ivan, &judy, &room, &mut inbox).await;
    mcp::in_a_room(tale, &room, &delivery).await;
    shelves(tale, &ivan, &room).await;
    hosted(tale, &judy, &mut inbox).await;
    drop(inbox);
    closed(tale, &ivan, &judy, &room, stream, &delivery).await;
}

async fn rooms(tale: &mut Tale, ivan: &str, judy: &str) -> String {
    let new = json!({"name": "ops-team", "service": "Chorus", "context": "Where the team talks."});
    let room = format!(
        "/channels/{}",
        tale.post(ivan, "/channels", &new)
            .await
            .is(201)
            .at("/data/id")
    );
    let second = tale
        .post(OPERATOR_KEY, "/channels", &json!({"name": "desk"}))
        .await
        .is(201)
        .at("/data/id");
    for (key, body) in [
        ("", new),
        (ivan, json!({})),
        (ivan, json!({"name": "a\u{0}b"})),
        (ivan, json!({"name": 5})),
    ] {
        tale.post(key, "/channels", &body).await;
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
            tale.get(key, path).await;
        }
        tale.tell(
            ask("PATCH", &room)
                .key(key)
                .json(&json!({"context": format!("as {}", key.len())})),
        )
        .await;
    }
    tale.get(OPERATOR_KEY, &format!("/channels?after={second}"))
        .await
        .is(200);
    tale.tell(ask("PATCH", &room).key(ivan).json(&json!({"name": null})))
        .await
        .is(400);
    room
}

async fn members(tale: &mut Tale, ivan: &str, judy: &str, room: &str, port: u16) {
    let path = format!("{room}/members");
    let away = format!("http://127.0.0.1:{port}/inbox/sk_a1b2c3d4e5f6");
    for (key, body) in [
        (judy, json!({"agent_id": "judy@chorus"})),
        (ivan, json!({"agent_id": "judy@chorus"})),
        (ivan, json!({"agent_id": "judy@chorus"})),
        (ivan, json!({"agent_id": "nobody@chorus"})),
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
        tale.post(key, &path, &body).await;
    }
    for key in ["", ivan, judy, OPERATOR_KEY] {
        tale.get(key, &path).await;
    }
}

/// What is said reaches a stream, an inbox and somewhere else; the last delivery to an inbox comes back.
async fn said(
    tale: &mut Tale,
    ivan: &str,
    judy: &str,
    room: &str,
    (stream, inbox): (&mut Listening, &mut Listening),
    oak: &mut Webhook,
) -> Value {
    let path = format!("{room}/messages");
    let mut delivery = Value::Null;
    for text in ["hello, all of you", "@judy and @oak, look"] {
        tale.post(ivan, &path, &json!({"content": text}))
            .await
            .is(201);
        tale.hears(stream, 1).await;
        delivery = tale.hears(inbox, 1).await;
        let heard = oak.hears().await;
        tale.enter(
            "heard at oak's",
            &format!("{}\n\n{}", heard.head, heard.text),
        );
    }
    for number in ["1", "1", "2"] {
        let once = ask("POST", &path)
            .key(judy)
            .header("idempotency-key", "r-1");
        tale.tell(once.json(&json!({"content": number, "parts": [{"text": "more"}]})))
            .await;
    }
    tale.hears(stream, 1).await;
    for body in [
        json!({}),
        json!({"content": 5}),
        json!({"content": "a\u{0}b"}),
        json!({"content": "x", "parts": [{}]}),
    ] {
        tale.post(ivan, &path, &body).await;
    }
    tale.post("", &path, &json!({"content": "x"})).await.is(401);
    for key in [ivan, judy, OPERATOR_KEY, ""] {
        for query in [
            "",
            "?limit=1",
            "?since=0&limit=2",
            "?before=9999",
            "?since=1&before=2",
            "?since=x",
        ] {
            tale.get(key, &format!("{path}{query}")).await;
        }
    }
    let replayed = ask("GET", &format!("{room}/stream")).key(judy);
    let mut replayed = tale.opens(replayed.header("last-event-id", "0")).await;
    tale.hears(&mut replayed, 5).await;
    tale.tell(
        ask("GET", &format!("{room}/stream"))
            .key(judy)
            .header("last-event-id", "x"),
    )
    .await
    .is(400);
    tale.get("", &format!("{room}/stream")).await.is(401);
    tale.get(ivan, "/channels/ch_none/stream").await.is(404);
    delivery
}

/// A path below this hub.
pub fn below(tale: &Tale, url: &Value) -> String {
    url.as_str()
        .unwrap()
        .strip_prefix(&tale.hub.url)
        .expect("on this hub")
        .to_owned()
}

async fn callbacks(tale: &mut Tale, ivan: &str, room: &str, delivery: &Value) {
    let back = below(tale, &delivery["callback"]);
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
        tale.post("", &back, &event).await;
    }
    let lines = "{\"type\":\"status\",\"status\":\"a\"}\n{\"type\":\"message\",\"content\":\"b\"}\n{\"type\":\"dance\"}\n";
    tale.tell(
        ask("POST", &back)
            .header("content-type", "application/x-ndjson")
            .bytes(lines),
    )
    .await;
    tale.post(
        "",
        &format!("{room}/inbox/tok_none"),
        &json!({"type": "status", "status": "x"}),
    )
    .await
    .is(404);
    tale.post(
        "",
        &format!("{room}/inbox/%00"),
        &json!({"type": "status", "status": "x"}),
    )
    .await;
    tale.get(ivan, &format!("{room}/messages")).await.is(200);
}

async fn standing(tale: &mut Tale, ivan: &str, judy: &str, room: &str, inbox: &mut Listening) {
    for (key, name) in [
        (judy, "judy"),
        (ivan, "judy"),
        (ivan, "oak"),
        (ivan, "ivan"),
        (ivan, "none"),
        (ivan, "%00"),
        ("", "judy"),
    ] {
        let told = tale
            .post(key, &format!("{room}/members/{name}/callback"), &json!({}))
            .await;
        if told.status == 201 {
            let back = below(tale, &told.json()["data"]["callback"]);
            tale.post(
                "",
                &back,
                &json!({"type": "message", "content": format!("@judy, by itself, {name}")}),
            )
            .await
            .is(200);
            if name == "oak" {
                tale.hears(inbox, 1).await;
            }
        }
    }
}

async fn shelves(tale: &mut Tale, ivan: &str, room: &str) {
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
            tale.get(key, &format!("{room}/artifacts{rest}")).await;
        }
    }
}

async fn hosted(tale: &mut Tale, judy: &str, inbox: &mut Listening) {
    tale.post("", "/agent/connection", &json!({})).await.is(401);
    tale.post(OPERATOR_KEY, "/agent/connection", &json!({}))
        .await;
    let told = tale
        .post(judy, "/agent/connection", &json!({}))
        .await
        .is(200);
    let place = below(tale, &told.json()["data"]["connection_string"]);
    let delivery = json!({"channel": {"id": "c1"}, "message": {"id": "m1", "sender": "alice", "content": "from a service"},
        "callback": "https://service.example.com/cb/tok_1"});
    for _ in 0..2 {
        tale.post("", &place, &delivery).await.is(200);
    }
    tale.hears(inbox, 1).await;
    tale.post("", &place, &json!({"channel": {}})).await.is(400);
    tale.post("", "/inbox/sk_none", &delivery).await.is(404);
    tale.post("", "/inbox/%00", &delivery).await;
    tale.delete("", "/agent/connection").await.is(401);
    for _ in 0..2 {
        tale.delete(judy, "/agent/connection").await;
    }
    tale.post("", &place, &delivery).await.is(404);
}

async fn closed(
    tale: &mut Tale,
    ivan: &str,
    judy: &str,
    room: &str,
    stream: Listening,
    delivery: &Value,
) {
    let back = below(tale, &delivery["callback"]);
    for (key, name) in [
        ("", "judy"),
        (judy, "oak"),
        (ivan, "none"),
        (ivan, "ivan"),
        (ivan, "%00"),
        (judy, "judy"),
        (ivan, "oak"),
    ] {
        tale.delete(key, &format!("{room}/members/{name}")).await;
    }
    tale.post(
        "",
        &back,
        &json!({"type": "message", "content": "too late"}),
    )
    .await
    .is(410);
    tale.get(judy, room).await.is(404);
    for key in ["", judy, ivan] {
        tale.delete(key, room).await;
    }
    tale.ends(stream).await;
    tale.get(ivan, room).await.is(404);
    tale.delete(ivan, "/channels/%00").await;
}
