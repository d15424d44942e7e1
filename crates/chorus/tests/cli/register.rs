//! `chorus register`, `whoami` and `unregister`: one saved identity per home (SKL-18…25, R-33).

use crate::actors::{Scene, chorus, run};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;

fn read_credentials(path: &std::path::Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

// SKL-22, SKL-23, SKL-25, SKL-30
#[test]
fn registering_saves_the_key_privately_and_does_not_print_it_to_a_pipe() {
    let scene = Scene::open();
    let alice = scene.newcomer("alice");
    let registered = alice
        .run(&[
            "register",
            "alice@chorus",
            "--culture",
            "en",
            "--languages",
            "en,zh-CN",
        ])
        .ok();
    assert!(
        registered.out.contains("registered as alice@chorus"),
        "{registered:?}"
    );
    let file = alice.home.join(".chorus/config.json");
    assert_eq!(
        std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let saved = read_credentials(&file);
    let key = saved["api_key"].as_str().unwrap();
    assert!(key.starts_with("ca_"));
    assert_eq!(
        (&saved["agent_id"], &saved["hub_url"]),
        (&"alice@chorus".into(), &scene.hub.url.as_str().into())
    );
    assert!(!registered.out.contains(key) && !registered.err.contains(key));
    assert_eq!(alice.json(&["register"])[0].get("api_key"), None);
    assert_eq!(alice.json(&["register", "--show-key"])[0]["api_key"], key);
    assert_eq!(
        alice.json(&["whoami"])[0]["registration"]["agent_card"]["supported_languages"][1],
        "zh-CN"
    );
}

// SKL-25, R-33: the key stays out of what a program prints, so the program is told where it is and how its user sees it
#[test]
fn a_program_that_registers_learns_where_the_key_is_and_what_shows_it() {
    let scene = Scene::open();
    let alice = scene.newcomer("alice");
    let registered = alice
        .json(&["register", "alice@chorus", "--culture", "en"])
        .remove(0);
    assert_eq!(registered["agent_id"], "alice@chorus");
    let file = registered["credentials"].as_str().unwrap();
    let saved = read_credentials(std::path::Path::new(file));
    let told = registered["show_key"].as_str().expect("a command");
    let words: Vec<&str> = told.split(' ').collect();
    assert_eq!(words[0], "chorus");
    assert_eq!(alice.json(&words[1..])[0]["api_key"], saved["api_key"]);
    let again = alice.run(&["register"]).ok().out;
    assert!(again.contains(file) && again.contains(told), "{again}");
}

// SKL-18, SKL-19, SKL-20
#[test]
fn registering_again_keeps_the_identity() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let file = alice.home.join(".chorus/config.json");
    let before = std::fs::read(&file).unwrap();
    for args in [
        &["register"] as &[&str],
        &["register", "alice@chorus", "--culture", "en"],
        &["register", "alice"],
    ] {
        let registered = alice.run(args).ok();
        assert!(
            registered
                .out
                .contains("already registered as alice@chorus"),
            "{registered:?}"
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

// SKL-21, SKL-31
#[test]
fn a_workspace_keeps_history_and_state_beside_its_credentials() {
    let scene = Scene::open();
    let alice = scene.newcomer("alice");
    scene.agent("bob");
    std::fs::write(alice.home.join("chorus-credentials.json"), "{}").unwrap();
    alice
        .run(&["register", "alice@chorus", "--culture", "en"])
        .ok();
    assert_eq!(
        read_credentials(&alice.home.join("chorus-credentials.json"))["agent_id"],
        "alice@chorus"
    );
    alice.run(&["send", "bob@chorus", "hi"]).ok();
    assert!(alice.home.join("chorus-history/bob@chorus.jsonl").exists());
    assert!(!alice.home.join(".chorus").exists());
}

//
#[test]
fn explicit_credentials_and_chorus_home_are_used() {
    let scene = Scene::open();
    let alice = scene.newcomer("alice");
    let args = [
        "register",
        "bot@chorus",
        "--culture",
        "en",
        "--credentials",
        "bots/one.json",
    ];
    alice.run(&args).ok();
    assert_eq!(
        read_credentials(&alice.home.join("bots/one.json"))["agent_id"],
        "bot@chorus"
    );
    let mut command = alice.command(&["register", "homely@chorus", "--culture", "en"]);
    command.env("CHORUS_HOME", alice.home.join("elsewhere"));
    run(command, "").ok();
    assert_eq!(
        read_credentials(&alice.home.join("elsewhere/config.json"))["agent_id"],
        "homely@chorus"
    );
    assert_eq!(
        alice.run(&["whoami"]).code,
        2,
        "neither is found by default"
    );
}

// TRN-42
#[test]
fn a_short_name_is_completed_with_the_hubs_host() {
    let scene = Scene::open();
    let dora = scene.newcomer("dora");
    assert_eq!(
        dora.json(&["register", "dora", "--culture", "en"])[0]["agent_id"],
        "dora@chorus"
    );
}

// Exit codes: 1 usage, 2 not registered, 3 transport, 4 refused.
#[test]
fn each_kind_of_error_has_its_exit_code() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let unregistered = scene.newcomer("unregistered");
    let summary =
        |ended: crate::actors::CommandOutput| (ended.code, ended.out, ended.err.lines().count());
    assert_eq!(
        summary(alice.run(&["send", "bob@chorus", "hi"])),
        (4, String::new(), 1)
    );
    assert_eq!(
        summary(unregistered.run(&["send", "bob@chorus", "hi"])),
        (2, String::new(), 1)
    );
    assert_eq!(
        summary(alice.run(&["discover", "--hub", "http://127.0.0.1:1"])),
        (3, String::new(), 1)
    );
    assert_eq!(
        summary(alice.run(&["send", "alice@chorus", "hi", "--culture", "not a tag"])),
        (1, String::new(), 1)
    );
    assert_eq!(alice.run(&["no-such-command"]).code, 1);
    assert_eq!(alice.run(&["--help"]).code, 0);
    let taken = unregistered.run(&["register", "alice@chorus", "--culture", "en"]);
    assert!(
        taken.code == 4 && taken.err.contains("ERR_AGENT_ID_TAKEN"),
        "{taken:?}"
    );
    assert!(
        !unregistered.home.join(".chorus/config.json").exists(),
        "no credentials without a registration"
    );
    let mut without_hub = chorus(&alice.home);
    without_hub
        .env("CHORUS_HOME", alice.home.join("none"))
        .args(["discover"]);
    let without_hub = run(without_hub, "");
    assert!(
        without_hub.code == 1 && without_hub.err.contains("--hub"),
        "{without_hub:?}"
    );
    let json_output = alice.run(&["send", "bob@chorus", "hi", "--json"]);
    let error: Value = serde_json::from_str(&json_output.err).unwrap();
    assert_eq!(
        (&error["error"]["code"], &error["exit"]),
        (&"ERR_AGENT_NOT_FOUND".into(), &4.into())
    );
}

// TRN-12, TRN-24
#[test]
fn an_invalid_key_counts_as_not_registered() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let file = alice.home.join(".chorus/config.json");
    let dead = std::fs::read_to_string(&file)
        .unwrap()
        .replace("\"ca_", "\"ca_x");
    std::fs::write(&file, dead).unwrap();
    for args in [
        &["whoami"] as &[&str],
        &["listen"],
        &["send", "alice@chorus", "hi"],
        &["history", "--remote"],
    ] {
        let ended = alice.run(args);
        assert_eq!(ended.code, 2, "{args:?}: {ended:?}");
        assert!(!ended.err.contains("ca_x"), "{ended:?}");
    }
}

// TRN-32
#[test]
fn unregistering_needs_yes_and_keeps_the_history() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    alice.run(&["send", "bob@chorus", "hi"]).ok();
    assert_eq!(alice.run(&["unregister"]).code, 1);
    alice.run(&["whoami"]).ok();
    assert_eq!(alice.json(&["unregister", "--yes"])[0]["deleted"], true);
    assert_eq!(alice.run(&["whoami"]).code, 2);
    assert_eq!(alice.history_lines("bob@chorus").len(), 1);
    assert!(
        bob.json(&["discover"])
            .iter()
            .all(|row| row["agent_id"] != "alice@chorus")
    );
}
