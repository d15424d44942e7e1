//! Organisations: founded, joined by consent, left, and ended with their last owner (R-46, R-47, R-51).

use super::accords::{agrees, proposes, statuses, two_orgs};
use crate::support::actors::{Agent, Answer, rows};
use serde_json::{Value, json};

pub(super) async fn put(who: &Agent, path: &str, body: &Value) -> Answer {
    Answer::of(who.request("PUT", path).json(body)).await
}

#[track_caller]
pub(super) fn good(answer: &Answer, status: u16) -> Value {
    assert_eq!(answer.status, status, "{answer:?}");
    answer.json()
}

pub(super) async fn invites(owner: &Agent, org: &str, who: &Agent, roles: &[&str]) -> Value {
    let path = format!("/orgs/{org}/members/{}", who.handle());
    good(&put(owner, &path, &json!({"roles": roles})).await, 200)
}

pub(super) async fn joins(who: &Agent, org: &str) -> Answer {
    who.post(
        &format!("/orgs/{org}/members/{}/accept", who.handle()),
        &json!({}),
    )
    .await
}

/// Invited and accepted.
pub(super) async fn takes_in(owner: &Agent, org: &str, who: &Agent, roles: &[&str]) {
    assert_eq!(invites(owner, org, who, roles).await["status"], "invited");
    assert_eq!(good(&joins(who, org).await, 200)["status"], "accepted");
}

pub(super) async fn parts(asking: &Agent, org: &str, who: &Agent) -> Answer {
    asking
        .delete(&format!("/orgs/{org}/members/{}", who.handle()))
        .await
}

pub(super) async fn members(who: &Agent, org: &str) -> Vec<String> {
    let body = good(&who.get(&format!("/orgs/{org}/members")).await, 200);
    rows(body["members"].clone())
        .iter()
        .map(|row| row["handle"].as_str().unwrap().to_owned())
        .collect()
}

pub(super) async fn refused(who: &Agent, scope: &str) {
    let frame = who.advisory_to(scope, "let me in");
    who.submit(scope, &frame)
        .await
        .frame_refused(403, "scope-unauthorised", Some("scope"));
}

story!(a_handle_is_one_agents_or_one_organisations, |hub| async {
    // R-03, R-46, R-47
    let alice = hub.agent("alice").await;
    let made = good(&alice.post("/orgs", &json!({"handle": "acme"})).await, 201);
    assert_eq!(
        made,
        json!({"handle": "~acme", "created_at": "2026-03-20T10:00:00.000000Z"})
    );
    for taken in ["~acme", "acme", "~alice"] {
        alice
            .post("/orgs", &json!({"handle": taken}))
            .await
            .frame_refused(409, "conflict", None);
    }
    // The address is the organisation's too: an agent of that name would be without its handle.
    hub.anonymous()
        .register("acme@chorus")
        .await
        .refused(409, "ERR_AGENT_ID_TAKEN");
    let elsewhere = hub.agent_with("acme@elsewhere.example", &json!({})).await;
    elsewhere
        .post("/orgs", &json!({"handle": "~other"}))
        .await
        .frame_refused(403, "forbidden", None);
    elsewhere
        .get("/orgs/~acme/members")
        .await
        .frame_refused(403, "forbidden", None);
    hub.anonymous()
        .get("/agents/~acme")
        .await
        .refused(404, "ERR_AGENT_NOT_FOUND");
});

story!(
    an_agent_lists_its_organisations_and_invitations,
    |hub| async {
        // R-47, R-51
        let alice = hub.agent("alice").await;
        let bob = hub.agent("bob").await;
        let orgs = async |who: &Agent| good(&who.get("/orgs").await, 200)["orgs"].clone();
        assert_eq!(orgs(&bob).await, json!([]));
        for org in ["~acme", "~bits"] {
            good(&alice.post("/orgs", &json!({"handle": org})).await, 201);
            invites(&alice, org, &bob, &["reviewer"]).await;
        }
        good(&joins(&bob, "~bits").await, 200);
        let expected = json!([
            {"handle": "~bits", "roles": ["reviewer"], "status": "accepted"},
            {"handle": "~acme", "roles": ["reviewer"], "status": "invited"},
        ]);
        assert_eq!(orgs(&bob).await, expected);
        assert_eq!(orgs(&alice).await.as_array().map(Vec::len), Some(2));
    }
);

/// Bodies that found no organisation, with the code and the field of the refusal.
fn invalid_organisations() -> Vec<(Value, &'static str, Option<&'static str>)> {
    vec![
        (json!({}), "field-missing", Some("handle")),
        (json!({"handle": "~org"}), "field-invalid", Some("handle")),
        (
            json!({"handle": "~cc-tool"}),
            "field-invalid",
            Some("handle"),
        ),
        (json!({"handle": "~Acme"}), "field-invalid", Some("handle")),
        (json!({"handle": null}), "field-invalid", Some("handle")),
        (json!({"colour": "red"}), "field-unknown", Some("colour")),
        (json!(["~acme"]), "json-invalid", None),
    ]
}

/// Proposals of an accord to ~peer, with the code and the field of the refusal.
fn invalid_accords() -> Vec<(Value, &'static str, &'static str)> {
    let accord = |more: Value| {
        let mut body = json!({"grantee": "~peer", "grant": "ops", "reaches": "*"});
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        body
    };
    vec![
        (
            json!({"grantee": "~peer", "grant": "ops"}),
            "field-missing",
            "reaches",
        ),
        (accord(json!({"grant": "Ops"})), "field-invalid", "grant"),
        (accord(json!({"reaches": ""})), "field-invalid", "reaches"),
        (
            accord(json!({"grantee": "~acme"})),
            "field-invalid",
            "grantee",
        ),
        (
            accord(json!({"expires_at": "2026-03-20T10:00:00Z"})),
            "field-invalid",
            "expires_at",
        ),
        (
            accord(json!({"expires_at": null})),
            "field-invalid",
            "expires_at",
        ),
        (accord(json!({"id": "x"})), "field-unknown", "id"),
    ]
}

story!(bodies_about_organisations_are_read_strictly, |hub| async {
    // FRM-83, FRM-87…89, R-44, R-47, R-53
    let (alice, _bob) = two_orgs(&hub).await;
    for (body, code, field) in invalid_organisations() {
        alice
            .post("/orgs", &body)
            .await
            .frame_refused(400, code, field);
    }
    for (body, code, field) in invalid_accords() {
        alice
            .post("/orgs/~acme/accords", &body)
            .await
            .frame_refused(400, code, Some(field));
    }
    for (roles, code, field) in [
        (json!({}), "field-missing", "roles"),
        (json!({"roles": "owner"}), "field-invalid", "roles"),
        (json!({"roles": ["a", "B"]}), "field-invalid", "roles[1]"),
        (json!({"roles": vec!["a"; 33]}), "field-invalid", "roles"),
        (
            json!({"roles": [], "status": "accepted"}),
            "field-unknown",
            "status",
        ),
    ] {
        put(&alice, "/orgs/~acme/members/~bob", &roles)
            .await
            .frame_refused(400, code, Some(field));
    }
    alice
        .get("/orgs/~Acme/members")
        .await
        .frame_refused(400, "field-invalid", Some("org"));
    alice
        .post_text("/orgs", r#"{"handle":"~a","handle":"~b"}"#)
        .await
        .frame_refused(400, "json-invalid", None);
    assert!(statuses(&alice, "~acme").await.is_empty());
});

story!(
    no_handle_is_put_into_an_organisation_without_consent,
    |hub| async {
        // FRM-53, FRM-58, R-50, R-51: invited is neither reached nor counted, nor listed, nor let in
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        alice.found_organisation("~acme").await;
        let (mut hers, mut his) = (
            alice.open_session("vim", "s1").await,
            bob.open_session("vim", "s1").await,
        );
        joins(&bob, "~acme")
            .await
            .frame_refused(404, "not-found", None);
        let invited = invites(&alice, "~acme", &bob, &["reviewer", "ops", "ops"]).await;
        assert_eq!(
            invited,
            json!({"handle": "~bob", "roles": ["ops", "reviewer"], "status": "invited"})
        );
        assert_eq!(alice.send_advisory("org:acme/members/*", "before").await, 1);
        refused(&bob, "org:acme/members/*").await;
        bob.get("/orgs/~acme/members")
            .await
            .frame_refused(403, "forbidden", None);
        assert_eq!(members(&alice, "~acme").await, ["~alice"]);
        let path = "/orgs/~acme/members/~bob/accept";
        alice
            .post(path, &json!({}))
            .await
            .frame_refused(403, "forbidden", None);
        for _ in 0..2 {
            assert_eq!(good(&joins(&bob, "acme").await, 200)["status"], "accepted");
        }
        assert_eq!(members(&bob, "acme").await, ["~alice", "~bob"]);
        assert_eq!(bob.send_advisory("org:acme/members/*", "after").await, 2);
        assert_eq!(
            alice
                .send_advisory("org:acme/members/reviewer/*", "to reviewers")
                .await,
            1
        );
        assert_eq!(hers.advisory_texts(2).await, ["before", "after"]);
        assert_eq!(his.advisory_texts(2).await, ["after", "to reviewers"]);
    }
);

story!(
    owners_run_an_organisation_and_members_may_leave,
    |hub| async {
        // R-47: roles are opaque but for owner; a change of roles is felt at once
        let (alice, bob, carol) = (
            hub.agent("alice").await,
            hub.agent("bob").await,
            hub.agent("carol").await,
        );
        alice.found_organisation("~acme").await;
        takes_in(&alice, "~acme", &bob, &["reviewer"]).await;
        put(&bob, "/orgs/~acme/members/~carol", &json!({"roles": []}))
            .await
            .frame_refused(403, "forbidden", None);
        put(
            &bob,
            "/orgs/~acme/members/~bob",
            &json!({"roles": ["owner"]}),
        )
        .await
        .frame_refused(403, "forbidden", None);
        parts(&bob, "~acme", &alice)
            .await
            .frame_refused(403, "forbidden", None);
        put(&alice, "/orgs/~acme/members/~absent", &json!({"roles": []}))
            .await
            .frame_refused(404, "not-found", None);
        put(&alice, "/orgs/~none/members/~bob", &json!({"roles": []}))
            .await
            .frame_refused(404, "not-found", None);
        let _session = bob.open_session("vim", "s1").await;
        assert_eq!(
            alice
                .send_advisory("org:acme/members/reviewer/*", "reviewers")
                .await,
            1
        );
        assert_eq!(
            invites(&alice, "~acme", &bob, &["writer"]).await["status"],
            "accepted"
        );
        assert_eq!(
            alice
                .send_advisory("org:acme/members/reviewer/*", "reviewers")
                .await,
            0
        );
        assert_eq!(
            alice
                .send_advisory("org:acme/members/writer/*", "writers")
                .await,
            1
        );
        takes_in(&alice, "~acme", &carol, &[]).await;
        assert_eq!(carol.send_advisory("org:acme/members/*", "in").await, 1);
        assert_eq!(
            good(&parts(&carol, "~acme", &carol).await, 200),
            json!({"handle": "~carol", "deleted": true})
        );
        refused(&carol, "org:acme/members/*").await;
        assert_eq!(
            good(&parts(&alice, "~acme", &bob).await, 200)["deleted"],
            true
        );
        refused(&bob, "org:acme/members/*").await;
        assert_eq!(alice.send_advisory("org:acme/members/*", "alone").await, 0);
        assert_eq!(
            good(&parts(&alice, "~acme", &bob).await, 200)["deleted"],
            false
        );
    }
);

story!(an_organisation_is_never_without_an_owner, |hub| async {
    // R-47: an owner who has only been invited is none yet, and a role that ends so is another role
    let (alice, bob, carol) = (
        hub.agent("alice").await,
        hub.agent("bob").await,
        hub.agent("carol").await,
    );
    alice.found_organisation("~acme").await;
    takes_in(&alice, "~acme", &bob, &["a", "co-owner", "z"]).await;
    invites(&alice, "~acme", &carol, &["a", "owner", "z"]).await;
    parts(&alice, "~acme", &alice)
        .await
        .frame_refused(409, "conflict", None);
    put(&alice, "/orgs/~acme/members/~alice", &json!({"roles": []}))
        .await
        .frame_refused(409, "conflict", None);
    good(&joins(&carol, "~acme").await, 200);
    good(&parts(&alice, "~acme", &alice).await, 200);
    parts(&carol, "~acme", &carol)
        .await
        .frame_refused(409, "conflict", None);
    assert_eq!(members(&bob, "~acme").await, ["~bob", "~carol"]);
});

story!(an_organisation_ends_with_its_last_owner, |hub| async {
    // R-47, R-52: no owner is left who could revoke what it granted
    let (alice, bob) = two_orgs(&hub).await;
    let (carol, dave) = (hub.agent("carol").await, hub.agent("dave").await);
    takes_in(&alice, "~acme", &carol, &[]).await;
    takes_in(&bob, "~peer", &dave, &[]).await;
    for (owner, from, other, to) in [
        (&alice, "~acme", &bob, "~peer"),
        (&bob, "~peer", &alice, "~acme"),
    ] {
        let accord = proposes(
            owner,
            from,
            &json!({"grantee": to, "grant": "ops", "reaches": "*"}),
        )
        .await;
        good(&agrees(other, to, &accord).await, 200);
    }
    let _session = dave.open_session("vim", "s1").await;
    assert_eq!(
        carol
            .send_advisory("accord:peer/grant:ops", "in force")
            .await,
        1
    );
    assert_eq!(
        carol.send_advisory("org:acme/members/*", "together").await,
        0
    );
    assert_eq!(
        dave.send_advisory("accord:acme/grant:ops", "in force")
            .await,
        0
    );
    alice.delete("/agents/alice@chorus").await.data(200);
    for scope in ["org:acme/members/*", "accord:peer/grant:ops"] {
        refused(&carol, scope).await;
    }
    refused(&dave, "accord:acme/grant:ops").await;
    assert!(statuses(&bob, "~peer").await.is_empty());
    // The handle is free, and its next owner inherits no members and no accords.
    carol.found_organisation("~acme").await;
    assert_eq!(members(&carol, "~acme").await, ["~carol"]);
    refused(&carol, "accord:peer/grant:ops").await;
});

story!(
    grants_memberships_and_accords_outlive_a_restart,
    |hub| async {
        // R-46, R-47
        let (alice, bob) = two_orgs(&hub).await;
        alice.grant(&bob).await;
        let accord = proposes(
            &alice,
            "~acme",
            &json!({"grantee": "~peer", "grant": "ops", "reaches": "owner"}),
        )
        .await;
        good(&agrees(&bob, "~peer", &accord).await, 200);
        hub.restart().await;
        let (alice, bob) = (hub.reconnect(&alice), hub.reconnect(&bob));
        let mut session = alice.open_session("vim", "s1").await;
        for scope in ["~alice", "accord:acme/grant:ops"] {
            assert_eq!(bob.send_advisory(scope, scope).await, 1);
        }
        assert_eq!(
            alice.send_advisory("org:acme/members/owner/*", "us").await,
            1
        );
        assert_eq!(
            session.advisory_texts(3).await,
            ["~alice", "accord:acme/grant:ops", "us"]
        );
    }
);

story!(of_many_founders_of_one_handle_one_succeeds, |hub| async {
    // R-47
    let mut founders = Vec::new();
    for place in 0..6 {
        founders.push(hub.agent(&format!("founder{place}")).await);
    }
    let body = json!({"handle": "~acme"});
    let asking = founders.iter().map(|founder| founder.post("/orgs", &body));
    let mut statuses: Vec<u16> = futures_util::future::join_all(asking)
        .await
        .iter()
        .map(|a| a.status)
        .collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 409, 409, 409, 409, 409]);
});
