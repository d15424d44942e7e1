//! Two hubs on one database: a change at one hub is in effect at the other when it is answered (D-80, D-81, D-82).

use crate::support::actors::{Agent, Answer, texts};
use crate::support::hub::{Hub, eventually};
use chorus_hub::Clock;
use chorus_wire::time::UnixMicros;
use serde_json::json;

/// Two hubs, and an agent that registered with them.
async fn two() -> Option<(Hub, Agent, Agent)> {
    let hub = Hub::cluster(|_| ()).await?;
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    Some((hub, alice, bob))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_sent_at_either_hub_is_heard_at_each_in_one_order() {
    let Some((hub, alice, bob)) = two().await else {
        return;
    };
    let (mut here, mut there) = (
        hub.agent_at_hub(0, &bob).inbox().await,
        hub.agent_at_hub(1, &bob).inbox().await,
    );
    let send = |number: usize| {
        let alice = hub.agent_at_hub(number, &alice);
        async move {
            for n in 0..40 {
                alice
                    .send_expecting("bob@chorus", &format!("{number}-{n}"), "delivered_sse")
                    .await;
            }
        }
    };
    tokio::join!(send(0), send(1));
    let kept = texts(&bob.whole_history(1_000).await);
    assert_eq!(kept.len(), 80);
    assert_eq!(here.texts(80).await, kept);
    assert_eq!(there.texts(80).await, kept);
}

/// D-87
#[tokio::test(flavor = "multi_thread")]
async fn a_hub_with_another_seal_key_or_host_name_is_refused_and_soon_forgotten() {
    let Some((mut hub, ..)) = two().await else {
        return;
    };
    let elsewhere = tempfile::tempdir().unwrap();
    let key = elsewhere.path().join("another.key");
    std::fs::write(&key, "6".repeat(64)).unwrap();
    let (seal, host) = (
        hub.settings.hub.seal_key_file.clone(),
        hub.settings.hub.host_name.clone(),
    );
    for (setting, key, name) in [
        ("--seal-key-file", Some(key), host.clone()),
        ("--host-name", seal.clone(), "another".to_owned()),
    ] {
        (hub.settings.hub.seal_key_file, hub.settings.hub.host_name) = (key, name);
        let refusal = hub
            .start_second_in_other_dir()
            .await
            .err()
            .expect("it is refused");
        assert!(
            refusal.contains(setting) && !refusal.contains("6666"),
            "{refusal}"
        );
        hub.await_peers(1).await;
    }
    (hub.settings.hub.seal_key_file, hub.settings.hub.host_name) = (seal, host);
    hub.start_second_in_other_dir()
        .await
        .expect("one that is alike is taken")
        .stop()
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_at_one_hub_is_a_delivery_and_a_presence_at_the_other_until_it_closes() {
    let Some((hub, alice, bob)) = two().await else {
        return;
    };
    let (sender, anyone) = (hub.agent_at_hub(0, &alice), hub.anonymous());
    sender
        .send_expecting("bob@chorus", "before", "queued")
        .await;
    let inbox = hub.agent_at_hub(1, &bob).inbox().await;
    let sent = sender
        .send_expecting("bob@chorus", "while", "delivered_sse")
        .await;
    assert_eq!(
        sender.delivery_status(&sent["trace_id"]).await["status"],
        "delivered"
    );
    for _ in 0..2 {
        assert_eq!(
            anyone.get("/health").await.data(200)["inbox_connections"],
            1
        );
        assert_eq!(
            anyone.get("/agents/bob@chorus").await.data(200)["online"],
            true
        );
    }
    drop(inbox);
    eventually("no session is there", async || {
        anyone.get("/health").await.data(200)["inbox_connections"] == 0
    })
    .await;
    sender.send_expecting("bob@chorus", "after", "queued").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_taken_back_at_one_hub_is_dead_at_the_other_with_the_answer() {
    let Some((hub, _, bob)) = two().await else {
        return;
    };
    let (here, there) = (hub.agent_at_hub(0, &bob), hub.agent_at_hub(1, &bob));
    let mut inbox = there.inbox().await;
    let mut frames = there.open_session("vim", "s1").await;
    there.history("").await;
    let data = here
        .post(
            "/register",
            &crate::support::actors::registration("bob@chorus"),
        )
        .await
        .data(200);
    assert_eq!(there.get("/agent/messages").await.status, 401);
    let fresh = there.with_rotated_key(data["api_key"].as_str().unwrap());
    fresh.history("").await;
    for stream in [&mut inbox, &mut frames.stream] {
        let last = stream.ended().await;
        assert!(
            last.iter().any(|event| event.text.contains("key_rotated")),
            "{last:?}"
        );
    }
    let gone = hub
        .agent_at_hub(0, &fresh)
        .delete("/agents/bob@chorus")
        .await;
    assert_eq!(gone.status, 200, "{gone:?}");
    assert_eq!(fresh.get("/agent/messages").await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_address_whom_changes_at_both_hubs_with_the_answer() {
    let Some((hub, alice, bob)) = two().await else {
        return;
    };
    let (hers, his) = (hub.agent_at_hub(0, &alice), hub.agent_at_hub(1, &bob));
    for _ in 0..3 {
        hers.grant(&bob).await;
        assert_eq!(his.get("/handles/~alice/roster").await.status, 200);
        let ended = hers.delete("/handles/~alice/grants/~bob").await;
        assert_eq!(ended.status, 200, "{ended:?}");
        assert_eq!(his.get("/handles/~alice/roster").await.status, 403);
    }
    hers.found_organisation("~acme").await;
    let invited = Answer::of(
        hers.request("PUT", "/orgs/~acme/members/~bob")
            .json(&json!({"roles": []})),
    )
    .await;
    assert_eq!(invited.status, 200, "{invited:?}");
    assert_eq!(
        his.post("/orgs/~acme/members/~bob/accept", &json!({}))
            .await
            .status,
        200
    );
    assert_eq!(his.get("/orgs/~acme/members").await.status, 200);
    assert_eq!(hers.delete("/orgs/~acme/members/~bob").await.status, 200);
    assert_eq!(his.get("/orgs/~acme/members").await.status, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frame_reaches_and_counts_the_sessions_of_both_hubs_and_their_ids_agree() {
    let Some((hub, alice, _)) = two().await else {
        return;
    };
    let (here, there) = (hub.agent_at_hub(0, &alice), hub.agent_at_hub(1, &alice));
    let (mut first, mut second) = (
        here.open_session("vim", "s1").await,
        there.open_session("cc-editor", "s2").await,
    );
    for at in [&here, &there] {
        let names: Vec<String> = at
            .roster()
            .await
            .iter()
            .map(|row| row["session"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(
            names,
            ["s2", "s1"],
            "in the order of their time and their instruments"
        );
    }
    for (number, from) in [&here, &there].into_iter().enumerate() {
        let text = format!("from {number}");
        assert_eq!(from.send_advisory("~alice", &text).await, 2);
        let (one, other) = (first.advisory().await, second.advisory().await);
        assert_eq!((one.id, one.text), (other.id, other.text));
    }
}

///
#[tokio::test(flavor = "multi_thread")]
async fn a_session_goes_on_at_the_other_hub_without_a_gap() {
    let Some((hub, alice, _)) = two().await else {
        return;
    };
    let (here, there) = (hub.agent_at_hub(0, &alice), hub.agent_at_hub(1, &alice));
    let mut session = here.open_session("vim", "s1").await;
    let mut last = session.connected.id.clone().unwrap();
    for round in 0..4 {
        drop(session);
        let (from, to) = if round % 2 == 0 {
            (&here, &there)
        } else {
            (&there, &here)
        };
        from.send_advisory("~alice", &format!("missed {round}"))
            .await;
        session = to.resume_session("", &last).await;
        let event = session.advisory().await;
        assert_eq!(
            crate::support::actors::advisory_text(&event),
            format!("missed {round}")
        );
        last = event.id.unwrap();
    }
}

/// All hubs use the database's clock: a hub whose machine is a minute ahead takes no lease of another hub away.
#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_a_minute_off_shows_nowhere() {
    const MINUTE: i64 = 60_000_000;
    let right = |settings: &mut chorus_server::ServerSettings| settings.hub.clock = Clock::system();
    let ahead: fn(&mut chorus_server::ServerSettings) =
        |set| set.hub.clock = Clock::with_offset(MINUTE);
    let behind: fn(&mut chorus_server::ServerSettings) =
        |set| set.hub.clock = Clock::with_offset(-MINUTE);
    for off in [ahead, behind] {
        let Some(hub) = Hub::cluster_with_difference(right, off).await else {
            return;
        };
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let began = Clock::system().now();
        for n in 0..6 {
            hub.agent_at_hub(n % 2, &alice)
                .send_expecting("bob@chorus", &n.to_string(), "queued")
                .await;
        }
        let near = |at: UnixMicros| (at.0 - began.0).abs() < MINUTE / 6;
        let times: Vec<UnixMicros> = bob
            .history("")
            .await
            .iter()
            .map(|row| UnixMicros::parse(row["timestamp"].as_str().unwrap()).unwrap())
            .collect();
        assert!(
            times.is_sorted() && times.iter().copied().all(near),
            "{times:?}"
        );
        for number in 0..2 {
            let beat = hub
                .agent_at_hub(number, &bob)
                .post("/heartbeat", &json!({}))
                .await
                .json();
            assert!(
                near(UnixMicros::parse(beat["timestamp_utc"].as_str().unwrap()).unwrap()),
                "{beat}"
            );
        }
    }
}

/// D-15
#[tokio::test(flavor = "multi_thread")]
async fn a_hub_without_the_bus_is_kept_off_a_shared_database_and_a_sharing_one_off_an_unshared() {
    let Some(mut hub) = Hub::cluster(|_| ()).await else {
        return;
    };
    let bus = hub.settings.hub.bus_url.take();
    let refusal = hub
        .start_second_in_other_dir()
        .await
        .err()
        .expect("it must not start");
    assert!(refusal.contains("another hub"), "{refusal}");
    let Some(mut alone) = Hub::postgres(|_| ()).await else {
        return;
    };
    (alone.settings.hub.bus_url, alone.settings.hub.seal_key_file) =
        (bus, hub.settings.hub.seal_key_file.clone());
    let refusal = alone
        .start_second_in_other_dir()
        .await
        .err()
        .expect("it must not start");
    assert!(refusal.contains("without a shared bus"), "{refusal}");
}

/// R-15, invariant 4: whatever is said between the hubs, the log is the truth.
#[tokio::test(flavor = "multi_thread")]
async fn what_waits_at_one_hub_is_replayed_at_the_other() {
    let Some((hub, alice, bob)) = two().await else {
        return;
    };
    let (sender, receiver) = (hub.agent_at_hub(0, &alice), hub.agent_at_hub(1, &bob));
    let sent = sender.send_expecting("bob@chorus", "one", "queued").await;
    let mut inbox = receiver.inbox_after("0").await;
    assert_eq!(inbox.texts(1).await, ["one"]);
    eventually("it is delivered", async || {
        sender.delivery_status(&sent["trace_id"]).await["status"] == "delivered"
    })
    .await;
}

/// An entry that no hub wrote, in the order of all others, so many places after the last one.
async fn entered(hub: &Hub, kind: &str, after: i64) {
    let url = hub.settings.hub.database_url.as_ref().unwrap().expose();
    let (other, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    let sql = format!(
        "begin; select pg_advisory_xact_lock(4842712);
         update principals set key_hash = decode(repeat('00', 32), 'hex') where agent_id = 'carol@chorus';
         insert into log (seq, subject, kind, actor, at, body)
         select max(seq) + {after}, 0, '{kind}', 0, max(at) + 1, '{{}}' from log; commit"
    );
    other.batch_execute(&sql).await.unwrap();
}

/// D-94: one hub after the other is replaced, and the new ones write what the old ones never heard of.
#[tokio::test(flavor = "multi_thread")]
async fn an_entry_that_only_a_newer_hub_knows_does_not_block_the_rest() {
    let Some((hub, alice, bob)) = two().await else {
        return;
    };
    let (mut here, mut there) = (
        hub.agent_at_hub(0, &bob).inbox().await,
        hub.agent_at_hub(1, &bob).inbox().await,
    );
    for n in 0..2 {
        entered(&hub, "of tomorrow", 1).await;
        hub.agent_at_hub(n, &alice)
            .send_expecting("bob@chorus", &format!("message {n}"), "delivered_sse")
            .await;
    }
    assert_eq!(here.texts(2).await, ["message 0", "message 1"]);
    assert_eq!(there.texts(2).await, ["message 0", "message 1"]);
}

/// D-81: a hub that stood still for longer than the log is kept has not read what is over.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_hub_can_no_longer_read_of_the_log_it_takes_for_over() {
    let Some((hub, alice, _)) = two().await else {
        return;
    };
    let carol = hub.agent("carol").await;
    for n in 0..2 {
        assert_eq!(
            hub.agent_at_hub(n, &carol)
                .get("/agent/messages")
                .await
                .status,
            200
        );
    }
    // Her key is taken back, and the notice of it is among what was trimmed.
    entered(&hub, "activity", 3).await;
    for n in 0..2 {
        let carol = hub.agent_at_hub(n, &carol);
        eventually("her key is dead", async || {
            carol.get("/agent/messages").await.status == 401
        })
        .await;
    }
    alice
        .send_expecting("alice@chorus", "and the log goes on", "queued")
        .await;
}
