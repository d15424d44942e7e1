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
    // Nothing has to be copied into the page.
    for link in ["console_link", "operator_link"] {
        let url = welcome[link].as_str().unwrap();
        assert!(url.contains("/console#/link/cl_"), "{link}: {welcome}");
    }
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

/// The texts of all messages that this agent sent and received, as the hub has them.
fn message_texts(agent: &Agent) -> Vec<String> {
    let rows = agent.json(&["history", "--remote"]);
    rows.iter()
        .map(|row| {
            row["envelope"]["original_text"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect()
}

#[test]
fn the_demo_shows_a_conversation_of_two_agents_and_says_each_line_once() {
    let folder = tempfile::tempdir().unwrap();
    let playing = RunningProcess::start(demo(folder.path(), &["--json", "--no-pauses"]));
    let ada = sign_in(folder.path(), &playing.json());
    let texts = |marker: &str| {
        let found = message_texts(&ada).into_iter();
        found
            .filter(|text| text.contains(marker))
            .map(Value::from)
            .collect::<Vec<_>>()
    };
    await_some("the last message", || texts("We are collecting words"));
    assert_eq!(texts("Meines ist „Feierabend“").len(), 1, "Lena to Ada");
    assert_eq!(texts("Mine is “serendipity”").len(), 1, "Ada to Lena");
    // Answering every decision ends the longest scene; a demo that repeats would have begun again long before.
    let mut watch = ada.command(&["watch", "--json", "--since", "0"]);
    watch.args(["--filter", "kind:agent_broadcast"]);
    let watching = RunningProcess::start(watch);
    for question in ["Which word", "In which order", "How many copies"] {
        let decided = await_some(question, || {
            let output = ada.run(&["decide", "--choose", "1", "--json"]);
            let is_asked = output.code == 0 && output.out.contains(question);
            is_asked.then(|| question.into()).into_iter().collect()
        });
        assert_eq!(decided.len(), 1);
    }
    assert!(watching.next_line().contains("Chapter 3 is set"));
    let all = message_texts(&ada);
    let mut distinct = all.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(all.len(), distinct.len(), "{all:#?}");
    // The agents still listen: what the user writes is acknowledged and answered.
    ada.run(&["send", "mei@chorus", "Hello, Mei."]).ok();
    await_some("an answer of Mei", || texts("know only my own lines"));
}

#[test]
fn the_demo_stops_after_the_given_time() {
    let folder = tempfile::tempdir().unwrap();
    let ended = run(demo(folder.path(), &["--seconds", "1", "--json"]), "").ok();
    assert_eq!((ended.json().len(), ended.err.as_str()), (1, ""));
    assert_eq!(remaining_folders(folder.path()), 0);
}
