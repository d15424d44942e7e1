//! Unusual cursors and large pages: no entry is hidden, and no page is unbounded.

use crate::support::actors::texts;
use chorus_wire::limits;

story!(a_cursor_from_another_life_hides_nothing, |hub| async {
    // a reader that comes back after a backup was restored has a cursor beyond the log
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    let mut inbox = bob.inbox_after("999999").await;
    alice
        .send_expecting(&bob.id, "can you hear me?", "delivered_sse")
        .await;
    let event = inbox.next("message").await;
    assert_eq!(event.message_text(), "can you hear me?");
    assert!(event.cursor() < 999_999);
});

story!(
    the_first_event_resets_a_cursor_from_another_life,
    |hub| async {
        // invariant 5: EventSource takes the id of the last event, so the reset is an id
        let bob = hub.agent("bob").await;
        let mut inbox = bob.stream("/agent/inbox?since=999999").await;
        let opening = inbox.any().await.unwrap();
        assert_eq!(opening.name, "connected");
        assert!(opening.cursor() < 999_999);
        // without a cursor the id is the head of the log
        let mut inbox = bob.stream("/agent/inbox").await;
        assert_eq!(inbox.any().await.unwrap().id, opening.id);
    }
);

story!(
    a_page_is_bounded_in_bytes_and_the_next_goes_on,
    |hub| async {
        // invariant 6, failure 25; R-15
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let large = "😀".repeat(9_900);
        for _ in 0..70 {
            alice.send_expecting(&bob.id, &large, "queued").await;
        }
        let page = bob.history("?limit=1000").await;
        assert!(page.len() < 70, "{} rows", page.len());
        let bytes: usize = page
            .iter()
            .map(|row| row["envelope"].to_string().len())
            .sum();
        assert!(bytes < limits::HISTORY_PAGE_BYTES + 100_000, "{bytes}");
        assert_eq!(bob.whole_history(1_000).await.len(), 70);
        let mut inbox = bob.inbox_after("0").await;
        assert_eq!(
            inbox.texts(70).await,
            texts(&bob.whole_history(1_000).await)
        );
    }
);

story!(events_resume_in_the_middle_of_a_message, |hub| async {
    // lesson 10, invariant 5: a message is two activities, and a reader may have had the first of them
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    alice.send_expecting(&bob.id, "one", "queued").await;
    let rows = hub.operator().activity(0).await;
    let submitted = rows
        .iter()
        .find(|row| row["type"] == "message_submitted")
        .unwrap()["id"]
        .as_u64()
        .unwrap();
    let mut events = hub
        .operator()
        .stream(&format!("/events?since={submitted}"))
        .await;
    events.next("connected").await;
    let next = events.next("activity").await;
    assert_eq!(next.data["type"], "message_queued");
    assert_eq!(next.cursor(), submitted + 1);
});

story!(
    a_rotated_key_ends_a_stream_that_is_catching_up,
    |hub| async {
        //
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let large = "😀".repeat(9_900);
        for _ in 0..100 {
            alice.send_expecting(&bob.id, &large, "queued").await;
        }
        // It reads nothing yet, so most of the backlog is still in the log when the key turns.
        let mut inbox = bob.inbox_after("0").await;
        inbox.next("message").await;
        let turned = bob
            .post("/register", &crate::support::actors::registration(&bob.id))
            .await
            .data(200);
        let bob = bob.with_rotated_key(turned["api_key"].as_str().unwrap());
        alice.send(&bob.id, "for the new key only").await;
        let heard = inbox.ended().await;
        assert!(
            heard
                .iter()
                .all(|event| event.name != "message"
                    || event.message_text() != "for the new key only")
        );
        assert!(
            heard.iter().filter(|event| event.name == "message").count() < 99,
            "it was cut before the end"
        );
    }
);
