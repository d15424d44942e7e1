//! The operator's activity: as a list and as a live event stream.

use crate::support::actors::{Operator, Reply, Stream, Webhook, rows};
use serde_json::{Value, json};

async fn types(operator: &Operator, since: u64) -> Vec<String> {
    operator
        .activity(since)
        .await
        .iter()
        .map(|row| row["type"].as_str().unwrap().to_owned())
        .collect()
}

/// The receiver of a message, the outcome of sending it, and the events that the operator is told.
const DELIVERY_EVENTS: [(&str, &str, &[&str]); 3] = [
    (
        "bob",
        "delivered_sse",
        &["message_submitted", "message_delivered_sse"],
    ),
    (
        "carol",
        "delivered",
        &[
            "message_submitted",
            "message_forward_started",
            "message_delivered",
        ],
    ),
    (
        "dave",
        "failed",
        &[
            "message_submitted",
            "message_forward_started",
            "message_failed",
        ],
    ),
];

story!(
    every_kind_of_event_is_told_in_the_printed_words,
    |hub| async {
        // lesson 10
        let operator = hub.operator();
        let good = Webhook::replying(Reply::ok()).await;
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        operator
            .post(
                "/agents",
                &json!({"agent_id": "carol@chorus", "endpoint": good.url()}),
            )
            .await
            .data(201);
        hub.agent_with_webhook("dave", "http://127.0.0.1:9/").await;
        assert_eq!(
            types(&operator, 0).await,
            [
                "agent_self_registered",
                "agent_self_registered",
                "agent_registered",
                "operator_act",
                "agent_self_registered"
            ]
        );
        let mut last = operator.activity(0).await.last().unwrap()["id"]
            .as_u64()
            .unwrap();
        alice.send_expecting(&bob.id, "x", "queued").await;
        let inbox = bob.inbox().await;
        assert_eq!(
            types(&operator, last).await,
            ["message_submitted", "message_queued"]
        );
        for (to, outcome, expected) in DELIVERY_EVENTS {
            last = operator.activity(0).await.last().unwrap()["id"]
                .as_u64()
                .unwrap();
            let sent = alice.send_expecting(to, "x", outcome).await;
            let news = operator.activity(last).await;
            assert_eq!(
                news.iter()
                    .map(|row| row["type"].as_str().unwrap())
                    .collect::<Vec<_>>(),
                expected
            );
            assert!(
                news.iter()
                    .all(|row| row["data"]["trace_id"] == sent["trace_id"]),
                "{news:?}"
            );
        }
        drop(inbox);
        bob.delete("/agents/bob").await.data(200);
        assert_eq!(types(&operator, 0).await.last().unwrap(), "agent_removed");
    }
);

story!(activity_rows_have_their_shape_and_order, |hub| async {
    // lesson 10; invariant 12: what was said is not the operator's business
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    alice
        .send_expecting(&bob.id, "a private word", "queued")
        .await;
    let answer = hub.operator().get("/activity?since=0").await;
    assert!(!answer.text.contains("a private word"));
    let all = rows(answer.data(200));
    for row in &all {
        let mut keys: Vec<&str> = row
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        keys.sort_unstable();
        assert_eq!(keys, ["data", "id", "timestamp", "type"]);
    }
    assert!(all.is_sorted_by(|a, b| a["id"].as_u64() < b["id"].as_u64()));
    for (place, row) in all.iter().enumerate() {
        let after: Vec<Value> = hub.operator().activity(row["id"].as_u64().unwrap()).await;
        assert_eq!(after, all[place + 1..]);
    }
    hub.operator()
        .get("/activity?since=soon")
        .await
        .refused(400, "ERR_VALIDATION");
});

story!(events_are_the_same_live, |hub| async {
    // lesson 10: and they resume
    let operator = hub.operator();
    let mut live = operator.stream("/events").await;
    let alice = hub.agent("alice").await;
    let first = loop {
        let event = live.any().await.expect("an event");
        if event.data["type"] == "agent_self_registered" {
            break event;
        }
    };
    assert_eq!(operator.activity(0).await[0], first.data);
    drop(live);
    alice.delete("/agents/alice").await.data(200);
    let request = operator
        .request("GET", "/events")
        .header("last-event-id", first.id.expect("an id"));
    let mut resumed = Stream::open(request).await;
    loop {
        let event = resumed.any().await.expect("an event");
        assert_ne!(event.data["type"], "agent_self_registered", "already seen");
        if event.data["type"] == "agent_removed" {
            break;
        }
    }
});
