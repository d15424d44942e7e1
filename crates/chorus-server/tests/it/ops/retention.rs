//! Retention: entries are deleted after their time, and none before it.

use crate::support::actors::texts;
use crate::support::hub::eventually;
use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 3600);

story!(
    messages_and_activity_go_when_their_time_is_over,
    with(|set| set.hub.retain = Some(90 * DAY)),
    |hub| async {
        // failure 25: retention
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        alice.send_expecting(&bob.id, "old", "queued").await;
        hub.advance(60 * DAY);
        alice.send_expecting(&bob.id, "newer", "queued").await;
        hub.restart().await;
        assert_eq!(
            texts(&hub.reconnect(&bob).history("").await),
            ["old", "newer"],
            "60 days are not 90"
        );
        hub.advance(31 * DAY);
        hub.restart().await;
        let (alice, bob) = (hub.reconnect(&alice), hub.reconnect(&bob));
        // After a long stop the clock may have leaped, so nothing is deleted for a day.
        assert_eq!(texts(&bob.history("").await), ["old", "newer"]);
        hub.advance(DAY);
        hub.maintain().await;
        eventually("the old message is trimmed", || async {
            texts(&bob.history("").await) == ["newer"]
        })
        .await;
        eventually("old activity is trimmed", || async {
            hub.operator()
                .activity(0)
                .await
                .iter()
                .all(|row| row["timestamp"].as_str().unwrap() > "2026-04-01")
        })
        .await;
        let next = alice.send_expecting(&bob.id, "next", "queued").await;
        assert!(next["trace_id"].is_string());
        assert_eq!(texts(&bob.history("").await), ["newer", "next"]);
        assert_eq!(bob.inbox_after("0").await.texts(2).await, ["newer", "next"]);
    }
);

story!(without_a_setting_everything_is_kept, |hub| async {
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    alice.send_expecting(&bob.id, "old", "queued").await;
    hub.advance(3_650 * DAY);
    hub.restart().await;
    assert_eq!(texts(&hub.reconnect(&bob).history("").await), ["old"]);
});

story!(
    nothing_is_deleted_while_the_clock_is_not_to_be_trusted,
    with(|set| set.hub.retain = Some(90 * DAY)),
    |hub| async {
        // failure 25: a clock that leaps must not delete history
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        alice.send_expecting(&bob.id, "kept", "queued").await;
        hub.maintain().await;
        let year = 365 * 86_400 * 1_000_000;
        hub.leap(year);
        hub.maintain().await;
        assert_eq!(texts(&bob.history("").await), ["kept"], "a leap of a year");
        hub.leap(-year);
        hub.maintain().await;
        hub.advance(91 * DAY);
        alice.send_expecting(&bob.id, "newer", "queued").await;
        hub.maintain().await;
        assert_eq!(
            texts(&bob.history("").await),
            ["newer"],
            "the clock is right again, and time has really passed"
        );
        hub.leap(year);
        hub.maintain().await;
        hub.advance(DAY);
        alice.send_expecting(&bob.id, "newest", "queued").await;
        hub.maintain().await;
        assert_eq!(
            texts(&bob.history("").await),
            ["newest"],
            "a day later the new time is accepted"
        );
    }
);
