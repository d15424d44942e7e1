//! `chorus admin`: invites, activity and backups.

use crate::actors::{Hub, Scene, chorus, on_terminal, run, text_of};

// Lesson 9
#[test]
fn a_hub_with_codes_requires_one_to_register() {
    let scene = Scene::open();
    let created = scene
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
    let code = created[0]["code"].as_str().unwrap();
    let alice = scene.newcomer("alice");
    let bob = scene.newcomer("bob");
    let without_code = alice.run(&["register", "alice@chorus", "--culture", "en"]);
    assert!(
        without_code.code == 4 && without_code.err.contains("ERR_INVITE_REQUIRED"),
        "{without_code:?}"
    );
    let mut with_code = alice.command(&["register", "alice@chorus", "--culture", "en"]);
    with_code.env("CHORUS_INVITE_CODE", code);
    run(with_code, "").ok();
    let exhausted = bob.run(&[
        "register",
        "bob@chorus",
        "--culture",
        "en",
        "--invite-code",
        code,
    ]);
    assert!(
        exhausted.code == 4 && exhausted.err.contains("ERR_INVITE_EXHAUSTED"),
        "{exhausted:?}"
    );
    let listed = scene.operator(&["admin", "invites", "list"]).ok();
    assert_eq!(
        (&listed.json()[0]["uses"], listed.out.contains(code)),
        (&1.into(), false)
    );
    let id = created[0]["id"].as_str().unwrap();
    assert_eq!(
        scene
            .operator(&["admin", "invites", "revoke", id])
            .ok()
            .json()[0]["revoked"],
        true
    );
}

#[test]
fn a_hub_with_codes_shows_its_market_to_its_agents() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let create = ["admin", "invites", "create", "--label", "team"];
    scene.operator(&create).ok();
    alice.run(&["skills"]).ok();
    alice.run(&["skills", "translate"]).ok();
    let report = alice.json(&["reputation", "alice"]);
    assert_eq!(report[0]["agent_id"], "alice@chorus");
    let stranger = scene.newcomer("stranger").run(&["skills"]);
    assert!(
        stranger.err.contains("chorus register NAME") && !stranger.err.contains("Bearer"),
        "{stranger:?}"
    );
}

#[test]
fn an_operator_reads_what_is_wrong_with_the_key_or_the_id() {
    let scene = Scene::open();
    let mut unnamed = chorus(scene.folder.path());
    unnamed.args(["admin", "jobs", "--hub", &scene.hub.url]);
    let unnamed = run(unnamed, "");
    assert!(unnamed.err.contains("operator.key"), "{unnamed:?}");
    let mut wrong = scene.operator_command(&["admin", "jobs"]);
    wrong.env("CHORUS_OPERATOR_KEY", "another-key-of-an-operator");
    let wrong = run(wrong, "");
    assert_eq!(wrong.code, 4, "{wrong:?}");
    for part in ["does not accept this operator key", "operator.key"] {
        assert!(wrong.err.contains(part), "{wrong:?}");
    }
    let revoke = scene.operator_command(&["admin", "invites", "revoke", "none"]);
    let unknown = run(revoke, "");
    assert!(
        unknown.err.contains("chorus admin invites list") && !unknown.err.contains("whoami"),
        "{unknown:?}"
    );
}

// Lessons 1, 4 and 10
#[test]
fn only_operators_read_the_activity() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let _bob = scene.agent("bob");
    alice.run(&["send", "bob@chorus", "hi"]).ok();
    let kinds: Vec<String> = scene
        .operator(&["admin", "activity"])
        .ok()
        .json()
        .iter()
        .map(|activity| activity["type"].as_str().unwrap().to_owned())
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
fn the_activity_is_lines_for_people_and_json_for_programs() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let _bob = scene.agent("bob");
    alice.run(&["send", "bob", "hi"]).ok();
    alice.run(&["channel", "create", "weather"]).ok();
    let credit = ["admin", "credit", "alice@chorus", "5"];
    scene.operator(&credit).ok();
    let command = scene.operator_command(&["admin", "activity"]);
    let shown = run(on_terminal(&command), "").ok().out;
    assert!(!shown.contains(['{', '"']), "{shown}");
    let place =
        |line: &str, text: &str| line.find(text).unwrap_or_else(|| panic!("{text}: {line}"));
    let line_of = |text: &str| {
        let found = shown.lines().find(|line| line.contains(text));
        found.unwrap_or_else(|| panic!("{text}: {shown}"))
    };
    let titles = shown.lines().next().unwrap();
    for (what, who) in [
        ("agent registered", "alice@chorus"),
        ("message queued", "alice@chorus → bob@chorus"),
        ("channel created", "alice@chorus"),
        ("credit", "operator"),
    ] {
        let line = line_of(what);
        assert_eq!(place(line, what), place(titles, "WHAT"), "{shown}");
        let after = place(titles, "WHO");
        assert!(line[after..].starts_with(who), "{shown}");
    }
    let trace_id = alice.json(&["history", "--remote"])[0]["trace_id"].clone();
    assert!(line_of("message queued").contains(trace_id.as_str().unwrap()));
    let quiet = scene.operator_command(&["admin", "activity", "--since", "999999"]);
    let quiet = run(quiet, "").ok();
    assert!(quiet.out.is_empty() && quiet.err.contains("nothing has happened"));
    assert!(scene.operator(&["admin", "activity"]).ok().json().len() > 4);
}

#[test]
fn the_activity_can_be_followed_live() {
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
    let mut following = crate::actors::RunningProcess::start(command);
    assert_eq!(following.json()["data"]["agent_id"], "alice@chorus");
    scene.agent("bob");
    assert_eq!(following.json()["data"]["agent_id"], "bob@chorus");
    following.send_signal("INT");
    assert_eq!(following.await_exit(), Some(0));
}

#[test]
fn a_backup_of_a_running_hub_can_be_served() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    alice.run(&["send", "bob@chorus", "kept"]).ok();
    let mut command = chorus(scene.folder.path());
    command.args(["admin", "backup", "--data-dir", "chorus-data", "copy"]);
    run(command, "").ok();
    alice.run(&["send", "bob@chorus", "later"]).ok();
    let copy = Hub::start(scene.folder.path(), &["--data-dir", "copy"]);
    // the user says that the hub has another address now.
    let file = bob.home.join(".chorus/config.json");
    let saved = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, saved.replace(&scene.hub.url, &copy.url)).unwrap();
    let rows = bob.json(&["history", "--remote", "--hub", &copy.url]);
    assert_eq!(rows.iter().map(text_of).collect::<Vec<_>>(), ["kept"]);
    let mut second = chorus(scene.folder.path());
    second.args(["admin", "backup", "--data-dir", "chorus-data", "copy"]);
    let second = run(second, "");
    assert_eq!(
        (second.code, second.err.lines().count()),
        (1, 1),
        "{second:?}"
    );
}
