//! `chorus_send` with `wait`: the call ends with the fact, or without it when its time is over.

use super::host_client::{McpHost, ToolResult};
use crate::support::actors::{Agent, Answer};
use chorus_wire::limits;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

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

/// Calls that wait, one for each of an agent's sessions. Their messages are sent when this returns.
async fn begin_waits(from: &McpHost, to: &Agent, count: usize) -> Vec<JoinHandle<ToolResult>> {
    let mut inbox = to.inbox_after("0").await;
    let mut calls = Vec::new();
    for number in 0..count {
        let text = format!("wait {number} of {count}");
        let args =
            json!({"receiver_id": to.id, "text": text, "wait": "answer", "timeout_ms": 30_000});
        let session = format!("s{number}");
        let host = from.clone().with("x-chorus-session", &session);
        calls.push(tokio::spawn(
            async move { host.call("chorus_send", args).await },
        ));
        while inbox.next("message").await.data["envelope"]["original_text"] != text {}
    }
    calls
}

/// The summary of a send that waits for a moment.
async fn send_and_wait(from: &McpHost) -> String {
    let args = json!({"receiver_id": "bob", "text": "more", "wait": "shown", "timeout_ms": 1});
    let sent = from.call("chorus_send", args).await;
    sent.data()["trace_id"].as_str().expect("it is sent");
    sent.0["content"][0]["text"].as_str().unwrap().to_owned()
}

/// A call makes room a moment after its client left.
async fn await_room(from: &McpHost) {
    const LOOKS: usize = 2_000;
    for _ in 0..LOOKS {
        if !send_and_wait(from).await.contains(FULL) {
            return;
        }
    }
    panic!("the wait goes on without its client");
}

const FULL: &str = "too many calls of yours wait already";

sqlite_story!(
    waits_of_one_agent_are_limited_and_end_with_their_client,
    |hub| async {
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let from = McpHost::of(&alice).await;
        let mut calls = begin_waits(&from, &bob, limits::TOOL_WAITS_PER_AGENT).await;
        let summary = send_and_wait(&from).await;
        assert!(summary.contains(FULL), "{summary}");
        let other = McpHost::of(&bob).await;
        let summary = send_and_wait(&other).await;
        assert!(!summary.contains(FULL), "another agent waits: {summary}");
        // The connection of a client that left is closed.
        calls.pop().unwrap().abort();
        await_room(&from).await;
        let more = begin_waits(&from, &bob, 1).await;
        assert!(send_and_wait(&from).await.contains(FULL));
        // A cancelled call returns at once, and only that of the session that cancels.
        let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": {"requestId": 7, "reason": "the user pressed escape"}});
        let notification = alice
            .request("POST", "/mcp")
            .header("accept", "application/json, text/event-stream")
            .header("x-chorus-session", "s1")
            .json(&cancelled);
        assert_eq!(Answer::of(notification).await.status, 202);
        let ended = calls.remove(1).await.unwrap();
        let summary = ended.0["content"][0]["text"].to_string();
        assert!(summary.contains("no longer waited for"), "{summary}");
        await_room(&from).await;
        assert!(calls.iter().chain(&more).all(|call| !call.is_finished()));
        calls.into_iter().chain(more).for_each(|call| call.abort());
    }
);
