//! Envelopes inside A2A messages: extracted, stored bare, forwarded as sent.

use crate::support::actors::{Reply, Webhook};
use serde_json::{Value, json};

const TYPE: &str = "application/vnd.chorus.envelope+json";

fn both_generations(envelope: &Value) -> [Value; 2] {
    [
        json!({"kind": "message", "role": "user", "messageId": "m-1", "parts": [
            {"kind": "text", "text": "for people"},
            {"kind": "data", "data": envelope, "metadata": {"mediaType": TYPE}},
        ]}),
        json!({"role": "ROLE_USER", "messageId": "m-2", "parts": [{"data": envelope, "mediaType": TYPE}]}),
    ]
}

story!(
    a_stream_and_history_have_the_envelope_extracted,
    |hub| async {
        // ENV-21, R-30, R-38
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let mut inbox = bob.inbox().await;
        for message in both_generations(&alice.envelope("wrapped")) {
            alice
                .post(
                    "/messages",
                    &json!({"receiver_id": bob.id, "envelope": message}),
                )
                .await
                .data(200);
            assert_eq!(
                inbox.next("message").await.data["envelope"],
                alice.envelope("wrapped")
            );
        }
        assert_eq!(
            bob.history("").await[1]["envelope"],
            alice.envelope("wrapped")
        );
    }
);

story!(a_webhook_gets_the_message_as_it_was_sent, |hub| async {
    //
    let mut webhook = Webhook::replying(Reply::ok()).await;
    let (alice, bob) = (
        hub.agent("alice").await,
        hub.agent_with_webhook("bob", &webhook.url()).await,
    );
    for message in both_generations(&alice.envelope("wrapped")) {
        alice
            .post(
                "/messages",
                &json!({"receiver_id": bob.id, "envelope": message}),
            )
            .await
            .data(200);
        assert_eq!(
            webhook.next_request().await.json(),
            json!({"envelope": message})
        );
    }
    assert_eq!(
        bob.history("").await[0]["envelope"],
        alice.envelope("wrapped")
    );
});

story!(exactly_one_part_holds_a_valid_envelope, |hub| async {
    // the sender inside is the sender
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    let part = |envelope: Value| json!({"data": envelope, "mediaType": TYPE});
    let good = part(alice.envelope("x"));
    for parts in [
        json!([]),
        json!([{"kind": "text", "text": "no envelope"}]),
        json!([good, good]),
        json!([{"mediaType": TYPE}]),
        json!([part(json!({"chorus_version": "0.4"}))]),
        json!([part(json!("text"))]),
        json!("parts"),
    ] {
        let body = json!({"receiver_id": bob.id, "envelope": {"role": "user", "parts": parts}});
        alice
            .post("/messages", &body)
            .await
            .refused(400, "ERR_VALIDATION");
    }
    let forged =
        json!({"receiver_id": bob.id, "envelope": {"parts": [part(bob.envelope("forged"))]}});
    alice
        .post("/messages", &forged)
        .await
        .refused(403, "ERR_SENDER_MISMATCH");
    assert!(bob.history("").await.is_empty());
});
