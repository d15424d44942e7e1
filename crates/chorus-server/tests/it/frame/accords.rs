//! Accords: agreements of two organisations about who may address whom, and how each ends.

use super::organisations::{good, parts, refused, takes_in};
use crate::support::actors::{Agent, Answer, rows};
use crate::support::hub::Hub;
use serde_json::{Value, json};
use std::time::Duration;

/// A leap of the clock by less than the hub tolerates in the time of a frame.
const HALF_DAY_MICROS: i64 = 12 * 3_600 * 1_000_000;

/// ~acme of alice and ~peer of bob.
pub(super) async fn two_orgs(hub: &Hub) -> (Agent, Agent) {
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    alice.found_organisation("~acme").await;
    bob.found_organisation("~peer").await;
    (alice, bob)
}

pub(super) async fn proposes(owner: &Agent, grantor: &str, body: &Value) -> Value {
    good(
        &owner.post(&format!("/orgs/{grantor}/accords"), body).await,
        201,
    )
}

pub(super) async fn agrees(owner: &Agent, grantee: &str, accord: &Value) -> Answer {
    let id = accord["id"].as_str().unwrap();
    owner
        .post(&format!("/orgs/{grantee}/accords/{id}/accept"), &json!({}))
        .await
}

pub(super) async fn revokes(owner: &Agent, org: &str, accord: &Value) -> Answer {
    owner
        .delete(&format!(
            "/orgs/{org}/accords/{}",
            accord["id"].as_str().unwrap()
        ))
        .await
}

pub(super) async fn statuses(owner: &Agent, org: &str) -> Vec<String> {
    let body = good(&owner.get(&format!("/orgs/{org}/accords")).await, 200);
    rows(body["accords"].clone())
        .iter()
        .map(|row| row["status"].as_str().unwrap().to_owned())
        .collect()
}

story!(
    an_accord_is_proposed_accepted_and_revoked_at_once,
    |hub| async {
        // FRM-55, FRM-59, FRM-60, R-46, R-47, R-50
        let (alice, bob) = two_orgs(&hub).await;
        let (carol, dave) = (hub.agent("carol").await, hub.agent("dave").await);
        takes_in(&alice, "~acme", &carol, &["ops"]).await;
        takes_in(&bob, "~peer", &dave, &[]).await;
        let (mut hers, mut other) = (
            alice.open_session("vim", "s1").await,
            carol.open_session("vim", "s1").await,
        );
        let (_a, _b) = (
            carol.open_session("vim", "s2").await,
            carol.open_session("vim", "s3").await,
        );
        let scope = "accord:peer/grant:ops";
        refused(&dave, "accord:~acme/grant:ops").await;
        let accord = proposes(
            &alice,
            "~acme",
            &json!({"grantee": "peer", "grant": "ops", "reaches": "ops"}),
        )
        .await;
        assert_eq!(accord["status"], "proposed");
        refused(&dave, "accord:~acme/grant:ops").await;
        agrees(&alice, "~acme", &accord)
            .await
            .frame_refused(403, "forbidden", None);
        agrees(&dave, "~peer", &accord)
            .await
            .frame_refused(403, "forbidden", None);
        for _ in 0..2 {
            assert_eq!(
                good(&agrees(&bob, "~peer", &accord).await, 200)["status"],
                "accepted"
            );
        }
        // Three sessions of carol's, told coarsely; alice has another role and hears nothing.
        assert_eq!(
            dave.send_advisory("accord:~acme/grant:ops", "help").await,
            1
        );
        assert_eq!(other.advisory_texts(1).await, ["help"]);
        refused(&dave, "accord:~acme/grant:op").await;
        refused(&dave, "org:acme/members/*").await;
        // One direction only, and not for the grantor's own members.
        refused(&alice, scope).await;
        refused(&carol, "accord:~acme/grant:ops").await;
        assert_eq!(statuses(&alice, "~acme").await, ["accepted"]);
        assert_eq!(statuses(&bob, "~peer").await, ["accepted"]);
        dave.get("/orgs/~peer/accords")
            .await
            .frame_refused(403, "forbidden", None);
        revokes(&dave, "~peer", &accord)
            .await
            .frame_refused(403, "forbidden", None);
        assert_eq!(
            good(&revokes(&alice, "~acme", &accord).await, 200)["status"],
            "revoked"
        );
        refused(&dave, "accord:~acme/grant:ops").await;
        assert!(statuses(&bob, "~peer").await.is_empty());
        revokes(&alice, "~acme", &accord)
            .await
            .frame_refused(404, "not-found", None);
        agrees(&bob, "~peer", &accord)
            .await
            .frame_refused(404, "not-found", None);
        alice.send_advisory("~alice", "marker").await;
        assert_eq!(hers.advisory_texts(1).await, ["marker"]);
    }
);

story!(
    an_accord_ends_by_either_side_by_time_or_with_a_membership,
    |hub| async {
        // FRM-59, R-47
        let (alice, bob) = two_orgs(&hub).await;
        let dave = hub.agent("dave").await;
        takes_in(&bob, "~peer", &dave, &[]).await;
        let _session = alice.open_session("vim", "s1").await;
        let scope = "accord:acme/grant:ops";
        let offer = json!({"grantee": "~peer", "grant": "ops", "reaches": "*"});
        let accord = proposes(&alice, "~acme", &offer).await;
        good(&agrees(&bob, "~peer", &accord).await, 200);
        assert_eq!(dave.send_advisory(scope, "one").await, 1);
        good(&revokes(&bob, "~peer", &accord).await, 200);
        refused(&dave, scope).await;

        let mut brief = offer.clone();
        brief["expires_at"] = json!("2026-03-20T11:00:00Z");
        let accord = proposes(&alice, "~acme", &brief).await;
        let late = proposes(&alice, "~acme", &brief).await;
        good(&agrees(&bob, "~peer", &accord).await, 200);
        hub.advance(Duration::from_secs(3599));
        assert_eq!(dave.send_advisory(scope, "in time").await, 1);
        hub.advance(Duration::from_secs(1));
        refused(&dave, scope).await;
        assert_eq!(statuses(&bob, "~peer").await, ["expired", "expired"]);
        agrees(&bob, "~peer", &late)
            .await
            .frame_refused(409, "conflict", None);

        let accord = proposes(&alice, "~acme", &offer).await;
        good(&agrees(&bob, "~peer", &accord).await, 200);
        assert_eq!(dave.send_advisory(scope, "again").await, 1);
        assert_eq!(
            statuses(&alice, "~acme").await,
            ["accepted"],
            "those of before made room"
        );
        good(&parts(&dave, "~peer", &dave).await, 200);
        refused(&dave, scope).await;
        assert_eq!(bob.send_advisory(scope, "still").await, 1);
    }
);

story!(a_leap_of_the_clock_deletes_no_accord, |hub| async {
    // D-123, R-47: by the wall clock it is void, and it is in force again when the clock is set right
    let (alice, bob) = two_orgs(&hub).await;
    let offer = json!({"grantee": "~peer", "grant": "ops", "reaches": "*"});
    let mut brief = offer.clone();
    brief["expires_at"] = json!("2026-03-20T11:00:00Z");
    let accord = proposes(&alice, "~acme", &brief).await;
    good(&agrees(&bob, "~peer", &accord).await, 200);
    hub.leap(HALF_DAY_MICROS);
    refused(&bob, "accord:acme/grant:ops").await;
    proposes(&alice, "~acme", &offer).await;
    assert_eq!(statuses(&alice, "~acme").await, ["expired", "proposed"]);
    hub.leap(-HALF_DAY_MICROS);
    assert_eq!(statuses(&alice, "~acme").await, ["accepted", "proposed"]);
});

story!(
    an_accord_is_between_two_organisations_that_exist,
    |hub| async {
        //
        let (alice, bob) = two_orgs(&hub).await;
        let carol = hub.agent("carol").await;
        carol.found_organisation("~third").await;
        let offer = |to: &str| json!({"grantee": to, "grant": "ops", "reaches": "*"});
        alice
            .post("/orgs/~acme/accords", &offer("~absent"))
            .await
            .frame_refused(404, "not-found", None);
        alice
            .post("/orgs/~acme/accords", &offer("~bob"))
            .await
            .frame_refused(404, "not-found", None);
        alice
            .post("/orgs/~peer/accords", &offer("~third"))
            .await
            .frame_refused(403, "forbidden", None);
        let accord = proposes(&alice, "~acme", &offer("~peer")).await;
        agrees(&carol, "~third", &accord)
            .await
            .frame_refused(404, "not-found", None);
        revokes(&carol, "~third", &accord)
            .await
            .frame_refused(404, "not-found", None);
        bob.delete("/orgs/~peer/accords/no-such-id")
            .await
            .frame_refused(404, "not-found", None);
        assert_eq!(statuses(&bob, "~peer").await, ["proposed"]);
    }
);
