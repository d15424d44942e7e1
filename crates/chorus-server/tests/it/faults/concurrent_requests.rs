//! Concurrent requests for the same thing: one effect, and the same answer to every client.

use crate::support::actors::{Answer, Reply, Webhook, registration};
use futures_util::future::join_all;
use serde_json::json;

/// The statuses, sorted.
fn statuses(answers: &[Answer]) -> Vec<u16> {
    let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    statuses
}

story!(
    six_sends_with_one_key_are_one_delivery_and_six_equal_answers,
    |hub| async {
        // R-27; failure 13
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let mut inbox = bob.inbox().await;
        for round in 0..5 {
            let body = alice.message(&bob.id, &format!("round {round}"));
            let key = format!("key-{round}");
            let answers = join_all((0..6).map(|_| alice.send_once(&key, &body))).await;
            let first = answers[0].data(200);
            assert!(
                answers.iter().all(|answer| answer.data(200) == first),
                "{answers:?}"
            );
            assert_eq!(
                inbox.next("message").await.data["trace_id"],
                first["trace_id"]
            );
        }
        assert_eq!(bob.history("").await.len(), 5);
    }
);

story!(six_sends_that_wait_for_one_webhook_post_once, |hub| async {
    // R-27; failure 13, while the first is still under way
    let mut webhook = Webhook::replying(Reply::held_ok()).await;
    let (alice, bob) = (
        hub.agent("alice").await,
        hub.agent_with_webhook("bob", &webhook.url()).await,
    );
    let body = alice.message(&bob.id, "once");
    let first = tokio::spawn({
        let (alice, body) = (alice.clone(), body.clone());
        async move { alice.send_once("k", &body).await }
    });
    webhook.next_request().await;
    let others: Vec<_> = (0..5)
        .map(|_| {
            let (alice, body) = (alice.clone(), body.clone());
            tokio::spawn(async move { alice.send_once("k", &body).await })
        })
        .collect();
    // Something else gets through meanwhile, so the five are not merely queued behind the first.
    alice
        .send_once("k", &alice.message(&bob.id, "other"))
        .await
        .refused(409, "ERR_IDEMPOTENCY_CONFLICT");
    webhook.release();
    let first = first.await.unwrap().data(200);
    assert_eq!(first["delivery"], "delivered");
    for other in others {
        assert_eq!(other.await.unwrap().data(200), first);
    }
    assert!(
        webhook.received_nothing(),
        "the webhook was posted to twice"
    );
    assert_eq!(bob.history("").await.len(), 1);
});

story!(
    a_name_is_given_to_exactly_one_of_those_who_ask_at_once,
    |hub| async {
        // TRN-41, R-11
        for round in 0..5 {
            let (anyone, id) = (hub.anonymous(), format!("wanted-{round}@chorus"));
            let answers = join_all((0..6).map(|_| anyone.register(&id))).await;
            assert_eq!(statuses(&answers), [201, 409, 409, 409, 409, 409]);
        }
    }
);

story!(
    a_key_is_rotated_by_exactly_one_of_those_who_hold_it,
    |hub| async {
        // the others hear that theirs is no longer the key
        let alice = hub.agent("alice").await;
        let body = registration(&alice.id);
        let answers = join_all((0..6).map(|_| alice.post("/register", &body))).await;
        assert_eq!(
            answers.iter().filter(|answer| answer.status == 200).count(),
            1,
            "{:?}",
            statuses(&answers)
        );
        assert!(
            answers
                .iter()
                .all(|answer| matches!(answer.status, 200 | 401 | 409)),
            "{:?}",
            statuses(&answers)
        );
        let winner = answers
            .iter()
            .find(|answer| answer.status == 200)
            .unwrap()
            .data(200);
        let renewed = alice.with_key(winner["api_key"].as_str().unwrap());
        renewed.get("/agent/messages").await.data(200);
    }
);

story!(the_last_use_of_a_code_is_one_registration, |hub| async {
    // lesson 9
    let invite = hub
        .operator()
        .invite(&json!({"label": "one", "max_uses": 1}))
        .await;
    let anyone = hub.anonymous();
    let bodies: Vec<_> = (0..6)
        .map(|number| {
            let mut body = registration(&format!("agent-{number}@chorus"));
            body["invite_code"] = invite["code"].clone();
            body
        })
        .collect();
    let answers = join_all(bodies.iter().map(|body| anyone.post("/register", body))).await;
    assert_eq!(statuses(&answers), [201, 403, 403, 403, 403, 403]);
});

story!(a_session_token_is_spent_by_exactly_one, |hub| async {
    // single use
    let bob = hub.agent("bob").await;
    let token = bob.post("/agent/session", &json!({})).await.data(200)["session_token"]
        .as_str()
        .unwrap()
        .to_owned();
    let opening = (0..6).map(|_| {
        hub.anonymous()
            .request("GET", &format!("/agent/inbox?session={token}"))
            .send()
    });
    let opened = join_all(opening).await;
    let good = opened
        .iter()
        .filter(|answer| answer.as_ref().is_ok_and(|answer| answer.status() == 200))
        .count();
    assert_eq!(good, 1);
});

story!(two_different_responses_at_once_leave_one, |hub| async {
    //
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    let sent = alice.send_expecting(&bob.id, "hello", "queued").await;
    let replies: Vec<_> = (0..4)
        .map(|n| json!({"status": "error", "error_code": "ADAPTATION_FAILED", "detail": n.to_string()}))
        .collect();
    let answers = join_all(
        replies
            .iter()
            .map(|reply| bob.respond(&sent["trace_id"], reply)),
    )
    .await;
    assert_eq!(statuses(&answers), [200, 409, 409, 409]);
});

story!(an_owner_is_claimed_once, |hub| async {
    //
    let anyone = hub.anonymous();
    let bodies: Vec<_> = (0..4)
        .map(|n| json!({"agent_id": format!("worker-{n}"), "agent_name": "w", "owner_id": "acme"}))
        .collect();
    let answers = join_all(bodies.iter().map(|body| anyone.post("/register", body))).await;
    assert_eq!(statuses(&answers), [201, 403, 403, 403]);
});
