//! The demo, run as a newcomer runs it: it shows what it promises, and leaves nothing behind.

use crate::actors::{Agent, Ongoing, PATIENCE, chorus, run};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

fn demo(folder: &Path, words: &[&str]) -> Command {
    let temporary = folder.join("temporary");
    std::fs::create_dir_all(&temporary).unwrap();
    let mut command = chorus(folder);
    command
        .args(["demo", "--no-open"])
        .args(words)
        .env("TMPDIR", temporary);
    command
}

fn left_behind(folder: &Path) -> usize {
    std::fs::read_dir(folder.join("temporary")).unwrap().count()
}

/// Somebody with a key that the demo printed.
fn signed_in(folder: &Path, said: &Value) -> Agent {
    let home = folder.join("you");
    std::fs::create_dir_all(home.join(".chorus")).unwrap();
    let file =
        json!({"agent_id": said["agent_id"], "api_key": said["api_key"], "hub_url": said["hub"]});
    std::fs::write(home.join(".chorus/config.json"), file.to_string()).unwrap();
    Agent {
        home,
        hub: said["hub"].as_str().unwrap().to_owned(),
    }
}

/// Asks until there is something.
fn await_some(what: &str, mut ask: impl FnMut() -> Vec<Value>) -> Vec<Value> {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        let found = ask();
        if !found.is_empty() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("there never was {what}");
}

#[test]
fn every_scene_is_played_and_nothing_stays_behind() {
    let folder = tempfile::tempdir().unwrap();
    let ended = run(demo(folder.path(), &["--once"]), "").ok();
    assert!(
        ended.out.contains("/console") && ended.out.contains("ca_"),
        "{ended:?}"
    );
    assert_eq!(ended.err, "", "it ends without a word");
    assert_eq!(left_behind(folder.path()), 0);
}

#[test]
fn whoever_signs_in_reads_along_decides_and_ends_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut playing = Ongoing::start(demo(folder.path(), &["--json"]));
    let said = playing.json();
    assert!(
        said["console"].as_str().unwrap().ends_with("/console"),
        "{said}"
    );
    let you = signed_in(folder.path(), &said);
    assert!(you.json(&["discover", "--online"]).len() >= 4);
    await_some("a job of yours", || you.json(&["jobs"]));
    // What is asked is answered as in the console, and whoever asked hears it.
    let watching =
        Ongoing::start(you.command(&["watch", "--json", "--filter", "kind:agent_advisory"]));
    let asked = you.run(&["decide", "--choose", "2", "--json"]).ok();
    assert!(
        asked.out.contains("Which word opens the atlas?"),
        "{asked:?}"
    );
    while !watching.line().contains("Feierabend") {}
    assert_eq!(left_behind(folder.path()), 1);
    playing.signal("INT");
    assert_eq!(playing.await_end(), Some(0));
    assert_eq!(left_behind(folder.path()), 0);
}

#[test]
fn it_ends_by_itself_when_told_how_long() {
    let folder = tempfile::tempdir().unwrap();
    let ended = run(demo(folder.path(), &["--seconds", "1", "--json"]), "").ok();
    assert_eq!((ended.json().len(), ended.err.as_str()), (1, ""));
    assert_eq!(left_behind(folder.path()), 0);
}
