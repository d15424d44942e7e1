//! Open items: locks, decisions and handovers live as long as they say, in the store and not in the ring.

use super::organisations::good;
use crate::support::actors::{Agent, Answer, frame, frame_id, rows, scope_recipient};
use serde_json::{Value, json};
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);
/// A leap of the clock by less than the hub tolerates in the time of a frame.
const HALF_DAY_MICROS: i64 = 12 * 3_600 * 1_000_000;

impl Agent {
    /// Submits a frame of one of the kinds that are kept; the answer.
    pub(super) async fn say(&self, scope: &str, kind: &str, payload: Value) -> (String, Value) {
        let frame = frame(&self.handle(), &scope_recipient(scope), kind, &payload);
        self.say_frame(scope, &frame).await
    }

    async fn say_frame(&self, scope: &str, frame: &Value) -> (String, Value) {
        let id = frame["frame_id"].as_str().unwrap().to_owned();
        (id, good(&self.submit(scope, frame).await, 200))
    }

    pub(super) async fn claim(&self, scope: &str, resource: &str, lease: &str) -> (String, Value) {
        let hour = Duration::from_secs(3600).as_millis() as u64;
        let payload = json!({"resource": resource, "lease_id": lease, "ttl_ms": hour});
        self.say(scope, "agent_lock_request", payload).await
    }

    pub(super) async fn hand_over(&self, scope: &str, body: &str) -> (String, Value) {
        let payload = json!({"previous_session_id": "s1", "handover_body": body});
        self.say(scope, "agent_handover", payload).await
    }

    pub(super) async fn open_under(&self, handle: &str) -> Vec<Value> {
        let body = good(&self.get(&format!("/handles/{handle}/open")).await, 200);
        assert_eq!(body["handle"], handle);
        assert_eq!(body["more"], false);
        rows(body["items"].clone())
    }

    /// The frames of the own open items, newest first.
    async fn open_ids(&self) -> Vec<String> {
        frame_ids(&self.open_under(&self.handle()).await)
    }

    pub(super) async fn take(&self, handle: &str, id: &str, session: &str) -> Answer {
        let path = format!("/handles/{handle}/open/{id}/take");
        let request = self.request("POST", &path);
        Answer::of(request.header("x-chorus-session", session)).await
    }

    pub(super) async fn withdraw(&self, handle: &str, id: &str) -> Answer {
        self.delete(&format!("/handles/{handle}/open/{id}")).await
    }
}

pub(super) fn frame_ids(items: &[Value]) -> Vec<String> {
    let id = |item: &Value| item["frame_id"].as_str().unwrap().to_owned();
    items.iter().map(id).collect()
}

fn moment() -> Value {
    json!({"synopsis": "The migration is ready.", "findings": [], "recommendations": [], "offer": "I start it.",
        "question": {"stem": "Now?", "recommended_idx": 0,
            "options": [{"label": "Now", "reasoning": "It is quiet."}, {"label": "Later", "reasoning": "It can wait."}]}})
}

fn answer_to(id: &str) -> Value {
    json!({"query_id": id, "responded_to_frame_id": id, "response_text": "1: Now", "responder_session_id": "s2"})
}

story!(
    a_claim_holds_for_its_hour_through_a_restart_and_ends_when_it_is_released,
    |hub| async {
        // the ring forgets it after five minutes, the hub does not
        let alice = hub.agent("alice").await;
        let lease = frame_id();
        let (id, said) = alice.claim("~alice", "src/auth.rs", &lease).await;
        assert_eq!(
            (&said["kept"], &said["kept_until"]),
            (&json!(true), &json!("2026-03-20T11:00:00.000000Z"))
        );
        hub.advance(55 * MINUTE);
        hub.restart().await;
        let alice = hub.reconnect(&alice);
        let open = alice.open_under("~alice").await;
        assert_eq!(open.len(), 1, "{open:?}");
        assert_eq!(
            (&open[0]["item"], &open[0]["handle"], &open[0]["left_ms"]),
            (&json!("lock"), &json!("~alice"), &json!(300_000))
        );
        assert_eq!(open[0]["frame"]["payload"]["resource"], "src/auth.rs");
        let session = alice.open_session("vim", "s2").await;
        assert_eq!(session.open_items.data["items"], json!(open));
        assert_eq!(session.open_items.id, None, "it is not resumed after");
        let extension = frame(
            "~alice",
            "~alice",
            "agent_lease_extend",
            &json!({"lease_id": lease, "ttl_ms": 600_000}),
        );
        for _ in 0..2 {
            let (_, said) = alice.say_frame("", &extension).await;
            assert_eq!(said["kept_until"], "2026-03-20T11:10:00.000000Z", "once");
        }
        hub.advance(14 * MINUTE);
        assert_eq!(alice.open_ids().await, [id.as_str()]);
        let release = json!({"lease_id": lease});
        alice.say("~alice", "agent_lock_release", release).await;
        assert!(alice.open_ids().await.is_empty());
        let again = alice.claim("~alice", "src/auth.rs", &lease).await;
        hub.advance(60 * MINUTE);
        assert!(alice.open_ids().await.is_empty(), "its lease is over");
        let extend = json!({"lease_id": lease, "ttl_ms": 1_000});
        let (_, late) = alice.say("~alice", "agent_lease_extend", extend).await;
        assert_eq!(late["kept"], false, "{again:?}");
    }
);

story!(a_repeated_frame_opens_nothing_again, |hub| async {
    //
    let alice = hub.agent("alice").await;
    let lease = frame_id();
    let payload = json!({"resource": "a", "lease_id": lease, "ttl_ms": 60_000});
    let claim = alice.frame("agent_lock_request", &payload);
    let (_, first) = alice.say_frame("", &claim).await;
    let (_, repeated) = alice.say_frame("", &claim).await;
    assert_eq!(repeated, first);
    let release = json!({"lease_id": lease});
    alice.say("~alice", "agent_lock_release", release).await;
    alice.say_frame("", &claim).await;
    assert!(alice.open_ids().await.is_empty());
});

story!(
    a_decision_can_be_answered_after_twenty_minutes_and_not_after_its_time,
    |hub| async {
        // R-83; FRM-39
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        bob.grant(&alice).await;
        alice.grant(&bob).await;
        let mut asked = Vec::new();
        for _ in 0..2 {
            let mut question = frame("~alice", "~bob", "agent_binding_moment", &moment());
            question["ttl_ms"] = json!(1_800_000);
            let (id, said) = alice.say_frame("~bob", &question).await;
            assert_eq!(said["kept"], true);
            asked.push(id);
        }
        let [first, second] = asked.as_slice() else {
            unreachable!()
        };
        hub.advance(20 * MINUTE);
        hub.restart().await;
        let (alice, bob) = (hub.reconnect(&alice), hub.reconnect(&bob));
        assert_eq!(bob.open_ids().await, [second.as_str(), first.as_str()]);
        alice
            .say("~alice", "agent_response", answer_to(first))
            .await;
        assert_eq!(bob.open_ids().await.len(), 2, "only bob was asked");
        let mut waiting = alice.open_session("vim", "s1").await;
        bob.say("~alice", "agent_response", answer_to(first)).await;
        waiting.next("agent_response").await;
        assert_eq!(bob.open_ids().await, [second.as_str()]);
        hub.advance(10 * MINUTE);
        assert!(bob.open_ids().await.is_empty(), "its time is over");
    }
);

story!(
    a_handover_waits_for_a_day_and_one_session_takes_it_up,
    |hub| async {
        //
        let alice = hub.agent("alice").await;
        let (first, said) = alice.hand_over("~alice", "the parser is done").await;
        assert_eq!(said["kept_until"], "2026-03-21T10:00:00.000000Z");
        let (second, _) = alice.hand_over("~alice", "the tests are not").await;
        let (third, _) = alice.hand_over("~alice", "nor the docs").await;
        hub.advance(Duration::from_secs(23 * 3600));
        hub.restart().await;
        let alice = hub.reconnect(&alice);
        assert_eq!(alice.open_ids().await.len(), 3);
        alice
            .request("POST", &format!("/handles/~alice/open/{first}/take"))
            .send()
            .await
            .map(|answer| assert_eq!(answer.status(), 400, "which session?"))
            .unwrap();
        for _ in 0..2 {
            let taken = good(&alice.take("~alice", &first, "s2").await, 200);
            assert_eq!(taken["outcome"], "taken");
            let payload = &taken["frame"]["payload"];
            assert_eq!(payload["handover_body"], "the parser is done");
        }
        let late = alice.take("~alice", &first, "s3").await;
        let message = late.frame_refused(409, "conflict", None);
        assert!(message.contains("~alice s2"), "{message}");
        alice
            .withdraw("~alice", &first)
            .await
            .frame_refused(409, "conflict", None);
        for _ in 0..2 {
            let gone = good(&alice.withdraw("~alice", &second).await, 200);
            assert_eq!(gone["outcome"], "withdrawn");
        }
        alice
            .take("~alice", &second, "s2")
            .await
            .frame_refused(409, "conflict", None);
        assert_eq!(alice.open_ids().await, [third.as_str()]);
        hub.advance(Duration::from_secs(3600));
        assert!(alice.open_ids().await.is_empty(), "a day is over");
        alice
            .take("~alice", &third, "s2")
            .await
            .frame_refused(404, "not-found", None);
    }
);

story!(a_handover_frame_takes_work_up_too, |hub| async {
    // FRM-32: for clients that know the draft only
    let alice = hub.agent("alice").await;
    let (named, _) = alice.hand_over("~alice", "one").await;
    alice.hand_over("~alice", "two").await;
    let by_name = json!({"previous_session_id": "s1", "next_session_id": "s2", "handover_body": "one",
        "pointer_refs": [format!("frame:{named}")]});
    let (_, said) = alice.say("~alice", "agent_handover", by_name).await;
    assert_eq!(said.get("kept"), None, "it opens nothing: {said}");
    assert_eq!(alice.open_ids().await.len(), 1);
    let by_text =
        json!({"previous_session_id": "s1", "next_session_id": "s2", "handover_body": "two"});
    alice.say("~alice", "agent_handover", by_text).await;
    assert!(alice.open_ids().await.is_empty());
});

story!(
    what_is_open_is_read_like_the_roster_and_ended_by_those_it_concerns,
    |hub| async {
        //
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let carol = hub.agent("carol").await;
        let (own, _) = alice.hand_over("~alice", "mine").await;
        bob.get("/handles/~alice/open")
            .await
            .frame_refused(403, "forbidden", None);
        alice.grant(&bob).await;
        let (his, _) = bob.hand_over("~alice", "for you").await;
        assert_eq!(
            frame_ids(&bob.open_under("~alice").await),
            [his.as_str(), own.as_str()]
        );
        assert!(bob.open_ids().await.is_empty(), "it stands under ~alice");
        for answer in [
            bob.take("~alice", &own, "s1").await,
            bob.withdraw("~alice", &own).await,
            alice.withdraw("~alice", &his).await,
        ] {
            answer.frame_refused(403, "forbidden", None);
        }
        carol
            .withdraw("~alice", &own)
            .await
            .frame_refused(404, "not-found", None);
        alice.delete("/handles/~alice/grants/~bob").await.json();
        good(&bob.withdraw("~alice", &his).await, 200);
        assert_eq!(alice.open_ids().await, [own.as_str()]);
        let lease = frame_id();
        let (lock, _) = alice.claim("~alice", "a", &lease).await;
        alice
            .take("~alice", &lock, "s2")
            .await
            .frame_refused(409, "conflict", None);
        for (path, status, code) in [
            ("/handles/~alice/open/x/take", 404, "not-found"),
            ("/handles/alice/open/x/take", 400, "field-invalid"),
        ] {
            let request = alice.request("POST", path).header("x-chorus-session", "s");
            let answer = Answer::of(request).await;
            assert_eq!(answer.json()["code"], code, "{answer:?}");
            assert_eq!(answer.status, status);
        }
        let answer = alice.get("/handles/~alice/open?after=x").await;
        answer.frame_refused(400, "field-invalid", Some("after"));
    }
);

story!(
    a_thousand_items_are_kept_and_the_next_frame_is_only_delivered,
    |hub| async {
        //
        let alice = hub.agent("alice").await;
        let leases: Vec<String> = (0..1_000).map(|_| frame_id()).collect();
        for some in leases.chunks(50) {
            let claims = some.iter().map(|lease| alice.claim("~alice", "a", lease));
            for (_, said) in futures_util::future::join_all(claims).await {
                assert_eq!(said["kept"], true);
            }
        }
        let mut session = alice.open_session("vim", "s1").await;
        let (_, further) = alice.hand_over("~alice", "no room").await;
        assert_eq!(further["kept"], false, "{further}");
        assert_eq!(further.get("kept_until"), None);
        session.next("agent_handover").await;
        let (_, again) = alice.claim("~alice", "a", &leases[7]).await;
        assert_eq!(again["kept"], true, "a claim said again is the same claim");
        let release = json!({"lease_id": leases[0]});
        alice.say("~alice", "agent_lock_release", release).await;
        let (_, kept) = alice.hand_over("~alice", "room").await;
        assert_eq!(kept["kept"], true);
        hub.advance(60 * MINUTE);
        hub.maintain().await;
        assert_eq!(alice.open_ids().await.len(), 1, "the leases are over");
    }
);

story!(
    an_owner_without_room_is_heard_and_nothing_of_it_is_kept,
    with(|set| set.hub.quotas.stored_bytes = 10_000),
    |hub| async {
        //
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let (first, kept) = alice.hand_over("~alice", "room").await;
        assert_eq!(kept["kept"], true);
        let sent = alice.send(&bob.id, &"x".repeat(8_000)).await;
        assert_eq!(sent.status, 202, "{sent:?}");
        // After this time every hub sums up again what an owner stores (D-107).
        hub.advance(Duration::from_secs(11));
        let mut session = alice.open_session("vim", "s1").await;
        let (_, further) = alice.hand_over("~alice", &"y".repeat(4_000)).await;
        assert_eq!(further["kept"], false, "{further}");
        assert_eq!(further.get("kept_until"), None);
        session.next("agent_handover").await;
        assert_eq!(alice.open_ids().await, [first.as_str()]);
        let (_, other) = bob.hand_over("~bob", &"y".repeat(4_000)).await;
        assert_eq!(other["kept"], true, "a neighbour's quota is its own");
    }
);

story!(
    a_snapshot_obeys_the_filter_and_its_size_and_pages_have_the_rest,
    |hub| async {
        //
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        alice.grant(&bob).await;
        let (lock, _) = alice.claim("~alice", "a", &frame_id()).await;
        let (his, _) = bob.hand_over("~alice/vim*", "for vim").await;
        for (query, expected) in [
            ("?instrument=vim", vec![his.as_str(), lock.as_str()]),
            ("?instrument=cc-editor", vec![lock.as_str()]),
            (
                "?instrument=vim&filter=kind:agent_handover",
                vec![his.as_str()],
            ),
            ("?instrument=vim&filter=sender:~alice", vec![lock.as_str()]),
            ("?instrument=vim&filter=kind:agent_advisory", Vec::new()),
        ] {
            let session = alice.open_session_with(query).await;
            let items = rows(session.open_items.data["items"].clone());
            assert_eq!(frame_ids(&items), expected, "{query}");
            assert_eq!(session.open_items.data["more"], false);
        }
        let mut all = vec![lock, his];
        for _ in 0..40 {
            all.push(alice.hand_over("~alice", &"x".repeat(8_000)).await.0);
        }
        all.reverse();
        let session = alice.open_session("vim", "s1").await;
        let newest = frame_ids(&rows(session.open_items.data["items"].clone()));
        assert!(session.open_items.text.len() <= 256 * 1024);
        assert_eq!(session.open_items.data["more"], true);
        assert_eq!(newest, all[..newest.len()], "newest first");
        let mut read = Vec::new();
        let mut next = json!("");
        while let Some(after) = next.as_str() {
            let query = match after {
                "" => String::new(),
                after => format!("?after={after}"),
            };
            let page = good(
                &alice.get(&format!("/handles/~alice/open{query}")).await,
                200,
            );
            read.extend(frame_ids(&rows(page["items"].clone())));
            next = page.get("next").cloned().unwrap_or_default();
            assert_eq!(page["more"], next.is_string());
        }
        assert_eq!(read, all);
    }
);

story!(an_agent_that_leaves_takes_its_items_with_it, |hub| async {
    //
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    alice.grant(&bob).await;
    bob.claim("~alice", "a", &frame_id()).await;
    bob.hand_over("~bob", "mine").await;
    bob.delete("/agents/bob@chorus").await.data(200);
    assert!(alice.open_ids().await.is_empty());
    let bob = hub.agent("bob").await;
    assert!(bob.open_ids().await.is_empty());
});

story!(a_leap_of_the_clock_ends_no_item, |hub| async {
    // D-123: what is opened after the leap removes what has ended, and not what only seems old
    let alice = hub.agent("alice").await;
    let lease = frame_id();
    let (before, _) = alice.claim("~alice", "before", &lease).await;
    hub.leap(HALF_DAY_MICROS);
    let (after, _) = alice.claim("~alice", "after", &frame_id()).await;
    assert_eq!(alice.open_ids().await, [&*after, &*before]);
    let extend = json!({"lease_id": lease, "ttl_ms": 60_000});
    let (_, said) = alice.say("~alice", "agent_lease_extend", extend).await;
    assert_eq!(said["kept_until"], "2026-03-20T11:01:00.000000Z");
    hub.advance(60 * MINUTE);
    assert_eq!(alice.open_ids().await, [&*before], "an hour has passed");
    hub.advance(MINUTE);
    assert!(alice.open_ids().await.is_empty());
    let (last, _) = alice.claim("~alice", "last", &frame_id()).await;
    hub.leap(-HALF_DAY_MICROS);
    assert_eq!(alice.open_ids().await, [&*last]);
});
