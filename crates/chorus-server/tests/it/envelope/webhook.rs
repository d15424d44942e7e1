//! Webhook delivery to an agent's endpoint, including every kind of bad response.

use crate::support::actors::{Answer, Reply, Webhook, texts};
use serde_json::{Value, json};
use std::time::Duration;

story!(a_webhook_gets_the_envelope_alone, |hub| async {
    // TRN-16, TRN-17, TRN-19, TRN-45, ENV-15
    let mut webhook = Webhook::replying(Reply::ok()).await;
    let (alice, bob) = (
        hub.agent("alice").await,
        hub.agent_with_webhook("bob", &webhook.url()).await,
    );
    let data = alice.send(&bob.id, "hello").await.data(200);
    assert_eq!(
        (&data["delivery"], &data["receiver_response"]),
        (&json!("delivered"), &json!({"status": "ok"}))
    );
    let heard = webhook.next_request().await;
    assert_eq!(heard.json(), json!({"envelope": alice.envelope("hello")}));
    let head = heard.head.to_ascii_lowercase();
    assert!(head.starts_with("post /receive http/1.1"), "{head}");
    assert!(head.contains("content-type: application/json"), "{head}");
    assert!(
        !head.contains("authorization") && !head.contains(&alice.key),
        "no key leaves the hub"
    );
    assert_eq!(bob.history("").await[0]["delivered_via"], "webhook");
    let standing = alice.delivery_status(&data["trace_id"]).await;
    assert_eq!(
        standing["status"], "acknowledged",
        "its receiver has answered"
    );
    assert_eq!(standing["receiver_response"], json!({"status": "ok"}));
});

story!(a_receiver_that_says_no_was_still_reached, |hub| async {
    // R-23, ENV-14; failure 14: a protocol reply with 4xx is an answer
    let no = r#"{"status":"error","error_code":"INVALID_ENVELOPE","detail":"missing sender_culture","extra":[1]}"#;
    for status in [200, 400, 404, 422] {
        let webhook = Webhook::replying(Reply::json(status, no)).await;
        let bob = hub
            .agent_with_webhook(&format!("bob-{status}"), &webhook.url())
            .await;
        let alice = hub.agent(&format!("alice-{status}")).await;
        let data = alice.send_expecting(&bob.id, "hello", "delivered").await;
        assert_eq!(
            data["receiver_response"],
            serde_json::from_str::<Value>(no).unwrap()
        );
    }
});

/// Sends to an endpoint that answers `reply`; what the sender hears.
async fn failing(hub: &crate::support::hub::Hub, name: &str, reply: Reply) -> Value {
    let webhook = Webhook::replying(reply).await;
    let (alice, bob) = (
        hub.agent(&format!("{name}-from")).await,
        hub.agent_with_webhook(name, &webhook.url()).await,
    );
    let data = alice.send_expecting(&bob.id, name, "failed").await;
    // R-23; failure 14: kept either way, so the receiver can catch up.
    assert_eq!(bob.history("").await[0]["delivered_via"], "failed");
    assert_eq!(
        alice.delivery_status(&data["trace_id"]).await["status"],
        "failed"
    );
    assert_eq!(bob.inbox_after("0").await.texts(1).await, [name]);
    assert!(
        data["detail"]
            .as_str()
            .is_some_and(|detail| !detail.is_empty()),
        "{data}"
    );
    assert!(
        !data.to_string().contains("/receive"),
        "the endpoint is not the sender's to know: {data}"
    );
    data
}

story!(an_answer_that_is_no_answer_is_unreachable, |hub| async {
    // TRN-20, TRN-25, R-23, R-37, R-38; failure 25
    let huge = format!("{{\"status\":\"ok\",\"more\":\"{}\"}}", "x".repeat(70_000));
    let cases = [
        ("server-error", Reply::json(500, r#"{"status":"ok"}"#)),
        ("bad-gateway", Reply::json(502, "")),
        ("not-json", Reply::typed(200, "text/html", "<h1>ok</h1>")),
        ("not-protocol", Reply::json(200, r#"{"result":"fine"}"#)),
        ("other-status", Reply::json(200, r#"{"status":"received"}"#)),
        ("empty", Reply::json(200, "")),
        ("no-content", Reply::json(204, "")),
        ("not-found-page", Reply::typed(404, "text/plain", "404")),
        ("oversize", Reply::json(200, &huge)),
        (
            "garbage",
            Reply::Bytes(b"\x16\x03\x01 this is not HTTP".to_vec()),
        ),
        ("hang-up", Reply::Bytes(Vec::new())),
        (
            "half",
            Reply::Bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 15\r\n\r\n{\"status\":".to_vec()),
        ),
    ];
    for (name, reply) in cases {
        let data = failing(&hub, name, reply).await;
        assert_eq!(
            data["error_code"], "ERR_AGENT_UNREACHABLE",
            "{name}: {data}"
        );
    }
});

story!(a_refused_connection_is_unreachable, |hub| async {
    // TRN-25
    let (alice, bob) = (
        hub.agent("alice").await,
        hub.agent_with_webhook("bob", "http://127.0.0.1:9/").await,
    );
    let data = alice.send_expecting(&bob.id, "hello", "failed").await;
    assert_eq!(data["error_code"], "ERR_AGENT_UNREACHABLE");
});

story!(a_redirect_is_not_followed, |hub| async {
    // failure 3: a redirect is another way into a private network
    let mut inside = Webhook::replying(Reply::ok()).await;
    let data = failing(&hub, "redirecting", Reply::redirect(&inside.url())).await;
    assert_eq!(data["error_code"], "ERR_AGENT_UNREACHABLE");
    assert!(inside.received_nothing());
});

story!(
    a_silent_receiver_is_a_timeout,
    with(|set| set.hub.webhook_timeout = Duration::from_millis(300)),
    |hub| async {
        // TRN-26, R-23
        let data = failing(&hub, "silent", Reply::held_ok()).await;
        assert_eq!(data["error_code"], "ERR_TIMEOUT");
    }
);

story!(
    the_deadline_is_for_the_whole_answer,
    with(|set| set.hub.webhook_timeout = Duration::from_millis(300)),
    |hub| async {
        // R-37: a byte now and then does not keep it waiting
        let data = failing(&hub, "dribbling", Reply::ByteByByte).await;
        assert_eq!(data["error_code"], "ERR_TIMEOUT");
    }
);

story!(a_message_is_kept_before_anyone_is_told, |hub| async {
    // R-24; failure 12: commit, then speak
    let mut webhook = Webhook::replying(Reply::held_ok()).await;
    let (alice, bob) = (
        hub.agent("alice").await,
        hub.agent_with_webhook("bob", &webhook.url()).await,
    );
    let sending = {
        let (alice, to) = (alice.clone(), bob.id.clone());
        tokio::spawn(async move { alice.send(&to, "hello").await })
    };
    webhook.next_request().await;
    assert_eq!(
        texts(&bob.history("").await),
        ["hello"],
        "told before it was kept"
    );
    webhook.release();
    assert_eq!(sending.await.unwrap().data(200)["delivery"], "delivered");
});

story!(a_failure_stays_known_after_a_later_success, |hub| async {
    // failure 16
    let webhook = Webhook::script(|turn| {
        if turn == 0 {
            Reply::json(500, "")
        } else {
            Reply::ok()
        }
    })
    .await;
    let (alice, bob) = (
        hub.agent("alice").await,
        hub.agent_with_webhook("bob", &webhook.url()).await,
    );
    let lost = alice.send_expecting(&bob.id, "one", "failed").await;
    alice.send_expecting(&bob.id, "two", "delivered").await;
    assert_eq!(
        alice.delivery_status(&lost["trace_id"]).await["status"],
        "failed"
    );
    let via: Vec<Value> = bob
        .history("")
        .await
        .iter()
        .map(|row| row["delivered_via"].clone())
        .collect();
    assert_eq!(via, ["failed", "webhook"]);
});

story!(a_slow_receiver_delays_no_other, |hub| async {
    let mut slow = Webhook::replying(Reply::held_ok()).await;
    let (alice, bob) = (
        hub.agent("alice").await,
        hub.agent_with_webhook("bob", &slow.url()).await,
    );
    let carol = hub.agent("carol").await;
    let _inbox = carol.inbox().await;
    let sending = {
        let (alice, to) = (alice.clone(), bob.id.clone());
        tokio::spawn(async move { alice.send(&to, "hello").await })
    };
    slow.next_request().await;
    alice
        .send_expecting(&carol.id, "meanwhile", "delivered_sse")
        .await;
    slow.release();
    sending.await.unwrap().data(200);
});

story!(
    a_failed_message_is_posted_again_and_stays_one_message,
    |hub| async {
        // TRN-46, R-27: the header asks for it; without it the first answer stands
        let mut webhook = Webhook::script(|turn| match turn {
            0 | 1 => Reply::typed(503, "text/plain", "not now"),
            _ => Reply::ok(),
        })
        .await;
        let (alice, bob) = (
            hub.agent("alice").await,
            hub.agent_with_webhook("bob", &webhook.url()).await,
        );
        let body = alice.message(&bob.id, "hello");
        let first = alice.send_once("key-1", &body).await.data(200);
        assert_eq!(first["delivery"], "failed");
        webhook.next_request().await;
        assert_eq!(alice.send_once("key-1", &body).await.data(200), first);
        assert!(webhook.received_nothing(), "R-27");
        let retry = async || {
            let request = alice.request("POST", "/messages").json(&body);
            let request = request
                .header("idempotency-key", "key-1")
                .header("x-chorus-retry", "failed");
            Answer::of(request).await.data(200)
        };
        let second = retry().await;
        assert_eq!(
            (&second["delivery"], &second["trace_id"]),
            (&json!("failed"), &first["trace_id"])
        );
        webhook.next_request().await;
        let third = retry().await;
        assert_eq!(
            (&third["delivery"], &third["trace_id"]),
            (&json!("delivered"), &first["trace_id"])
        );
        webhook.next_request().await;
        assert_eq!(retry().await["delivery"], "delivered");
        assert!(
            webhook.received_nothing(),
            "what was delivered is not posted again"
        );
        assert_eq!(texts(&bob.history("").await), ["hello"]);
        let status = alice.delivery_status(&first["trace_id"]).await;
        assert_eq!(status["status"], "acknowledged", "{status}");
        assert_eq!(status.get("error_code"), None, "{status}");
    }
);

story!(
    a_failed_message_is_not_posted_again_to_a_receiver_that_has_blocked_its_sender,
    |hub| async {
        // R-93, TRN-46: the first request was checked before the block
        let mut webhook = Webhook::script(|turn| match turn {
            0 => Reply::typed(503, "text/plain", "not now"),
            _ => Reply::ok(),
        })
        .await;
        let (alice, bob) = (
            hub.agent("alice").await,
            hub.agent_with_webhook("bob", &webhook.url()).await,
        );
        let body = alice.message(&bob.id, "hello");
        let first = alice.send_once("key-1", &body).await.data(200);
        assert_eq!(first["delivery"], "failed");
        webhook.next_request().await;
        let block = bob.request("PUT", "/agent/blocks/~alice");
        Answer::of(block.json(&json!({}))).await.data(200);
        let retry = async || {
            let request = alice.request("POST", "/messages").json(&body);
            let request = request
                .header("idempotency-key", "key-1")
                .header("x-chorus-retry", "failed");
            Answer::of(request).await
        };
        retry().await.refused(403, "ERR_BLOCKED");
        assert!(webhook.received_nothing(), "it was posted all the same");
        bob.delete("/agent/blocks/~alice").await.data(200);
        assert_eq!(retry().await.data(200)["delivery"], "delivered");
        webhook.next_request().await;
    }
);
