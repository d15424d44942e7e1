//! Members that fail: tried again in order, given up aloud, caught up with; and nobody else waits for them.

use crate::actors::elsewhere::{Elsewhere, Room, callback};
use crate::actors::{Answer, Reply, rows};
use crate::hub::{Hub, eventually};
use serde_json::{Value, json};
use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 3600);

fn broken() -> Reply {
    Reply::typed(503, "text/plain", "not now")
}

fn taken() -> Reply {
    Reply::typed(200, "text/plain", "")
}

/// Time goes on, and everything that is due then is done.
async fn later(hub: &Hub, by: Duration) {
    hub.maintain().await;
    hub.advance(by);
    hub.maintain().await;
}

story!(
    what_failed_is_tried_again_with_the_same_id_and_fresh_credentials_before_what_came_after,
    |hub| async {
        // R-72, CHN-16, CHN-22
        let room = Room::of(&hub, "alice").await;
        let mut oak = Elsewhere::that(&hub, |turn| if turn < 2 { broken() } else { taken() }).await;
        room.add("oak", &oak.url()).await;
        let said = room.says("one").await;
        room.says("two").await;
        let mut seen = Vec::new();
        for _ in 0..2 {
            let body = oak.hears().await;
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
        let body = oak.hears().await;
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
            oak.endpoint.heard_nothing(),
            "what was taken is not posted again"
        );
        assert_eq!(room.member("oak").await["unreachable"], false);
    }
);

story!(
    restarts_in_the_middle_of_retries_lose_nothing_and_keep_the_order,
    |hub| async {
        //
        let mut room = Room::of(&hub, "alice").await;
        let mut oak = Elsewhere::that(&hub, |turn| if turn < 4 { broken() } else { taken() }).await;
        room.add("oak", &oak.url()).await;
        room.says("one").await;
        room.says("two").await;
        for turn in 0..4 {
            let body = oak.hears().await;
            assert_eq!(body["message"]["content"], "one", "turn {turn}");
            assert!(
                callback(&body).starts_with(&hub.url),
                "a callback of the hub as it is reached now"
            );
            hub.maintain().await;
            hub.restart().await;
            room = room.again(&hub);
            room.says(&format!("after {turn}")).await;
            hub.advance(Duration::from_secs(20));
            hub.maintain().await;
        }
        assert_eq!(
            oak.texts(6).await,
            ["one", "two", "after 0", "after 1", "after 2", "after 3"]
        );
        hub.maintain().await;
        assert!(oak.endpoint.heard_nothing());
    }
);

story!(a_post_that_a_stop_cut_short_is_made_again, |hub| async {
    // the lease of the one that was cut ends, and the next hub takes it up
    let room = Room::of(&hub, "alice").await;
    let mut oak = Elsewhere::that(
        &hub,
        |turn| if turn == 0 { Reply::held_ok() } else { taken() },
    )
    .await;
    room.add("oak", &oak.url()).await;
    room.says("one").await;
    oak.hears().await;
    hub.restart().await;
    hub.advance(Duration::from_secs(61));
    hub.maintain().await;
    assert_eq!(oak.texts(1).await, ["one"]);
});

story!(
    a_refusal_is_final_for_that_message_and_for_no_other,
    |hub| async {
        // R-72, CHN-21, CHN-22
        for (place, status) in [400, 403, 422, 429, 307].into_iter().enumerate() {
            let room = Room::of(&hub, &format!("alice-{place}")).await;
            let mut oak = Elsewhere::that(&hub, move |turn| {
                if turn == 0 {
                    Reply::json(status, "{}")
                } else {
                    taken()
                }
            })
            .await;
            room.add("oak", &oak.url()).await;
            room.says("one").await;
            room.says("two").await;
            assert_eq!(oak.texts(2).await, ["one", "two"], "{status}");
            later(&hub, Duration::from_secs(600)).await;
            assert!(oak.endpoint.heard_nothing(), "{status} is not tried again");
            assert_eq!(room.member("oak").await["unreachable"], false, "{status}");
        }
    }
);

story!(
    a_dead_connection_string_is_told_to_the_room_and_what_was_missed_comes_with_the_next_word,
    |hub| async {
        // 404 and 410 say that nobody is there any more
        for (place, status) in [404, 410].into_iter().enumerate() {
            let room = Room::of(&hub, &format!("alice-{place}")).await;
            let script = move |turn| {
                if turn < 2 {
                    Reply::json(status, "{}")
                } else {
                    taken()
                }
            };
            let mut oak = Elsewhere::that(&hub, script).await;
            room.add("oak", &oak.url()).await;
            room.says("one").await;
            assert_eq!(oak.texts(1).await, ["one"]);
            hub.maintain().await;
            assert_eq!(
                room.changes().await,
                ["oak joined", "oak unreachable"],
                "{status}"
            );
            assert_eq!(room.member("oak").await["unreachable"], true);
            later(&hub, DAY).await;
            assert!(
                oak.endpoint.heard_nothing(),
                "nobody is asked again until there is something to say"
            );

            room.says("two").await;
            let body = oak.hears().await;
            assert_eq!(
                (&body["message"]["content"], missed(&body)),
                (&json!("two"), vec!["one".to_owned()])
            );
            hub.maintain().await;
            assert_eq!(room.changes().await.len(), 2, "it is told once");

            room.says("three").await;
            let body = oak.hears().await;
            assert_eq!(
                (&body["message"]["content"], missed(&body)),
                (&json!("three"), vec!["one".into(), "two".into()])
            );
            hub.maintain().await;
            assert_eq!(
                room.changes().await,
                ["oak joined", "oak unreachable", "oak reachable"]
            );

            room.says("four").await;
            let body = oak.hears().await;
            assert_eq!(body["message"]["content"], "four");
            assert!(body.get("backlog").is_none(), "{body}");
        }
    }
);

/// What a delivery catches up on, by its texts.
fn missed(body: &Value) -> Vec<String> {
    let backlog = body.get("backlog").cloned().unwrap_or(json!([]));
    rows(backlog)
        .iter()
        .map(|said| said["content"].as_str().unwrap_or_default().to_owned())
        .collect()
}

story!(
    whoever_is_away_for_a_day_is_given_up_aloud_and_catches_up_on_fifty,
    |hub| async {
        //
        let room = Room::of(&hub, "alice").await;
        let mut oak = Elsewhere::that(&hub, |turn| if turn < 3 { broken() } else { taken() }).await;
        room.add("oak", &oak.url()).await;
        for n in 0..60 {
            room.says(&format!("{n}")).await;
        }
        oak.hears().await;
        later(&hub, Duration::from_secs(60)).await;
        oak.hears().await;
        assert_eq!(room.changes().await, ["oak joined"], "a day is not over");
        later(&hub, DAY).await;
        assert_eq!(oak.texts(1).await, ["0"]);
        assert_eq!(room.changes().await, ["oak joined", "oak unreachable"]);

        room.says("60").await;
        let body = oak.hears().await;
        let expected: Vec<String> = (10..60).map(|n| n.to_string()).collect();
        assert_eq!(
            (&body["message"]["content"], missed(&body)),
            (&json!("60"), expected)
        );
        hub.maintain().await;
        assert!(oak.endpoint.heard_nothing());
        assert_eq!(room.changes().await.pop().as_deref(), Some("oak reachable"));
        assert_eq!(room.said().await.len(), 61, "all of it is in the history");
    }
);

story!(
    what_was_trimmed_before_it_was_heard_is_not_caught_up_on,
    with(|set| set.hub.retain = Some(90 * DAY)),
    |hub| async {
        //
        let (room, other) = (Room::of(&hub, "alice").await, Room::of(&hub, "bob").await);
        let mut oak = Elsewhere::that(&hub, |turn| {
            if turn == 0 {
                Reply::json(410, "{}")
            } else {
                taken()
            }
        })
        .await;
        room.add("oak", &oak.url()).await;
        room.says("old").await;
        assert_eq!(oak.texts(1).await, ["old"]);
        hub.maintain().await;
        hub.advance(91 * DAY);
        other.says("so that there is something newer").await;
        eventually("the old line is trimmed", async || {
            hub.maintain().await;
            room.said().await.is_empty()
        })
        .await;
        room.says("new").await;
        let body = oak.hears().await;
        assert_eq!(
            (&body["message"]["content"], missed(&body)),
            (&json!("new"), Vec::new())
        );
        hub.maintain().await;
        assert!(oak.endpoint.heard_nothing());
        assert_eq!(room.member("oak").await["unreachable"], false);
    }
);

story!(
    a_catch_up_is_no_larger_than_a_hosting_hub_takes,
    |hub| async {
        //
        let room = Room::of(&hub, "alice").await;
        let mut oak = Elsewhere::that(&hub, |turn| {
            if turn < 5 {
                Reply::json(404, "{}")
            } else {
                taken()
            }
        })
        .await;
        room.add("oak", &oak.url()).await;
        let text = |n: i32| format!("{n} {}", "x".repeat(20_000));
        for n in 0..6 {
            room.says(&text(n)).await;
            hub.maintain().await;
        }
        for n in 0..6 {
            let heard = oak.endpoint.hears().await;
            assert!(heard.text.chars().count() <= 63_000, "{}", heard.text.len());
            // As many of the newest as there is room for.
            let before: Vec<String> = ((n - 1).max(0)..n).map(text).collect();
            assert_eq!(
                (&heard.json()["message"]["content"], missed(&heard.json())),
                (&json!(text(n)), before)
            );
        }
    }
);

story!(
    what_a_hosting_hub_has_no_time_for_comes_later_and_in_order,
    with(|set| set.rate_limit = 12),
    |hub| async {
        // R-72, BEYOND-08: a busy host delays and loses nothing
        let room = Room::of(&hub, "alice").await;
        let bob = hub.agent("bob").await;
        let data = bob.post("/agent/connection", &json!({})).await.data(200);
        let url = data["connection_string"].as_str().unwrap();
        room.add("bob", url).await;
        for n in 0..12 {
            let body = json!({"channel": {"id": "c"}, "message": {"id": n.to_string(), "sender": "x", "content": "x"},
            "callback": "https://service.example.com/cb"});
            let request = hub.http.post(url).json(&body);
            assert_eq!(Answer::of(request).await.status, 200);
        }
        room.says("one").await;
        room.says("two").await;
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

story!(
    an_address_that_may_not_be_reached_any_more_is_never_asked_and_the_room_is_told,
    |hub| async {
        // D-42: it was allowed when it was added; each attempt asks again
        let room = Room::of(&hub, "alice").await;
        let mut oak = Elsewhere::well(&hub).await;
        room.add("oak", &oak.url()).await;
        hub.settings.hub.allow_private_endpoints = false;
        hub.restart().await;
        let room = room.again(&hub);
        room.says("one").await;
        later(&hub, DAY).await;
        assert!(oak.endpoint.heard_nothing());
        assert_eq!(room.changes().await, ["oak joined", "oak unreachable"]);
        hub.settings.hub.allow_private_endpoints = true;
        hub.restart().await;
        let room = room.again(&hub);
        room.says("two").await;
        let body = oak.hears().await;
        assert_eq!(
            (&body["message"]["content"], missed(&body)),
            (&json!("two"), vec!["one".to_owned()])
        );
    }
);

live_story!(
    those_that_were_given_up_on_and_hang_keep_nobody_from_hearing,
    with(|set| set.hub.webhook_timeout = Duration::from_secs(120)),
    |hub| async {
        // D-41: more of them than there are places
        const MANY: usize = chorus_wire::limits::OUTBOX_AT_ONCE + 2;
        let room = Room::of(&hub, "alice").await;
        let hangs = Elsewhere::that(&hub, |turn| {
            if turn < MANY {
                Reply::json(410, "{}")
            } else {
                Reply::held_ok()
            }
        });
        let (hangs, mut well) = (hangs.await, Elsewhere::well(&hub).await);
        for n in 0..MANY {
            room.add(&format!("hangs-{n}"), &hangs.url()).await;
        }
        // Another host by its name: each has places of its own.
        room.add("well", &well.url().replace("127.0.0.1", "localhost"))
            .await;
        room.says("one").await;
        hub.maintain().await;
        assert_eq!(
            room.changes()
                .await
                .iter()
                .filter(|change| change.ends_with(" unreachable"))
                .count(),
            MANY
        );
        room.says("two").await;
        assert_eq!(well.texts(2).await, ["one", "two"]);
    }
);

/// Ten that fail, each in its own way.
async fn ten_that_fail(hub: &Hub) -> Vec<(&'static str, Elsewhere)> {
    let huge = "x".repeat(1 << 20);
    let late = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_vec();
    vec![
        ("breaks", Elsewhere::that(hub, |_| broken()).await),
        (
            "recovers",
            Elsewhere::that(hub, |turn| if turn == 0 { broken() } else { taken() }).await,
        ),
        ("hangs", Elsewhere::that(hub, |_| Reply::held_ok()).await),
        (
            "refuses",
            Elsewhere::that(hub, |_| Reply::json(400, "{}")).await,
        ),
        (
            "redirects",
            Elsewhere::that(hub, |_| Reply::redirect("http://127.0.0.1:1/")).await,
        ),
        (
            "rambles",
            Elsewhere::that(hub, move |_| Reply::typed(200, "text/plain", &huge)).await,
        ),
        (
            "hangs-up",
            Elsewhere::that(hub, |_| Reply::Bytes(Vec::new())).await,
        ),
        (
            "babbles",
            Elsewhere::that(hub, |_| Reply::Bytes(b"\x16\x03\x01 no HTTP".to_vec())).await,
        ),
        (
            "is-gone",
            Elsewhere::that(hub, |_| Reply::json(410, "{}")).await,
        ),
        (
            "is-slow",
            Elsewhere::that(hub, move |_| Reply::Held(late.clone())).await,
        ),
    ]
}

file_story!(
    with_another_key_nobody_is_reached_and_the_room_is_told,
    |hub| async {
        //
        let room = Room::of(&hub, "alice").await;
        let mut oak = Elsewhere::well(&hub).await;
        room.add("oak", &oak.url()).await;
        let key = hub.dir.path().join("seal.key");
        let kept = std::fs::read(&key).unwrap();
        std::fs::write(&key, "0".repeat(64)).unwrap();
        hub.restart().await;
        let room = room.again(&hub);
        room.says("one").await;
        hub.maintain().await;
        room.says("two").await;
        hub.maintain().await;
        assert_eq!(room.changes().await, ["oak joined", "oak unreachable"]);
        std::fs::write(&key, kept).unwrap();
        hub.restart().await;
        let room = room.again(&hub);
        room.says("three").await;
        let body = oak.hears().await;
        assert_eq!(
            (&body["message"]["content"], missed(&body)),
            (&json!("three"), vec!["one".into(), "two".into()])
        );
    }
);

file_story!(a_copy_of_a_hub_reaches_its_members, |hub| async {
    //
    let room = Room::of(&hub, "alice").await;
    let mut oak = Elsewhere::well(&hub).await;
    room.add("oak", &oak.url()).await;
    let copy = hub.dir.path().join("copy");
    chorus_hub::ops::backup(hub.dir.path(), &copy).expect("a copy");
    hub.stop().await;
    let twin = Hub::sqlite(|set| set.hub.data_dir = copy).await;
    room.again(&twin).says("from the copy").await;
    assert_eq!(oak.texts(1).await, ["from the copy"]);
});

story!(
    of_fifty_members_ten_fail_each_in_its_way_and_forty_hear_everything_at_once,
    with(|set| set.hub.webhook_timeout = Duration::from_secs(4)),
    |hub| async {
        //
        let room = Room::of(&hub, "alice").await;
        let mut failing = ten_that_fail(&hub).await;
        for (name, member) in &failing {
            room.add(name, &member.url()).await;
        }
        let mut well = Vec::new();
        for n in 0..40 {
            let member = Elsewhere::well(&hub).await;
            room.add(&format!("well-{n}"), &member.url()).await;
            well.push(member);
        }
        for text in ["one", "two", "three"] {
            room.says(text).await;
        }
        for member in &mut well {
            assert_eq!(member.texts(3).await, ["one", "two", "three"]);
        }
        for (name, member) in &mut failing {
            let first = member.hears().await;
            assert_eq!(first["message"]["content"], "one", "{name}");
            match *name {
                // These have said what they have to say: the next one is another matter.
                "refuses" | "redirects" | "rambles" => {
                    assert_eq!(member.texts(2).await, ["two", "three"], "{name}")
                }
                "is-slow" => {
                    for text in ["two", "three"] {
                        member.endpoint.release();
                        assert_eq!(member.texts(1).await, [text]);
                    }
                    member.endpoint.release();
                }
                _ => {}
            }
        }
        hub.maintain().await;
        for (name, member) in &mut failing {
            match *name {
                // It was looked at again for what came while it was found out.
                "is-gone" => while !member.endpoint.heard_nothing() {},
                _ => assert!(
                    member.endpoint.heard_nothing(),
                    "{name} is tried again when its time comes, not before"
                ),
            }
        }
        later(&hub, Duration::from_secs(10)).await;
        let recovers = &mut failing[1].1;
        assert_eq!(recovers.texts(3).await, ["one", "two", "three"]);
        later(&hub, DAY).await;
        let marked = rows(room.owner.get(&room.path("/members")).await.data(200));
        let marked: Vec<&str> = marked
            .iter()
            .filter(|m| m["unreachable"] == true)
            .filter_map(|m| m["name"].as_str())
            .collect();
        assert_eq!(
            marked,
            ["breaks", "hangs", "hangs-up", "babbles", "is-gone"]
        );
        assert!(
            well.iter_mut()
                .all(|member| member.endpoint.heard_nothing())
        );
    }
);
