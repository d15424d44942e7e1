//! Who may address whom: grants, organisations and accords from the command line (FRM-56…60, R-46, R-47, R-51).

use crate::actors::Scene;
use crate::frame::text;
use serde_json::json;

// R-46, FRM-91
#[test]
fn nobody_addresses_another_handle_without_its_grant() {
    let scene = Scene::open();
    let (alice, bob) = (scene.agent("alice"), scene.agent("bob"));
    let refused = bob.session("b1", &["advise", "hello", "--to", "~alice"]);
    assert_eq!(refused.code, 4, "{refused:?}");
    assert!(refused.err.contains("scope-unauthorised"), "{refused:?}");
    assert_eq!(bob.session("b1", &["roster", "~alice"]).code, 4);
    alice.session("a1", &["grant", "add", "~bob"]).ok();
    bob.session("b1", &["advise", "hello", "--to", "~alice"])
        .ok();
    bob.session("b1", &["roster", "~alice"]).ok();
    let heard = alice.kept(1).remove(0);
    assert_eq!(
        (&heard["sender_handle"], &heard["provenance_basis"]),
        (&json!("~bob"), &json!("command"))
    );
    assert!(alice.run(&["grant", "list"]).ok().out.starts_with("~bob"));
    alice.session("a1", &["grant", "remove", "~bob"]).ok();
    assert_eq!(
        bob.session("b1", &["advise", "hello", "--to", "~alice"])
            .code,
        4
    );
}

// R-51, FRM-53, FRM-54, FRM-58
#[test]
fn an_organisation_reaches_those_who_accepted_and_the_roles_it_names() {
    let scene = Scene::open();
    let (alice, bob) = (scene.agent("alice"), scene.agent("bob"));
    alice.session("a1", &["org", "create", "~acme"]).ok();
    alice
        .session(
            "a1",
            &["org", "invite", "acme", "~bob", "--role", "reviewer"],
        )
        .ok();
    let all = "org:~acme/members/*";
    assert_eq!(
        bob.session("b1", &["advise", "too early", "--scope", all])
            .code,
        4
    );
    bob.session("b1", &["org", "accept", "~acme"]).ok();
    let members = alice.run(&["org", "list-members", "~acme"]).ok().out;
    assert!(
        members.contains("~alice  owner  accepted") && members.contains("~bob  reviewer  accepted"),
        "{members}"
    );
    bob.session(
        "b1",
        &["broadcast", "to all", "--event", "released", "--scope", all],
    )
    .ok();
    bob.session(
        "b1",
        &[
            "advise",
            "to reviewers",
            "--scope",
            "org:~acme/members/reviewer/*",
        ],
    )
    .ok();
    assert_eq!(alice.kept(1)[0]["payload"]["broadcast_text"], "to all");
    assert_eq!(bob.kept(2)[1]["payload"]["advisory_text"], "to reviewers");
    bob.session("b1", &["org", "leave", "~acme"]).ok();
    assert_eq!(
        bob.session("b1", &["advise", "too late", "--scope", all])
            .code,
        4
    );
}

// R-47, FRM-59, FRM-60
#[test]
fn an_accord_lets_frames_through_from_acceptance_to_revocation() {
    let scene = Scene::open();
    let (alice, bob) = (scene.agent("alice"), scene.agent("bob"));
    alice.session("a1", &["org", "create", "~acme"]).ok();
    bob.session("b1", &["org", "create", "~peer"]).ok();
    let proposed = alice
        .session("a1", &["accord", "propose", "~acme", "~peer", "ops"])
        .ok()
        .json()
        .remove(0);
    let id = text(&proposed["id"]);
    let say = || {
        bob.session(
            "b1",
            &["advise", "hello", "--scope", "accord:~acme/grant:ops"],
        )
    };
    assert_eq!(say().code, 4, "it is only proposed");
    bob.session("b1", &["accord", "accept", "~peer", &id]).ok();
    say().ok();
    assert_eq!(alice.kept(1)[0]["recipient_handle"], "~acme");
    assert!(
        bob.run(&["accord", "list", "~peer"])
            .ok()
            .out
            .contains("accepted")
    );
    alice
        .session("a1", &["accord", "revoke", "~acme", &id])
        .ok();
    assert_eq!(say().code, 4);
}

// R-42, FRM-109
#[test]
fn the_roster_shows_who_listens_and_to_what() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let watching = alice.ongoing(
        "s1",
        &[
            "watch",
            "--instrument",
            "cc-editor",
            "--kind",
            "agent_advisory",
        ],
    );
    let until = std::time::Instant::now() + crate::actors::PATIENCE;
    while alice.session("s2", &["roster"]).ok().json().is_empty() {
        assert!(std::time::Instant::now() < until, "it never listened");
    }
    let seat = alice.session("s2", &["roster"]).ok().json().remove(0);
    assert_eq!(
        (&seat["instrument"], &seat["session"], &seat["tool"]),
        (&json!("cc-editor"), &json!("s1"), &json!("cc"))
    );
    assert_eq!(seat["filter"], "kind:agent_advisory");
    let said = alice
        .session("s2", &["advise", "hello"])
        .ok()
        .json()
        .remove(0);
    assert_eq!(said["recipient_count"], 1);
    assert_eq!(watching.json()["frame"]["frame_id"], said["frame_id"]);
}
