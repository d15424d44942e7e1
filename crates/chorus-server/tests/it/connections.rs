//! How many may be connected at once, and what the next one hears.

use crate::hub::eventually;

story!(
    whoever_comes_when_every_place_is_taken_is_told_to_come_back,
    with(|set| set.max_connections = 4),
    |hub| async {
        let alice = hub.agent("alice").await;
        let mut streams = Vec::new();
        // The library keeps the connection it registered on, and uses it again.
        while streams.len() < 4 {
            streams.push(alice.inbox().await);
        }
        let answer = hub.anyone().get("/agents").await;
        answer.refused(503, "ERR_UNAVAILABLE");
        assert_eq!(answer.header("retry-after"), "5");
        // Those who are in are not disturbed, and a place that is left is free.
        drop(streams.pop());
        eventually("a place is free again", || async { hub.anyone().get("/agents").await.status == 200 }).await;
        let [first, ..] = &mut streams[..] else { panic!("three streams") };
        alice.says(&alice.id, "still here", "delivered_sse").await;
        assert_eq!(first.next("message").await.data["envelope"]["original_text"], "still here");
    }
);
