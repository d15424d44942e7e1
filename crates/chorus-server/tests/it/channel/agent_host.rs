//! The agent host: deliveries that any service posts to a connection string arrive on the agent's inbox (R-70, R-72, R-78).

use crate::support::actors::{Agent, Answer, Stream};
use crate::support::examples::example;
use crate::support::hub::Hub;
use serde_json::{Value, json};
use std::time::Duration;

/// A new connection string of this agent, as a path below its hub.
pub(super) async fn connected(hub: &Hub, agent: &Agent) -> String {
    let data = agent.post("/agent/connection", &json!({})).await.data(200);
    let url = data["connection_string"]
        .as_str()
        .expect("a connection string");
    let path = url.strip_prefix(&hub.url).expect("on this hub").to_owned();
    let secret = path.strip_prefix("/inbox/").expect("the documented place");
    assert!(
        secret.starts_with("sk_") && secret.len() >= 3 + 32,
        "R-74: 128 bits or more"
    );
    path
}

pub(super) fn delivery(channel: &str, message: &str, content: &str) -> Value {
    json!({"channel": {"id": channel}, "message": {"id": message, "sender": "alice", "content": content},
        "callback": "https://service.example.com/cb/tok_1"})
}

#[track_caller]
pub(super) fn acknowledged(answer: &Answer) {
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(answer.json().get("success").is_none(), "R-78: bare");
}

/// The contents of the next deliveries on a stream.
async fn contents(stream: &mut Stream, count: usize) -> Vec<String> {
    let mut heard = Vec::new();
    for _ in 0..count {
        heard.push(
            stream.next("channel").await.data["message"]["content"]
                .as_str()
                .unwrap()
                .to_owned(),
        );
    }
    heard
}

story!(
    what_a_service_posts_is_on_the_inbox_as_it_was_written,
    |hub| async {
        // CHN-05, CHN-20, CHN-40, R-78: both printed deliveries, and keys that are not ours
        let bob = hub.agent("bob").await;
        let path = connected(&hub, &bob).await;
        let mut inbox = bob.inbox().await;
        let printed = ["2-delivery.json", "6-minimal.json", "6-full.json"];
        for (number, name) in printed.into_iter().enumerate() {
            let mut body = example(&format!("channel-protocol/{name}"));
            body["x-ours"] = json!({"number": number});
            acknowledged(&hub.anonymous().post(&path, &body).await);
            let event = inbox.next("channel").await;
            let origin = event.data["origin"].as_str().unwrap();
            assert!(
                body["callback"].as_str().unwrap().starts_with(origin),
                "{origin}"
            );
            body["origin"] = json!(origin);
            assert_eq!(event.data, body);
            assert!(event.id.is_some(), "it has a cursor");
        }
        let written = r#"{ "message":{"sender":"a","content":"x \u00e9 é","id":"odd"},"callback":"http://s.example/c","channel":{"id":"c"} , "n":1.0e2}"#;
        acknowledged(&hub.anonymous().post_text(&path, written).await);
        let marked = |text: &str| {
            let open = text.strip_suffix('}').unwrap();
            format!(r#"{open},"origin":"http://s.example"}}"#)
        };
        assert_eq!(
            inbox.next("channel").await.text,
            marked(written),
            "byte for byte, with its origin after all of it"
        );
        let lines = written
            .replace("\"odd\"", "\"lines\"")
            .replace(',', ",\r\n");
        acknowledged(&hub.anonymous().post_text(&path, lines.clone()).await);
        assert_eq!(
            inbox.next("channel").await.text,
            marked(&lines.replace("\r\n", "")),
            "one line, and nothing else changed"
        );
    }
);

story!(
    a_delivery_waits_for_an_agent_that_is_away_and_is_replayed_by_cursor,
    |hub| async {
        // CHN-36, R-25
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let path = connected(&hub, &bob).await;
        for number in ["1", "2"] {
            acknowledged(
                &hub.anonymous()
                    .post(&path, &delivery("c", number, number))
                    .await,
            );
        }
        alice.send_expecting(&bob.id, "between", "queued").await;
        acknowledged(&hub.anonymous().post(&path, &delivery("c", "3", "3")).await);
        hub.restart().await;
        let bob = hub.reconnect(&bob);
        let mut inbox = bob.inbox_after("0").await;
        assert_eq!(contents(&mut inbox, 1).await, ["1"]);
        let second = inbox.next("channel").await;
        assert_eq!(inbox.texts(1).await, ["between"]);
        assert_eq!(contents(&mut inbox, 1).await, ["3"]);
        let mut resumed = bob.inbox_after(second.id.as_deref().unwrap()).await;
        assert_eq!(resumed.texts(1).await, ["between"]);
        assert_eq!(
            bob.history("").await.len(),
            1,
            "history has envelopes only: its rows have a printed form"
        );
        acknowledged(
            &hub.anonymous()
                .post(&path, &delivery("c", "4", "the string outlives a restart"))
                .await,
        );
    }
);

story!(
    a_pair_that_comes_again_is_acknowledged_and_delivered_once,
    |hub| async {
        // R-72: with a fresh callback, at the same time, after a restart; another agent, channel or message is another delivery
        let (bob, carol) = (hub.agent("bob").await, hub.agent("carol").await);
        let (to_bob, to_carol) = (connected(&hub, &bob).await, connected(&hub, &carol).await);
        let first = delivery("c1", "2", "once");
        let both = hub.anonymous();
        let (one, other) = tokio::join!(both.post(&to_bob, &first), both.post(&to_bob, &first));
        acknowledged(&one);
        acknowledged(&other);
        let mut again = first.clone();
        again["callback"] = json!("https://service.example.com/cb/tok_2");
        acknowledged(&hub.anonymous().post(&to_bob, &again).await);
        hub.restart().await;
        acknowledged(&hub.anonymous().post(&to_bob, &again).await);
        for (channel, message, content) in [
            ("c1", "3", "two"),
            ("c2", "2", "elsewhere"),
            ("c", "12", "not the same text"),
        ] {
            acknowledged(
                &hub.anonymous()
                    .post(&to_bob, &delivery(channel, message, content))
                    .await,
            );
        }
        acknowledged(&hub.anonymous().post(&to_carol, &first).await);
        let mut inbox = hub.reconnect(&bob).inbox_after("0").await;
        assert_eq!(
            inbox.next("channel").await.data["callback"],
            first["callback"],
            "what came first stands"
        );
        assert_eq!(
            contents(&mut inbox, 3).await,
            ["two", "elsewhere", "not the same text"]
        );
        assert_eq!(
            contents(&mut hub.reconnect(&carol).inbox_after("0").await, 1).await,
            ["once"]
        );
    }
);

story!(a_pair_is_known_again_for_a_week, |hub| async {
    // R-72, invariant 6: services try for a day
    let bob = hub.agent("bob").await;
    let path = connected(&hub, &bob).await;
    acknowledged(
        &hub.anonymous()
            .post(&path, &delivery("c", "1", "first"))
            .await,
    );
    hub.advance(Duration::from_secs(6 * 24 * 3600));
    hub.maintain().await;
    acknowledged(
        &hub.anonymous()
            .post(&path, &delivery("c", "1", "still known"))
            .await,
    );
    hub.advance(Duration::from_secs(24 * 3600));
    hub.maintain().await;
    acknowledged(
        &hub.anonymous()
            .post(&path, &delivery("c", "1", "forgotten"))
            .await,
    );
    assert_eq!(
        contents(&mut bob.inbox_after("0").await, 2).await,
        ["first", "forgotten"]
    );
});

story!(
    a_string_that_is_dead_is_as_unknown_as_one_that_never_was,
    |hub| async {
        // CHN-04, R-74, R-78: rotated, revoked, of an agent that left; whatever the body is
        let bob = hub.agent("bob").await;
        let first = connected(&hub, &bob).await;
        let rotated = connected(&hub, &bob).await;
        assert_ne!(first, rotated);
        acknowledged(
            &hub.anonymous()
                .post(&rotated, &delivery("c", "1", "by the new one"))
                .await,
        );
        let revoked = bob.delete("/agent/connection").await.data(200);
        assert_eq!(revoked, json!({"revoked": true}));
        assert_eq!(
            bob.delete("/agent/connection").await.data(200)["revoked"],
            false
        );
        let carol = hub.agent("carol").await;
        let left = connected(&hub, &carol).await;
        carol.delete("/agents/carol@chorus").await.data(200);
        let never = format!("/inbox/sk_{}", "0".repeat(32));
        let good = delivery("c", "2", "x").to_string();
        let long = "x".repeat(chorus_wire::limits::BODY_BYTES + 1);
        let mut said = std::collections::BTreeSet::new();
        for path in [
            &first,
            &rotated,
            &left,
            &never,
            &format!("/inbox/{}", bob.key),
            &"/inbox/x".to_owned(),
        ] {
            for body in [good.as_str(), "", "{}", "not json", &long] {
                said.insert(
                    hub.anonymous()
                        .post_text(path, body.to_owned())
                        .await
                        .refused(404, "ERR_NOT_FOUND"),
                );
                let plain = hub
                    .anonymous()
                    .request("POST", path)
                    .header("content-type", "text/plain")
                    .body(body.to_owned());
                said.insert(Answer::of(plain).await.refused(404, "ERR_NOT_FOUND"));
            }
        }
        assert_eq!(said.len(), 1, "one sentence for all of them: {said:?}");
        assert_eq!(
            contents(&mut bob.inbox_after("0").await, 1).await,
            ["by the new one"]
        );
    }
);

story!(only_an_agent_gets_a_connection_string, |hub| async {
    hub.anonymous()
        .post("/agent/connection", &json!({}))
        .await
        .refused(401, "ERR_UNAUTHORIZED");
    hub.operator()
        .post("/agent/connection", &json!({}))
        .await
        .refused(403, "ERR_FORBIDDEN");
    hub.anonymous()
        .delete("/agent/connection")
        .await
        .refused(401, "ERR_UNAUTHORIZED");
    let bob = hub.agent("bob").await;
    let path = connected(&hub, &bob).await;
    hub.anonymous()
        .with_key(path.strip_prefix("/inbox/").unwrap())
        .get("/agent/messages")
        .await
        .refused(401, "ERR_UNAUTHORIZED");
    hub.anonymous()
        .get(&path)
        .await
        .refused(405, "ERR_METHOD_NOT_ALLOWED");
});

/// JSON pointers to the fields without which a delivery is refused.
const REQUIRED_FIELDS: [&str; 7] = [
    "/channel",
    "/channel/id",
    "/message",
    "/message/id",
    "/message/sender",
    "/message/content",
    "/callback",
];

/// The JSON pointer of a field of a delivery, and a value that is refused there.
fn invalid_delivery_fields() -> Vec<(&'static str, Value)> {
    vec![
        ("/channel/id", json!("")),
        ("/message/id", json!("")),
        ("/channel/name", json!(5)),
        ("/channel/service", json!({})),
        ("/channel/context", json!([])),
        ("/callback", json!("not a url")),
        ("/callback", json!("ftp://service.example.com/")),
        ("/mcp", json!("https://service.example.com/mcp")),
        ("/mcp", json!([])),
        ("/mcp", json!({"headers": {}})),
        ("/mcp", json!({"url": 5})),
        (
            "/mcp",
            json!({"url": "https://service.example.com/mcp", "headers": ["a"]}),
        ),
        (
            "/mcp",
            json!({"url": "https://service.example.com/mcp", "headers": {"Authorization": 5}}),
        ),
    ]
}

story!(
    a_delivery_that_lacks_something_is_refused_by_name_and_nothing_is_kept,
    |hub| async {
        // CHN-06…17, CHN-21
        let bob = hub.agent("bob").await;
        let path = connected(&hub, &bob).await;
        let good = delivery("c", "1", "x");
        let changed = |pointer: &str, to: Option<Value>| {
            let mut body = good.clone();
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            let parent = body.pointer_mut(parent).unwrap().as_object_mut().unwrap();
            match to {
                Some(to) => drop(parent.insert(key.into(), to)),
                None => drop(parent.remove(key)),
            }
            body
        };
        for required in REQUIRED_FIELDS {
            let name = required[1..].replace('/', ".");
            for wrong in [None, Some(json!(null)), Some(json!(5)), Some(json!([]))] {
                let said = hub
                    .anonymous()
                    .post(&path, &changed(required, wrong))
                    .await
                    .refused(400, "ERR_VALIDATION");
                assert!(said.contains(&name), "{name}: {said}");
            }
        }
        for (pointer, wrong) in invalid_delivery_fields() {
            let said = hub
                .anonymous()
                .post(&path, &changed(pointer, Some(wrong.clone())))
                .await
                .refused(400, "ERR_VALIDATION");
            assert!(
                said.contains(&pointer[1..].replace('/', ".")),
                "{wrong}: {said}"
            );
        }
        for text in ["", "[]", "{", "{\"channel\":1,\"channel\":2}"] {
            hub.anonymous()
                .post_text(&path, text)
                .await
                .refused(400, "ERR_VALIDATION");
        }
        let optional = json!({"id": "c", "name": null, "service": null, "context": null});
        let mut lenient = changed("/channel", Some(optional));
        lenient["mcp"] = json!(null);
        acknowledged(&hub.anonymous().post(&path, &lenient).await);
        lenient["origin"] = json!("https://service.example.com");
        assert_eq!(
            bob.inbox_after("0").await.next("channel").await.data,
            lenient,
            "the first that was good"
        );
    }
);

story!(
    the_longest_delivery_stays_under_what_readers_buffer,
    |hub| async {
        // R-25, lesson 3
        let bob = hub.agent("bob").await;
        let path = connected(&hub, &bob).await;
        let frame = delivery("c", "1", "").to_string().chars().count();
        let most = chorus_wire::limits::DELIVERY_CHARS - frame;
        hub.anonymous()
            .post(&path, &delivery("c", "1", &"é".repeat(most + 1)))
            .await
            .refused(413, "ERR_TOO_LARGE");
        acknowledged(
            &hub.anonymous()
                .post(&path, &delivery("c", "1", &"é".repeat(most)))
                .await,
        );
        assert!(
            bob.inbox_after("0")
                .await
                .next("channel")
                .await
                .text
                .chars()
                .count()
                < 63_900
        );
    }
);

story!(
    each_connection_string_has_a_budget_of_its_own,
    with(|set| set.rate_limit = 6),
    |hub| async {
        // A service that serves many agents is not one caller, and guessing is counted by address
        let (bob, carol) = (hub.agent("bob").await, hub.agent("carol").await);
        let (to_bob, to_carol) = (connected(&hub, &bob).await, connected(&hub, &carol).await);
        for number in 0..6 {
            let answer = hub
                .anonymous()
                .post(&to_bob, &delivery("c", &number.to_string(), "x"))
                .await;
            acknowledged(&answer);
            assert!(
                answer
                    .header("ratelimit")
                    .contains(&format!("r={}", 5 - number)),
                "{answer:?}"
            );
        }
        // CHN-22: a service may try again after a 5xx and after nothing else, so a 429 would be the end of this delivery.
        let refused = hub
            .anonymous()
            .post(&to_bob, &delivery("c", "6", "x"))
            .await;
        refused.refused(503, "ERR_UNAVAILABLE");
        assert_eq!(refused.header("retry-after"), "10");
        acknowledged(
            &hub.anonymous()
                .post(&to_carol, &delivery("c", "1", "x"))
                .await,
        );
        let never = format!("/inbox/sk_{}", "0".repeat(32));
        let mut answers = Vec::new();
        for _ in 0..7 {
            answers.push(hub.anonymous().post(&never, &json!({})).await.status);
        }
        // Then no secret of this address is looked up, and a right one may come back: 503, as above.
        assert_eq!(answers[4..], [429, 429, 503], "{answers:?}");
        hub.advance(Duration::from_secs(10));
        acknowledged(
            &hub.anonymous()
                .post(&to_bob, &delivery("c", "6", "x"))
                .await,
        );
    }
);

story!(
    the_string_has_the_address_that_services_know,
    with(|set| set.public_url = Some("https://hub.example.com/chorus/".into())),
    |hub| async {
        // R-78
        let bob = hub.agent("bob").await;
        let data = bob.post("/agent/connection", &json!({})).await.data(200);
        assert!(
            data["connection_string"]
                .as_str()
                .unwrap()
                .starts_with("https://hub.example.com/chorus/inbox/sk_")
        );
    }
);
