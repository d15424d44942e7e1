//! Message history: both directions, in order, from any cursor.

use crate::support::actors::{rows, texts};
use chorus_wire::{limits, time::UnixMicros};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use std::time::Duration;

story!(
    history_has_both_directions_in_the_printed_shape,
    |hub| async {
        // TRN-56, R-35, lesson 4
        let (alice, bob, carol) = (
            hub.agent("alice").await,
            hub.agent("bob").await,
            hub.agent("carol").await,
        );
        let one = alice.send_expecting(&bob.id, "one", "queued").await;
        let two = bob.send_expecting(&alice.id, "two", "queued").await;
        bob.send_expecting(&carol.id, "not hers", "queued").await;
        let history = alice.history("").await;
        assert_eq!(texts(&history), ["one", "two"]);
        let row = &history[0];
        let mut keys: Vec<&str> = row
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        keys.sort_unstable();
        assert_eq!(
            keys,
            [
                "delivered_via",
                "envelope",
                "id",
                "receiver_id",
                "sender_id",
                "timestamp",
                "trace_id"
            ]
        );
        assert!(row["id"].is_u64());
        assert_eq!(
            (&row["sender_id"], &row["receiver_id"]),
            (&json!(alice.id), &json!(bob.id))
        );
        assert_eq!(
            (&row["trace_id"], &history[1]["trace_id"]),
            (&one["trace_id"], &two["trace_id"])
        );
        assert_eq!(row["envelope"], alice.envelope("one"));
    }
);

story!(stream_and_history_say_the_same, |hub| async {
    // R-15, lesson 4: the same id, trace id and timestamp text
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    let mut inbox = bob.inbox().await;
    for text in ["one", "two"] {
        alice.send_expecting(&bob.id, text, "delivered_sse").await;
        let event = inbox.next("message").await;
        let row = bob
            .history(&format!("?since={}", event.cursor() - 1))
            .await
            .remove(0);
        assert_eq!(event.cursor(), row["id"].as_u64().unwrap());
        for key in ["trace_id", "timestamp", "sender_id", "envelope"] {
            assert_eq!(event.data[key], row[key], "{key}");
        }
        assert_eq!(row["delivered_via"], "sse");
    }
});

story!(
    id_timestamp_and_trace_sort_alike_even_when_time_stands_still,
    |hub| async {
        // strictly increasing
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        for number in 0..20 {
            alice
                .send_expecting(&bob.id, &number.to_string(), "queued")
                .await;
            if number == 10 {
                hub.advance(Duration::from_micros(3));
            }
        }
        let history = bob.history("").await;
        for pair in history.windows(2) {
            assert!(pair[0]["id"].as_u64() < pair[1]["id"].as_u64());
            assert!(
                pair[0]["timestamp"].as_str() < pair[1]["timestamp"].as_str(),
                "{} {}",
                pair[0],
                pair[1]
            );
            assert!(
                pair[0]["trace_id"].as_str() < pair[1]["trace_id"].as_str(),
                "{} {}",
                pair[0],
                pair[1]
            );
        }
    }
);

story!(since_an_id_is_strictly_after_it, |hub| async {
    // TRN-57, R-15; failure 8: a documented cursor is not an empty list
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    for number in 1..=8 {
        alice
            .send_expecting(&bob.id, &number.to_string(), "queued")
            .await;
    }
    let all = bob.history("").await;
    for (place, row) in all.iter().enumerate() {
        let after = bob.history(&format!("?since={}", row["id"])).await;
        assert_eq!(after, all[place + 1..]);
    }
    assert_eq!(bob.history("?since=0").await, all);
    assert_eq!(
        bob.history("?since=9223372036854775807").await,
        Vec::<Value>::new()
    );
});

story!(
    since_an_instant_compares_instants_and_not_text,
    |hub| async {
        // R-15; failure 9: 10:00:00.500 is after 10:00:00
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        alice.send_expecting(&bob.id, "at 10:00:00", "queued").await;
        hub.advance(Duration::from_millis(500));
        alice
            .send_expecting(&bob.id, "at 10:00:00.5", "queued")
            .await;
        hub.advance(Duration::from_millis(500));
        alice.send_expecting(&bob.id, "at 10:00:01", "queued").await;
        let from = |query: &'static str| {
            let bob = bob.clone();
            async move { bob.history(&format!("?since={query}")).await.len() }
        };
        for (since, count) in [
            ("2026-03-20T09:59:59Z", 3),
            ("2026-03-20T10:00:00Z", 3),
            ("2026-03-20T10:00:00.000Z", 3),
            ("2026-03-20T12:00:00%2B02:00", 3),
            ("2026-03-20T10:00:00.1Z", 2),
            ("2026-03-20T10:00:00.500Z", 2),
            ("2026-03-20T10:00:00.500000Z", 2),
            ("2026-03-20T10:00:00.5000001Z", 1),
            ("2026-03-20T10:00:01Z", 1),
            ("2026-03-20T10:00:01.000001Z", 0),
            ("2030-01-01T00:00:00Z", 0),
        ] {
            assert_eq!(from(since).await, count, "{since}");
        }
    }
);

story!(any_other_since_or_limit_is_refused, |hub| async {
    //
    let bob = hub.agent("bob").await;
    for query in [
        "since=yesterday",
        "since=-1",
        "since=1.5",
        "since=0x10",
        "since=99999999999999999999",
        "since=2026-03-20",
        "since=2026-13-40T10:00:00Z",
        "since=2026-03-20T10:00:00",
        "limit=many",
        "limit=-1",
        "limit=1.5",
    ] {
        let answer = bob.get(&format!("/agent/messages?{query}")).await;
        assert_eq!(answer.status, 400, "{query}: {answer:?}");
        answer.refused(400, "ERR_VALIDATION");
    }
});

story!(
    pages_follow_one_another_without_gap_or_repeat,
    |hub| async {
        // failure 25: never more than 1 000 rows with a limit
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let sends = stream::iter(0..1_003).map(|number| {
            let (alice, to) = (alice.clone(), bob.id.clone());
            async move { alice.send(&to, &number.to_string()).await.status }
        });
        let statuses: Vec<u16> = sends.buffer_unordered(32).collect().await;
        assert!(statuses.iter().all(|status| *status == 202));
        assert_eq!(bob.history("").await.len(), 1_003);
        let most = bob.get("/agent/messages?limit=100000").await;
        assert!(
            most.status == 400 || rows(most.data(200)).len() == 1_000,
            "a page is never larger"
        );
        let seen = bob.whole_history(400).await;
        let mut numbers: Vec<u32> = texts(&seen)
            .iter()
            .map(|text| text.parse().unwrap())
            .collect();
        assert!(seen.is_sorted_by(|a, b| a["id"].as_u64() < b["id"].as_u64()));
        numbers.sort_unstable();
        assert_eq!(numbers, (0..1_003).collect::<Vec<u32>>());
    }
);

story!(history_outlives_a_restart, |hub| async {
    // R-24, TRN-58
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    alice.send_expecting(&bob.id, "kept", "queued").await;
    let before = bob.history("").await;
    hub.restart().await;
    assert_eq!(hub.reconnect(&bob).history("").await, before);
});

story!(a_name_taken_again_inherits_no_messages, |hub| async {
    // R-11; failure 2
    let (alice, victim) = (hub.agent("alice").await, hub.agent("victim").await);
    let private = alice.send_expecting(&victim.id, "private", "queued").await;
    victim
        .send_expecting(&alice.id, "also private", "queued")
        .await;
    victim.delete("/agents/victim@chorus").await.data(200);
    let heir = hub.agent("victim").await;
    assert!(heir.history("").await.is_empty());
    assert!(heir.history("?since=0").await.is_empty());
    let trace = private["trace_id"].as_str().unwrap();
    heir.get(&format!("/messages/{trace}"))
        .await
        .refused(404, "ERR_NOT_FOUND");
    heir.respond(&private["trace_id"], &json!({"status": "ok"}))
        .await
        .refused(404, "ERR_NOT_FOUND");
    let mut inbox = heir.inbox_after("0").await;
    alice
        .send_expecting(&heir.id, "for the heir", "delivered_sse")
        .await;
    assert_eq!(inbox.texts(1).await, ["for the heir"]);
    assert_eq!(
        alice.history("").await.len(),
        3,
        "the other party keeps its own"
    );
});

story!(
    order_holds_over_a_restart_with_a_clock_set_back,
    |hub| async {
        // id, timestamp and trace id grow whatever the machine's clock does
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        alice.send_expecting(&bob.id, "one", "queued").await;
        hub.settings.hub.clock =
            chorus_hub::Clock::manual_at(UnixMicros::parse("2026-03-19T10:00:00Z").unwrap());
        hub.restart().await;
        let (alice, bob) = (hub.reconnect(&alice), hub.reconnect(&bob));
        alice.send_expecting(&bob.id, "two", "queued").await;
        let rows = bob.history("").await;
        assert_eq!(texts(&rows), ["one", "two"]);
        for key in ["timestamp", "trace_id"] {
            assert!(
                rows[0][key].as_str() < rows[1][key].as_str(),
                "{key}: {} {}",
                rows[0],
                rows[1]
            );
        }
        let since = format!("?since={}", rows[1]["timestamp"].as_str().unwrap());
        assert_eq!(texts(&bob.history(&since).await), ["two"]);
    }
);

story!(
    a_client_that_asks_once_gets_its_whole_history,
    |hub| async {
        // public clients ask once and keep no count
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        for round in 0..15 {
            let sends = (0..100).map(async |n| {
                let text = format!("{round}-{n}");
                alice.send(&bob.id, &text).await
            });
            for answer in futures_util::future::join_all(sends).await {
                assert_eq!(answer.status, 202, "{answer:?}");
            }
        }
        let answer = bob.get("/agent/messages").await;
        let rows = answer.data(200);
        let ids: Vec<u64> = rows
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["id"].as_u64().unwrap())
            .collect();
        assert_eq!(ids.len(), 1_500);
        assert!(ids.is_sorted_by(|a, b| a < b));
        assert_eq!(answer.json()["metadata"]["next"], Value::Null);
        assert_eq!(rows, json!(bob.whole_history(1_000).await));
        let page = bob.get("/agent/messages?limit=9999").await;
        assert_eq!(page.data(200).as_array().unwrap().len(), 1_000);
        assert_eq!(page.json()["metadata"]["next"], ids[999].to_string());
        let rest = bob
            .get(&format!("/agent/messages?limit=500&since={}", ids[999]))
            .await;
        assert_eq!(rest.data(200).as_array().unwrap().len(), 500);
        assert_eq!(rest.json()["metadata"]["next"], Value::Null);
    }
);

story!(
    a_history_of_many_megabytes_says_where_it_goes_on,
    |hub| async {
        // 8 MiB at most in one answer
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let large = "😀".repeat(9_900);
        for _ in 0..23 {
            let sends = (0..10).map(|_| alice.send(&bob.id, &large));
            futures_util::future::join_all(sends).await;
        }
        let answer = bob.get("/agent/messages").await;
        let rows = answer.data(200).as_array().unwrap().clone();
        assert!(answer.text.len() <= limits::HISTORY_ANSWER_BYTES + 1_000);
        assert!(answer.text.len() > limits::HISTORY_ANSWER_BYTES - 50_000);
        let next = answer.json()["metadata"]["next"].clone();
        assert_eq!(next, rows.last().unwrap()["id"].to_string());
        let rest = bob
            .history(&format!("?since={}", next.as_str().unwrap()))
            .await;
        assert_eq!(rows.len() + rest.len(), 230);
    }
);
