//! The tools of messages: send, inbox, acknowledge, history and discovery over MCP.

use super::host_client::McpHost;
use serde_json::{Value, json};

/// Both messages are on the inbox, and are still there when the receiver looks again.
async fn assert_looking_consumes_nothing(receiver: &McpHost, sent: &Value) {
    for _ in 0..2 {
        let seen = receiver.call("chorus_inbox", json!({})).await.data();
        let events = seen["events"].as_array().unwrap();
        assert_eq!(events.len(), 2, "looking consumes nothing: {seen}");
        assert_eq!(
            (&events[0]["event"], &events[0]["data"]["trace_id"]),
            (&json!("message"), &sent["trace_id"])
        );
        let envelope = &events[0]["data"]["envelope"];
        assert_eq!(
            (&envelope["original_text"], &envelope["sender_culture"]),
            (&json!("Shall we?"), &json!("en-GB"))
        );
        assert_eq!(
            events[1]["data"]["envelope"]["sender_culture"], "en",
            "that of the card"
        );
    }
}

/// After this event the inbox has one message more, `next`.
async fn assert_inbox_goes_on_after(receiver: &McpHost, event: u64, next: &Value) {
    let since = receiver
        .call("chorus_inbox", json!({"since": event, "limit": 1}))
        .await
        .data();
    assert_eq!(
        since["events"][0]["data"]["trace_id"], next["trace_id"],
        "{since}"
    );
    let place = since["next_since"].to_string();
    let nothing = receiver
        .call("chorus_inbox", json!({"since": place}))
        .await
        .data();
    assert_eq!(
        (&nothing["events"], &nothing["more"]),
        (&json!([]), &json!(false))
    );
}

/// The receiver reads both messages in its history, and `sent` alone in its conversation.
async fn assert_history_is_read_back(receiver: &McpHost, sent: &Value) {
    for args in [
        json!({}),
        json!({"peer": "alice"}),
        json!({"since": "0"}),
        json!({"since": 0}),
        json!({"since": "2026-01-01T00:00:00Z"}),
    ] {
        let past = receiver.call("chorus_history", args.clone()).await.data();
        assert_eq!(
            past["messages"].as_array().unwrap().len(),
            2,
            "{args} {past}"
        );
    }
    let one = receiver
        .call("chorus_history", json!({"conversation_id": "c1"}))
        .await
        .data();
    assert_eq!(
        (
            one["messages"].as_array().unwrap().len(),
            &one["messages"][0]["trace_id"]
        ),
        (1, &sent["trace_id"])
    );
    let none = receiver
        .call("chorus_history", json!({"peer": "bob"}))
        .await
        .data();
    assert_eq!(none["messages"], json!([]), "no agent wrote to itself");
}

story!(
    a_message_is_sent_seen_acknowledged_and_read_back_with_tools_alone,
    |hub| async {
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let (from, to) = (McpHost::of(&alice).await, McpHost::of(&bob).await);
        let mut receipts = alice.inbox().await;
        let args = json!({"receiver_id": "bob", "text": "Shall we?", "conversation_id": "c1", "turn_number": 1,
        "cultural_context": "a friendly question", "sender_culture": "en-GB", "idempotency_key": "k1"});
        let sent = from.call("chorus_send", args.clone()).await.data();
        assert_eq!(sent["delivery"], "queued");
        assert_eq!(
            from.call("chorus_send", args).await.data(),
            sent,
            "R-27: the same call again is the same message"
        );
        let plain = from
            .call(
                "chorus_send",
                json!({"receiver_id": "bob@chorus", "original_text": "hello"}),
            )
            .await
            .data();

        assert_looking_consumes_nothing(&to, &sent).await;
        assert_eq!(
            alice.delivery_status(&sent["trace_id"]).await["status"],
            "queued",
            "R-38: neither is it a delivery"
        );
        // both were part of a model's turn, once.
        for message in [&sent, &plain] {
            let shown = receipts.next("shown").await;
            assert_eq!(shown.data["trace_id"], message["trace_id"]);
        }

        let seen = to
            .call("chorus_inbox", json!({"acknowledge": [sent["trace_id"]]}))
            .await
            .data();
        assert_eq!(
            (
                seen["events"].as_array().unwrap().len(),
                &seen["acknowledged"]
            ),
            (1, &json!([sent["trace_id"]]))
        );
        let receipt = receipts.next("receipt").await;
        assert_eq!(
            (&receipt.data["trace_id"], &receipt.data["response"]),
            (&sent["trace_id"], &json!({"status": "ok"}))
        );
        assert_eq!(
            alice.delivery_status(&sent["trace_id"]).await["status"],
            "acknowledged"
        );

        let after = seen["events"][0]["id"].as_u64().unwrap() - 1;
        assert_inbox_goes_on_after(&to, after, &plain).await;
        let heard = from.call("chorus_inbox", json!({"since": 0})).await.data();
        let events = heard["events"].as_array().unwrap();
        let kinds: Vec<_> = events.iter().map(|event| &event["event"]).collect();
        assert_eq!(
            kinds,
            ["shown", "shown", "receipt"],
            "everything that came, not messages alone: {heard}"
        );
        assert_history_is_read_back(&to, &sent).await;
    }
);

story!(
    a_bad_argument_of_a_message_tool_is_named_and_nothing_is_done,
    |hub| async {
        let alice = hub.agent("alice").await;
        let host = McpHost::of(&alice).await;
        let long = "x".repeat(10_001);
        for (tool, args, field) in [
            ("chorus_send", json!({"text": "x"}), "receiver_id"),
            ("chorus_send", json!({"receiver_id": "bob"}), "text"),
            (
                "chorus_send",
                json!({"receiver_id": 5, "text": "x"}),
                "receiver_id",
            ),
            (
                "chorus_send",
                json!({"receiver_id": "absent", "text": "x"}),
                "receiver_id",
            ),
            (
                "chorus_send",
                json!({"receiver_id": "a b", "text": "x"}),
                "receiver_id",
            ),
            (
                "chorus_send",
                json!({"receiver_id": "alice", "text": ""}),
                "text",
            ),
            (
                "chorus_send",
                json!({"receiver_id": "alice", "text": long}),
                "text",
            ),
            (
                "chorus_send",
                json!({"receiver_id": "alice", "text": "x", "sender_culture": "not a tag"}),
                "sender_culture",
            ),
            (
                "chorus_send",
                json!({"receiver_id": "alice", "text": "x", "turn_number": 0}),
                "turn_number",
            ),
            (
                "chorus_send",
                json!({"receiver_id": "alice", "text": "x", "turn_number": 1.5}),
                "turn_number",
            ),
            ("chorus_inbox", json!({"since": -1}), "since"),
            ("chorus_inbox", json!({"since": "soon"}), "since"),
            ("chorus_inbox", json!({"limit": 0}), "limit"),
            (
                "chorus_inbox",
                json!({"acknowledge": ["nothing"]}),
                "acknowledge[0]",
            ),
            ("chorus_history", json!({"since": "yesterday"}), "since"),
            ("chorus_history", json!({"peer": "absent"}), "peer"),
            ("chorus_discover", json!({"limit": 1001}), "limit"),
            ("chorus_discover", json!({"after": "absent"}), "after"),
            ("chorus_discover", json!({"online": "yes"}), "online"),
        ] {
            let said = host.call(tool, args.clone()).await.refused(field);
            assert!(said.len() < 400, "{said}");
        }
        assert!(alice.history("").await.is_empty());
    }
);

memory_story!(
    several_bad_arguments_are_told_at_once_and_null_is_none,
    |hub| async {
        let alice = hub.agent("alice").await;
        let host = McpHost::of(&alice).await;
        let args =
            json!({"text": "", "turn_number": 0, "cultural_context": "short", "colour": "red"});
        let said = host.call("chorus_send", args).await.refused("receiver_id");
        for fault in [
            "receiver_id is required",
            "text must be a string of 1 to 10000 characters",
            "turn_number must be a whole number",
            "cultural_context must be a string of 10 to 500 characters",
            "colour: this tool has no such argument",
        ] {
            assert!(said.contains(fault), "{fault}: {said}");
        }
        let args = json!({"receiver_id": "alice", "text": "x", "conversation_id": null, "turn_number": null});
        host.call("chorus_send", args).await.data();
        let sent = alice.history("").await[0]["envelope"].clone();
        assert_eq!(
            (sent.get("conversation_id"), sent.get("turn_number")),
            (None, None)
        );
    }
);

story!(agents_are_found_by_culture_and_presence, |hub| async {
    let alice = hub.agent("alice").await;
    let card = json!({"agent_card": {"card_version": "0.3", "user_culture": "ja", "supported_languages": ["ja", "en-GB"]}});
    let yuki = hub.agent_with("yuki@chorus", &card).await;
    let _inbox = yuki.inbox().await;
    let host = McpHost::of(&alice).await;
    let found = async |args: Value| {
        let found = host.call("chorus_discover", args).await.data();
        let ids: Vec<String> = found["agents"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["agent_id"].as_str().unwrap().into())
            .collect();
        (ids, found["next_after"].as_str().map(str::to_owned))
    };
    assert_eq!(
        found(json!({})).await,
        (vec!["alice@chorus".into(), "yuki@chorus".into()], None)
    );
    assert_eq!(found(json!({"culture": "ja"})).await.0, ["yuki@chorus"]);
    assert_eq!(
        found(json!({"culture": "en", "online": true})).await.0,
        ["yuki@chorus"]
    );
    let (first, next) = found(json!({"limit": 1})).await;
    assert_eq!(first, ["alice@chorus"]);
    // the cursor of the page, or an agent's name
    for after in [next.expect("a cursor").as_str(), "alice@chorus"] {
        let (second, next) = found(json!({"limit": 1, "after": after})).await;
        assert_eq!((second, next), (vec!["yuki@chorus".to_owned()], None));
    }
});

story!(
    a_model_sees_which_names_are_under_another_host,
    |hub| async {
        //
        let alice = hub.agent("alice").await;
        hub.agent_with("ceo@elsewhere.example", &json!({})).await;
        let host = McpHost::of(&alice).await;
        let found = host.call("chorus_discover", json!({})).await.data();
        let marks: Vec<_> = found["agents"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| (&row["agent_id"], &row["host_verified"]))
            .collect();
        let expected = [
            (&json!("alice@chorus"), &Value::Null),
            (&json!("ceo@elsewhere.example"), &json!(false)),
        ];
        assert_eq!(marks, expected);
    }
);

story!(
    a_message_that_cannot_be_handled_is_answered_with_an_error,
    |hub| async {
        // SKL-16, ENV-14
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let trace_id = alice.send(&bob.id, "hello").await.data(202)["trace_id"].clone();
        let host = McpHost::of(&bob).await;
        let args = json!({"refuse": [trace_id], "refuse_detail": "no words for it"});
        let data = host.call("chorus_inbox", args).await.data();
        assert_eq!(data["refused"], json!([trace_id]), "{data}");
        let receipt = alice.inbox_after("0").await.next("receipt").await;
        assert_eq!(
            receipt.data["response"],
            json!({"status": "error", "error_code": "ADAPTATION_FAILED", "detail": "no words for it"})
        );
        host.call("chorus_inbox", json!({"refuse": ["nothing"]}))
            .await
            .refused("refuse[0]");
    }
);
