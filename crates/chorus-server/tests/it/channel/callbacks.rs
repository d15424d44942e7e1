//! Callbacks: what members post back is kept in order of arrival, for as long as the URL is valid (CHN-23…33, R-71, R-78).

use crate::support::actors::Answer;
use crate::support::actors::remote_member::{OwnedChannel, RemoteMember, callback};
use crate::support::examples::example;
use crate::support::hub::Hub;
use serde_json::{Value, json};
use std::time::Duration;

/// A room, a member somewhere else, and what it was delivered.
pub(super) async fn delivered(hub: &Hub) -> (OwnedChannel, RemoteMember, Value) {
    let room = OwnedChannel::create(hub, "alice").await;
    let mut oak = RemoteMember::accepting(hub).await;
    room.add_remote("oak", &oak.url()).await;
    room.post_message("hello").await;
    let delivery = oak.next_delivery().await;
    (room, oak, delivery)
}

/// What oak did in the room: `type text`.
pub(super) async fn done(room: &OwnedChannel) -> Vec<String> {
    let rows = room.history().await;
    let text = |row: &Value| {
        let said = ["content", "status", "message", "name"]
            .into_iter()
            .find_map(|key| row[key].as_str());
        format!(
            "{} {}",
            row["type"].as_str().unwrap(),
            said.unwrap_or_default()
        )
    };
    rows.iter()
        .filter(|row| row["sender"] == "oak")
        .map(text)
        .collect()
}

story!(
    the_five_printed_events_are_taken_as_printed_and_kept_in_order,
    |hub| async {
        // CHN-23…29, CHN-31
        let (room, oak, delivery) = delivered(&hub).await;
        let mut stream = room.owner.stream(&room.path("/stream")).await;
        stream.next("connected").await;
        for (name, kind) in [
            ("3-status", "status"),
            ("3-tool-call", "tool_call"),
            ("3-tool-result", "tool_result"),
            ("3-error", "error"),
            ("3-message", "message"),
        ] {
            let printed = example(&format!("channel-protocol/{name}.json"));
            let answer = oak.post_event(&delivery, &printed).await;
            assert_eq!(
                (answer.status, &answer.json()["status"]),
                (200, &json!("ok")),
                "{name}: {answer:?}"
            );
            assert!(
                answer.json().get("success").is_none(),
                "a bare acknowledgement (R-78)"
            );
            let event = stream.next(kind).await;
            for (key, value) in printed.as_object().unwrap() {
                assert_eq!(&event.data[key], value, "{name}");
            }
            assert_eq!(
                (&event.data["sender"], &event.data["sender_kind"]),
                (&json!("oak"), &json!("agent"))
            );
        }
        let rows = room.history().await;
        let of = |kind: &str| rows.iter().find(|row| row["type"] == kind).unwrap();
        // A call and its result are paired.
        assert_eq!(of("tool_result")["call"], of("tool_call")["cursor"]);
        assert_eq!(room.member("oak").await["status"], "searching weather data");
        hub.advance(Duration::from_secs(24 * 3600 - 1));
        assert_eq!(
            room.member("oak").await["status"],
            Value::Null,
            "a status ages"
        );
    }
);

story!(
    an_agent_may_say_who_it_is_and_fields_that_are_not_the_documents_are_ignored,
    |hub| async {
        //
        let (room, oak, delivery) = delivered(&hub).await;
        let agent = json!({"name": "Oak", "avatar": "https://a.example/oak.png", "capabilities": ["search"]});
        let event = json!({"type": "status", "status": "here", "agent": agent, "mood": {"x": [1]}});
        assert_eq!(oak.post_event(&delivery, &event).await.status, 200);
        assert_eq!(room.member("oak").await["agent"], agent);
        // Optional ones may be missing, or null.
        for event in [
            json!({"type": "tool_call", "name": "t", "id": "1"}),
            json!({"type": "tool_call", "name": "t", "id": "2", "args": null}),
            json!({"type": "error", "message": "oh"}),
            json!({"type": "error", "message": "oh", "code": null}),
            json!({"type": "tool_result", "id": "never called", "content": ""}),
        ] {
            assert_eq!(
                oak.post_event(&delivery, &event).await.status,
                200,
                "{event}"
            );
        }
    }
);

/// Posts a body to the callback of a delivery, exactly as it is written.
async fn post_body(
    hub: &Hub,
    delivery: &Value,
    content_type: &str,
    body: impl Into<reqwest::Body>,
) -> Answer {
    let request = hub
        .http
        .post(callback(delivery))
        .header("content-type", content_type)
        .body(body);
    Answer::of(request).await
}

story!(
    what_is_wrong_is_refused_by_name_and_nothing_of_it_is_done,
    |hub| async {
        //
        let (room, oak, delivery) = delivered(&hub).await;
        let before = room.history().await.len();
        for (event, names) in [
            (json!({"type": "dance", "content": "x"}), "type"),
            (json!({"content": "x"}), "type"),
            (json!({"type": "message"}), "content"),
            (json!({"type": "message", "content": 7}), "content"),
            (json!({"type": "tool_call", "name": "t"}), "id"),
            (json!({"type": "tool_call", "id": "1"}), "name"),
            (
                json!({"type": "tool_call", "id": "1", "name": "t", "args": [1]}),
                "args",
            ),
            (json!({"type": "tool_result", "content": "x"}), "id"),
            (json!({"type": "tool_result", "id": "1"}), "content"),
            (json!({"type": "status"}), "status"),
            (json!({"type": "error", "code": "x"}), "message"),
            (
                json!({"type": "status", "status": "x", "agent": "me"}),
                "agent",
            ),
            (json!([{"type": "message", "content": "x"}]), "object"),
        ] {
            let said = oak
                .post_event(&delivery, &event)
                .await
                .refused(400, "ERR_VALIDATION");
            assert!(said.contains(names), "{event}: {said}");
        }
        for text in [
            "",
            "{",
            "{\"type\":\"message\",\"content\":\"a\"}{}",
            "{\"type\":\"message\",\"type\":\"status\"}",
        ] {
            post_body(&hub, &delivery, "application/json", text)
                .await
                .refused(400, "ERR_VALIDATION");
        }
        for size in [60_000, 300_000] {
            let event = json!({"type": "message", "content": "x".repeat(size)});
            oak.post_event(&delivery, &event)
                .await
                .refused(413, "ERR_TOO_LARGE");
        }
        // Short as it was written and long as it is passed on: what counts is what others are to take.
        let numbers = vec!["1e15"; 9_000].join(",");
        for text in [
            format!(
                "{{\"type\":\"message\",\"content\":\"x\",\"parts\":[{{\"data\":[{numbers}]}}]}}"
            ),
            format!(
                "{{\"type\":\"tool_call\",\"id\":\"1\",\"name\":\"t\",\"args\":{{\"x\":[{numbers}]}}}}"
            ),
        ] {
            post_body(&hub, &delivery, "application/json", text)
                .await
                .refused(413, "ERR_TOO_LARGE");
        }
        //
        post_body(&hub, &delivery, "text/plain", "hello")
            .await
            .refused(415, "ERR_UNSUPPORTED_MEDIA_TYPE");
        assert_eq!(room.history().await.len(), before);
    }
);

story!(a_callback_is_good_for_a_day_and_then_gone, |hub| async {
    //
    let (room, oak, delivery) = delivered(&hub).await;
    let event = json!({"type": "message", "content": "in time"});
    hub.advance(Duration::from_secs(24 * 3600 - 1));
    assert_eq!(oak.post_event(&delivery, &event).await.status, 200);
    hub.restart().await;
    let moved = |delivery: &Value| {
        let (_, path) = callback(delivery).split_once("/channels/").unwrap();
        json!({"callback": format!("{}/channels/{path}", hub.url)})
    };
    assert_eq!(
        oak.post_event(&moved(&delivery), &event).await.status,
        200,
        "it is kept, not remembered"
    );
    hub.advance(Duration::from_secs(1));
    oak.post_event(&moved(&delivery), &event)
        .await
        .refused(410, "ERR_GONE");
    oak.post_event(&moved(&delivery), &json!("whatever"))
        .await
        .refused(410, "ERR_GONE");
    hub.maintain().await;
    oak.post_event(&moved(&delivery), &event)
        .await
        .refused(410, "ERR_GONE");
    assert_eq!(
        room.reconnect(&hub).message_texts().await,
        ["hello", "in time", "in time"]
    );
});

story!(
    a_dead_callback_is_410_for_a_week_also_when_its_room_is_trimmed,
    with(|set| set.hub.retain = Some(Duration::from_secs(24 * 3600))),
    |hub| async {
        //
        let (room, oak, delivery) = delivered(&hub).await;
        let event = json!({"type": "message", "content": "late"});
        room.owner.delete(&room.path("")).await.data(200);
        let day = Duration::from_secs(24 * 3600);
        for _ in 0..7 {
            hub.advance(day);
            hub.maintain().await;
            let late = oak.post_event(&delivery, &event).await;
            late.refused(410, "ERR_GONE");
        }
        hub.advance(2 * day);
        hub.maintain().await;
        let forgotten = oak.post_event(&delivery, &event).await;
        forgotten.refused(404, "ERR_NOT_FOUND");
    }
);

story!(
    a_callback_ends_with_its_member_and_with_its_room,
    |hub| async {
        //
        let (room, oak, first) = delivered(&hub).await;
        let event = json!({"type": "message", "content": "still here"});
        room.owner
            .delete(&room.path("/members/oak"))
            .await
            .data(200);
        oak.post_event(&first, &event)
            .await
            .refused(410, "ERR_GONE");
        // The member that has the name now is another one.
        let mut other = RemoteMember::accepting(&hub).await;
        room.add_remote("oak", &other.url()).await;
        oak.post_event(&first, &event)
            .await
            .refused(410, "ERR_GONE");
        room.post_message("hello again").await;
        let second = other.next_delivery().await;
        other.post_answer(&second, "it is me").await;
        room.owner.delete(&room.path("")).await.data(200);
        other
            .post_event(&second, &event)
            .await
            .refused(410, "ERR_GONE");
        // Of another room it never was one, whatever became of its own.
        let elsewhere = OwnedChannel::create(&hub, "bob").await;
        let there = json!({"callback": callback(&second).replace(&room.id, &elsewhere.id)});
        other
            .post_event(&there, &event)
            .await
            .refused(404, "ERR_NOT_FOUND");
    }
);

story!(
    a_token_that_never_was_is_not_there_whatever_comes_with_it,
    |hub| async {
        //
        let (room, oak, delivery) = delivered(&hub).await;
        let elsewhere = OwnedChannel::create(&hub, "bob").await;
        let token = callback(&delivery).rsplit('/').next().unwrap();
        let bearer = delivery["mcp"]["headers"]["Authorization"]
            .as_str()
            .unwrap()
            .trim_start_matches("Bearer ");
        let made_up = format!("tok_{}", "0".repeat(32));
        for (id, token) in [
            (room.id.as_str(), made_up.as_str()),
            (room.id.as_str(), "x"),
            (room.id.as_str(), bearer),
            (elsewhere.id.as_str(), token),
            ("ch_nowhere", token),
        ] {
            let at = json!({"callback": format!("{}/channels/{id}/inbox/{token}", hub.url)});
            for body in [
                json!({"type": "message", "content": "x"}),
                json!({"type": "?"}),
                json!(7),
                json!("x".repeat(300_000)),
            ] {
                let said = oak
                    .post_event(&at, &body)
                    .await
                    .refused(404, "ERR_NOT_FOUND");
                assert!(!said.contains(token), "{said}");
            }
        }
        assert_eq!(room.message_texts().await, ["hello"]);
    }
);

story!(
    events_are_kept_in_the_order_in_which_they_come,
    |hub| async {
        // CHN-32, CHN-33, R-71
        let (room, oak, delivery) = delivered(&hub).await;
        for n in 0..30 {
            oak.post_answer(&delivery, &format!("{n}")).await;
        }
        let expected: Vec<String> = (0..30).map(|n| format!("message {n}")).collect();
        assert_eq!(done(&room).await, expected);
    }
);

story!(a_member_may_have_a_callback_that_stands, |hub| async {
    //
    let room = OwnedChannel::create(&hub, "alice").await;
    let (oak, bob, eve) = (
        RemoteMember::accepting(&hub).await,
        hub.agent("bob").await,
        hub.agent("eve").await,
    );
    room.add_remote("oak", &oak.url()).await;
    room.add_agent(&bob).await;
    let (to_oak, to_bob) = (
        room.path("/members/oak/callback"),
        room.path("/members/bob/callback"),
    );
    let first = room.owner.post(&to_oak, &json!({})).await.data(201);
    assert!(callback(&first).starts_with(&format!("{}/channels/{}/inbox/tok_", hub.url, room.id)));
    let event = |text: &str| json!({"type": "message", "content": text});
    assert_eq!(oak.post_event(&first, &event("unasked")).await.status, 200);
    hub.advance(Duration::from_secs(30 * 24 * 3600));
    hub.maintain().await;
    assert_eq!(
        oak.post_event(&first, &event("a month later")).await.status,
        200
    );

    let mine = bob.post(&to_bob, &json!({})).await.data(201);
    assert_eq!(oak.post_event(&mine, &event("from bob")).await.status, 200);
    bob.post(&to_oak, &json!({}))
        .await
        .refused(403, "ERR_FORBIDDEN");
    eve.post(&to_oak, &json!({}))
        .await
        .refused(404, "ERR_NOT_FOUND");
    hub.anonymous()
        .post(&to_oak, &json!({}))
        .await
        .refused(401, "ERR_UNAUTHORIZED");
    room.owner
        .post(&room.path("/members/absent/callback"), &json!({}))
        .await
        .refused(404, "ERR_NOT_FOUND");

    let second = room.owner.post(&to_oak, &json!({})).await.data(201);
    oak.post_event(&first, &event("rotated"))
        .await
        .refused(410, "ERR_GONE");
    assert_eq!(
        oak.post_event(&second, &event("the new one")).await.status,
        200
    );
    room.owner
        .delete(&room.path("/members/oak"))
        .await
        .data(200);
    oak.post_event(&second, &event("removed"))
        .await
        .refused(410, "ERR_GONE");
    assert_eq!(
        room.message_texts().await,
        ["unasked", "a month later", "from bob", "the new one"]
    );
});

story!(
    an_event_that_is_posted_again_with_its_key_is_heard_once,
    |hub| async {
        // R-27, CHN-30
        let (room, _oak, delivery) = delivered(&hub).await;
        let post = async |key: &str, text: &str| {
            let event = json!({"type": "message", "content": text});
            Answer::of(
                hub.http
                    .post(callback(&delivery))
                    .header("idempotency-key", key)
                    .json(&event),
            )
            .await
        };
        for _ in 0..3 {
            assert_eq!(post("a", "one").await.status, 200);
        }
        post("a", "another")
            .await
            .refused(409, "ERR_IDEMPOTENCY_CONFLICT");
        assert_eq!(post("b", "one").await.status, 200);
        assert_eq!(done(&room).await, ["message one", "message one"]);
    }
);

story!(
    members_by_connection_string_share_one_budget_of_the_owner,
    with(|set| set.rate_limit = 40),
    |hub| async {
        // channels and members are free, so they must not multiply a budget
        let room = OwnedChannel::create(&hub, "alice").await;
        let (mut oak, mut elm) = (
            RemoteMember::accepting(&hub).await,
            RemoteMember::accepting(&hub).await,
        );
        room.add_remote("oak", &oak.url()).await;
        room.add_remote("elm", &elm.url()).await;
        room.post_message("hello").await;
        let (to_oak, to_elm) = (oak.next_delivery().await, elm.next_delivery().await);
        let event = json!({"type": "status", "status": "busy"});
        for _ in 0..20 {
            assert_eq!(oak.post_event(&to_oak, &event).await.status, 200);
            assert_eq!(elm.post_event(&to_elm, &event).await.status, 200);
        }
        for (member, delivery) in [(&oak, &to_oak), (&elm, &to_elm)] {
            member
                .post_event(delivery, &event)
                .await
                .refused(429, "ERR_RATE_LIMITED");
        }
        // The owner is not locked out of its own channel.
        room.post_message("less, please").await;
    }
);

story!(
    an_agent_has_one_budget_in_all_its_channels,
    with(|set| set.rate_limit = 20),
    |hub| async {
        //
        let bob = hub.agent("bob").await;
        let mut inbox = bob.inbox().await;
        let mut callbacks = Vec::new();
        for owner in ["alice", "carol"] {
            let room = OwnedChannel::create(&hub, owner).await;
            room.add_agent(&bob).await;
            inbox.next("channel_invite").await;
            room.post_message("@bob hello").await;
            let delivery = inbox.next("channel").await.data;
            callbacks.push(delivery["callback"].as_str().unwrap().to_owned());
        }
        let event = json!({"type": "status", "status": "busy"});
        let post = async |url: &str| Answer::of(hub.http.post(url).json(&event)).await;
        let mut answered = 0;
        for _ in 0..20 {
            for callback in &callbacks {
                answered += usize::from(post(callback).await.status == 200);
            }
        }
        assert!((15..=20).contains(&answered), "{answered}");
        bob.get("/agent/messages")
            .await
            .refused(429, "ERR_RATE_LIMITED");
    }
);
