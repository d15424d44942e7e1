//! Retention: entries are deleted after their time, and none before it.

use crate::support::actors::channel::{create_channel, post_message};
use crate::support::actors::database::read_number;
use crate::support::actors::texts;
use crate::support::hub::{YEAR_MICROS, eventually};
use serde_json::json;
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
        let mut inbox = bob.inbox_after("0").await;
        inbox.next("gap").await;
        assert_eq!(inbox.texts(2).await, ["newer", "next"]);
    }
);

story!(
    a_reader_that_comes_too_late_is_told_of_the_gap,
    with(|set| set.hub.retain = Some(90 * DAY)),
    |hub| async {
        // a resumed stream without a word about what is gone looks complete
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let carol = hub.agent("carol").await;
        for text in ["one", "two", "three"] {
            alice.send_expecting(&bob.id, text, "queued").await;
        }
        let mut inbox = bob.inbox_after("0").await;
        let one = inbox.next("message").await.cursor();
        inbox.next("message").await;
        let three = inbox.next("message").await.cursor();
        drop(inbox);
        hub.advance(91 * DAY);
        alice.send_expecting(&bob.id, "four", "queued").await;
        hub.maintain().await;
        let mut inbox = bob.inbox_after(&one.to_string()).await;
        let gap = inbox.next("gap").await;
        assert_eq!(gap.data, json!({"from": one, "to": three}));
        assert_eq!(gap.cursor(), three);
        assert_eq!(inbox.texts(1).await, ["four"]);
        drop(inbox);
        // One event: the reader resumes behind it, and a reader that had read everything has no gap.
        let mut resumed = bob.inbox_after(&three.to_string()).await;
        assert_eq!(resumed.texts(1).await, ["four"]);
        // Nothing of this one's stream was deleted.
        let mut other = carol.inbox_after("1").await;
        alice.send(&carol.id, "hello").await;
        assert_eq!(other.texts(1).await, ["hello"]);
        let mut events = hub.operator().stream("/events?since=1").await;
        events.next("connected").await;
        let gap = events.next("gap").await;
        assert_eq!(gap.data["from"], 1);
        assert!(events.next("activity").await.cursor() > gap.cursor());
    }
);

story!(
    a_reader_of_a_channel_is_told_of_the_gap,
    with(|set| set.hub.retain = Some(90 * DAY)),
    |hub| async {
        //
        let alice = hub.agent("alice").await;
        let room = create_channel(&alice, "garden").await;
        let first = post_message(&alice, &room, "first").await["cursor"].clone();
        let last = post_message(&alice, &room, "last").await["cursor"].clone();
        hub.advance(91 * DAY);
        post_message(&alice, &room, "new").await;
        hub.maintain().await;
        let mut stream = alice.stream(&format!("{room}/stream?since={first}")).await;
        stream.next("connected").await;
        let gap = stream.next("gap").await;
        assert_eq!(gap.data, json!({"from": first, "to": last}));
        assert_eq!(stream.next("message").await.data["content"], "new");
    }
);

story!(
    agents_that_register_and_leave_do_not_fill_the_database,
    |hub| async {
        // `--max-agents` counts the agents that are there, so those that left must not stay as rows
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        bob.send_expecting(&alice.id, "remember me", "queued").await;
        bob.delete("/agents/bob@chorus").await.data(200);
        for n in 0..20 {
            let guest = hub.agent(&format!("guest-{n}")).await;
            guest
                .delete(&format!("/agents/{}", guest.id))
                .await
                .data(200);
        }
        let count_rows = || read_number(&hub, "select count(*) from principals");
        assert_eq!(count_rows().await, 22);
        hub.maintain().await;
        assert_eq!(count_rows().await, 22, "they are kept for a day");
        hub.advance(2 * DAY);
        hub.maintain().await;
        eventually("the rows of those that left are deleted", || async {
            count_rows().await == 2
        })
        .await;
        // A message names bob.
        assert_eq!(texts(&alice.history("").await), ["remember me"]);
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
        // The newest entry is never deleted.
        for text in ["kept", "kept too"] {
            alice.send_expecting(&bob.id, text, "queued").await;
        }
        hub.maintain().await;
        hub.leap(YEAR_MICROS);
        hub.maintain().await;
        assert_eq!(
            texts(&bob.history("").await),
            ["kept", "kept too"],
            "a leap of a year"
        );
        hub.leap(-YEAR_MICROS);
        hub.maintain().await;
        hub.advance(91 * DAY);
        alice.send_expecting(&bob.id, "newer", "queued").await;
        hub.maintain().await;
        assert_eq!(
            texts(&bob.history("").await),
            ["newer"],
            "the clock is right again, and time has really passed"
        );
        hub.leap(YEAR_MICROS);
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

story!(
    nothing_is_deleted_for_a_day_after_a_long_stop,
    with(|set| set.hub.retain = Some(90 * DAY)),
    |hub| async {
        // D-123: while the hub was stopped, nothing measured whether time passed or the clock leaped.
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        alice.send_expecting(&bob.id, "kept", "queued").await;
        hub.maintain().await;
        hub.stop().await;
        hub.advance(91 * DAY);
        hub.restart().await;
        let (alice, bob) = (hub.reconnect(&alice), hub.reconnect(&bob));
        alice.send_expecting(&bob.id, "newer", "queued").await;
        hub.maintain().await;
        assert_eq!(texts(&bob.history("").await), ["kept", "newer"]);
        hub.advance(DAY);
        hub.maintain().await;
        assert_eq!(texts(&bob.history("").await), ["newer"]);
    }
);
