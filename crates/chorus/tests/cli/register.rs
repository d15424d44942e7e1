//! One identity per home, kept (SKL-18…25, R-33).

use crate::actors::{Scene, chorus, run};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;

fn credentials(path: &std::path::Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

// SKL-22, SKL-23, SKL-25, SKL-30
#[test]
fn registering_saves_the_key_for_its_owner_only_and_does_not_print_it_into_a_pipe() {
    let scene = Scene::open();
    let alice = scene.newcomer("alice");
    let told = alice
        .run(&[
            "register",
            "alice@chorus",
            "--culture",
            "en",
            "--languages",
            "en,zh-CN",
        ])
        .ok();
    assert!(told.out.contains("registered as alice@chorus"), "{told:?}");
    let file = alice.home.join(".chorus/config.json");
    assert_eq!(
        std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let saved = credentials(&file);
    let key = saved["api_key"].as_str().unwrap();
    assert!(key.starts_with("ca_"));
    assert_eq!(
        (&saved["agent_id"], &saved["hub_url"]),
        (&"alice@chorus".into(), &scene.hub.url.as_str().into())
    );
    assert!(!told.out.contains(key) && !told.err.contains(key));
    assert_eq!(alice.json(&["register"])[0].get("api_key"), None);
    assert_eq!(alice.json(&["register", "--show-key"])[0]["api_key"], key);
    assert_eq!(
        alice.json(&["whoami"])[0]["registration"]["agent_card"]["supported_languages"][1],
        "zh-CN"
    );
}

// SKL-18, SKL-19, SKL-20
#[test]
fn registering_again_is_still_the_same_agent() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let file = alice.home.join(".chorus/config.json");
    let before = std::fs::read(&file).unwrap();
    for words in [
        &["register"] as &[&str],
        &["register", "alice@chorus", "--culture", "en"],
        &["register", "alice"],
    ] {
        let told = alice.run(words).ok();
        assert!(
            told.out.contains("already registered as alice@chorus"),
            "{told:?}"
        );
    }
    let other = alice.run(&["register", "carol@chorus", "--culture", "en"]);
    assert_eq!(other.code, 1, "{other:?}");
    assert_eq!(std::fs::read(&file).unwrap(), before);
    let renewed = alice
        .run(&[
            "register",
            "carol@chorus",
            "--culture",
            "en",
            "--new-identity",
        ])
        .ok();
    assert!(
        renewed.out.contains("registered as carol@chorus"),
        "{renewed:?}"
    );
    assert_eq!(alice.json(&["whoami"])[0]["agent_id"], "carol@chorus");
}

// SKL-21, SKL-31: the workspace's own file wins, and its history lies beside it.
#[test]
fn a_workspace_with_credentials_keeps_everything_beside_them() {
    let scene = Scene::open();
    let alice = scene.newcomer("alice");
    scene.agent("bob");
    std::fs::write(alice.home.join("chorus-credentials.json"), "{}").unwrap();
    alice
        .run(&["register", "alice@chorus", "--culture", "en"])
        .ok();
    assert_eq!(
        credentials(&alice.home.join("chorus-credentials.json"))["agent_id"],
        "alice@chorus"
    );
    alice.run(&["send", "bob@chorus", "hi"]).ok();
    assert!(alice.home.join("chorus-history/bob@chorus.jsonl").exists());
    assert!(!alice.home.join(".chorus").exists());
}

//
#[test]
fn a_named_file_and_a_named_home_are_used() {
    let scene = Scene::open();
    let alice = scene.newcomer("alice");
    let words = [
        "register",
        "bot@chorus",
        "--culture",
        "en",
        "--credentials",
        "bots/one.json",
    ];
    alice.run(&words).ok();
    assert_eq!(
        credentials(&alice.home.join("bots/one.json"))["agent_id"],
        "bot@chorus"
    );
    let mut command = alice.command(&["register", "homely@chorus", "--culture", "en"]);
    command.env("CHORUS_HOME", alice.home.join("elsewhere"));
    run(command, "").ok();
    assert_eq!(
        credentials(&alice.home.join("elsewhere/config.json"))["agent_id"],
        "homely@chorus"
    );
    assert_eq!(
        alice.run(&["whoami"]).code,
        2,
        "neither is found without its name"
    );
}

// TRN-42: a name alone is completed with the hub's host.
#[test]
fn a_short_name_gets_the_hubs_host() {
    let scene = Scene::open();
    let dora = scene.newcomer("dora");
    assert_eq!(
        dora.json(&["register", "dora", "--culture", "en"])[0]["agent_id"],
        "dora@chorus"
    );
}

// DESIGN: exit codes 1 usage, 2 not registered, 3 transport, 4 refused.
#[test]
fn exit_codes_tell_what_went_wrong() {
    let scene = Scene::open();
    let (alice, nobody) = (scene.agent("alice"), scene.newcomer("nobody"));
    let code = |ended: crate::actors::Ended| (ended.code, ended.out, ended.err.lines().count());
    assert_eq!(
        code(alice.run(&["send", "bob@chorus", "hi"])),
        (4, String::new(), 1)
    );
    assert_eq!(
        code(nobody.run(&["send", "bob@chorus", "hi"])),
        (2, String::new(), 1)
    );
    assert_eq!(
        code(alice.run(&["discover", "--hub", "http://127.0.0.1:1"])),
        (3, String::new(), 1)
    );
    assert_eq!(
        code(alice.run(&["send", "alice@chorus", "hi", "--culture", "not a tag"])),
        (1, String::new(), 1)
    );
    assert_eq!(alice.run(&["no-such-command"]).code, 1);
    assert_eq!(alice.run(&["--help"]).code, 0);
    let taken = nobody.run(&["register", "alice@chorus", "--culture", "en"]);
    assert!(
        taken.code == 4 && taken.err.contains("ERR_AGENT_ID_TAKEN"),
        "{taken:?}"
    );
    assert!(
        !nobody.home.join(".chorus/config.json").exists(),
        "no credentials without a registration"
    );
    let mut nowhere = chorus(&alice.home);
    nowhere
        .env("CHORUS_HOME", alice.home.join("none"))
        .args(["discover"]);
    let nowhere = run(nowhere, "");
    assert!(
        nowhere.code == 1 && nowhere.err.contains("--hub"),
        "{nowhere:?}"
    );
    let said = alice.run(&["send", "bob@chorus", "hi", "--json"]);
    let error: Value = serde_json::from_str(&said.err).unwrap();
    assert_eq!(
        (&error["error"]["code"], &error["exit"]),
        (&"ERR_AGENT_NOT_FOUND".into(), &4.into())
    );
}

// TRN-12, TRN-24: a key that the hub no longer knows.
#[test]
fn a_dead_key_is_not_registered() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let file = alice.home.join(".chorus/config.json");
    let dead = std::fs::read_to_string(&file)
        .unwrap()
        .replace("\"ca_", "\"ca_x");
    std::fs::write(&file, dead).unwrap();
    for words in [
        &["whoami"] as &[&str],
        &["listen"],
        &["send", "alice@chorus", "hi"],
        &["history", "--remote"],
    ] {
        let ended = alice.run(words);
        assert_eq!(ended.code, 2, "{words:?}: {ended:?}");
        assert!(!ended.err.contains("ca_x"), "{ended:?}");
    }
}

// TRN-32
#[test]
fn unregistering_takes_a_yes_and_leaves_the_history() {
    let scene = Scene::open();
    let (alice, bob) = (scene.agent("alice"), scene.agent("bob"));
    alice.run(&["send", "bob@chorus", "hi"]).ok();
    assert_eq!(alice.run(&["unregister"]).code, 1);
    alice.run(&["whoami"]).ok();
    assert_eq!(alice.json(&["unregister", "--yes"])[0]["deleted"], true);
    assert_eq!(alice.run(&["whoami"]).code, 2);
    assert_eq!(alice.file("bob@chorus").len(), 1);
    assert!(
        bob.json(&["discover"])
            .iter()
            .all(|row| row["agent_id"] != "alice@chorus")
    );
}
