//! `chorus grant`, `org`, `accord` and `roster`: who may address whom (FRM-56…60, R-46, R-47, R-51).

use crate::actors::Scene;
use crate::frame::text;
use serde_json::json;

// R-46, FRM-91
#[test]
fn a_handle_cannot_be_addressed_without_its_grant() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    let refused = bob.run_in_session("b1", &["advise", "hello", "--to", "~alice"]);
    assert_eq!(refused.code, 4, "{refused:?}");
    assert!(refused.err.contains("scope-unauthorised"), "{refused:?}");
    assert_eq!(bob.run_in_session("b1", &["roster", "~alice"]).code, 4);
    alice.run_in_session("a1", &["grant", "add", "~bob"]).ok();
    bob.run_in_session("b1", &["advise", "hello", "--to", "~alice"])
        .ok();
    bob.run_in_session("b1", &["roster", "~alice"]).ok();
    let frame = alice.kept_frames(1).remove(0);
    assert_eq!(
        (&frame["sender_handle"], &frame["provenance_basis"]),
        (&json!("~bob"), &json!("command"))
    );
    assert!(alice.run(&["grant", "list"]).ok().out.starts_with("~bob"));
    alice
        .run_in_session("a1", &["grant", "remove", "~bob"])
        .ok();
    assert_eq!(
        bob.run_in_session("b1", &["advise", "hello", "--to", "~alice"])
            .code,
        4
    );
}

// R-51, FRM-53, FRM-54, FRM-58
#[test]
fn an_organisation_scope_reaches_accepted_members_with_the_named_role() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    alice.run_in_session("a1", &["org", "create", "~acme"]).ok();
    alice
        .run_in_session(
            "a1",
            &["org", "invite", "acme", "~bob", "--role", "reviewer"],
        )
        .ok();
    let all = "org:~acme/members/*";
    assert_eq!(
        bob.run_in_session("b1", &["advise", "too early", "--scope", all])
            .code,
        4
    );
    bob.run_in_session("b1", &["org", "accept", "~acme"]).ok();
    let members = alice.run(&["org", "list-members", "~acme"]).ok().out;
    assert!(
        members.contains("~alice  owner     accepted")
            && members.contains("~bob    reviewer  accepted"),
        "{members}"
    );
    bob.run_in_session(
        "b1",
        &["broadcast", "to all", "--event", "released", "--scope", all],
    )
    .ok();
    bob.run_in_session(
        "b1",
        &[
            "advise",
            "to reviewers",
            "--scope",
            "org:~acme/members/reviewer/*",
        ],
    )
    .ok();
    assert_eq!(
        alice.kept_frames(1)[0]["payload"]["broadcast_text"],
        "to all"
    );
    assert_eq!(
        bob.kept_frames(2)[1]["payload"]["advisory_text"],
        "to reviewers"
    );
    bob.run_in_session("b1", &["org", "leave", "~acme"]).ok();
    assert_eq!(
        bob.run_in_session("b1", &["advise", "too late", "--scope", all])
            .code,
        4
    );
}

// R-47, FRM-59, FRM-60
#[test]
fn an_accord_allows_frames_from_acceptance_to_revocation() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    alice.run_in_session("a1", &["org", "create", "~acme"]).ok();
    bob.run_in_session("b1", &["org", "create", "~peer"]).ok();
    let proposed = alice
        .run_in_session("a1", &["accord", "propose", "~acme", "~peer", "ops"])
        .ok()
        .json()
        .remove(0);
    let id = text(&proposed["id"]);
    let advise = || {
        bob.run_in_session(
            "b1",
            &["advise", "hello", "--scope", "accord:~acme/grant:ops"],
        )
    };
    assert_eq!(advise().code, 4, "it is only proposed");
    bob.run_in_session("b1", &["accord", "accept", "~peer", &id])
        .ok();
    advise().ok();
    assert_eq!(alice.kept_frames(1)[0]["recipient_handle"], "~acme");
    assert!(
        bob.run(&["accord", "list", "~peer"])
            .ok()
            .out
            .contains("accepted")
    );
    alice
        .run_in_session("a1", &["accord", "revoke", "~acme", &id])
        .ok();
    assert_eq!(advise().code, 4);
}

// R-42, FRM-109
#[test]
fn the_roster_shows_live_sessions_and_their_filters() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let watching = alice.start_in_session(
        "s1",
        &[
            "watch",
            "--instrument",
            "cc-editor",
            "--kind",
            "agent_advisory",
        ],
    );
    let deadline = std::time::Instant::now() + crate::actors::TIMEOUT;
    while alice
        .run_in_session("s2", &["roster"])
        .ok()
        .json()
        .is_empty()
    {
        assert!(
            std::time::Instant::now() < deadline,
            "the session never appeared"
        );
    }
    let session = alice
        .run_in_session("s2", &["roster"])
        .ok()
        .json()
        .remove(0);
    assert_eq!(
        (
            &session["instrument"],
            &session["session"],
            &session["tool"]
        ),
        (&json!("cc-editor"), &json!("s1"), &json!("cc"))
    );
    assert_eq!(session["filter"], "kind:agent_advisory");
    let sent = alice
        .run_in_session("s2", &["advise", "hello"])
        .ok()
        .json()
        .remove(0);
    assert_eq!(sent["recipient_count"], 1);
    assert_eq!(watching.json()["frame"]["frame_id"], sent["frame_id"]);
}
