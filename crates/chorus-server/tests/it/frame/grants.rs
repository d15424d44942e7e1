//! Grants: which handles may address another handle, and how a grant ends.

use super::organisations::{good, joins, members, put, refused, takes_in};
use serde_json::json;

story!(a_grant_lets_in_until_it_is_withdrawn, |hub| async {
    // FRM-56, FRM-109, R-46, R-50
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    let mut session = alice.open_session("vim", "s1").await;
    for _ in 0..2 {
        refused(&bob, "~alice").await;
        bob.get("/handles/~alice/roster")
            .await
            .frame_refused(403, "forbidden", None);
        let grant = good(
            &put(&alice, "/handles/~alice/grants/~bob", &json!({})).await,
            200,
        );
        assert_eq!(
            grant,
            json!({"grantee": "~bob", "granted_at": "2026-03-20T10:00:00.000000Z"})
        );
        assert_eq!(bob.send_advisory("~alice", "hello").await, 1);
        assert_eq!(session.advisory_texts(1).await, ["hello"]);
        good(&bob.get("/handles/~alice/roster").await, 200);
        let listed = good(&alice.get("/handles/~alice/grants").await, 200);
        assert_eq!(listed, json!({"handle": "~alice", "grants": [grant]}));
        refused(&alice, "~bob").await;
        let gone = good(&alice.delete("/handles/~alice/grants/~bob").await, 200);
        assert_eq!(gone, json!({"handle": "~bob", "deleted": true}));
        refused(&bob, "~alice").await;
    }
    assert_eq!(
        good(&alice.delete("/handles/~alice/grants/~bob").await, 200)["deleted"],
        false
    );
    assert_eq!(
        good(&alice.get("/handles/~alice/grants").await, 200)["grants"],
        json!([])
    );
});

story!(only_the_handle_itself_grants, |hub| async {
    //
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    for answer in [
        put(&bob, "/handles/~alice/grants/~bob", &json!({})).await,
        bob.delete("/handles/~alice/grants/~bob").await,
        bob.get("/handles/~alice/grants").await,
        bob.get("/handles/~absent/grants").await,
        hub.operator().get("/handles/~alice/grants").await,
    ] {
        answer.frame_refused(403, "forbidden", None);
    }
    hub.anonymous()
        .get("/handles/~alice/grants")
        .await
        .frame_refused(401, "unauthenticated", None);
    put(&alice, "/handles/~alice/grants/~absent", &json!({}))
        .await
        .frame_refused(404, "not-found", None);
    put(&alice, "/handles/~alice/grants/~alice", &json!({}))
        .await
        .frame_refused(409, "conflict", None);
    put(&alice, "/handles/~alice/grants/~Bob", &json!({}))
        .await
        .frame_refused(400, "field-invalid", Some("grantee"));
    put(&alice, "/handles/alice/grants/~bob", &json!({}))
        .await
        .frame_refused(400, "field-invalid", Some("handle"));
    refused(&bob, "~alice").await;
});

story!(
    an_agent_that_takes_a_name_again_is_granted_nothing,
    |hub| async {
        //
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        alice.found_organisation("~acme").await;
        takes_in(&alice, "~acme", &bob, &["ops"]).await;
        alice.grant(&bob).await;
        bob.grant(&alice).await;
        assert_eq!(
            (
                bob.send_advisory("~alice", "a").await,
                bob.send_advisory("org:acme/members/*", "b").await
            ),
            (0, 0)
        );
        assert_eq!(alice.send_advisory("~bob", "c").await, 0);
        bob.delete("/agents/bob@chorus").await.data(200);
        refused(&alice, "~bob").await;
        assert_eq!(members(&alice, "~acme").await, ["~alice"]);
        assert_eq!(
            good(&alice.get("/handles/~alice/grants").await, 200)["grants"],
            json!([])
        );
        let heir = hub.agent("bob").await;
        refused(&heir, "~alice").await;
        refused(&heir, "org:acme/members/*").await;
        refused(&alice, "~bob").await;
        joins(&heir, "~acme")
            .await
            .frame_refused(404, "not-found", None);
        assert_eq!(
            good(&heir.get("/handles/~bob/grants").await, 200)["grants"],
            json!([])
        );
    }
);
