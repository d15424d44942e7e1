//! Failed deliveries: retried in order with fresh credentials, also across restarts.

use super::delivery_failures::{DAY, broken, later, taken};
use crate::support::actors::remote_member::{OwnedChannel, RemoteMember, callback};
use crate::support::actors::{Answer, Reply};
use crate::support::hub::YEAR_MICROS;
use serde_json::json;
use std::time::Duration;

story!(
    what_failed_is_tried_again_with_the_same_id_and_fresh_credentials_before_what_came_after,
    |hub| async {
        // R-72, CHN-16, CHN-22
        let room = OwnedChannel::create(&hub, "alice").await;
        let mut oak =
            RemoteMember::scripted(&hub, |turn| if turn < 2 { broken() } else { taken() }).await;
        room.add_remote("oak", &oak.url()).await;
        let said = room.post_message("one").await;
        room.post_message("two").await;
        let mut seen = Vec::new();
        for _ in 0..2 {
            let body = oak.next_delivery().await;
            assert_eq!(
                (&body["message"]["id"], &body["message"]["content"]),
                (&said["id"], &json!("one"))
            );
            seen.push((
                callback(&body).to_owned(),
                body["mcp"]["headers"]["Authorization"].to_string(),
            ));
            later(&hub, Duration::from_secs(3)).await;
        }
        let body = oak.next_delivery().await;
        assert_eq!(body["message"]["id"], said["id"]);
        seen.push((
            callback(&body).to_owned(),
            body["mcp"]["headers"]["Authorization"].to_string(),
        ));
        let (mut callbacks, mut keys): (Vec<_>, Vec<_>) = seen.into_iter().unzip();
        for many in [&mut callbacks, &mut keys] {
            many.sort();
            many.dedup();
            assert_eq!(many.len(), 3, "every attempt has its own");
        }
        assert_eq!(oak.texts(1).await, ["two"]);
        later(&hub, DAY).await;
        assert!(
            oak.endpoint.received_nothing(),
            "what was taken is not posted again"
        );
        assert_eq!(room.member("oak").await["unreachable"], false);
    }
);

story!(
    restarts_in_the_middle_of_retries_lose_nothing_and_keep_the_order,
    |hub| async {
        //
        let mut room = OwnedChannel::create(&hub, "alice").await;
        let mut oak =
            RemoteMember::scripted(&hub, |turn| if turn < 4 { broken() } else { taken() }).await;
        room.add_remote("oak", &oak.url()).await;
        room.post_message("one").await;
        room.post_message("two").await;
        for turn in 0..4 {
            let body = oak.next_delivery().await;
            assert_eq!(body["message"]["content"], "one", "turn {turn}");
            assert!(
                callback(&body).starts_with(&hub.url),
                "a callback of the hub as it is reached now"
            );
            hub.maintain().await;
            hub.restart().await;
            room = room.reconnect(&hub);
            room.post_message(&format!("after {turn}")).await;
            hub.advance(Duration::from_secs(20));
            hub.maintain().await;
        }
        assert_eq!(
            oak.texts(6).await,
            ["one", "two", "after 0", "after 1", "after 2", "after 3"]
        );
        hub.maintain().await;
        assert!(oak.endpoint.received_nothing());
    }
);

story!(a_post_that_a_stop_cut_short_is_made_again, |hub| async {
    // the lease of the one that was cut ends, and the next hub takes it up
    let room = OwnedChannel::create(&hub, "alice").await;
    let mut oak = RemoteMember::scripted(
        &hub,
        |turn| if turn == 0 { Reply::held_ok() } else { taken() },
    )
    .await;
    room.add_remote("oak", &oak.url()).await;
    room.post_message("one").await;
    oak.next_delivery().await;
    hub.restart().await;
    hub.advance(Duration::from_secs(61));
    hub.maintain().await;
    assert_eq!(oak.texts(1).await, ["one"]);
});

story!(a_leap_of_the_clock_gives_up_no_delivery, |hub| async {
    // R-72, D-123: it is tried for a day that passes, not for one that the clock skips
    let room = OwnedChannel::create(&hub, "alice").await;
    let mut oak =
        RemoteMember::scripted(&hub, |turn| if turn < 2 { broken() } else { taken() }).await;
    room.add_remote("oak", &oak.url()).await;
    room.post_message("one").await;
    assert_eq!(oak.texts(1).await, ["one"]);
    hub.maintain().await;
    hub.leap(YEAR_MICROS);
    hub.maintain().await;
    assert_eq!(oak.texts(1).await, ["one"]);
    later(&hub, Duration::from_secs(10)).await;
    assert_eq!(oak.texts(1).await, ["one"]);
    assert_eq!(room.member_changes().await, ["oak joined"]);
});

story!(a_clock_that_is_set_back_puts_no_delivery_off, |hub| async {
    // R-72, D-123: what was enqueued or failed while the clock was ahead is due by the time that is right
    let room = OwnedChannel::create(&hub, "alice").await;
    let mut oak =
        RemoteMember::scripted(&hub, |turn| if turn < 2 { broken() } else { taken() }).await;
    room.add_remote("oak", &oak.url()).await;
    hub.leap(YEAR_MICROS);
    room.post_message("one").await;
    assert_eq!(oak.texts(1).await, ["one"]);
    room.post_message("two").await;
    hub.maintain().await;
    hub.leap(-YEAR_MICROS);
    hub.maintain().await;
    assert_eq!(oak.texts(1).await, ["one"]);
    later(&hub, Duration::from_secs(10)).await;
    assert_eq!(oak.texts(2).await, ["one", "two"]);
});

story!(
    a_refusal_is_final_for_that_message_and_for_no_other,
    |hub| async {
        // R-72, CHN-21, CHN-22
        for (place, status) in [400, 403, 422, 429, 307].into_iter().enumerate() {
            let room = OwnedChannel::create(&hub, &format!("alice-{place}")).await;
            let mut oak = RemoteMember::scripted(&hub, move |turn| {
                if turn == 0 {
                    Reply::json(status, "{}")
                } else {
                    taken()
                }
            })
            .await;
            room.add_remote("oak", &oak.url()).await;
            room.post_message("one").await;
            room.post_message("two").await;
            assert_eq!(oak.texts(2).await, ["one", "two"], "{status}");
            later(&hub, Duration::from_secs(600)).await;
            assert!(
                oak.endpoint.received_nothing(),
                "{status} is not tried again"
            );
            assert_eq!(room.member("oak").await["unreachable"], false, "{status}");
        }
    }
);

story!(
    what_a_hosting_hub_has_no_time_for_comes_later_and_in_order,
    with(|set| set.rate_limit = 12),
    |hub| async {
        // a busy host delays and loses nothing
        let room = OwnedChannel::create(&hub, "alice").await;
        let bob = hub.agent("bob").await;
        let data = bob.post("/agent/connection", &json!({})).await.data(200);
        let url = data["connection_string"].as_str().unwrap();
        room.add_remote("bob", url).await;
        for n in 0..12 {
            let body = json!({"channel": {"id": "c"}, "message": {"id": n.to_string(), "sender": "x", "content": "x"},
            "callback": "https://service.example.com/cb"});
            let request = hub.http.post(url).json(&body);
            assert_eq!(Answer::of(request).await.status, 200);
        }
        room.post_message("one").await;
        room.post_message("two").await;
        hub.maintain().await;
        for _ in 0..4 {
            later(&hub, Duration::from_secs(10)).await;
        }
        let mut inbox = bob.inbox_after("0").await;
        let mut heard = Vec::new();
        while heard.len() < 2 {
            let data = inbox.next("channel").await.data;
            if data["channel"]["id"] == json!(room.id) {
                heard.push(data["message"]["content"].clone());
            }
        }
        assert_eq!(heard, ["one", "two"]);
    }
);
