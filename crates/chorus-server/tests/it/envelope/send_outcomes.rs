//! Outcomes of a send: delivered on a stream, delivered by webhook, queued, failed, or rejected.

use crate::support::actors::{Reply, Webhook, envelope};
use crate::support::examples::example;
use serde_json::{Value, json};

story!(
    a_live_inbox_gets_the_message_and_the_sender_hears_so,
    |hub| async {
        // TRN-10, TRN-11, TRN-13, TRN-15, TRN-43, lesson 1
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let mut inbox = bob.inbox().await;
        let data = alice.send(&bob.id, "hello").await.data(200);
        assert_eq!(data["delivery"], "delivered_sse");
        let event = inbox.next("message").await;
        assert_eq!(event.data["trace_id"], data["trace_id"]);
        assert_eq!(event.data["sender_id"], "alice@chorus");
        assert_eq!(event.data["envelope"], alice.envelope("hello"));
    }
);

story!(the_printed_send_is_accepted_as_printed, |hub| async {
    // TRN-14, R-02: any host part registers
    for (name, receiver) in [
        (
            "transport-profile/quick-start-3-send.http",
            "other-agent@chorus",
        ),
        ("transport-profile/6.4-send.http", "bob@chorus.example"),
    ] {
        let request = example(name);
        let sender = hub
            .agent_with(
                request["envelope"]["sender_id"].as_str().unwrap(),
                &json!({}),
            )
            .await;
        let receiver = hub.agent_with(receiver, &json!({})).await;
        let mut inbox = receiver.inbox().await;
        let data = sender.post("/messages", &request).await.data(200);
        assert_eq!(data["delivery"], "delivered_sse");
        assert_eq!(
            inbox.next("message").await.data["envelope"],
            request["envelope"]
        );
    }
});

story!(
    without_a_listener_a_message_is_queued_and_kept,
    |hub| async {
        // R-22, TRN-58
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let data = alice.send(&bob.id, "for later").await.data(202);
        assert_eq!(data["delivery"], "queued");
        let kept = bob.history("").await;
        assert_eq!(
            (&kept[0]["trace_id"], &kept[0]["delivered_via"]),
            (&data["trace_id"], &json!("queued"))
        );
    }
);

story!(an_open_inbox_wins_over_a_webhook, |hub| async {
    // TRN-18
    let mut webhook = Webhook::replying(Reply::ok()).await;
    let (alice, bob) = (
        hub.agent("alice").await,
        hub.agent_with_webhook("bob", &webhook.url()).await,
    );
    let mut inbox = bob.inbox().await;
    alice
        .send_expecting(&bob.id, "by stream", "delivered_sse")
        .await;
    assert_eq!(inbox.texts(1).await, ["by stream"]);
    assert!(webhook.received_nothing());
    drop(inbox);
    crate::support::hub::eventually("bob is offline", || async {
        hub.anonymous().get("/discover").await.json()[1]["online"] == false
    })
    .await;
    alice
        .send_expecting(&bob.id, "by webhook", "delivered")
        .await;
    assert_eq!(
        webhook.next_request().await.json()["envelope"]["original_text"],
        "by webhook"
    );
});

story!(
    every_spelling_of_a_name_reaches_the_same_agent,
    |hub| async {
        // TRN-42
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let mut inbox = bob.inbox().await;
        for name in ["bob@chorus", "bob", "~bob"] {
            alice.send_expecting(name, name, "delivered_sse").await;
            let event = inbox.next("message").await;
            assert_eq!(event.message_text(), name);
        }
        let receivers: Vec<Value> = alice
            .history("")
            .await
            .iter()
            .map(|row| row["receiver_id"].clone())
            .collect();
        assert_eq!(receivers, vec![json!("bob@chorus"); 3]);
    }
);

story!(
    an_unknown_receiver_is_404_and_nothing_is_kept,
    |hub| async {
        // TRN-23, TRN-27
        let alice = hub.agent("alice").await;
        for name in [
            "absent@chorus",
            "absent",
            "~absent",
            "alice@elsewhere",
            "550e8400-e29b-41d4-a716-446655440000",
        ] {
            alice
                .send(name, "hello?")
                .await
                .refused(404, "ERR_AGENT_NOT_FOUND");
        }
        assert!(alice.history("").await.is_empty());
    }
);

story!(
    an_operator_sends_as_any_registered_sender_only,
    |hub| async {
        // R-06, TRN-21
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let mut inbox = bob.inbox().await;
        let data = hub
            .operator()
            .post("/messages", &alice.message(&bob.id, "on her behalf"))
            .await
            .data(200);
        assert_eq!(
            inbox.next("message").await.data["trace_id"],
            data["trace_id"]
        );
        assert_eq!(alice.history("").await.len(), 1);
        let body = json!({"receiver_id": bob.id, "envelope": envelope("ghost@chorus", "boo")});
        hub.operator()
            .post("/messages", &body)
            .await
            .refused(400, "ERR_SENDER_NOT_REGISTERED");
        assert_eq!(bob.history("").await.len(), 1);
    }
);

story!(an_envelope_arrives_in_full_and_unchanged, |hub| async {
    // ENV-06…09, ENV-15, ENV-16
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    let mut inbox = bob.inbox().await;
    let full = json!({
        "chorus_version": "0.4", "sender_id": "alice@chorus", "sender_culture": "zh-cn-x-Mine",
        "original_text": "line one\nline two\r\n\u{2028}\ttab \"quoted\" \\ 下午一起喝杯咖啡? 🎶 \u{0}end",
        "cultural_context": "中国同事之间用「喝咖啡」作为邀请", "conversation_id": "", "turn_number": 7,
    });
    alice
        .post(
            "/messages",
            &json!({"receiver_id": bob.id, "envelope": full}),
        )
        .await
        .data(200);
    assert_eq!(inbox.next("message").await.data["envelope"], full);
    assert_eq!(bob.history("").await[0]["envelope"], full);
});

story!(every_outcome_has_a_trace_id_that_grows, |hub| async {
    // UUIDv7, sorting like the ids, also while the clock stands still
    let webhook = Webhook::replying(Reply::ok()).await;
    let alice = hub.agent("alice").await;
    let bob = hub.agent("bob").await;
    hub.agent_with_webhook("carol", &webhook.url()).await;
    hub.agent_with_webhook("dave", "http://127.0.0.1:9/").await;
    let _inbox = bob.inbox().await;
    hub.agent("erin").await;
    let mut traces = Vec::new();
    for _ in 0..3 {
        for (to, outcome) in [
            ("bob", "delivered_sse"),
            ("carol", "delivered"),
            ("dave", "failed"),
            ("erin", "queued"),
        ] {
            traces.push(
                alice.send_expecting(to, "x", outcome).await["trace_id"]
                    .as_str()
                    .unwrap()
                    .to_owned(),
            );
        }
    }
    assert!(
        traces.iter().all(|t| t.as_bytes()[14] == b'7'),
        "{traces:?}"
    );
    assert!(traces.is_sorted_by(|a, b| a < b), "{traces:?}");
});

story!(an_agent_may_write_to_itself, |hub| async {
    let alice = hub.agent("alice").await;
    let mut inbox = alice.inbox().await;
    alice
        .send_expecting(&alice.id, "note to self", "delivered_sse")
        .await;
    assert_eq!(inbox.texts(1).await, ["note to self"]);
    assert_eq!(alice.history("").await.len(), 1, "one message, one row");
});

story!(the_hub_never_drops_on_conversation_and_turn, |hub| async {
    // R-28, ENV-22: receivers dedupe, the hub does not
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    let mut inbox = bob.inbox().await;
    let mut body = alice.message(&bob.id, "again");
    body["envelope"]["conversation_id"] = json!("c-1");
    body["envelope"]["turn_number"] = json!(1);
    let first = alice.post("/messages", &body).await.data(200);
    let second = alice.post("/messages", &body).await.data(200);
    assert_ne!(first["trace_id"], second["trace_id"]);
    assert_eq!(inbox.texts(2).await, ["again", "again"]);
});

story!(printed_keys_come_first_and_ours_after, |hub| async {
    // The rule behind all resolutions; TRN-15, TRN-19, TRN-20, R-22
    let webhook = Webhook::replying(Reply::ok()).await;
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    hub.agent_with_webhook("carol", &webhook.url()).await;
    hub.agent_with_webhook("dave", "http://127.0.0.1:9/").await;
    let _inbox = bob.inbox().await;
    for (to, printed) in [
        ("bob", "transport-profile/quick-start-3-sent.json"),
        ("carol", "transport-profile/6.4-delivered.json"),
        ("dave", "transport-profile/6.4-failed.json"),
    ] {
        let answer = alice.send(to, "hello").await;
        let (printed, data) = (example(printed), answer.data(200));
        for (key, value) in printed["data"].as_object().unwrap() {
            assert_eq!(data[key].is_string(), value.is_string(), "{key}: {data}");
        }
        assert_eq!(data["delivery"], printed["data"]["delivery"]);
        let place = |key: &str| answer.text.find(&format!("\"{key}\":"));
        assert!(
            place("success") < place("data") && place("data") < place("metadata"),
            "{}",
            answer.text
        );
        assert!(
            place("delivery").is_some() && place("delivery") < place("trace_id"),
            "{}",
            answer.text
        );
        assert!(
            place("detail").is_none_or(|at| Some(at) < place("trace_id")),
            "{}",
            answer.text
        );
    }
});
