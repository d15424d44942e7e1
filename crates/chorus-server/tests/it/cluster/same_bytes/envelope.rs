//! The envelope part of the script: registration, directory, messages, streams, invites, removal.

use super::transcript::{Transcript, raw_request};
use super::{contact, webhook};
use crate::support::actors::{envelope, registration};
use crate::support::hub::OPERATOR_KEY;
use serde_json::{Value, json};

pub async fn run(transcript: &mut Transcript) {
    let (alice, bob) = registrations(transcript).await;
    directory(transcript, &alice).await;
    let bob = rotation(transcript, &bob).await;
    messages(transcript, &alice, &bob).await;
    let alice = streams(transcript, &alice, &bob).await;
    webhook::run(transcript, &alice).await;
    contact::run(transcript, &alice, &bob).await;
    invites(transcript, &alice).await;
    removal(transcript, &alice, &bob).await;
}

/// Registers and returns the key.
pub async fn agent(transcript: &mut Transcript, id: &str) -> String {
    transcript
        .post("", "/register", &registration(id))
        .await
        .expect_status(201)
        .text_at("/data/api_key")
}

pub fn message(from: &str, to: &str, text: &str) -> Value {
    json!({"receiver_id": to, "envelope": envelope(from, text)})
}

async fn registrations(transcript: &mut Transcript) -> (String, String) {
    let (alice, bob) = (
        agent(transcript, "alice@chorus").await,
        agent(transcript, "bob@chorus").await,
    );
    transcript
        .post("", "/register", &registration("alice@chorus"))
        .await
        .expect_status(409);
    transcript
        .post("", "/register", &json!({"agent_id": "x"}))
        .await
        .expect_status(400);
    transcript
        .post(
            "",
            "/register",
            &json!({"agent_id": "x\u{0}y@chorus", "agent_card": {}}),
        )
        .await;
    transcript
        .post("", "/register", &json!([1]))
        .await
        .expect_status(400);
    transcript
        .record(
            raw_request("POST", "/register")
                .header("content-type", "application/json")
                .bytes("{\"agent_id\":"),
        )
        .await
        .expect_status(400);
    transcript
        .record(
            raw_request("POST", "/register")
                .header("content-type", "text/plain")
                .bytes("{}"),
        )
        .await;
    transcript
        .record(raw_request("POST", "/register").bytes("{}"))
        .await;
    transcript.record(raw_request("POST", "/register")).await;
    let operated = json!({"agent_id": "dora@chorus", "endpoint": "http://127.0.0.1:9/", "agent_card": {"user_culture": "de"}});
    transcript
        .post(OPERATOR_KEY, "/agents", &operated)
        .await
        .expect_status(201);
    transcript
        .post(OPERATOR_KEY, "/agents", &operated)
        .await
        .expect_status(200);
    transcript
        .post(&alice, "/agents", &operated)
        .await
        .expect_status(403);
    transcript
        .post("", "/agents", &operated)
        .await
        .expect_status(401);
    (alice, bob)
}

async fn directory(transcript: &mut Transcript, alice: &str) {
    for path in [
        "/agents",
        "/agents?limit=1",
        "/agents?limit=0",
        "/agents/alice@chorus",
        "/agents/alice",
        "/agents/~alice",
        "/agents/absent@chorus",
        "/agents/%00",
        "/agents/%zz",
        "/discover",
        "/discover?limit=1",
        "/discover?limit=0",
        "/discover?language=en",
        "/discover?skill=none",
        "/discover?q=ali",
        "/invite/absent@chorus",
        "/invite/%zz",
    ] {
        for key in ["", alice, OPERATOR_KEY] {
            transcript.get(key, path).await;
        }
    }
    for accept in ["application/json", "text/html", "image/png"] {
        for path in [
            "/invite/alice@chorus",
            "/skill",
            "/skill/zh-CN",
            "/skill/xx",
            "/.well-known/chorus.json",
            "/.well-known/mcp.json",
            "/.well-known/alter.json",
        ] {
            transcript
                .record(raw_request("GET", path).header("accept", accept))
                .await;
        }
    }
    // a key that is none is ignored on a list, and refused for one record
    for (path, status) in [("/agents", 200), ("/agents/alice", 401)] {
        transcript
            .record(raw_request("GET", path).key("ca_00000000000000000000000000000000"))
            .await
            .expect_status(status);
    }
    transcript
        .record(raw_request("GET", "/agent/messages").header("authorization", "Basic eDp5"))
        .await
        .expect_status(401);
}

async fn rotation(transcript: &mut Transcript, bob: &str) -> String {
    let fresh = transcript
        .post(bob, "/register", &registration("bob@chorus"))
        .await
        .expect_status(200)
        .text_at("/data/api_key");
    transcript
        .get(bob, "/agent/messages")
        .await
        .expect_status(401);
    transcript
        .get(&fresh, "/agent/messages")
        .await
        .expect_status(200);
    fresh
}

async fn messages(transcript: &mut Transcript, alice: &str, bob: &str) {
    let send = |text: &str| message("alice@chorus", "bob@chorus", text);
    let first = transcript
        .post(alice, "/messages", &send("one"))
        .await
        .expect_status(202)
        .text_at("/data/trace_id");
    for number in ["1", "2"] {
        let once = raw_request("POST", "/messages")
            .key(alice)
            .header("idempotency-key", "k-1");
        transcript.record(once.json(&send(number))).await;
    }
    let once = raw_request("POST", "/messages")
        .key(alice)
        .header("idempotency-key", "k-1");
    transcript
        .record(once.json(&send("1")))
        .await
        .expect_status(202);
    send_refused_messages(transcript, alice).await;
    read_messages(transcript, alice, bob, &first).await;
    respond_to_message(transcript, alice, bob, &first).await;
}

async fn send_refused_messages(transcript: &mut Transcript, alice: &str) {
    let send = |text: &str| message("alice@chorus", "bob@chorus", text);
    transcript
        .post(
            alice,
            "/messages",
            &message("alice@chorus", "absent@chorus", "x"),
        )
        .await
        .expect_status(404);
    transcript
        .post(
            alice,
            "/messages",
            &message("bob@chorus", "alice@chorus", "x"),
        )
        .await
        .expect_status(403);
    transcript
        .post("", "/messages", &send("x"))
        .await
        .expect_status(401);
    transcript
        .post(
            OPERATOR_KEY,
            "/messages",
            &message("alice@chorus", "bob@chorus", "from the desk"),
        )
        .await;
    transcript
        .post(
            alice,
            "/messages",
            &json!({"receiver_id": "bob@chorus", "envelope": {"chorus_version": "0.4"}}),
        )
        .await
        .expect_status(400);
    transcript.post(alice, "/messages", &send("a\u{0}b")).await;
    transcript
        .post(alice, "/messages", &send(&"x".repeat(300_000)))
        .await
        .expect_status(413);
}

async fn read_messages(transcript: &mut Transcript, alice: &str, bob: &str, first: &str) {
    for who in [alice, bob, OPERATOR_KEY, ""] {
        transcript.get(who, &format!("/messages/{first}")).await;
        for query in [
            "",
            "?limit=1",
            "?since=0&limit=2",
            "?since=2026-03-20T10:00:00Z",
            "?since=never",
            "?limit=-1",
            "?peer=bob&limit=2",
            "?peer=bob&conversation_id=&text=ONE",
        ] {
            transcript
                .get(who, &format!("/agent/messages{query}"))
                .await;
        }
    }
    transcript
        .get(alice, "/messages/00000000-0000-7000-8000-000000000000")
        .await
        .expect_status(404);
    transcript.get(alice, "/messages/%00").await;
}

async fn respond_to_message(transcript: &mut Transcript, alice: &str, bob: &str, first: &str) {
    let shown = format!("/agent/messages/{first}/shown");
    for who in [alice, bob, bob, ""] {
        transcript.post(who, &shown, &json!({})).await;
    }
    let reply = format!("/agent/messages/{first}/response");
    transcript
        .post(alice, &reply, &json!({"status": "ok"}))
        .await;
    transcript
        .post(bob, &reply, &json!({"status": "perhaps"}))
        .await
        .expect_status(400);
    transcript
        .post(
            bob,
            &reply,
            &json!({"status": "error", "error_code": "INVALID_ENVELOPE", "detail": "why"}),
        )
        .await
        .expect_status(200);
    transcript.post(bob, &reply, &json!({"status": "ok"})).await;
    transcript.get(alice, &format!("/messages/{first}")).await;
}

async fn streams(transcript: &mut Transcript, alice: &str, bob: &str) -> String {
    let inbox = || raw_request("GET", "/agent/inbox").key(bob);
    let mut all = transcript
        .open_stream(inbox().header("last-event-id", "0"))
        .await;
    transcript.record_events(&mut all, 3).await;
    let mut live = transcript.open_stream(inbox()).await;
    let mut hers = transcript
        .open_stream(raw_request("GET", "/agent/inbox").key(alice))
        .await;
    let sent = transcript
        .post(alice, "/messages", &message("alice@chorus", "~bob", "live"))
        .await
        .expect_status(200)
        .text_at("/data/trace_id");
    transcript.record_events(&mut live, 1).await;
    transcript.record_events(&mut all, 1).await;
    transcript
        .post(
            bob,
            &format!("/agent/messages/{sent}/response"),
            &json!({"status": "ok"}),
        )
        .await
        .expect_status(200);
    transcript.record_events(&mut hers, 1).await;
    transcript
        .until(alice, &format!("/messages/{sent}"), |body| {
            body["data"]["status"] == "acknowledged"
        })
        .await;
    let since = live.last.clone();
    drop((live, all));
    transcript
        .until("", "/health", |body| body["data"]["inbox_connections"] == 1)
        .await;
    transcript
        .post(alice, "/messages", &message("alice@chorus", "bob", "away"))
        .await
        .expect_status(202);
    let mut again = transcript
        .open_stream(raw_request("GET", &format!("/agent/inbox?since={since}")).key(bob))
        .await;
    transcript.record_events(&mut again, 1).await;
    open_refused_streams(transcript, bob).await;
    use_session_token(transcript, bob).await;
    use_console_link(transcript, bob).await;
    // A key that is taken back ends what was opened with it.
    let fresh = transcript
        .post(alice, "/register", &registration("alice@chorus"))
        .await
        .expect_status(200)
        .text_at("/data/api_key");
    transcript.record_end(hers).await;
    fresh
}

async fn open_refused_streams(transcript: &mut Transcript, bob: &str) {
    for bad in ["x", "-1", "1-1", "99999999999999999999"] {
        transcript
            .record(
                raw_request("GET", "/agent/inbox")
                    .key(bob)
                    .header("last-event-id", bad),
            )
            .await
            .expect_status(400);
    }
    transcript.get("", "/agent/inbox").await.expect_status(401);
    transcript.get(OPERATOR_KEY, "/agent/inbox").await;
}

/// A link signs a browser in, once, until it signs out.
async fn use_console_link(transcript: &mut Transcript, bob: &str) {
    let links = "/console/links";
    let link = transcript.post(bob, links, &json!({})).await;
    let link = json!({"link_token": link.expect_status(200).text_at("/data/link_token")});
    let refused = transcript.post("", links, &json!({})).await;
    refused.expect_status(401);
    let path = "/console/session";
    let opened = transcript.post("", path, &link).await.expect_status(200);
    let session = opened.text_at("/data/session_token");
    transcript.post("", path, &link).await.expect_status(401);
    let renewed = transcript.post(&session, links, &json!({})).await;
    renewed.expect_status(403);
    transcript.delete(&session, path).await.expect_status(200);
    transcript.delete(&session, path).await.expect_status(401);
}

/// A session token opens one stream, once.
async fn use_session_token(transcript: &mut Transcript, bob: &str) {
    let ticket = transcript
        .post(bob, "/agent/session", &json!({}))
        .await
        .expect_status(200)
        .text_at("/data/session_token");
    transcript
        .post("", "/agent/session", &json!({}))
        .await
        .expect_status(401);
    transcript
        .post(bob, "/agent/endpoint-secret", &json!({}))
        .await
        .expect_status(201);
    transcript.get(bob, "/agent/usage").await.expect_status(200);
    drop(
        transcript
            .open_stream(raw_request(
                "GET",
                &format!("/agent/inbox?session={ticket}"),
            ))
            .await,
    );
    transcript
        .get("", &format!("/agent/inbox?session={ticket}"))
        .await
        .expect_status(401);
}

async fn invites(transcript: &mut Transcript, alice: &str) {
    let invite = json!({"label": "friends", "max_uses": 1, "expires_at": "2026-03-20T11:00:00Z"});
    for key in ["", alice] {
        transcript.post(key, "/invites", &invite).await;
        transcript.get(key, "/invites").await;
        transcript.delete(key, "/invites").await;
        transcript.delete(key, "/invites/x").await;
    }
    let made = transcript.post(OPERATOR_KEY, "/invites", &invite).await;
    let (id, code) = (made.text_at("/data/id"), made.text_at("/data/code"));
    transcript
        .post(OPERATOR_KEY, "/invites", &json!({"label": ""}))
        .await
        .expect_status(400);
    transcript
        .post("", "/register", &registration("erin@chorus"))
        .await
        .expect_status(403);
    let mut coded = registration("erin@chorus");
    coded["invite_code"] = json!(code);
    transcript.post("", "/register", &coded).await;
    coded["agent_id"] = json!("frank@chorus");
    transcript.post("", "/register", &coded).await;
    transcript
        .get(OPERATOR_KEY, "/invites")
        .await
        .expect_status(200);
    transcript
        .delete(OPERATOR_KEY, &format!("/invites/{id}"))
        .await
        .expect_status(200);
    transcript.delete(OPERATOR_KEY, "/invites/%00").await;
    transcript
        .delete(OPERATOR_KEY, "/invites")
        .await
        .expect_status(200);
}

async fn removal(transcript: &mut Transcript, alice: &str, bob: &str) {
    transcript.delete(alice, "/agents/bob@chorus").await;
    transcript
        .delete("", "/agents/bob@chorus")
        .await
        .expect_status(401);
    let inbox = transcript
        .open_stream(raw_request("GET", "/agent/inbox").key(bob))
        .await;
    transcript
        .delete(bob, "/agents/bob@chorus")
        .await
        .expect_status(200);
    transcript.record_end(inbox).await;
    transcript
        .get(bob, "/agent/messages")
        .await
        .expect_status(401);
    transcript
        .delete(OPERATOR_KEY, "/agents/carol@chorus")
        .await
        .expect_status(200);
    transcript.delete(OPERATOR_KEY, "/agents/%00").await;
}
