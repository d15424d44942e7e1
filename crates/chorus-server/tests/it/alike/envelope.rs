//! Agents and their letters: registered, found, written to, answered, gone.

use super::tale::{Tale, ask};
use crate::actors::{Reply, Webhook, envelope, registration};
use crate::hub::OPERATOR_KEY;
use serde_json::{Value, json};

pub async fn tell(tale: &mut Tale) {
    let (alice, bob) = registered(tale).await;
    directory(tale, &alice).await;
    let bob = rotated(tale, &bob).await;
    letters(tale, &alice, &bob).await;
    let alice = streams(tale, &alice, &bob).await;
    webhooks(tale, &alice).await;
    invites(tale, &alice).await;
    farewell(tale, &alice, &bob).await;
}

/// Registers and returns the key.
pub async fn agent(tale: &mut Tale, id: &str) -> String {
    tale.post("", "/register", &registration(id))
        .await
        .is(201)
        .at("/data/api_key")
}

pub fn message(from: &str, to: &str, text: &str) -> Value {
    json!({"receiver_id": to, "envelope": envelope(from, text)})
}

async fn registered(tale: &mut Tale) -> (String, String) {
    let (alice, bob) = (
        agent(tale, "alice@chorus").await,
        agent(tale, "bob@chorus").await,
    );
    tale.post("", "/register", &registration("alice@chorus"))
        .await
        .is(409);
    tale.post("", "/register", &json!({"agent_id": "x"}))
        .await
        .is(400);
    tale.post(
        "",
        "/register",
        &json!({"agent_id": "x\u{0}y@chorus", "agent_card": {}}),
    )
    .await;
    tale.post("", "/register", &json!([1])).await.is(400);
    tale.tell(
        ask("POST", "/register")
            .header("content-type", "application/json")
            .bytes("{\"agent_id\":"),
    )
    .await
    .is(400);
    tale.tell(
        ask("POST", "/register")
            .header("content-type", "text/plain")
            .bytes("{}"),
    )
    .await;
    tale.tell(ask("POST", "/register").bytes("{}")).await;
    tale.tell(ask("POST", "/register")).await;
    let operated = json!({"agent_id": "dora@chorus", "endpoint": "http://127.0.0.1:9/", "agent_card": {"user_culture": "de"}});
    tale.post(OPERATOR_KEY, "/agents", &operated).await.is(201);
    tale.post(OPERATOR_KEY, "/agents", &operated).await.is(200);
    tale.post(&alice, "/agents", &operated).await.is(403);
    tale.post("", "/agents", &operated).await.is(401);
    (alice, bob)
}

async fn directory(tale: &mut Tale, alice: &str) {
    for path in [
        "/agents",
        "/agents?limit=1",
        "/agents/alice@chorus",
        "/agents/alice",
        "/agents/~alice",
        "/agents/nobody@chorus",
        "/agents/%00",
        "/agents/%zz",
        "/discover",
        "/discover?limit=1",
        "/discover?limit=0",
        "/discover?language=en",
        "/discover?skill=none",
        "/discover?q=ali",
        "/invite/nobody@chorus",
        "/invite/%zz",
    ] {
        for key in ["", alice, OPERATOR_KEY] {
            tale.get(key, path).await;
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
        ] {
            tale.tell(ask("GET", path).header("accept", accept)).await;
        }
    }
    tale.tell(ask("GET", "/agents").key("ca_00000000000000000000000000000000"))
        .await
        .is(401);
    tale.tell(ask("GET", "/agent/messages").header("authorization", "Basic eDp5"))
        .await
        .is(401);
}

async fn rotated(tale: &mut Tale, bob: &str) -> String {
    let fresh = tale
        .post(bob, "/register", &registration("bob@chorus"))
        .await
        .is(200)
        .at("/data/api_key");
    tale.get(bob, "/agent/messages").await.is(401);
    tale.get(&fresh, "/agent/messages").await.is(200);
    fresh
}

async fn letters(tale: &mut Tale, alice: &str, bob: &str) {
    let send = |text: &str| message("alice@chorus", "bob@chorus", text);
    let first = tale
        .post(alice, "/messages", &send("one"))
        .await
        .is(202)
        .at("/data/trace_id");
    for number in ["1", "2"] {
        let once = ask("POST", "/messages")
            .key(alice)
            .header("idempotency-key", "k-1");
        tale.tell(once.json(&send(number))).await;
    }
    let once = ask("POST", "/messages")
        .key(alice)
        .header("idempotency-key", "k-1");
    tale.tell(once.json(&send("1"))).await.is(202);
    tale.post(
        alice,
        "/messages",
        &message("alice@chorus", "nobody@chorus", "x"),
    )
    .await
    .is(404);
    tale.post(
        alice,
        "/messages",
        &message("bob@chorus", "alice@chorus", "x"),
    )
    .await
    .is(403);
    tale.post("", "/messages", &send("x")).await.is(401);
    tale.post(
        OPERATOR_KEY,
        "/messages",
        &message("alice@chorus", "bob@chorus", "from the desk"),
    )
    .await;
    tale.post(
        alice,
        "/messages",
        &json!({"receiver_id": "bob@chorus", "envelope": {"chorus_version": "0.4"}}),
    )
    .await
    .is(400);
    tale.post(alice, "/messages", &send("a\u{0}b")).await;
    tale.post(alice, "/messages", &send(&"x".repeat(300_000)))
        .await
        .is(413);
    for who in [alice, bob, OPERATOR_KEY, ""] {
        tale.get(who, &format!("/messages/{first}")).await;
        for query in [
            "",
            "?limit=1",
            "?since=0&limit=2",
            "?since=2026-03-20T10:00:00Z",
            "?since=never",
            "?limit=-1",
        ] {
            tale.get(who, &format!("/agent/messages{query}")).await;
        }
    }
    tale.get(alice, "/messages/00000000-0000-7000-8000-000000000000")
        .await
        .is(404);
    tale.get(alice, "/messages/%00").await;
    let reply = format!("/agent/messages/{first}/response");
    tale.post(alice, &reply, &json!({"status": "ok"})).await;
    tale.post(bob, &reply, &json!({"status": "perhaps"}))
        .await
        .is(400);
    tale.post(
        bob,
        &reply,
        &json!({"status": "error", "error_code": "INVALID_ENVELOPE", "detail": "why"}),
    )
    .await
    .is(200);
    tale.post(bob, &reply, &json!({"status": "ok"})).await;
    tale.get(alice, &format!("/messages/{first}")).await;
}

async fn streams(tale: &mut Tale, alice: &str, bob: &str) -> String {
    let inbox = || ask("GET", "/agent/inbox").key(bob);
    let mut all = tale.opens(inbox().header("last-event-id", "0")).await;
    tale.hears(&mut all, 3).await;
    let mut live = tale.opens(inbox()).await;
    let mut hers = tale.opens(ask("GET", "/agent/inbox").key(alice)).await;
    let sent = tale
        .post(alice, "/messages", &message("alice@chorus", "~bob", "live"))
        .await
        .is(200)
        .at("/data/trace_id");
    tale.hears(&mut live, 1).await;
    tale.hears(&mut all, 1).await;
    tale.post(
        bob,
        &format!("/agent/messages/{sent}/response"),
        &json!({"status": "ok"}),
    )
    .await
    .is(200);
    tale.hears(&mut hers, 1).await;
    tale.until(alice, &format!("/messages/{sent}"), |body| {
        body["data"]["status"] == "acknowledged"
    })
    .await;
    let since = live.last.clone();
    drop((live, all));
    tale.until("", "/health", |body| body["data"]["inbox_connections"] == 1)
        .await;
    tale.post(alice, "/messages", &message("alice@chorus", "bob", "away"))
        .await
        .is(202);
    let mut again = tale
        .opens(ask("GET", &format!("/agent/inbox?since={since}")).key(bob))
        .await;
    tale.hears(&mut again, 1).await;
    for bad in ["x", "-1", "1-1", "99999999999999999999"] {
        tale.tell(inbox().header("last-event-id", bad))
            .await
            .is(400);
    }
    tale.get("", "/agent/inbox").await.is(401);
    tale.get(OPERATOR_KEY, "/agent/inbox").await;
    let ticket = tale
        .post(bob, "/agent/session", &json!({}))
        .await
        .is(200)
        .at("/data/session_token");
    tale.post("", "/agent/session", &json!({})).await.is(401);
    drop(
        tale.opens(ask("GET", &format!("/agent/inbox?session={ticket}")))
            .await,
    );
    tale.get("", &format!("/agent/inbox?session={ticket}"))
        .await
        .is(401);
    // A key that is taken back ends what was opened with it.
    let fresh = tale
        .post(alice, "/register", &registration("alice@chorus"))
        .await
        .is(200)
        .at("/data/api_key");
    tale.ends(hers).await;
    fresh
}

async fn webhooks(tale: &mut Tale, alice: &str) {
    let script = |turn: usize| {
        match turn {
        0 => Reply::ok(),
        1 => Reply::json(200, r#"{"status":"error","error_code":"ADAPTATION_FAILED","detail":"no"}"#),
        2 => Reply::json(500, "{}"),
        3 => Reply::typed(200, "text/html", "<p>"),
        4 => Reply::redirect("http://127.0.0.1:9/"),
        _ => Reply::events(&[
            b"event: chunk\ndata: {\"text\":\"I \"}\n\nevent: done\ndata: {\"full_text\":\"I \",\"envelope\":null}\n\n",
        ]),
    }
    };
    let mut hook = Webhook::script(script).await;
    tale.names
        .call(&format!("127.0.0.1:{}", hook.port()), "carols-place");
    let mut carol = registration("carol@chorus");
    carol["endpoint"] = json!(hook.url());
    tale.post("", "/register", &carol).await.is(201);
    for number in 0..6 {
        let mut body = message(
            "alice@chorus",
            "carol@chorus",
            &format!("to a place {number}"),
        );
        body["stream"] = json!(number == 5);
        let asked = ask("POST", "/messages")
            .key(alice)
            .header("accept", "text/event-stream, application/json");
        tale.tell(asked.json(&body)).await;
        let heard = hook.hears().await;
        tale.enter(
            "heard at carol's",
            &format!("{}\n\n{}", heard.head, heard.text),
        );
    }
    tale.post(
        alice,
        "/messages",
        &message("alice@chorus", "dora@chorus", "nobody is there"),
    )
    .await;
    tale.get(alice, "/agent/messages?limit=1000").await.is(200);
}

async fn invites(tale: &mut Tale, alice: &str) {
    let invite = json!({"label": "friends", "max_uses": 1, "expires_at": "2026-03-20T11:00:00Z"});
    for key in ["", alice] {
        tale.post(key, "/invites", &invite).await;
        tale.get(key, "/invites").await;
        tale.delete(key, "/invites").await;
        tale.delete(key, "/invites/x").await;
    }
    let made = tale.post(OPERATOR_KEY, "/invites", &invite).await;
    let (id, code) = (made.at("/data/id"), made.at("/data/code"));
    tale.post(OPERATOR_KEY, "/invites", &json!({"label": ""}))
        .await
        .is(400);
    tale.post("", "/register", &registration("erin@chorus"))
        .await
        .is(403);
    let mut coded = registration("erin@chorus");
    coded["invite_code"] = json!(code);
    tale.post("", "/register", &coded).await;
    coded["agent_id"] = json!("frank@chorus");
    tale.post("", "/register", &coded).await;
    tale.get(OPERATOR_KEY, "/invites").await.is(200);
    tale.delete(OPERATOR_KEY, &format!("/invites/{id}"))
        .await
        .is(200);
    tale.delete(OPERATOR_KEY, "/invites/%00").await;
    tale.delete(OPERATOR_KEY, "/invites").await.is(200);
}

async fn farewell(tale: &mut Tale, alice: &str, bob: &str) {
    tale.delete(alice, "/agents/bob@chorus").await;
    tale.delete("", "/agents/bob@chorus").await.is(401);
    let inbox = tale.opens(ask("GET", "/agent/inbox").key(bob)).await;
    tale.delete(bob, "/agents/bob@chorus").await.is(200);
    tale.ends(inbox).await;
    tale.get(bob, "/agent/messages").await.is(401);
    tale.delete(OPERATOR_KEY, "/agents/carol@chorus")
        .await
        .is(200);
    tale.delete(OPERATOR_KEY, "/agents/%00").await;
}
