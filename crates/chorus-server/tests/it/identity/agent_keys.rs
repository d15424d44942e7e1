//! Further keys of an agent: what each may do, when it ends, and how the registration's key is rotated.

use super::ended_keys::Credentials;
use crate::support::actors::{Agent, Answer, Caller, Stream, envelope, frame, registration, rows};
use serde_json::{Value, json};
use std::time::Duration;

/// A further key of the agent.
pub async fn create_key(
    agent: &Caller,
    scopes: &[&str],
    expires_in_s: Option<u64>,
) -> (String, Caller) {
    let mut new = json!({"label": scopes.join("+"), "scopes": scopes});
    if let Some(seconds) = expires_in_s {
        new["expires_in_s"] = json!(seconds);
    }
    let made = agent.post("/agent/keys", &new).await.data(201);
    let key = made["key"].as_str().unwrap();
    assert!(key.starts_with("ca_") && key.len() == 35, "{key}");
    let id = made["id"].as_str().unwrap().to_owned();
    (id, agent.with_key(key))
}

async fn list_keys(agent: &Caller) -> Vec<Value> {
    rows(agent.get("/agent/keys").await.data(200))
}

async fn rotate_once(caller: &Caller, request: &str, body: &Value) -> Answer {
    let rotate = caller.request("POST", "/agent/keys/rotate");
    Answer::of(rotate.header("idempotency-key", request).json(body)).await
}

/// The text of the next message; other events are passed over.
async fn next_text(stream: &mut Stream) -> String {
    loop {
        let event = stream.any().await.expect("the stream is open");
        if event.name == "message" {
            return event.message_text().to_owned();
        }
    }
}

/// One call for each scope, and what it answers to a key that has the scope.
async fn call_all(key: &Caller, agent: &Agent) -> Vec<(&'static str, Answer)> {
    let message = json!({"receiver_id": agent.id, "envelope": envelope(&agent.id, "note to self")});
    let new_key = json!({"label": "x", "scopes": ["read"], "expires_in_s": 1});
    vec![
        ("read", key.get("/agent/messages").await),
        ("send", key.post("/messages", &message).await),
        ("frames", key.get("/handles/~alice/roster").await),
        ("channels", key.get("/channels").await),
        ("market", key.get("/jobs").await),
        ("admin", key.post("/agent/keys", &new_key).await),
    ]
}

story!(
    a_key_does_what_its_scopes_say_and_nothing_else,
    |hub| async {
        // the refusal names the scope, in the form of its protocol
        let alice = hub.agent("alice").await;
        for granted in ["read", "send", "frames", "channels", "market", "admin"] {
            let (_, key) = create_key(&alice, &[granted], None).await;
            for (scope, answer) in call_all(&key, &alice).await {
                if scope == granted {
                    assert!(answer.status < 300, "{granted}: {answer:?}");
                    continue;
                }
                assert_eq!(answer.status, 403, "{scope} with {granted}: {answer:?}");
                let body = answer.json();
                let (code, message) = match scope {
                    "frames" => (&body["code"], &body["message"]),
                    "market" => (&body["error_code"], &body["error_message"]),
                    _ => (&body["error"]["code"], &body["error"]["message"]),
                };
                assert_eq!(
                    code,
                    if scope == "frames" {
                        "forbidden"
                    } else {
                        "ERR_SCOPE"
                    }
                );
                assert!(message.as_str().unwrap().contains(scope), "{message}");
            }
            // What needs no key is open to every key.
            assert_eq!(key.get("/agents/alice").await.status, 200);
        }
        let (_, reader) = create_key(&alice, &["read"], None).await;
        for (method, path) in [
            ("DELETE", "/agents/alice"),
            ("DELETE", "/agent/keys/x"),
            ("POST", "/agent/keys/rotate"),
        ] {
            Answer::of(reader.request(method, path).json(&json!({})))
                .await
                .refused(403, "ERR_SCOPE");
        }
        reader
            .post("/register", &registration(&alice.id))
            .await
            .refused(403, "ERR_SCOPE");
        let submission = frame("~alice", "~alice", "advisory", &json!({}));
        assert_eq!(reader.post("/frames", &submission).await.status, 403);
    }
);

story!(a_session_token_opens_what_its_key_may_read, |hub| async {
    //
    let alice = hub.agent("alice").await;
    let (_, frames) = create_key(&alice, &["frames"], None).await;
    let session = async |key: &Caller| {
        let made = key.post("/agent/session", &json!({})).await.data(200);
        made["session_token"].as_str().unwrap().to_owned()
    };
    let token = session(&frames).await;
    let answer = hub
        .anonymous()
        .get(&format!("/agent/inbox?session={token}"))
        .await;
    answer.refused(403, "ERR_SCOPE");
    let token = session(&frames).await;
    let path = format!("/handles/~alice/stream?session_token={token}");
    drop(hub.anonymous().stream(&path).await);
});

story!(tools_ask_for_the_scopes_of_their_routes, |hub| async {
    //
    let alice = hub.agent("alice").await;
    let (_, reader) = create_key(&alice, &["read"], None).await;
    let (_, sender) = create_key(&alice, &["send"], None).await;
    let call_with = async |key: &Caller, name: &str, arguments: Value| {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}});
        let request = key
            .request("POST", "/mcp")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2025-11-25")
            .json(&body);
        Answer::of(request).await.json()["result"].clone()
    };
    let call = async |name: &str, arguments: Value| call_with(&reader, name, arguments).await;
    assert_ne!(call("chorus_inbox", json!({})).await["isError"], true);
    // To wait for an answer is to read the inbox.
    let letter = json!({"receiver_id": "alice", "text": "x", "sender_culture": "en", "wait": "answer", "timeout_ms": 1});
    let refused = call_with(&sender, "chorus_send", letter).await.to_string();
    assert!(
        refused.contains("ERR_SCOPE") && refused.contains("read"),
        "{refused}"
    );
    for (tool, arguments, scope) in [
        (
            "chorus_send",
            json!({"receiver_id": "alice", "text": "x", "sender_culture": "en"}),
            "send",
        ),
        ("agent_advise", json!({}), "frames"),
        ("channel_list", json!({}), "channels"),
        ("market_balance", json!({}), "market"),
    ] {
        let result = call(tool, arguments).await;
        let text = result.to_string();
        assert_eq!(result["isError"], true, "{tool}: {text}");
        assert!(
            text.contains("ERR_SCOPE") && text.contains(scope),
            "{tool}: {text}"
        );
    }
});

story!(
    a_key_is_shown_once_and_listed_by_the_day_of_its_use,
    |hub| async {
        //
        let alice = hub.agent("alice").await;
        let (id, key) = create_key(&alice, &["read", "send"], Some(90_000)).await;
        let listed = list_keys(&alice).await;
        assert_eq!(listed.len(), 1);
        assert_eq!(listed[0]["id"], id);
        assert_eq!(listed[0]["scopes"], json!(["read", "send"]));
        assert_eq!(listed[0]["expires_at"], "2026-03-21T11:00:00.000000Z");
        assert_eq!(
            (&listed[0]["last_used"], listed[0].get("key")),
            (&Value::Null, None)
        );
        key.get("/agent/messages").await.data(200);
        assert_eq!(list_keys(&alice).await[0]["last_used"], "2026-03-20");
        hub.advance(Duration::from_secs(86_400));
        assert_eq!(list_keys(&alice).await[0]["last_used"], "2026-03-20");
        key.get("/agent/messages").await.data(200);
        key.get("/agent/messages").await.data(200);
        assert_eq!(list_keys(&alice).await[0]["last_used"], "2026-03-21");
        // Another agent neither sees nor ends it.
        let bob = hub.agent("bob").await;
        assert!(list_keys(&bob).await.is_empty());
        bob.delete(&format!("/agent/keys/{id}"))
            .await
            .refused(404, "ERR_NOT_FOUND");
        key.get("/agent/messages").await.data(200);
    }
);

story!(an_agent_has_at_most_32_further_keys, |hub| async {
    //
    let alice = hub.agent("alice").await;
    for _ in 0..32 {
        create_key(&alice, &["read"], Some(60)).await;
    }
    let new = json!({"label": "one more", "scopes": ["read"]});
    alice
        .post("/agent/keys", &new)
        .await
        .refused(403, "ERR_QUOTA");
    alice
        .post("/agent/keys/rotate", &json!({"overlap_s": 5}))
        .await
        .refused(403, "ERR_QUOTA");
    hub.advance(Duration::from_secs(60));
    hub.maintain().await;
    create_key(&alice, &["read"], None).await;
});

story!(
    a_key_that_is_revoked_takes_what_it_made_with_it,
    |hub| async {
        // streams, tokens, callbacks; those of the agent's other keys stay
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let (id, key) = create_key(&bob, &["read", "channels"], None).await;
        let own = Credentials::collect(&hub, &bob, &bob, &alice).await;
        let made = Credentials::collect(&hub, &bob, &key, &alice).await;
        made.assert_alive(&hub, "before").await;
        let mut streams = Vec::new();
        for path in ["/agent/inbox".to_owned(), format!("{}/stream", made.room)] {
            let mut stream = key.stream(&path).await;
            stream.next("connected").await;
            streams.push(stream);
        }
        let mut own_inbox = bob.inbox().await;
        bob.delete(&format!("/agent/keys/{id}")).await.data(200);
        for mut stream in streams {
            stream.ended().await;
        }
        made.assert_ended(&hub).await;
        key.get("/agent/messages")
            .await
            .refused(401, "ERR_UNAUTHORIZED");
        assert!(list_keys(&bob).await.is_empty());
        alice
            .send_expecting(&bob.id, "still there", "delivered_sse")
            .await;
        assert_eq!(next_text(&mut own_inbox).await, "still there");
        own.assert_standing_alive(&hub).await;
    }
);

story!(
    a_key_that_expires_ends_everywhere_with_what_it_made,
    |hub| async {
        // by the hub's clock
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let (_, key) = create_key(&bob, &["read", "channels"], Some(60)).await;
        let made = Credentials::collect(&hub, &bob, &key, &alice).await;
        let mut stream = key.stream("/agent/inbox").await;
        stream.next("connected").await;
        hub.advance(Duration::from_secs(59));
        made.assert_alive(&hub, "before").await;
        hub.advance(Duration::from_secs(1));
        key.get("/agent/messages")
            .await
            .refused(401, "ERR_UNAUTHORIZED");
        hub.maintain().await;
        stream.ended().await;
        made.assert_ended(&hub).await;
        assert!(list_keys(&bob).await.is_empty());
    }
);

story!(a_rotated_key_works_until_its_overlap_is_over, |hub| async {
    //
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    let made = Credentials::collect(&hub, &bob, &bob, &alice).await;
    let (_, further) = create_key(&bob, &["read"], None).await;
    let mut old_stream = bob.inbox().await;
    let mut further_stream = further.stream("/agent/inbox").await;
    further_stream.next("connected").await;
    let rotated = bob
        .post("/agent/keys/rotate", &json!({"overlap_s": 3600}))
        .await
        .data(200);
    assert_eq!(rotated["old_key_until"], "2026-03-20T11:00:00.000000Z");
    let renewed = bob.with_rotated_key(rotated["api_key"].as_str().unwrap());
    made.assert_alive(&hub, "overlap").await;
    for key in [&bob, &renewed] {
        key.send_expecting(&alice.id, "both work", "queued").await;
    }
    let fresh = Credentials::collect(&hub, &renewed, &renewed, &alice).await;
    assert_eq!(
        list_keys(&renewed).await.len(),
        2,
        "the old key can be ended early"
    );
    hub.advance(Duration::from_secs(3600));
    hub.maintain().await;
    old_stream.ended().await;
    bob.get("/agent/messages")
        .await
        .refused(401, "ERR_UNAUTHORIZED");
    made.assert_ended(&hub).await;
    // The old key could read the deliveries of the time in between, so their tokens end with it.
    fresh.assert_standing_alive(&hub).await;
    assert!(renewed.history("").await.len() >= 2);
    alice
        .send_expecting(&bob.id, "to the further key", "delivered_sse")
        .await;
    assert_eq!(next_text(&mut further_stream).await, "to the further key");
});

story!(
    a_rotation_whose_answer_was_lost_is_repeated_with_the_old_key,
    |hub| async {
        // by either route, each time with another key, until the new one is used
        for (number, path) in ["/register", "/agent/keys/rotate"].into_iter().enumerate() {
            let body = |agent_id: &str| match number {
                0 => registration(agent_id),
                _ => json!({}),
            };
            let alice = hub.agent(&format!("alice{number}")).await;
            let rotate = async |request: &str| {
                let asked = alice
                    .request("POST", path)
                    .header("idempotency-key", request);
                Answer::of(asked.json(&body(&alice.id))).await
            };
            let key_of = |answer: Answer| answer.data(200)["api_key"].as_str().unwrap().to_owned();
            let lost = key_of(rotate("once").await);
            let second = key_of(rotate("once").await);
            let third = key_of(rotate("once").await);
            assert!(lost != second && second != third);
            // For everything else the old key is dead, and so is every key that was replaced.
            // at `/register` a dead key is no key, and the name is taken.
            let (status, code) = match number {
                0 => (409, "ERR_AGENT_ID_TAKEN"),
                _ => (401, "ERR_UNAUTHORIZED"),
            };
            rotate("another").await.refused(status, code);
            alice
                .get("/agent/messages")
                .await
                .refused(401, "ERR_UNAUTHORIZED");
            for dead in [&lost, &second] {
                alice
                    .with_key(dead)
                    .get("/agent/messages")
                    .await
                    .refused(401, "ERR_UNAUTHORIZED");
            }
            assert_eq!(rotate("once").await.status, 200);
            let newest = key_of(rotate("once").await);
            alice
                .with_key(&newest)
                .get("/agent/messages")
                .await
                .data(200);
            rotate("once").await.refused(status, code);
            alice
                .with_key(&newest)
                .get("/agent/messages")
                .await
                .data(200);
        }
        let alice = hub.agent("alice").await;
        rotate_once(&alice, "once", &json!({})).await.data(200);
        rotate_once(&alice, "once", &json!({"overlap_s": 5}))
            .await
            .refused(409, "ERR_IDEMPOTENCY_CONFLICT");
        // A dead key repeats its own request and registers nothing else.
        let bob = hub.agent("bob").await;
        let register = async |name: &str| {
            let asked = bob
                .request("POST", "/register")
                .header("idempotency-key", "again");
            Answer::of(asked.json(&registration(name))).await
        };
        register(&bob.id).await.data(200);
        register("mallory@chorus")
            .await
            .refused(409, "ERR_IDEMPOTENCY_CONFLICT");
        assert_eq!(hub.anonymous().get("/agents/mallory").await.status, 404);
    }
);

story!(an_agent_that_unregisters_has_no_key_left, |hub| async {
    //
    let alice = hub.agent("alice").await;
    let (_, key) = create_key(&alice, &["read"], None).await;
    key.get("/agent/messages").await.data(200);
    alice.delete("/agents/alice").await.data(200);
    key.get("/agent/messages")
        .await
        .refused(401, "ERR_UNAUTHORIZED");
});
