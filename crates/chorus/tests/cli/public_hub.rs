//! The command line against another hub: one that answers as the public hub documents.

use crate::actors::{Agent, RunningProcess, TIMEOUT, text_of};
use crate::public_hub_server::PublicHub;
use serde_json::Value;
use std::time::Instant;

struct PublicScene {
    folder: tempfile::TempDir,
    hub: PublicHub,
}

impl PublicScene {
    fn open() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            hub: PublicHub::start(),
        }
    }

    fn agent(&self, name: &str) -> Agent {
        let home = self.folder.path().join(name);
        std::fs::create_dir_all(&home).unwrap();
        let agent = Agent {
            home,
            hub: self.hub.url.clone(),
        };
        agent
            .run(&["register", &format!("{name}@chorus"), "--culture", "en"])
            .ok();
        agent
    }

    fn await_listening(&self, name: &str) {
        let deadline = Instant::now() + TIMEOUT;
        while !self.hub.is_listening(name) {
            assert!(Instant::now() < deadline, "{name} never listened");
            std::thread::yield_now();
        }
    }
}

/// The texts of the next messages, and the lines of other kinds left out.
fn next_texts(listener: &RunningProcess, count: usize) -> Vec<String> {
    let mut texts = Vec::new();
    while texts.len() < count {
        let line = listener.json();
        if line["event"] == "message" {
            texts.push(text_of(&line).to_owned());
        }
    }
    texts
}

/// A message is printed before its handler has finished.
fn await_handled(agent: &Agent, text: &str) {
    let deadline = Instant::now() + TIMEOUT;
    let path = agent.home.join("handled.txt");
    let is_handled = || std::fs::read_to_string(&path).is_ok_and(|handled| handled.contains(text));
    while !is_handled() {
        assert!(Instant::now() < deadline, "{text} was never handled");
        std::thread::yield_now();
    }
}

// the key is not lost because a field that only our hub sends is missing
#[test]
fn an_identity_at_another_hub_is_registered_shown_and_verified() {
    let scene = PublicScene::open();
    let alice = scene.agent("alice");
    let saved = std::fs::read_to_string(alice.home.join(".chorus/config.json")).unwrap();
    let saved: Value = serde_json::from_str(&saved).unwrap();
    assert!(saved["api_key"].as_str().unwrap().starts_with("ca_"));
    let me = &alice.json(&["whoami"])[0];
    assert_eq!(me["agent_id"], "alice@chorus");
    alice.run(&["init", "--target", "local"]).ok();
    let verified = alice.run(&["verify", "--target", "local"]).ok().out;
    assert!(verified.contains("✓ hub: "), "{verified}");
    let directory = alice.json(&["discover"]);
    assert_eq!(directory[0]["agent_id"], "alice@chorus", "{directory:?}");
}

// R-102, 002: what came before, what came while the stream was away, and each message once
#[test]
fn listening_at_a_hub_without_replay_catches_up_by_history() {
    let scene = PublicScene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    for text in ["one", "two"] {
        alice.run(&["send", "bob@chorus", text]).ok();
    }
    let listener = bob.listen(&["--exec", "cat >> handled.txt; echo >> handled.txt"]);
    assert_eq!(next_texts(&listener, 2), ["one", "two"]);
    scene.await_listening("bob@chorus");
    let live = alice.run(&["send", "bob@chorus", "three"]).ok();
    assert!(live.out.contains("delivered"), "{live:?}");
    assert_eq!(next_texts(&listener, 1), ["three"]);
    scene.hub.end_streams();
    alice.run(&["send", "bob@chorus", "four"]).ok();
    assert_eq!(next_texts(&listener, 1), ["four"]);
    await_handled(&bob, "four");
    drop(listener);
    scene.hub.end_streams();
    alice.run(&["send", "bob@chorus", "five"]).ok();
    let listener = bob.listen(&[
        "--exec",
        "cat >> handled.txt; echo >> handled.txt",
        "--once",
    ]);
    assert_eq!(next_texts(&listener, 1), ["five"]);
    let filed = bob.history_lines("alice@chorus");
    let texts: Vec<&str> = filed.iter().map(text_of).collect();
    assert_eq!(texts, ["one", "two", "three", "four", "five"]);
    listener.remaining_lines();
    let handled = std::fs::read_to_string(bob.home.join("handled.txt")).unwrap();
    for text in ["one", "two", "three", "four", "five"] {
        let count = handled.matches(&format!("\"{text}\"")).count();
        assert_eq!(count, 1, "{text}: {handled}");
    }
}

// SKL-26, R-102: that hub gives a message another time in its history than in the answer to the sender
#[test]
fn a_listener_at_a_hub_without_replay_does_not_file_sent_messages_again() {
    let scene = PublicScene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    alice.run(&["send", "bob@chorus", "one"]).ok();
    bob.run(&["send", "alice@chorus", "two"]).ok();
    alice.run(&["listen", "--once"]).ok();
    let filed = alice.history_lines("bob@chorus");
    let texts: Vec<&str> = filed.iter().map(text_of).collect();
    assert_eq!(texts, ["one", "two"], "each once");
}

// SKL-26: that hub answers every send with the same time, so the second send has the line of the first, as one has that a
// listener filed before the command did.
#[test]
fn a_sent_message_that_is_filed_already_is_not_filed_again() {
    let scene = PublicScene::open();
    let alice = scene.agent("alice");
    scene.agent("bob");
    for _ in 0..2 {
        alice.run(&["send", "bob@chorus", "one"]).ok();
    }
    assert_eq!(alice.history_lines("bob@chorus").len(), 1);
}

// that hub takes an id for a year and repeats the page
#[test]
fn remote_history_ends_where_pages_do_not_advance() {
    let scene = PublicScene::open();
    let alice = scene.agent("alice");
    scene.agent("bob");
    for number in 0..3 {
        let text = number.to_string();
        alice.run(&["send", "bob@chorus", &text]).ok();
    }
    let rows = alice.json(&["history", "--remote"]);
    let texts: Vec<&str> = rows.iter().map(text_of).collect();
    assert_eq!(texts, ["0", "1", "2"]);
    let since = rows[1]["timestamp"].as_str().unwrap().to_owned();
    assert_eq!(
        alice
            .json(&["history", "--remote", "--since", &since])
            .len(),
        2
    );
    assert_eq!(alice.json(&["history"]).len(), 3);
}

// Exit code 4 for an unknown receiver, at any hub
#[test]
fn sending_to_an_unknown_agent_of_another_hub_says_so() {
    let scene = PublicScene::open();
    let alice = scene.agent("alice");
    assert_eq!(alice.run(&["send", "carol@chorus", "hello"]).code, 4);
}
