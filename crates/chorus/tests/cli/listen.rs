//! `chorus listen` prints every message once, also when it or its hub is restarted (SKL-18, SKL-24, SKL-35, lesson 15).

use crate::actors::{Hub, Scene, TIMEOUT, text_of};
use chorus_client::HubClient;
use chorus_client::http::ApiCall;
use serde_json::Value;

// TRN-11, TRN-60
#[test]
fn a_listener_receives_live_and_stops_on_a_signal() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    let mut listening = bob.listen(&[]);
    alice.await_online("bob@chorus");
    assert_eq!(
        alice.json(&["send", "bob@chorus", "live"])[0]["delivery"],
        "delivered_sse"
    );
    assert_eq!(text_of(&listening.json()), "live");
    assert_eq!(alice.json(&["listen", "--once"])[0]["event"], "receipt");
    listening.send_signal("TERM");
    assert_eq!(listening.await_exit(), Some(0));
}

// R-84
#[test]
fn a_receipt_says_that_it_is_one_and_of_which_message() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    let expect = |listen: &[&str], words: &str| {
        let sent = alice.json(&["send", "bob", "hi"]).remove(0);
        bob.run(listen);
        let shown = alice.run(&["listen", "--once"]).ok().out;
        let id = sent["trace_id"].as_str().unwrap();
        let expected = format!("receipt: bob@chorus {words}");
        assert!(shown.contains(&expected) && shown.contains(id), "{shown}");
    };
    expect(&["listen", "--once"], "acknowledged your message  ");
    let failing = ["listen", "--once", "--exec", "exit 3"];
    expect(&failing, "could not take your message: ADAPTATION_FAILED");
}

// R-84: a receipt is no message
#[test]
fn a_listener_that_waits_for_messages_does_not_end_with_a_receipt() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    for text in ["one", "two"] {
        alice.run(&["send", "bob@chorus", text]).ok();
    }
    bob.json(&["listen", "--count", "2"]);
    bob.run(&["send", "alice@chorus", "an answer"]).ok();
    assert_eq!(alice.json(&["listen", "--once"])[0]["event"], "receipt");
    let lines = alice.json(&["listen", "--once", "--messages"]);
    let events: Vec<_> = lines.iter().map(|line| line["event"].as_str()).collect();
    assert_eq!(events, [Some("receipt"), Some("message")]);
    assert_eq!(text_of(&lines[1]), "an answer");
}

// SKL-18: the stream brings more than one listener prints, and the cursor stays where that one ended
#[test]
fn what_came_beyond_the_count_is_printed_by_the_next_listener() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    let texts = ["one", "two", "three"];
    for text in texts {
        alice.run(&["send", "bob@chorus", text]).ok();
    }
    let mut heard = bob.json(&["listen", "--once"]);
    let state = alice.json(&["status", "bob"]).remove(0);
    assert_eq!(state["acknowledged_at"], Value::Null, "{state}");
    heard.extend(bob.json(&["listen", "--count", "2"]));
    assert_eq!(heard.iter().map(text_of).collect::<Vec<_>>(), texts);
    let state = alice.json(&["status", "bob"]).remove(0);
    assert!(state["acknowledged_at"].is_string(), "{state}");
}

// R-25
#[tokio::test(flavor = "multi_thread")]
async fn a_listener_is_told_of_messages_that_the_hub_no_longer_keeps() {
    let folder = tempfile::tempdir().unwrap();
    let mut scene = Scene {
        hub: Hub::start(folder.path(), &["--retain", "1ms"]),
        folder: tempfile::tempdir().unwrap(),
    };
    let address = scene.hub.url.strip_prefix("http://").unwrap().to_owned();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    alice.run(&["send", "bob@chorus", "one"]).ok();
    let one = bob.json(&["listen", "--once"])[0].clone();
    alice.run(&["send", "bob@chorus", "two"]).ok();
    alice.run(&["send", "bob@chorus", "three"]).ok();
    scene.hub.process.send_signal("TERM");
    scene.hub.process.await_exit();
    // Retention runs at start, and leaves the newest entry.
    scene.hub = Hub::start(folder.path(), &["--listen", &address, "--retain", "1ms"]);
    let client = HubClient::new(&scene.hub.url, None).unwrap();
    let deadline = std::time::Instant::now() + TIMEOUT;
    loop {
        let health = client.send_call(ApiCall::get("/health")).await.unwrap();
        if String::from_utf8_lossy(&health.body).contains(r#""messages_stored":1}"#) {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "never: it is deleted");
    }
    let cursor = one["id"].as_str().unwrap();
    let lines = bob.json(&["listen", "--once"]);
    assert_eq!(lines[0]["from"].to_string(), cursor);
    assert!(lines[0]["to"].as_u64() > lines[0]["from"].as_u64());
    assert_eq!(lines[0]["id"], lines[0]["to"].to_string());
    assert_eq!(text_of(&lines[1]), "three");
}

// Lesson 15: the listener is killed repeatedly while messages arrive.
#[test]
fn a_killed_listener_resumes_without_gap_or_repeat() {
    const MESSAGES: usize = 60;
    const KILLS: usize = 4;
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
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
        listening.send_signal("KILL");
        listening.await_exit();
        let rest = listening.remaining_lines();
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
        .history_lines("alice@chorus")
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
        "nothing is printed twice: {printed:?}"
    );
    // A message may be filed but not printed if the listener was killed in between.
    assert!(printed.len() >= MESSAGES - KILLS, "{printed:?}");
}

// R-25: the hub is restarted.
#[test]
fn a_listener_survives_a_restart_of_its_hub() {
    let mut scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    let address = scene.hub.url.strip_prefix("http://").unwrap().to_owned();
    let listening = bob.listen(&[]);
    alice.await_online("bob@chorus");
    alice.run(&["send", "bob@chorus", "before"]).ok();
    assert_eq!(text_of(&listening.json()), "before");
    scene.hub.process.send_signal("KILL");
    scene.hub.process.await_exit();
    scene.hub = Hub::start(scene.folder.path(), &["--listen", &address]);
    alice.run(&["send", "bob@chorus", "after"]).ok();
    assert_eq!(text_of(&listening.json()), "after");
}

// SKL-18, SKL-35: an identity of another tool has a history but no cursor.
#[test]
fn without_a_cursor_listening_resumes_after_the_history() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    alice.run(&["send", "bob@chorus", "one"]).ok();
    bob.run(&["send", "alice@chorus", "zero"]).ok();
    bob.run(&["listen", "--count", "1"]).ok();
    bob.run(&["send", "alice@chorus", "reply"]).ok();
    alice.run(&["send", "bob@chorus", "two"]).ok();
    std::fs::remove_file(bob.home.join(".chorus/state.json")).unwrap();
    let received = bob.json(&["listen", "--count", "1"]);
    assert_eq!(text_of(&received[0]), "two");
    let mut filed: Vec<String> = bob
        .history_lines("alice@chorus")
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

// The credential file alone was copied to another machine: the mail that waits at the hub is not skipped, and what has a receipt
// does not come again.
#[test]
fn without_cursor_and_history_the_mail_that_waits_at_the_hub_comes_first() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    alice.run(&["send", "bob@chorus", "acknowledged"]).ok();
    bob.run(&["listen", "--once"]).ok();
    for text in ["one", "acknowledged elsewhere", "two", "three"] {
        let sent = alice.json(&["send", "bob@chorus", text]);
        if text.starts_with("acknowledged") {
            let trace_id = sent[0]["trace_id"].as_str().unwrap();
            bob.run(&["reply", trace_id, "ok"]).ok();
        }
    }
    std::fs::remove_dir_all(bob.home.join(".chorus/history")).unwrap();
    std::fs::remove_file(bob.home.join(".chorus/state.json")).unwrap();
    let first = bob.json(&["listen", "--count", "2"]);
    assert_eq!(text_of(&first[0]), "one");
    assert_eq!(text_of(&first[1]), "two");
    // The next run goes on where the first one ended.
    let listening = bob.listen(&["--count", "2"]);
    assert_eq!(text_of(&listening.json()), "three");
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
fn since_repeats_old_messages_without_filing_them_again() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    for text in ["one", "two"] {
        alice.run(&["send", "bob@chorus", text]).ok();
    }
    bob.run(&["listen", "--count", "2"]).ok();
    let again = bob.json(&["listen", "--since", "0", "--count", "2"]);
    assert_eq!(
        again.iter().map(text_of).collect::<Vec<_>>(),
        ["one", "two"]
    );
    assert_eq!(bob.history_lines("alice@chorus").len(), 2);
    alice.run(&["send", "bob@chorus", "three"]).ok();
    assert_eq!(
        text_of(&bob.json(&["listen", "--count", "1"])[0]),
        "three",
        "the cursor did not move back"
    );
}

// SKL-26, SKL-35: what another program sends with the same key is in the local history too.
#[test]
fn what_was_sent_elsewhere_with_the_same_key_is_filed() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    let elsewhere = scene.second_home(&alice);
    elsewhere
        .run(&["send", "bob@chorus", "from another desk", "--culture", "en"])
        .ok();
    bob.run(&["send", "alice@chorus", "hello"]).ok();
    alice.run(&["listen", "--once"]).ok();
    let sent: Vec<_> = alice
        .history_lines("bob@chorus")
        .into_iter()
        .filter(|line| line["dir"] == "sent")
        .collect();
    assert_eq!(sent.len(), 1, "{sent:?}");
    assert_eq!(text_of(&sent[0]), "from another desk");
    bob.run(&["send", "alice@chorus", "again"]).ok();
    alice.run(&["listen", "--once"]).ok();
    let lines = alice.history_lines("bob@chorus");
    assert_eq!(lines.len(), 3, "each once: {lines:?}");
}

// SKL-27, R-28: a corrected turn has other words, so it is shown and filed.
#[test]
fn a_corrected_turn_is_shown_and_filed() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    for text in ["at nine", "at ten, sorry"] {
        let turn = [
            "send",
            "bob@chorus",
            text,
            "--conversation",
            "c1",
            "--turn",
            "1",
        ];
        alice.run(&turn).ok();
    }
    let heard = bob.json(&["listen", "--count", "2"]);
    let texts: Vec<&str> = heard.iter().map(text_of).collect();
    assert_eq!(texts, ["at nine", "at ten, sorry"]);
    assert_eq!(bob.history_lines("alice@chorus").len(), 2);
}
