//! Removing an agent: who may do it, and what is deleted with it.

use serde_json::json;

story!(an_agent_leaves_and_its_key_and_name_are_gone, |hub| async {
    // TRN-32, R-31
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    assert_eq!(
        alice.delete("/agents/alice@chorus").await.data(200)["deleted"],
        true
    );
    alice
        .get("/agent/messages")
        .await
        .refused(401, "ERR_UNAUTHORIZED");
    alice
        .send(&bob.id, "from beyond")
        .await
        .refused(401, "ERR_UNAUTHORIZED");
    bob.send("alice", "are you there?")
        .await
        .refused(404, "ERR_AGENT_NOT_FOUND");
    hub.anonymous()
        .get("/agents/alice")
        .await
        .refused(404, "ERR_AGENT_NOT_FOUND");
    assert_eq!(
        hub.anonymous()
            .get("/discover")
            .await
            .json()
            .as_array()
            .unwrap()
            .len(),
        1
    );
});

story!(
    only_the_agent_itself_or_an_operator_removes_it,
    |hub| async {
        // R-31; failure 2
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        bob.delete("/agents/alice@chorus")
            .await
            .refused(403, "ERR_FORBIDDEN");
        hub.anonymous()
            .delete("/agents/alice@chorus")
            .await
            .refused(401, "ERR_UNAUTHORIZED");
        assert!(alice.history("").await.is_empty(), "alice is still there");
        assert_eq!(
            hub.operator().delete("/agents/alice").await.data(200)["deleted"],
            true
        );
        alice
            .get("/agent/messages")
            .await
            .refused(401, "ERR_UNAUTHORIZED");
    }
);

story!(removing_an_absent_agent_is_a_confirmed_no_op, |hub| async {
    // TRN-33, R-31
    let data = hub
        .operator()
        .delete("/agents/absent@chorus")
        .await
        .data(200);
    assert_eq!(data["deleted"], false);
    let alice = hub.agent("alice").await;
    assert_eq!(
        hub.operator()
            .delete("/agents/alice@chorus")
            .await
            .data(200)["deleted"],
        true
    );
    assert_eq!(
        hub.operator()
            .delete("/agents/alice@chorus")
            .await
            .data(200)["deleted"],
        false
    );
    hub.anonymous().register(&alice.id).await.data(201);
});

story!(
    a_name_is_free_again_with_nothing_of_the_old_one,
    |hub| async {
        // R-11, R-52's sense for envelopes: no key, no endpoint, no stream, no idempotency answer is inherited
        let old = hub.agent_with_webhook("alice", "http://127.0.0.1:9/").await;
        let bob = hub.agent("bob").await;
        let once = old
            .send_once("k", &old.message(&bob.id, "old words"))
            .await
            .data(202);
        old.delete("/agents/alice@chorus").await.data(200);
        let heir = hub.agent("alice").await;
        assert_eq!(
            heir.get("/agents/alice").await.data(200)["has_endpoint"],
            false
        );
        let fresh = heir
            .send_once("k", &heir.message(&bob.id, "new words"))
            .await
            .data(202);
        assert_ne!(once["trace_id"], fresh["trace_id"]);
        old.get("/agent/messages")
            .await
            .refused(401, "ERR_UNAUTHORIZED");
        bob.respond(&once["trace_id"], &json!({"status": "ok"}))
            .await;
        let mut inbox = heir.inbox_after("0").await;
        bob.send_expecting(&heir.id, "marker", "delivered_sse")
            .await;
        assert_eq!(
            inbox.texts(1).await,
            ["marker"],
            "no receipt for a predecessor's message"
        );
    }
);

story!(
    what_waited_for_an_agent_that_left_is_given_up_to_the_last_message,
    |hub| async {
        // some at once, so that no other request waits for it, and the rest in later batches
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        for _ in 0..24 {
            let some = (0..50).map(|_| bob.send(&alice.id, "are you there?"));
            for answer in futures_util::future::join_all(some).await {
                assert_eq!(answer.status, 202, "{answer:?}");
            }
        }
        alice.delete("/agents/alice@chorus").await.data(200);
        hub.maintain().await;
        let sent = bob.whole_history(1_000).await;
        assert_eq!(
            sent.iter()
                .filter(|row| row["delivered_via"] == "failed")
                .count(),
            1_200
        );
        let last = bob.delivery_status(&sent[1_199]["trace_id"]).await;
        assert_eq!(
            (&last["status"], &last["error_code"]),
            (&json!("failed"), &json!("ERR_AGENT_NOT_FOUND"))
        );
        let health = hub.anonymous().get("/health").await.data(200);
        assert_eq!(
            (&health["messages_queued"], &health["messages_failed"]),
            (&json!(0), &json!(1_200))
        );
    }
);
