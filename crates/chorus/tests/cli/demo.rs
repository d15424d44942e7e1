//! `chorus demo`: plays every scene and removes its temporary folder.

use crate::actors::{Agent, RunningProcess, TIMEOUT, chorus, run};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

fn demo(folder: &Path, args: &[&str]) -> Command {
    let temporary = folder.join("temporary");
    std::fs::create_dir_all(&temporary).unwrap();
    let mut command = chorus(folder);
    command
        .args(["demo", "--no-open"])
        .args(args)
        .env("TMPDIR", temporary);
    command
}

fn remaining_folders(folder: &Path) -> usize {
    std::fs::read_dir(folder.join("temporary")).unwrap().count()
}

/// An agent with the key that the demo printed.
fn sign_in(folder: &Path, welcome: &Value) -> Agent {
    let home = folder.join("you");
    std::fs::create_dir_all(home.join(".chorus")).unwrap();
    let file = json!({"agent_id": welcome["agent_id"], "api_key": welcome["api_key"], "hub_url": welcome["hub"]});
    std::fs::write(home.join(".chorus/config.json"), file.to_string()).unwrap();
    Agent {
        home,
        hub: welcome["hub"].as_str().unwrap().to_owned(),
    }
}

/// Calls `fetch` until it returns something.
fn await_some(description: &str, mut fetch: impl FnMut() -> Vec<Value>) -> Vec<Value> {
    let deadline = Instant::now() + TIMEOUT;
    while Instant::now() < deadline {
        let found = fetch();
        if !found.is_empty() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("there never was {description}");
}

#[test]
fn every_scene_is_played_and_no_folder_remains() {
    let folder = tempfile::tempdir().unwrap();
    let ended = run(demo(folder.path(), &["--once"]), "").ok();
    assert!(
        ended.out.contains("/console") && ended.out.contains("ca_"),
        "{ended:?}"
    );
    assert_eq!(ended.err, "", "it prints no error");
    assert_eq!(remaining_folders(folder.path()), 0);
}

#[test]
fn a_user_can_sign_in_decide_and_stop_the_demo() {
    let folder = tempfile::tempdir().unwrap();
    let mut playing = RunningProcess::start(demo(folder.path(), &["--json"]));
    let welcome = playing.json();
    assert!(
        welcome["console"].as_str().unwrap().ends_with("/console"),
        "{welcome}"
    );
    let you = sign_in(folder.path(), &welcome);
    assert!(you.json(&["discover", "--online"]).len() >= 4);
    await_some("a job of yours", || you.json(&["jobs"]));
    // The decision is answered as in the console, and the asking session gets the answer.
    // From the beginning: the advisory may be out before the watcher is connected.
    let mut watch = you.command(&["watch", "--json", "--filter", "kind:agent_advisory"]);
    watch.args(["--since", "0"]);
    let watching = RunningProcess::start(watch);
    let decided = you.run(&["decide", "--choose", "2", "--json"]).ok();
    assert!(
        decided.out.contains("Which word opens the atlas?"),
        "{decided:?}"
    );
    while !watching.next_line().contains("Feierabend") {}
    assert_eq!(remaining_folders(folder.path()), 1);
    playing.send_signal("INT");
    assert_eq!(playing.await_exit(), Some(0));
    assert_eq!(remaining_folders(folder.path()), 0);
}

#[test]
fn the_demo_stops_after_the_given_time() {
    let folder = tempfile::tempdir().unwrap();
    let ended = run(demo(folder.path(), &["--seconds", "1", "--json"]), "").ok();
    assert_eq!((ended.json().len(), ended.err.as_str()), (1, ""));
    assert_eq!(remaining_folders(folder.path()), 0);
}
