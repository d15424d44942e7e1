//! Receivers that were away or fell behind get every message once and in order.

use crate::support::actors::{Agent, registration, texts};
use futures_util::{StreamExt, stream};

/// Sends `first..past` to `to` one after another, each once its predecessor was answered.
async fn count(from: &Agent, to: &str, first: usize, past: usize) {
    for number in first..past {
        let answer = from.send(to, &number.to_string()).await;
        assert!(matches!(answer.status, 200 | 202), "{answer:?}");
    }
}

fn numbers(count: usize) -> Vec<String> {
    (0..count).map(|number| number.to_string()).collect()
}

story!(
    a_long_absence_is_replayed_while_new_messages_come,
    |hub| async {
        // more than one page of the log, and the live ones neither lost nor doubled at the seam
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        count(&alice, &bob.id, 0, 600).await;
        let sending = {
            let (alice, to) = (alice.clone(), bob.id.clone());
            tokio::spawn(async move { count(&alice, &to, 600, 680).await })
        };
        let mut inbox = bob.inbox_after("0").await;
        assert_eq!(inbox.texts(680).await, numbers(680));
        sending.await.unwrap();
        crate::support::hub::eventually("all are delivered", || async {
            hub.anonymous().get("/health").await.data(200)["messages_queued"] == 0
        })
        .await;
    }
);

story!(
    a_reader_that_falls_behind_for_a_moment_misses_nothing,
    |hub| async {
        // invariant 6: a full queue falls back to the log
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let mut inbox = bob.inbox().await;
        let most = chorus_wire::limits::STREAM_QUEUE_EVENTS + 300;
        let sends = stream::iter(0..most).map(|number| {
            let (alice, to) = (alice.clone(), bob.id.clone());
            async move {
                alice
                    .send(&to, &format!("{number} {}", "x".repeat(900)))
                    .await
                    .status
            }
        });
        let statuses: Vec<u16> = sends.buffer_unordered(16).collect().await;
        assert!(statuses.iter().all(|status| matches!(status, 200 | 202)));
        // On a slow machine the sends outlast `STREAM_DISCONNECT_AFTER`; a reader that was cut resumes by its cursor.
        let (mut heard, mut cursor) = (Vec::with_capacity(most), "0".to_owned());
        while heard.len() < most {
            let Some(event) = inbox.any().await else {
                inbox = bob.inbox_after(&cursor).await;
                continue;
            };
            assert_eq!(event.name, "message", "{event:?}");
            heard.push(event.message_text().to_owned());
            cursor = event.id.expect("a message has a cursor");
        }
        let mut kept = bob.history("").await;
        kept.extend(
            bob.history(&format!("?since={}", kept.last().unwrap()["id"]))
                .await,
        );
        assert_eq!(heard, texts(&kept), "the stream and the history differ");
        heard.sort();
        heard.dedup();
        assert_eq!(heard.len(), most, "each once");
    }
);

story!(what_was_said_outlives_who_said_it, |hub| async {
    //
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    alice.send_expecting(&bob.id, "farewell", "queued").await;
    alice.delete("/agents/alice").await.data(200);
    let row = bob.history("").await.remove(0);
    assert_eq!(
        (&row["sender_id"], &row["receiver_id"]),
        (&"alice@chorus".into(), &"bob@chorus".into())
    );
    assert_eq!(bob.inbox_after("0").await.texts(1).await, ["farewell"]);
});

story!(a_caller_is_the_same_caller_with_its_next_key, |hub| async {
    // per caller, and a rotation makes no other caller
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    let body = alice.message(&bob.id, "once");
    let first = alice.send_once("k", &body).await.data(202);
    let key = alice
        .post("/register", &registration(&alice.id))
        .await
        .data(200)["api_key"]
        .as_str()
        .unwrap()
        .to_owned();
    let alice = Agent::new(&alice, &alice.id, &key);
    assert_eq!(alice.send_once("k", &body).await.data(202), first);
    assert_eq!(bob.history("").await.len(), 1);
});
