//! What an operator does from the command line.

use crate::actors::{Hub, Scene, chorus, run, text_of};

// Lesson 9
#[test]
fn a_hub_with_codes_admits_by_code_only() {
    let scene = Scene::open();
    let made = scene
        .operator(&[
            "admin",
            "invites",
            "create",
            "--label",
            "friends",
            "--max-uses",
            "1",
        ])
        .ok()
        .json();
    let code = made[0]["code"].as_str().unwrap();
    let (alice, bob) = (scene.newcomer("alice"), scene.newcomer("bob"));
    let closed = alice.run(&["register", "alice@chorus", "--culture", "en"]);
    assert!(
        closed.code == 4 && closed.err.contains("ERR_INVITE_REQUIRED"),
        "{closed:?}"
    );
    let mut open = alice.command(&["register", "alice@chorus", "--culture", "en"]);
    open.env("CHORUS_INVITE_CODE", code);
    run(open, "").ok();
    let spent = bob.run(&[
        "register",
        "bob@chorus",
        "--culture",
        "en",
        "--invite-code",
        code,
    ]);
    assert!(
        spent.code == 4 && spent.err.contains("ERR_INVITE_EXHAUSTED"),
        "{spent:?}"
    );
    let listed = scene.operator(&["admin", "invites", "list"]).ok();
    assert_eq!(
        (&listed.json()[0]["uses"], listed.out.contains(code)),
        (&1.into(), false)
    );
    let id = made[0]["id"].as_str().unwrap();
    assert_eq!(
        scene
            .operator(&["admin", "invites", "revoke", id])
            .ok()
            .json()[0]["revoked"],
        true
    );
}

// Lessons 1, 4 and 10
#[test]
fn activity_is_for_operators() {
    let scene = Scene::open();
    let (alice, _bob) = (scene.agent("alice"), scene.agent("bob"));
    alice.run(&["send", "bob@chorus", "hi"]).ok();
    let kinds: Vec<String> = scene
        .operator(&["admin", "activity"])
        .ok()
        .json()
        .iter()
        .map(|happened| happened["type"].as_str().unwrap().to_owned())
        .collect();
    for kind in [
        "agent_self_registered",
        "message_submitted",
        "message_queued",
    ] {
        assert!(kinds.iter().any(|k| k == kind), "{kinds:?}");
    }
    assert_eq!(alice.run(&["admin", "activity"]).code, 1, "without a key");
    assert_eq!(
        alice
            .run(&["admin", "activity", "--operator-key", "not-the-key"])
            .code,
        4
    );
}

#[test]
fn activity_is_followed_live() {
    let scene = Scene::open();
    scene.agent("alice");
    let mut command = chorus(scene.folder.path());
    command.args([
        "--hub",
        &scene.hub.url,
        "--json",
        "admin",
        "activity",
        "--follow",
    ]);
    command.env("CHORUS_OPERATOR_KEY", crate::actors::OPERATOR);
    let mut following = crate::actors::Ongoing::start(command);
    assert_eq!(following.json()["data"]["agent_id"], "alice@chorus");
    scene.agent("bob");
    assert_eq!(following.json()["data"]["agent_id"], "bob@chorus");
    following.signal("INT");
    assert_eq!(following.await_end(), Some(0));
}

// A copy of a live hub is a hub.
#[test]
fn a_backup_of_a_running_hub_can_be_served() {
    let scene = Scene::open();
    let (alice, bob) = (scene.agent("alice"), scene.agent("bob"));
    alice.run(&["send", "bob@chorus", "kept"]).ok();
    let mut command = chorus(scene.folder.path());
    command.args(["admin", "backup", "--data-dir", "chorus-data", "copy"]);
    run(command, "").ok();
    alice.run(&["send", "bob@chorus", "later"]).ok();
    let copy = Hub::start(scene.folder.path(), &["--data-dir", "copy"]);
    let rows = bob.json(&["history", "--remote", "--hub", &copy.url]);
    assert_eq!(rows.iter().map(text_of).collect::<Vec<_>>(), ["kept"]);
    let mut again = chorus(scene.folder.path());
    again.args(["admin", "backup", "--data-dir", "chorus-data", "copy"]);
    let again = run(again, "");
    assert_eq!((again.code, again.err.lines().count()), (1, 1), "{again:?}");
}
