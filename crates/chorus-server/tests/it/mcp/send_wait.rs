//! `chorus_send` with `wait`: the call ends with the fact, or without it when its time is over.

use super::host_client::McpHost;
use serde_json::{Value, json};

story!(a_send_waits_until_its_message_was_shown, |hub| async {
    // WAK-13, R-81
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    let (from, to) = (McpHost::of(&alice).await, McpHost::of(&bob).await);
    let args =
        json!({"receiver_id": "bob", "text": "Seen?", "wait": "shown", "timeout_ms": 30_000});
    let shows = async {
        // Looking at the inbox shows what is in it, as soon as it is there.
        loop {
            let seen = to.call("chorus_inbox", json!({})).await.data();
            if !seen["events"].as_array().unwrap().is_empty() {
                return seen;
            }
            tokio::task::yield_now().await;
        }
    };
    let (sent, _) = tokio::join!(from.call("chorus_send", args), shows);
    let sent = sent.data();
    assert!(sent["shown_at"].is_string(), "{sent}");
    assert_eq!(sent["answer"], Value::Null);
    let status = alice.delivery_status(&sent["trace_id"]).await;
    assert_eq!(status["shown_at"], sent["shown_at"]);
});

story!(
    a_send_waits_for_an_answer_of_its_conversation,
    |hub| async {
        // an answer is a message that came back, not a receipt.
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let from = McpHost::of(&alice).await;
        bob.send(&alice.id, "long before").await;
        let args = json!({"receiver_id": "bob", "text": "When?", "conversation_id": "c1", "turn_number": 1,
        "wait": "answer", "timeout_ms": 30_000});
        let answers = async {
            let mut inbox = bob.inbox_after("0").await;
            loop {
                let question = inbox.next("message").await;
                if question.data["envelope"]["original_text"] == "When?" {
                    break;
                }
            }
            bob.send(&alice.id, "another matter").await;
            let mut answer = bob.message(&alice.id, "At ten.");
            answer["envelope"]["conversation_id"] = json!("c1");
            bob.post("/messages", &answer).await
        };
        let (sent, answer) = tokio::join!(from.call("chorus_send", args), answers);
        let (sent, answer) = (sent.data(), answer.json()["data"].clone());
        assert_eq!(
            sent["answer"],
            json!({"trace_id": answer["trace_id"], "text": "At ten."}),
            "{sent}"
        );
        // Its text is in a model's turn now.
        let status = bob.delivery_status(&answer["trace_id"]).await;
        assert!(status["shown_at"].is_string(), "{status}");
    }
);

story!(
    a_wait_ends_with_its_time_and_the_message_stays_sent,
    |hub| async {
        let alice = hub.agent("alice").await;
        hub.agent("bob").await;
        let from = McpHost::of(&alice).await;
        for fact in ["shown", "answer"] {
            let args = json!({"receiver_id": "bob", "text": fact, "wait": fact, "timeout_ms": 1});
            let sent = from.call("chorus_send", args).await.data();
            assert_eq!(sent["delivery"], "queued", "{sent}");
            assert_eq!(
                (&sent["shown_at"], &sent["answer"]),
                (&Value::Null, &Value::Null)
            );
        }
        for (field, value) in [
            ("wait", json!("read")),
            ("timeout_ms", json!(30_001)),
            ("timeout_ms", json!(0)),
        ] {
            let mut args = json!({"receiver_id": "bob", "text": "no", "wait": "shown"});
            args[field] = value;
            from.call("chorus_send", args).await.refused(field);
        }
        assert_eq!(
            alice.history("").await.len(),
            2,
            "what is refused is not sent"
        );
    }
);
