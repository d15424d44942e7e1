//! The inbox stream: how it opens, what it carries, how it resumes, how it ends.

use crate::support::actors::{Agent, Stream, registration};
use crate::support::hub::eventually;
use serde_json::json;
use std::time::Duration;

story!(an_inbox_opens_with_connected_and_stays_open, |hub| async {
    // TRN-08, TRN-09
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    let mut inbox = bob.stream("/agent/inbox").await;
    assert!(
        inbox.header("cache-control").contains("no-cache")
            || inbox.header("cache-control").contains("no-store")
    );
    inbox.next("connected").await;
    for text in ["one", "two", "three"] {
        alice.send_expecting(&bob.id, text, "delivered_sse").await;
        assert_eq!(inbox.texts(1).await, [text]);
    }
});

story!(a_naive_reader_understands_every_event, |hub| async {
    // R-25, lesson 3: LF, `event: `, `data: `, one data line, the four keys first
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    let mut inbox = bob.stream("/agent/inbox").await;
    inbox.next("connected").await;
    alice
        .send_expecting(
            &bob.id,
            "line\r\nbreaks\u{2028}and\u{85}all",
            "delivered_sse",
        )
        .await;
    let event = inbox.next("message").await;
    let text = String::from_utf8(inbox.raw.clone()).unwrap();
    assert!(!text.contains('\r'), "{text:?}");
    let block = text
        .split("\n\n")
        .find(|block| block.contains("event: message\n"))
        .expect("a message block");
    let lines: Vec<&str> = block.split('\n').collect();
    assert_eq!(
        lines
            .iter()
            .filter(|line| line.starts_with("data: "))
            .count(),
        1,
        "{block:?}"
    );
    assert!(
        lines.iter().all(|line| ["event: ", "id: ", "data: "]
            .iter()
            .any(|f| line.starts_with(f))),
        "{block:?}"
    );
    let keys: Vec<usize> = [
        "{\"trace_id\":",
        "\"sender_id\":",
        "\"envelope\":{",
        "\"timestamp\":",
    ]
    .iter()
    .map(|key| event.text.find(key).expect("each key"))
    .collect();
    assert!(
        keys[0] == 0 && keys[0] < keys[1] && keys[1] < keys[2],
        "{}",
        event.text
    );
    assert!(event.id.is_some());
});

story!(
    the_longest_envelope_stays_under_what_readers_buffer,
    |hub| async {
        // R-25, lesson 3: 64 000 characters, also when every character is escaped
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let mut inbox = bob.inbox().await;
        let mut largest = alice.message(&bob.id, &"\u{1}".repeat(10_000));
        alice.post("/messages", &largest).await.data(200);
        assert!(inbox.next("message").await.text.chars().count() < 63_900);
        largest["envelope"]["cultural_context"] = json!("\u{1}".repeat(500));
        largest["envelope"]["conversation_id"] = json!("\u{1}".repeat(64));
        let answer = alice.post("/messages", &largest).await;
        assert!(matches!(answer.status, 200 | 400), "{answer:?}");
        if answer.status == 200 {
            assert!(inbox.next("message").await.text.chars().count() < 63_900);
        }
    }
);

story!(without_a_cursor_an_inbox_starts_at_now, |hub| async {
    //
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    alice.send_expecting(&bob.id, "before", "queued").await;
    let mut inbox = bob.inbox().await;
    alice
        .send_expecting(&bob.id, "after", "delivered_sse")
        .await;
    assert_eq!(inbox.texts(1).await, ["after"]);
});

story!(
    a_cursor_replays_what_was_missed_and_then_goes_live,
    |hub| async {
        // R-25; failure 15: the live message does not move past the gap
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let mut first = bob.inbox().await;
        alice.send_expecting(&bob.id, "one", "delivered_sse").await;
        let seen = first.next("message").await.id.unwrap();
        drop(first);
        for text in ["two", "three"] {
            alice.send(&bob.id, text).await;
        }
        let mut by_header = bob.inbox_after(&seen).await;
        let mut by_query = bob.stream(&format!("/agent/inbox?since={seen}")).await;
        by_query.next("connected").await;
        alice.send_expecting(&bob.id, "four", "delivered_sse").await;
        for stream in [&mut by_header, &mut by_query] {
            assert_eq!(stream.texts(3).await, ["two", "three", "four"]);
        }
        let mut whole = bob.inbox_after("0").await;
        assert_eq!(whole.texts(4).await, ["one", "two", "three", "four"]);
    }
);

story!(the_header_wins_over_the_query, |hub| async {
    // EventSource repeats its URL
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    for text in ["one", "two", "three"] {
        alice.send(&bob.id, text).await;
    }
    let rows = bob.history("").await;
    let request = bob
        .request("GET", "/agent/inbox?since=0")
        .header("last-event-id", rows[1]["id"].to_string());
    let mut inbox = Stream::open(request).await;
    inbox.next("connected").await;
    assert_eq!(inbox.texts(1).await, ["three"]);
});

story!(a_cursor_that_is_not_ours_is_refused, |hub| async {
    let bob = hub.agent("bob").await;
    for cursor in ["x", "-1", "1.5", "99999999999999999999", "+1", "%20"] {
        bob.get(&format!("/agent/inbox?since={cursor}"))
            .await
            .refused(400, "ERR_VALIDATION");
    }
});

story!(only_what_is_addressed_to_me_is_on_my_stream, |hub| async {
    let (alice, bob, carol) = (
        hub.agent("alice").await,
        hub.agent("bob").await,
        hub.agent("carol").await,
    );
    let mut inbox = alice.inbox_after("0").await;
    alice.send(&bob.id, "mine to bob").await;
    bob.send(&carol.id, "none of hers").await;
    carol
        .send_expecting(&alice.id, "hers", "delivered_sse")
        .await;
    assert_eq!(inbox.texts(1).await, ["hers"]);
});

story!(
    several_inboxes_all_hear_and_none_closes_another,
    |hub| async {
        // R-26; failure 10
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let mut old = bob.inbox().await;
        let mut new = bob.inbox().await;
        alice.send_expecting(&bob.id, "both", "delivered_sse").await;
        assert_eq!(
            (old.texts(1).await, new.texts(1).await),
            (vec!["both".into()], vec!["both".into()])
        );
        drop(old);
        eventually("one inbox is left", || async {
            hub.anonymous().get("/health").await.data(200)["inbox_connections"] == 1
        })
        .await;
        alice
            .send_expecting(&bob.id, "the new one stays", "delivered_sse")
            .await;
        assert_eq!(new.texts(1).await, ["the new one stays"]);
        assert_eq!(
            hub.anonymous().get("/agents/bob").await.data(200)["online"],
            true
        );
    }
);

story!(
    there_is_an_end_to_how_many_streams_one_agent_opens,
    |hub| async {
        // invariant 6
        let bob = hub.agent("bob").await;
        let mut open = Vec::new();
        for _ in 0..chorus_wire::limits::STREAMS_PER_SUBJECT {
            open.push(bob.inbox().await);
        }
        bob.get("/agent/inbox")
            .await
            .refused(429, "ERR_TOO_MANY_STREAMS");
        open.pop();
        eventually("there is room again", || async {
            let request = bob.request("GET", "/agent/inbox");
            request
                .send()
                .await
                .is_ok_and(|answer| answer.status() == 200)
        })
        .await;
    }
);

async fn session(agent: &Agent) -> String {
    let data = agent.post("/agent/session", &json!({})).await.data(200);
    assert_eq!(data["expires_in_seconds"], 300);
    data["session_token"].as_str().unwrap().to_owned()
}

story!(a_session_token_opens_one_stream_once, |hub| async {
    // lesson 2
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    let token = session(&bob).await;
    assert!(
        token.starts_with("cs_") && token.len() >= 3 + 32,
        "R-74: 128 bits or more"
    );
    hub.anonymous()
        .with_key(&token)
        .get("/agent/messages")
        .await
        .refused(401, "ERR_UNAUTHORIZED");
    let mut inbox = hub
        .anonymous()
        .stream(&format!("/agent/inbox?session={token}&since=0"))
        .await;
    inbox.next("connected").await;
    alice
        .send_expecting(&bob.id, "hello", "delivered_sse")
        .await;
    assert_eq!(inbox.texts(1).await, ["hello"]);
    hub.anonymous()
        .get(&format!("/agent/inbox?session={token}"))
        .await
        .refused(401, "ERR_UNAUTHORIZED");
    hub.anonymous()
        .get("/agent/inbox?session=cs_unknown")
        .await
        .refused(401, "ERR_UNAUTHORIZED");
});

story!(a_session_token_lives_300_seconds, |hub| async {
    //
    let bob = hub.agent("bob").await;
    let (early, late) = (session(&bob).await, session(&bob).await);
    hub.advance(Duration::from_secs(299));
    hub.anonymous()
        .stream(&format!("/agent/inbox?session={early}"))
        .await
        .next("connected")
        .await;
    hub.advance(Duration::from_secs(2));
    hub.anonymous()
        .get(&format!("/agent/inbox?session={late}"))
        .await
        .refused(401, "ERR_UNAUTHORIZED");
});

story!(a_key_in_the_url_is_refused_by_name, |hub| async {
    //
    let bob = hub.agent("bob").await;
    let answer = hub
        .anonymous()
        .get(&format!("/agent/inbox?token={}", bob.key))
        .await;
    let message = answer.refused(400, "ERR_DEPRECATED");
    assert!(!message.contains(&bob.key));
});

story!(rotation_closes_the_streams_of_the_old_key, |hub| async {
    // R-38; also those that its tokens opened
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    let mut by_key = bob.inbox().await;
    let token = session(&bob).await;
    let mut by_token = hub
        .anonymous()
        .stream(&format!("/agent/inbox?session={}", session(&bob).await))
        .await;
    by_token.next("connected").await;
    let data = bob
        .post("/register", &registration(&bob.id))
        .await
        .data(200);
    let bob = Agent::new(&bob, &bob.id, data["api_key"].as_str().unwrap());
    alice
        .send_expecting(&bob.id, "after the rotation", "queued")
        .await;
    for stream in [&mut by_key, &mut by_token] {
        assert!(
            stream
                .ended()
                .await
                .iter()
                .all(|event| event.name != "message")
        );
    }
    hub.anonymous()
        .get(&format!("/agent/inbox?session={token}"))
        .await
        .refused(401, "ERR_UNAUTHORIZED");
    assert_eq!(
        bob.inbox_after("0").await.texts(1).await,
        ["after the rotation"]
    );
});

story!(deletion_closes_the_streams, |hub| async {
    //
    let bob = hub.agent("bob").await;
    let mut inbox = bob.inbox().await;
    bob.delete("/agents/bob@chorus").await.data(200);
    assert!(
        inbox
            .ended()
            .await
            .iter()
            .all(|event| event.name != "message")
    );
});

story!(a_stream_keeps_its_place_over_a_restart, |hub| async {
    // failure 15
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    let mut inbox = bob.inbox().await;
    alice.send_expecting(&bob.id, "one", "delivered_sse").await;
    let seen = inbox.next("message").await;
    alice.send_expecting(&bob.id, "two", "delivered_sse").await;
    hub.restart().await;
    let (alice, bob) = (hub.reconnect(&alice), hub.reconnect(&bob));
    alice.send_expecting(&bob.id, "three", "queued").await;
    let mut resumed = bob.inbox_after(seen.id.as_deref().unwrap()).await;
    assert_eq!(resumed.texts(2).await, ["two", "three"]);
    let next = {
        alice.send_expecting(&bob.id, "four", "delivered_sse").await;
        resumed.next("message").await
    };
    assert!(next.cursor() > seen.cursor(), "ids go on after a restart");
});
