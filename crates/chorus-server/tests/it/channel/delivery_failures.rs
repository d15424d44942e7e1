//! Members that fail for long: given up with a notice, caught up with later, and no delay for other members.

use crate::support::actors::database::run_sql;
use crate::support::actors::remote_member::{OwnedChannel, RemoteMember};
use crate::support::actors::{Reply, rows};
use crate::support::hub::{Hub, eventually};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) const DAY: Duration = Duration::from_secs(24 * 3600);

pub(super) fn broken() -> Reply {
    Reply::typed(503, "text/plain", "not now")
}

pub(super) fn taken() -> Reply {
    Reply::typed(200, "text/plain", "")
}

/// Time goes on, and everything that is due then is done.
pub(super) async fn later(hub: &Hub, by: Duration) {
    hub.maintain().await;
    hub.advance(by);
    hub.maintain().await;
}

story!(
    a_dead_connection_string_is_told_to_the_room_and_what_was_missed_comes_with_the_next_word,
    |hub| async {
        // 404 and 410 say that the agent is gone
        for (place, status) in [404, 410].into_iter().enumerate() {
            let room = OwnedChannel::create(&hub, &format!("alice-{place}")).await;
            let script = move |turn| {
                if turn < 2 {
                    Reply::json(status, "{}")
                } else {
                    taken()
                }
            };
            let mut oak = RemoteMember::scripted(&hub, script).await;
            room.add_remote("oak", &oak.url()).await;
            room.post_message("one").await;
            assert_eq!(oak.texts(1).await, ["one"]);
            hub.maintain().await;
            assert_eq!(
                room.member_changes().await,
                ["oak joined", "oak unreachable"],
                "{status}"
            );
            assert_eq!(room.member("oak").await["unreachable"], true);
            later(&hub, DAY).await;
            assert!(
                oak.endpoint.received_nothing(),
                "no member is tried again until there is a message"
            );

            room.post_message("two").await;
            let body = oak.next_delivery().await;
            assert_eq!(
                (&body["message"]["content"], missed(&body)),
                (&json!("two"), vec!["one".to_owned()])
            );
            hub.maintain().await;
            assert_eq!(room.member_changes().await.len(), 2, "it is told once");

            room.post_message("three").await;
            let body = oak.next_delivery().await;
            assert_eq!(
                (&body["message"]["content"], missed(&body)),
                (&json!("three"), vec!["one".into(), "two".into()])
            );
            hub.maintain().await;
            assert_eq!(
                room.member_changes().await,
                ["oak joined", "oak unreachable", "oak reachable"]
            );

            room.post_message("four").await;
            let body = oak.next_delivery().await;
            assert_eq!(body["message"]["content"], "four");
            assert!(body.get("backlog").is_none(), "{body}");
        }
    }
);

/// What a delivery catches up on, by its texts.
pub(super) fn missed(body: &Value) -> Vec<String> {
    let backlog = body.get("backlog").cloned().unwrap_or(json!([]));
    rows(backlog)
        .iter()
        .map(|said| said["content"].as_str().unwrap_or_default().to_owned())
        .collect()
}

story!(
    a_member_away_for_a_day_is_given_up_with_a_notice_and_catches_up_on_fifty,
    |hub| async {
        //
        let room = OwnedChannel::create(&hub, "alice").await;
        let mut oak =
            RemoteMember::scripted(&hub, |turn| if turn < 3 { broken() } else { taken() }).await;
        room.add_remote("oak", &oak.url()).await;
        for n in 0..60 {
            room.post_message(&format!("{n}")).await;
        }
        oak.next_delivery().await;
        later(&hub, Duration::from_secs(60)).await;
        oak.next_delivery().await;
        assert_eq!(
            room.member_changes().await,
            ["oak joined"],
            "a day is not over"
        );
        later(&hub, DAY).await;
        assert_eq!(oak.texts(1).await, ["0"]);
        assert_eq!(
            room.member_changes().await,
            ["oak joined", "oak unreachable"]
        );

        room.post_message("60").await;
        let body = oak.next_delivery().await;
        let expected: Vec<String> = (10..60).map(|n| n.to_string()).collect();
        assert_eq!(
            (&body["message"]["content"], missed(&body)),
            (&json!("60"), expected)
        );
        hub.maintain().await;
        assert!(oak.endpoint.received_nothing());
        assert_eq!(
            room.member_changes().await.pop().as_deref(),
            Some("oak reachable")
        );
        assert_eq!(
            room.message_texts().await.len(),
            61,
            "all of it is in the history"
        );
    }
);

story!(
    what_was_trimmed_before_it_was_heard_is_not_caught_up_on,
    with(|set| set.hub.retain = Some(90 * DAY)),
    |hub| async {
        //
        let (room, other) = (
            OwnedChannel::create(&hub, "alice").await,
            OwnedChannel::create(&hub, "bob").await,
        );
        let mut oak = RemoteMember::scripted(&hub, |turn| {
            if turn == 0 {
                Reply::json(410, "{}")
            } else {
                taken()
            }
        })
        .await;
        room.add_remote("oak", &oak.url()).await;
        room.post_message("old").await;
        assert_eq!(oak.texts(1).await, ["old"]);
        hub.maintain().await;
        hub.advance(91 * DAY);
        other.post_message("so that there is something newer").await;
        eventually("the old line is trimmed", async || {
            hub.maintain().await;
            room.message_texts().await.is_empty()
        })
        .await;
        room.post_message("new").await;
        let body = oak.next_delivery().await;
        assert_eq!(
            (&body["message"]["content"], missed(&body)),
            (&json!("new"), Vec::new())
        );
        hub.maintain().await;
        assert!(oak.endpoint.received_nothing());
        assert_eq!(room.member("oak").await["unreachable"], false);
    }
);

story!(
    a_catch_up_is_no_larger_than_a_hosting_hub_takes,
    |hub| async {
        //
        let room = OwnedChannel::create(&hub, "alice").await;
        let mut oak = RemoteMember::scripted(&hub, |turn| {
            if turn < 5 {
                Reply::json(404, "{}")
            } else {
                taken()
            }
        })
        .await;
        room.add_remote("oak", &oak.url()).await;
        let text = |n: i32| format!("{n} {}", "x".repeat(20_000));
        for n in 0..6 {
            room.post_message(&text(n)).await;
            hub.maintain().await;
        }
        for n in 0..6 {
            let heard = oak.endpoint.next_request().await;
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
    an_address_that_may_not_be_reached_any_more_is_never_asked_and_the_room_is_told,
    |hub| async {
        // D-42: it was allowed when it was added; each attempt asks again
        let room = OwnedChannel::create(&hub, "alice").await;
        let mut oak = RemoteMember::accepting(&hub).await;
        room.add_remote("oak", &oak.url()).await;
        hub.settings.hub.allow_private_endpoints = false;
        hub.restart().await;
        let room = room.reconnect(&hub);
        room.post_message("one").await;
        later(&hub, DAY).await;
        assert!(oak.endpoint.received_nothing());
        assert_eq!(
            room.member_changes().await,
            ["oak joined", "oak unreachable"]
        );
        hub.settings.hub.allow_private_endpoints = true;
        hub.restart().await;
        let room = room.reconnect(&hub);
        room.post_message("two").await;
        let body = oak.next_delivery().await;
        assert_eq!(
            (&body["message"]["content"], missed(&body)),
            (&json!("two"), vec!["one".to_owned()])
        );
    }
);

memory_story!(
    hanging_members_that_were_given_up_on_delay_no_other_member,
    with(|set| set.hub.webhook_timeout = Duration::from_secs(120)),
    |hub| async {
        // D-41: more of them than there are places
        const MANY: usize = chorus_hub::limits::OUTBOX_IN_FLIGHT + 2;
        let room = OwnedChannel::create(&hub, "alice").await;
        let hangs = RemoteMember::scripted(&hub, |turn| {
            if turn < MANY {
                Reply::json(410, "{}")
            } else {
                Reply::held_ok()
            }
        });
        let (hangs, mut well) = (hangs.await, RemoteMember::accepting(&hub).await);
        for n in 0..MANY {
            room.add_remote(&format!("hangs-{n}"), &hangs.url()).await;
        }
        room.add_remote("well", &well.url()).await;
        room.post_message("one").await;
        hub.maintain().await;
        assert_eq!(
            room.member_changes()
                .await
                .iter()
                .filter(|change| change.ends_with(" unreachable"))
                .count(),
            MANY
        );
        room.post_message("two").await;
        assert_eq!(well.texts(2).await, ["one", "two"]);
    }
);

/// Ten that fail, each in its own way.
async fn ten_that_fail(hub: &Hub) -> Vec<(&'static str, RemoteMember)> {
    let huge = "x".repeat(1 << 20);
    let late = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_vec();
    vec![
        ("breaks", RemoteMember::scripted(hub, |_| broken()).await),
        (
            "recovers",
            RemoteMember::scripted(hub, |turn| if turn == 0 { broken() } else { taken() }).await,
        ),
        (
            "hangs",
            RemoteMember::scripted(hub, |_| Reply::held_ok()).await,
        ),
        (
            "refuses",
            RemoteMember::scripted(hub, |_| Reply::json(400, "{}")).await,
        ),
        (
            "redirects",
            RemoteMember::scripted(hub, |_| Reply::redirect("http://127.0.0.1:1/")).await,
        ),
        (
            "rambles",
            RemoteMember::scripted(hub, move |_| Reply::typed(200, "text/plain", &huge)).await,
        ),
        (
            "hangs-up",
            RemoteMember::scripted(hub, |_| Reply::Bytes(Vec::new())).await,
        ),
        (
            "babbles",
            RemoteMember::scripted(hub, |_| Reply::Bytes(b"\x16\x03\x01 no HTTP".to_vec())).await,
        ),
        (
            "is-gone",
            RemoteMember::scripted(hub, |_| Reply::json(410, "{}")).await,
        ),
        (
            "is-slow",
            RemoteMember::scripted(hub, move |_| Reply::Held(late.clone())).await,
        ),
    ]
}

sqlite_story!(
    with_another_seal_key_no_member_is_reached_and_the_channel_is_told,
    |hub| async {
        //
        let room = OwnedChannel::create(&hub, "alice").await;
        let mut oak = RemoteMember::accepting(&hub).await;
        room.add_remote("oak", &oak.url()).await;
        let key = hub.dir.path().join("seal.key");
        let kept = std::fs::read_to_string(&key).unwrap();
        // An operator that lost the key gives it up.
        hub.restart_with_seal_key(&"0".repeat(64)).await;
        let room = room.reconnect(&hub);
        room.post_message("one").await;
        hub.maintain().await;
        room.post_message("two").await;
        hub.maintain().await;
        assert_eq!(
            room.member_changes().await,
            ["oak joined", "oak unreachable"]
        );
        hub.restart_with_seal_key(&kept).await;
        let room = room.reconnect(&hub);
        room.post_message("three").await;
        let body = oak.next_delivery().await;
        assert_eq!(
            (&body["message"]["content"], missed(&body)),
            (&json!("three"), vec!["one".into(), "two".into()])
        );
    }
);

sqlite_story!(
    a_lost_seal_key_is_missed_where_no_hub_recorded_it,
    |hub| async {
        // hubs did not always record which key they seal with
        let room = OwnedChannel::create(&hub, "alice").await;
        let oak = RemoteMember::accepting(&hub).await;
        room.add_remote("oak", &oak.url()).await;
        hub.stop().await;
        run_sql(&hub, "delete from settings where name = 'seal_key'").await;
        std::fs::remove_file(hub.dir.path().join("seal.key")).unwrap();
        let refusal = hub.start_second().await.err().expect("its key is lost");
        assert!(refusal.contains("it is not there"), "{refusal}");
    }
);

sqlite_story!(a_copy_of_a_hub_reaches_its_members, |hub| async {
    //
    let room = OwnedChannel::create(&hub, "alice").await;
    let mut oak = RemoteMember::accepting(&hub).await;
    room.add_remote("oak", &oak.url()).await;
    let copy = hub.dir.path().join("copy");
    chorus_hub::ops::backup_data_dir(hub.dir.path(), &copy).expect("a copy");
    hub.stop().await;
    let twin = Hub::sqlite(|set| set.hub.data_dir = copy).await;
    room.reconnect(&twin).post_message("from the copy").await;
    assert_eq!(oak.texts(1).await, ["from the copy"]);
});

story!(
    of_fifty_members_ten_fail_each_in_its_way_and_forty_hear_everything_at_once,
    with(|set| set.hub.webhook_timeout = Duration::from_secs(4)),
    |hub| async {
        //
        let room = OwnedChannel::create(&hub, "alice").await;
        let mut failing = ten_that_fail(&hub).await;
        for (name, member) in &failing {
            room.add_remote(name, &member.url()).await;
        }
        let mut well = Vec::new();
        for n in 0..40 {
            let member = RemoteMember::accepting(&hub).await;
            room.add_remote(&format!("well-{n}"), &member.url()).await;
            well.push(member);
        }
        for text in ["one", "two", "three"] {
            room.post_message(text).await;
        }
        for member in &mut well {
            assert_eq!(member.texts(3).await, ["one", "two", "three"]);
        }
        for (name, member) in &mut failing {
            let first = member.next_delivery().await;
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
                "is-gone" => while !member.endpoint.received_nothing() {},
                _ => assert!(
                    member.endpoint.received_nothing(),
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
                .all(|member| member.endpoint.received_nothing())
        );
    }
);
