//! Delivery status and receipts: what became of a message, and what its receiver answered.

use crate::support::actors::{Reply, Webhook};
use serde_json::json;

story!(
    a_receivers_reply_reaches_the_sender_as_a_receipt,
    |hub| async {
        // R-34, ENV-13, SKL-16
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let (mut hers, mut his) = (alice.inbox().await, bob.inbox().await);
        let sent = alice
            .send_expecting(&bob.id, "hello", "delivered_sse")
            .await;
        let event = his.next("message").await;
        let data = bob
            .respond(&event.data["trace_id"], &json!({"status": "ok"}))
            .await
            .data(200);
        assert_eq!(
            (&data["trace_id"], &data["status"]),
            (&sent["trace_id"], &json!("acknowledged"))
        );
        let receipt = hers.next("receipt").await;
        assert_eq!(receipt.data["trace_id"], sent["trace_id"]);
        assert_eq!(
            (&receipt.data["receiver_id"], &receipt.data["response"]),
            (&json!(bob.id), &json!({"status": "ok"}))
        );
        assert!(receipt.data["timestamp"].is_string() && receipt.id.is_some());
        let standing = alice.delivery_status(&sent["trace_id"]).await;
        assert_eq!(
            (&standing["status"], &standing["receiver_response"]),
            (&json!("acknowledged"), &json!({"status": "ok"}))
        );
    }
);

story!(a_receipt_waits_for_a_sender_who_is_away, |hub| async {
    // receipts are durable inbox entries
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    let sent = alice.send_expecting(&bob.id, "hello", "queued").await;
    let no =
        json!({"status": "error", "error_code": "ADAPTATION_FAILED", "detail": "no such idiom"});
    bob.respond(&sent["trace_id"], &no).await.data(200);
    hub.restart().await;
    let (alice, bob) = (hub.reconnect(&alice), hub.reconnect(&bob));
    let mut inbox = alice.inbox_after("0").await;
    let receipt = inbox.next("receipt").await;
    assert_eq!(receipt.data["response"], no);
    bob.send_expecting(&alice.id, "and a message", "delivered_sse")
        .await;
    let message = inbox.next("message").await;
    assert!(message.cursor() > receipt.cursor());
    assert_eq!(alice.history("").await.len(), 2, "a receipt is no message");
});

story!(the_first_response_stands, |hub| async {
    //
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    let mut inbox = alice.inbox().await;
    let sent = alice.send_expecting(&bob.id, "hello", "queued").await;
    let no = json!({"status": "error", "error_code": "INVALID_ENVELOPE", "detail": "missing sender_culture"});
    bob.respond(&sent["trace_id"], &no).await.data(200);
    bob.respond(&sent["trace_id"], &no).await.data(200);
    bob.respond(&sent["trace_id"], &json!({"status": "ok"}))
        .await
        .refused(409, "ERR_RESPONSE_CONFLICT");
    assert_eq!(
        alice.delivery_status(&sent["trace_id"]).await["receiver_response"],
        no
    );
    inbox.next("receipt").await;
    bob.send_expecting(&alice.id, "marker", "delivered_sse")
        .await;
    inbox.next("message").await;
});

story!(
    only_the_receiver_responds_and_only_in_the_protocols_words,
    |hub| async {
        // R-34, ENV-13, ENV-14
        let (alice, bob, eve) = (
            hub.agent("alice").await,
            hub.agent("bob").await,
            hub.agent("eve").await,
        );
        let sent = alice.send_expecting(&bob.id, "hello", "queued").await;
        let trace = &sent["trace_id"];
        eve.respond(trace, &json!({"status": "ok"}))
            .await
            .refused(404, "ERR_NOT_FOUND");
        let own = alice.respond(trace, &json!({"status": "ok"})).await;
        assert!(
            matches!(own.status, 403 | 404),
            "a sender does not answer itself: {own:?}"
        );
        for reply in [
            json!({}),
            json!({"status": "fine"}),
            json!({"status": true}),
            json!({"status": "error"}),
            json!({"status": "ok", "error_code": "X"}),
            json!({"status": "error", "error_code": 5}),
            json!({"status": "ok", "more": 1}),
            json!([]),
        ] {
            bob.respond(trace, &reply)
                .await
                .refused(400, "ERR_VALIDATION");
        }
        for unknown in ["nonsense", "0189f7ea-ae2c-7809-8aeb-b819cf5e9e7f"] {
            bob.respond(&json!(unknown), &json!({"status": "ok"}))
                .await
                .refused(404, "ERR_NOT_FOUND");
        }
        assert_eq!(alice.delivery_status(trace).await["status"], "queued");
    }
);

story!(
    a_standing_is_for_the_two_parties_and_the_operator,
    |hub| async {
        // to a stranger it is not there
        let (alice, bob, eve) = (
            hub.agent("alice").await,
            hub.agent("bob").await,
            hub.agent("eve").await,
        );
        let sent = alice.send_expecting(&bob.id, "hello", "queued").await;
        let path = format!("/messages/{}", sent["trace_id"].as_str().unwrap());
        for who in [&*alice, &*bob, &*hub.operator()] {
            let data = who.get(&path).await.data(200);
            assert_eq!(data["trace_id"], sent["trace_id"]);
            assert_eq!(
                (&data["status"], &data["sender_id"]),
                (&json!("queued"), &json!(alice.id))
            );
            assert_eq!(data["receiver_id"], json!(bob.id));
        }
        eve.get(&path).await.refused(404, "ERR_NOT_FOUND");
        hub.anonymous()
            .get(&path)
            .await
            .refused(401, "ERR_UNAUTHORIZED");
        for unknown in [
            "/messages/nonsense",
            "/messages/0189f7ea-ae2c-7809-8aeb-b819cf5e9e7f",
        ] {
            alice.get(unknown).await.refused(404, "ERR_NOT_FOUND");
        }
    }
);

story!(
    a_replay_delivers_what_was_queued_and_a_fetch_does_not,
    |hub| async {
        // delivered_via keeps its first value
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let sent = alice.send_expecting(&bob.id, "hello", "queued").await;
        assert_eq!(bob.history("").await.len(), 1);
        assert_eq!(
            alice.delivery_status(&sent["trace_id"]).await["status"],
            "queued"
        );
        assert_eq!(
            hub.anonymous().get("/health").await.data(200)["messages_queued"],
            1
        );
        bob.inbox_after("0").await.next("message").await;
        crate::support::hub::eventually("the replay counts", || async {
            alice.delivery_status(&sent["trace_id"]).await["status"] == "delivered"
        })
        .await;
        assert_eq!(
            alice.delivery_status(&sent["trace_id"]).await["delivered_via"],
            "queued"
        );
        assert_eq!(bob.history("").await[0]["delivered_via"], "queued");
        assert_eq!(
            hub.anonymous().get("/health").await.data(200)["messages_queued"],
            0
        );
    }
);

story!(
    a_receiver_that_answers_both_ways_has_answered,
    |hub| async {
        // by its key while its endpoint is still being asked
        let mut endpoint = Webhook::replying(Reply::held_ok()).await;
        let (alice, bob) = (
            hub.agent("alice").await,
            hub.agent_with_webhook("bob", &endpoint.url()).await,
        );
        let asking = alice.clone();
        let sending = tokio::spawn(async move { asking.send("bob", "hello").await });
        endpoint.next_request().await;
        let trace_id = bob.history("").await[0]["trace_id"].clone();
        bob.respond(&trace_id, &json!({"status": "ok"}))
            .await
            .data(200);
        endpoint.release();
        let sent = sending.await.unwrap().data(200);
        assert_eq!(
            (&sent["delivery"], &sent["trace_id"]),
            (&json!("delivered"), &trace_id)
        );
        let known = alice.delivery_status(&trace_id).await;
        assert_eq!(
            (&known["status"], &known["delivered_via"]),
            (&json!("acknowledged"), &json!("webhook"))
        );
    }
);
