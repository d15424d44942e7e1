//! `chorus doctor`: what is wrong on this machine, and the command that mends it.

use crate::actors::{Agent, CommandOutput, Scene, run};
use crate::skewed_hubs::libfaketime;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

fn binary_folder() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_chorus")).parent().unwrap()
}

fn doctor(agent: &Agent, args: &[&str]) -> CommandOutput {
    let mut command = agent.command(&[&["doctor"], args].concat());
    command.env(
        "PATH",
        format!("{}:/usr/bin:/bin", binary_folder().display()),
    );
    run(command, "")
}

/// The check of one thing in the report.
fn find_check(agent: &Agent, what: &str) -> Value {
    let report = doctor(agent, &["--json"]).json().remove(0);
    let checks = report["checks"].as_array().unwrap().clone();
    let found = checks.into_iter().find(|check| check["what"] == what);
    found.unwrap_or_else(|| panic!("{what}: {report}"))
}

#[track_caller]
fn assert_wrong(agent: &Agent, what: &str, fix: &str) {
    let check = find_check(agent, what);
    assert_eq!(check["ok"], false, "{check}");
    assert!(check["fix"].as_str().unwrap().contains(fix), "{check}");
    let ended = doctor(agent, &[]);
    assert_eq!(ended.code, 1, "{ended:?}");
    let line = ended
        .out
        .lines()
        .find(|line| line.starts_with(&format!("✗ {what}: ")));
    assert!(line.is_some_and(|line| line.contains(fix)), "{ended:?}");
}

#[test]
fn a_machine_that_is_well_gets_a_tick_for_everything() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let report = doctor(&alice, &[]).ok();
    for what in ["program", "credentials", "hub", "key", "clock"] {
        assert!(report.out.contains(&format!("✓ {what}: ")), "{report:?}");
    }
    assert!(report.out.contains("– listener: "), "{report:?}");
    assert!(report.out.contains("– hooks: "), "{report:?}");
    let _listening = alice.listen(&[]);
    alice.await_online("alice@chorus");
    assert_eq!(find_check(&alice, "listener")["state"], "ok");
}

#[test]
fn each_fault_has_the_command_that_mends_it() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let file = alice.home.join(".chorus/config.json");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert_wrong(&alice, "credentials", "chmod 600");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let saved = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, saved.replace("\"ca_", "\"ca_x")).unwrap();
    assert_wrong(&alice, "key", "chorus register alice --hub");
    let found = find_check(&alice, "key")["found"].to_string();
    assert!(
        found.contains("does not accept the key of alice@chorus"),
        "{found}"
    );
    std::fs::write(&file, saved).unwrap();
    let away = alice.while_hub_is_away();
    assert_wrong(&away, "hub", "chorus serve");
    // R-33: another hub is there, and does not get the key.
    let other = Scene::open();
    let elsewhere = Agent {
        home: alice.home.clone(),
        hub: other.hub.url.clone(),
    };
    assert_wrong(&elsewhere, "key", "unset CHORUS_HUB");
    assert_eq!(find_check(&elsewhere, "hub")["state"], "ok");
    assert_wrong(&scene.newcomer("bob"), "credentials", "chorus register");
}

#[test]
fn hooks_that_run_a_program_that_is_gone_are_found() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let settings = alice.home.join(".claude/settings.json");
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    let hook = |program: &str| {
        format!(
            r#"{{"hooks":{{"Stop":[{{"hooks":[{{"type":"command","command":"{program} hook Stop --instrument cc-claude"}}]}}]}}}}"#
        )
    };
    std::fs::write(&settings, hook("/nowhere/target/release/chorus")).unwrap();
    assert_wrong(&alice, "hooks", "chorus init --target claude-user");
    std::fs::write(&settings, hook("chorus")).unwrap();
    assert_eq!(find_check(&alice, "hooks")["state"], "ok");
}

#[test]
fn a_clock_that_differs_from_the_hubs_is_found() {
    let Some(library) = libfaketime() else {
        return;
    };
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let mut command = alice.command(&["doctor"]);
    command
        .env("LD_PRELOAD", library)
        .env("FAKETIME", "+5m")
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        .env("DONT_FAKE_MONOTONIC", "1");
    let ended = run(command, "");
    assert_eq!(ended.code, 1, "{ended:?}");
    let line = ended.out.lines().find(|line| line.starts_with("✗ clock: "));
    assert!(
        line.is_some_and(|line| line.contains("timedatectl")),
        "{ended:?}"
    );
}

#[test]
fn a_program_that_is_not_on_the_path_is_found() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let mut command = alice.command(&["doctor"]);
    command.env("PATH", "/nowhere");
    let ended = run(command, "");
    let folder = binary_folder().display();
    assert!(
        ended.code == 1 && ended.out.contains(&format!("export PATH={folder}:$PATH")),
        "{ended:?}"
    );
}
