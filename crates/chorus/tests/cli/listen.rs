//! A listener hears everything once, whatever ends it or its hub in between (SKL-18, SKL-24, SKL-35, lesson 15).

use crate::actors::{Hub, Scene, text_of};

// TRN-11, TRN-60
#[test]
fn a_listener_hears_live_and_ends_on_a_signal() {
    let scene = Scene::open();
    let (alice, bob) = (scene.agent("alice"), scene.agent("bob"));
    let mut listening = bob.listen(&[]);
    alice.await_online("bob@chorus");
    assert_eq!(
        alice.json(&["send", "bob@chorus", "live"])[0]["delivery"],
        "delivered_sse"
    );
    assert_eq!(text_of(&listening.json()), "live");
    assert_eq!(alice.json(&["listen", "--once"])[0]["event"], "receipt");
    listening.signal("TERM");
    assert_eq!(listening.await_end(), Some(0));
}

// Lesson 15: the listener is killed again and again while messages come.
#[test]
fn a_killed_listener_goes_on_without_gap_or_repeat() {
    const MESSAGES: usize = 60;
    const KILLS: usize = 4;
    let scene = Scene::open();
    let (alice, bob) = (scene.agent("alice"), scene.agent("bob"));
    let sender = std::thread::spawn(move || {
        for number in 0..MESSAGES {
            alice
                .run(&["send", "bob@chorus", &format!("m{number:03}")])
                .ok();
        }
    });
    let mut printed = Vec::new();
    for _ in 0..KILLS {
        let mut listening = bob.listen(&[]);
        for _ in 0..7 {
            printed.push(text_of(&listening.json()).to_owned());
        }
        listening.signal("KILL");
        listening.await_end();
        let rest = listening.rest();
        printed.extend(rest.iter().filter_map(|line| {
            let value: serde_json::Value = serde_json::from_str(line).ok()?;
            Some(text_of(&value).to_owned())
        }));
    }
    let listening = bob.listen(&[]);
    while printed.last().map(String::as_str) != Some("m059") {
        printed.push(text_of(&listening.json()).to_owned());
    }
    sender.join().unwrap();
    let all: Vec<String> = (0..MESSAGES)
        .map(|number| format!("m{number:03}"))
        .collect();
    let filed: Vec<String> = bob
        .file("alice@chorus")
        .iter()
        .map(|line| text_of(line).to_owned())
        .collect();
    assert_eq!(filed, all, "every message is filed once, in order");
    let mut sorted = printed.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!(
        sorted.len(),
        printed.len(),
        "nothing is shown twice: {printed:?}"
    );
    // Killed between filing and printing: it is in the history, and not on a screen that is gone.
    assert!(printed.len() >= MESSAGES - KILLS, "{printed:?}");
}

// R-25 from the other end: the hub goes and comes back.
#[test]
fn a_listener_outlives_its_hub() {
    let mut scene = Scene::open();
    let (alice, bob) = (scene.agent("alice"), scene.agent("bob"));
    let address = scene.hub.url.strip_prefix("http://").unwrap().to_owned();
    let listening = bob.listen(&[]);
    alice.await_online("bob@chorus");
    alice.run(&["send", "bob@chorus", "before"]).ok();
    assert_eq!(text_of(&listening.json()), "before");
    scene.hub.process.signal("KILL");
    scene.hub.process.await_end();
    scene.hub = Hub::start(scene.folder.path(), &["--listen", &address]);
    alice.run(&["send", "bob@chorus", "after"]).ok();
    assert_eq!(text_of(&listening.json()), "after");
}

// SKL-18, SKL-35: an identity from another tool has a history and no cursor.
#[test]
fn without_a_cursor_the_history_says_where_to_go_on() {
    let scene = Scene::open();
    let (alice, bob) = (scene.agent("alice"), scene.agent("bob"));
    alice.run(&["send", "bob@chorus", "one"]).ok();
    bob.run(&["send", "alice@chorus", "zero"]).ok();
    bob.run(&["listen", "--count", "1"]).ok();
    bob.run(&["send", "alice@chorus", "reply"]).ok();
    alice.run(&["send", "bob@chorus", "two"]).ok();
    std::fs::remove_file(bob.home.join(".chorus/state.json")).unwrap();
    let heard = bob.json(&["listen", "--count", "1"]);
    assert_eq!(text_of(&heard[0]), "two");
    let mut filed: Vec<String> = bob
        .file("alice@chorus")
        .iter()
        .map(|line| text_of(line).to_owned())
        .collect();
    filed.sort();
    assert_eq!(
        filed,
        ["one", "reply", "two", "zero"],
        "nothing is filed twice"
    );
}

#[test]
fn without_cursor_and_history_only_what_is_new_is_heard() {
    let scene = Scene::open();
    let (alice, bob) = (scene.agent("alice"), scene.agent("bob"));
    alice.run(&["send", "bob@chorus", "old"]).ok();
    std::fs::remove_file(bob.home.join(".chorus/state.json")).unwrap();
    let listening = bob.listen(&["--count", "1"]);
    alice.await_online("bob@chorus");
    alice.run(&["send", "bob@chorus", "new"]).ok();
    assert_eq!(text_of(&listening.json()), "new");
}

#[test]
fn a_second_listener_on_the_same_files_is_refused() {
    let scene = Scene::open();
    let bob = scene.agent("bob");
    let _listening = bob.listen(&[]);
    bob.await_online("bob@chorus");
    let second = bob.run(&["listen", "--count", "1"]);
    assert!(
        second.code == 1 && second.err.contains("another listener"),
        "{second:?}"
    );
}

#[test]
fn since_shows_again_what_was_heard_and_files_it_once() {
    let scene = Scene::open();
    let (alice, bob) = (scene.agent("alice"), scene.agent("bob"));
    for text in ["one", "two"] {
        alice.run(&["send", "bob@chorus", text]).ok();
    }
    bob.run(&["listen", "--count", "2"]).ok();
    let again = bob.json(&["listen", "--since", "0", "--count", "2"]);
    assert_eq!(
        again.iter().map(text_of).collect::<Vec<_>>(),
        ["one", "two"]
    );
    assert_eq!(bob.file("alice@chorus").len(), 2);
    alice.run(&["send", "bob@chorus", "three"]).ok();
    assert_eq!(
        text_of(&bob.json(&["listen", "--count", "1"])[0]),
        "three",
        "the cursor did not go back"
    );
}
