//! Idempotency keys: a repeated request has one effect and gets the first answer.

use crate::support::actors::{Answer, Reply, Stream, Webhook};
use crate::support::hub::YEAR_MICROS;
use serde_json::json;
use std::time::Duration;

/// What a receiver may take, or pause, in these stories.
const PAUSE: Duration = Duration::from_millis(700);

story!(
    the_same_key_and_body_answer_as_the_first_time,
    |hub| async {
        // R-27, lesson 1
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let body = alice.message(&bob.id, "once");
        let first = alice.send_once("k", &body).await;
        let _inbox = bob.inbox().await;
        let again = alice.send_once("k", &body).await;
        assert_eq!(
            (first.status, first.data(202)),
            (again.status, again.data(202))
        );
        assert_eq!(bob.history("").await.len(), 1);
    }
);

story!(key_order_and_blanks_make_no_conflict, |hub| async {
    // failure 17: equality of values, not of text
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    let one = r#"{"receiver_id":"bob@chorus","envelope":{"chorus_version":"0.4","sender_id":"alice@chorus",
        "original_text":"h\u00e9","sender_culture":"en","turn_number":2}}"#;
    let two = r#"{ "envelope": {"turn_number": 2.0, "sender_culture": "en", "original_text": "hé",
        "sender_id": "alice@chorus", "chorus_version": "0.4"}, "receiver_id": "bob@chorus" }"#;
    let mut traces = Vec::new();
    for body in [one, two] {
        let request = alice
            .request("POST", "/messages")
            .header("idempotency-key", "k")
            .header("content-type", "application/json")
            .body(body);
        traces
            .push(crate::support::actors::Answer::of(request).await.data(202)["trace_id"].clone());
    }
    assert_eq!(traces[0], traces[1]);
    assert_eq!(bob.history("").await.len(), 1);
});

story!(another_body_under_the_key_is_a_conflict, |hub| async {
    // R-27
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    alice
        .send_once("k", &alice.message(&bob.id, "one"))
        .await
        .data(202);
    alice
        .send_once("k", &alice.message(&bob.id, "two"))
        .await
        .refused(409, "ERR_IDEMPOTENCY_CONFLICT");
    alice
        .send_once("other", &alice.message(&bob.id, "two"))
        .await
        .data(202);
    assert_eq!(bob.history("").await.len(), 2);
});

story!(a_strangers_key_never_blocks_mine, |hub| async {
    // R-27: per caller; failure 5
    let (alice, bob, carol) = (
        hub.agent("alice").await,
        hub.agent("bob").await,
        hub.agent("carol").await,
    );
    alice
        .send_once("k", &alice.message(&carol.id, "hers"))
        .await
        .data(202);
    bob.send_once("k", &bob.message(&carol.id, "his"))
        .await
        .data(202);
    let by_operator = hub
        .operator()
        .request("POST", "/messages")
        .header("idempotency-key", "k");
    crate::support::actors::Answer::of(by_operator.json(&alice.message(&carol.id, "theirs")))
        .await
        .data(202);
    assert_eq!(carol.history("").await.len(), 3);
});

story!(an_answer_is_kept_24_hours_and_over_a_restart, |hub| async {
    // R-27
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    let first = alice
        .send_once("k", &alice.message(&bob.id, "one"))
        .await
        .data(202);
    hub.advance(Duration::from_secs(24 * 3600 - 1));
    hub.restart().await;
    let (alice, bob) = (hub.reconnect(&alice), hub.reconnect(&bob));
    let again = alice
        .send_once("k", &alice.message(&bob.id, "one"))
        .await
        .data(202);
    assert_eq!(first, again);
    hub.advance(Duration::from_secs(2));
    let anew = alice
        .send_once("k", &alice.message(&bob.id, "another text"))
        .await
        .data(202);
    assert_ne!(first["trace_id"], anew["trace_id"]);
    assert_eq!(bob.history("").await.len(), 2);
});

story!(
    a_send_is_not_repeated_because_the_clock_leaped,
    |hub| async {
        // D-123, R-27: the retry of a client knows nothing of the hub's clock
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let body = alice.message(&bob.id, "once");
        let first = alice.send_once("k", &body).await.data(202);
        hub.maintain().await;
        hub.leap(YEAR_MICROS);
        // Before the hub has noticed the leap in its background work, after that, and after a restart.
        assert_eq!(alice.send_once("k", &body).await.data(202), first);
        hub.maintain().await;
        assert_eq!(alice.send_once("k", &body).await.data(202), first);
        hub.restart().await;
        let (alice, bob) = (hub.reconnect(&alice), hub.reconnect(&bob));
        assert_eq!(alice.send_once("k", &body).await.data(202), first);
        alice
            .send_once("k", &alice.message(&bob.id, "another text"))
            .await
            .refused(409, "ERR_IDEMPOTENCY_CONFLICT");
        assert_eq!(bob.history("").await.len(), 1);
        // A key is kept for 24 hours that have passed, and no longer.
        hub.advance(Duration::from_secs(24 * 3600));
        let anew = alice.send_once("k", &body).await.data(202);
        assert_ne!(anew["trace_id"], first["trace_id"]);
    }
);

story!(
    a_key_given_while_the_clock_was_behind_outlives_its_correction,
    |hub| async {
        // D-123: the time since the last pass of the stopped hub is counted from the time that the clock was set back to
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        hub.maintain().await;
        hub.leap(-YEAR_MICROS);
        hub.maintain().await;
        let body = alice.message(&bob.id, "once");
        let first = alice.send_once("k", &body).await.data(202);
        hub.stop().await;
        hub.leap(YEAR_MICROS);
        hub.restart().await;
        let (alice, bob) = (hub.reconnect(&alice), hub.reconnect(&bob));
        assert_eq!(alice.send_once("k", &body).await.data(202), first);
        assert_eq!(bob.history("").await.len(), 1);
    }
);

story!(a_leap_of_the_clock_makes_no_key_last_longer, |hub| async {
    // D-123: 24 hours are those that have passed, before the leap and after it
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    let body = alice.message(&bob.id, "once");
    let first = alice.send_once("k", &body).await.data(202);
    hub.advance(Duration::from_secs(20 * 3600));
    hub.maintain().await;
    hub.leap(YEAR_MICROS);
    hub.advance(Duration::from_secs(3 * 3600));
    assert_eq!(alice.send_once("k", &body).await.data(202), first);
    hub.advance(Duration::from_secs(3600));
    let anew = alice.send_once("k", &body).await.data(202);
    assert_ne!(anew["trace_id"], first["trace_id"]);
});

story!(a_refusal_is_not_kept, |hub| async {
    // R-38: 4xx answers are not kept
    let alice = hub.agent("alice").await;
    let body = alice.message("bob@chorus", "hello");
    alice
        .send_once("k", &body)
        .await
        .refused(404, "ERR_AGENT_NOT_FOUND");
    let bob = hub.agent("bob").await;
    alice
        .send_once("k", &json!({"receiver_id": bob.id}))
        .await
        .refused(400, "ERR_VALIDATION");
    alice.send_once("k", &body).await.data(202);
});

story!(a_failed_webhook_is_posted_once_under_one_key, |hub| async {
    // R-38: the hub never retries; the sender may, under a key of its own
    let mut webhook = Webhook::script(|turn| {
        if turn == 0 {
            Reply::json(503, "{}")
        } else {
            Reply::ok()
        }
    })
    .await;
    let (alice, bob) = (
        hub.agent("alice").await,
        hub.agent_with_webhook("bob", &webhook.url()).await,
    );
    let body = alice.message(&bob.id, "hello");
    let first = alice.send_once("k", &body).await.data(200);
    assert_eq!(first["delivery"], "failed");
    webhook.next_request().await;
    assert_eq!(alice.send_once("k", &body).await.data(200), first);
    assert!(webhook.received_nothing());
    assert_eq!(
        alice.send_once("k2", &body).await.data(200)["delivery"],
        "delivered"
    );
});

story!(
    a_repeat_waits_for_the_outcome_of_a_streamed_answer,
    with(|set| set.hub.webhook_timeout = PAUSE),
    |hub| async {
        // failure 13: the receiver streams for longer than any whole answer may take, and the second request hears the first's outcome
        let mut webhook = Webhook::replying(Reply::events_until_released()).await;
        let (alice, bob) = (
            hub.agent("alice").await,
            hub.agent_with_webhook("bob", &webhook.url()).await,
        );
        let mut body = alice.message(&bob.id, "tell me everything");
        body["stream"] = json!(true);
        let first = alice
            .request("POST", "/messages")
            .header("accept", "text/event-stream");
        let mut first = Stream::open(first.header("idempotency-key", "k").json(&body)).await;
        webhook.next_request().await;
        let repeat = tokio::spawn({
            let (alice, body) = (alice.clone(), body.clone());
            // R-103: without it the repeat would be a stream too
            let request = alice
                .request("POST", "/messages")
                .header("accept", "application/json")
                .header("idempotency-key", "k");
            async move { Answer::of(request.json(&body)).await }
        });
        let began = std::time::Instant::now();
        while began.elapsed() < 3 * PAUSE {
            first.next("chunk").await;
        }
        assert!(!repeat.is_finished(), "there is no outcome yet");
        webhook.release();
        let repeat = repeat.await.unwrap().data(200);
        assert_eq!(repeat["delivery"], "delivered");
        assert_eq!(repeat["trace_id"], bob.history("").await[0]["trace_id"]);
        assert_eq!(bob.history("").await.len(), 1);
    }
);

story!(a_key_has_a_bound_and_at_least_one_character, |hub| async {
    // R-27: at most 256 characters
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    let body = alice.message(&bob.id, "hello");
    alice.send_once(&"k".repeat(256), &body).await.data(202);
    alice
        .send_once(&"k".repeat(257), &body)
        .await
        .refused(400, "ERR_VALIDATION");
    alice
        .send_once("", &body)
        .await
        .refused(400, "ERR_VALIDATION");
    assert_eq!(bob.history("").await.len(), 1);
});
