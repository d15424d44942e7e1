//! Shown: the text of a message was part of a model's turn or on a screen.

use crate::mcp::host_client::McpHost;
use serde_json::{Value, json};

story!(
    a_sender_hears_that_its_message_was_shown_and_reads_it_later,
    |hub| async {
        // R-81, WAK-13
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let (mut hers, mut his) = (alice.inbox().await, bob.inbox().await);
        let sent = alice
            .send_expecting(&bob.id, "hello", "delivered_sse")
            .await;
        let trace = &sent["trace_id"];
        his.next("message").await;
        assert_eq!(alice.delivery_status(trace).await["shown_at"], Value::Null);
        let marked = bob.mark_shown(trace).await.data(200);
        assert!(marked["shown_at"].is_string(), "{marked}");
        // No answer is implied.
        assert_eq!(
            (&marked["status"], &marked["acknowledged_at"]),
            (&json!("delivered"), &Value::Null)
        );
        let shown = hers.next("shown").await;
        assert_eq!(
            (&shown.data["trace_id"], &shown.data["receiver_id"]),
            (trace, &json!(bob.id))
        );
        assert!(shown.id.is_some() && shown.data["timestamp"].is_string());
        assert_eq!(
            alice.delivery_status(trace).await["shown_at"],
            marked["shown_at"]
        );
        for party in [&alice, &bob] {
            let rows = party.history("").await;
            assert_eq!(rows[0]["shown_at"], marked["shown_at"]);
        }
        // A response stands beside it.
        bob.respond(trace, &json!({"status": "ok"})).await.data(200);
        hers.next("receipt").await;
        let status = alice.delivery_status(trace).await;
        assert_eq!(
            (&status["status"], &status["shown_at"]),
            (&json!("acknowledged"), &marked["shown_at"])
        );
    }
);

story!(the_first_time_a_message_was_shown_stands, |hub| async {
    // idempotent, told once, durable
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    let sent = alice.send_expecting(&bob.id, "hello", "queued").await;
    let trace = &sent["trace_id"];
    let first = bob.mark_shown(trace).await.data(200);
    assert_eq!(first["status"], "queued", "no stream carried it: {first}");
    hub.restart().await;
    let (alice, bob) = (hub.reconnect(&alice), hub.reconnect(&bob));
    let again = bob.mark_shown(trace).await.data(200);
    assert_eq!(again["shown_at"], first["shown_at"]);
    let mut inbox = alice.inbox_after("0").await;
    inbox.next("shown").await;
    bob.send_expecting(&alice.id, "marker", "delivered_sse")
        .await;
    inbox.next("message").await;
});

story!(
    only_the_receiver_says_that_a_message_was_shown,
    |hub| async {
        // to strangers there is no such message
        let (alice, bob, eve) = (
            hub.agent("alice").await,
            hub.agent("bob").await,
            hub.agent("eve").await,
        );
        let sent = alice.send_expecting(&bob.id, "hello", "queued").await;
        let trace = &sent["trace_id"];
        for other in [&alice, &eve] {
            other.mark_shown(trace).await.refused(404, "ERR_NOT_FOUND");
        }
        for unknown in ["nonsense", "0189f7ea-ae2c-7809-8aeb-b819cf5e9e7f"] {
            bob.mark_shown(&json!(unknown))
                .await
                .refused(404, "ERR_NOT_FOUND");
        }
        assert_eq!(alice.delivery_status(trace).await["shown_at"], Value::Null);
    }
);

story!(
    what_a_tool_returns_to_a_model_was_shown_to_it,
    |hub| async {
        // R-81, WAK-13
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let mut hers = alice.inbox().await;
        for (tool, args) in [
            ("chorus_inbox", json!({})),
            ("chorus_history", json!({"peer": alice.id})),
        ] {
            let sent = alice.send_expecting(&bob.id, tool, "queued").await;
            let host = McpHost::of(&bob).await;
            for _ in 0..2 {
                host.call(tool, args.clone()).await.data();
            }
            let shown = hers.next("shown").await;
            assert_eq!(shown.data["trace_id"], sent["trace_id"], "{tool}");
        }
        // Looking at what one sent shows nothing to its receiver.
        let sent = alice.send_expecting(&bob.id, "unread", "queued").await;
        let host = McpHost::of(&alice).await;
        host.call("chorus_history", json!({})).await.data();
        let status = alice.delivery_status(&sent["trace_id"]).await;
        assert_eq!(status["shown_at"], Value::Null);
    }
);
