//! Whether a message was shown to its receiver: told by hooks and tools, read by its sender (R-81).

use crate::actors::{Agent, RunningProcess, Scene, on_terminal, run, text_of};
use crate::mcp::Host;
use serde_json::{Value, json};

/// Sends a message and returns its trace id.
fn send(from: &Agent, to: &str, text: &str) -> String {
    let sent = from.json(&["send", to, text]).remove(0);
    sent["trace_id"].as_str().unwrap().to_owned()
}

fn read_status(agent: &Agent, trace_id: &str) -> Value {
    agent.json(&["status", trace_id]).remove(0)
}

// R-81, WAK-13
#[test]
fn a_hook_that_puts_a_message_into_a_turn_says_so_to_its_sender() {
    let scene = Scene::open();
    let (alice, bob) = (scene.agent("alice"), scene.agent("bob"));
    let trace_id = send(&alice, "bob@chorus", "good morning");
    assert_eq!(read_status(&alice, &trace_id)["shown_at"], Value::Null);
    let hook = bob.command(&["hook", "SessionStart"]);
    let told = run(hook, r#"{"session_id":"s1"}"#).ok();
    assert!(told.out.contains("good morning"), "{told:?}");
    let status = read_status(&alice, &trace_id);
    assert!(status["shown_at"].is_string(), "{status}");
    let printed = alice.run(&["status", &trace_id]).ok().out;
    assert!(
        printed.contains(", shown 20") && printed.contains(", acknowledged 20"),
        "{printed}"
    );
    assert!(printed.ends_with("\nreceiver: ok\n"), "{printed}");
}

// R-81: a tool result that only counts the mail does not show it
#[test]
fn a_notice_of_unread_mail_does_not_say_that_it_was_shown() {
    let scene = Scene::open();
    let (alice, bob) = (scene.agent("alice"), scene.agent("bob"));
    let trace_id = send(&alice, "bob@chorus", "good morning");
    let mut host = Host::start(bob.command(&["mcp", "--session", "s1"]));
    let counted = host.call("chorus_discover", json!({}));
    let notice = counted["structuredContent"]["chorus_notice"].as_str();
    assert!(notice.unwrap().contains("1 unread message"), "{counted}");
    assert_eq!(read_status(&alice, &trace_id)["shown_at"], Value::Null);
    host.call("chorus_inbox", json!({}));
    assert!(read_status(&alice, &trace_id)["shown_at"].is_string());
}

// R-81
#[test]
fn a_listening_sender_is_told_that_its_message_was_shown() {
    let scene = Scene::open();
    let (alice, bob) = (scene.agent("alice"), scene.agent("bob"));
    let listening = alice.listen(&[]);
    alice.await_online("alice@chorus");
    let trace_id = send(&alice, "bob@chorus", "good morning");
    run(
        bob.command(&["hook", "SessionStart"]),
        r#"{"session_id":"s1"}"#,
    )
    .ok();
    let shown = listening.json();
    assert_eq!(
        (&shown["event"], &shown["trace_id"], &shown["receiver_id"]),
        (&"shown".into(), &trace_id.into(), &"bob@chorus".into())
    );
}

// R-81, R-84
#[test]
fn a_sender_waits_until_its_message_is_shown_or_answered() {
    let scene = Scene::open();
    let (alice, bob) = (scene.agent("alice"), scene.agent("bob"));
    let start_waiting = |fact: &str, text: &str| {
        let args = ["send", "bob@chorus", text, "--wait", fact];
        let options = ["--conversation", "c1", "--json"];
        RunningProcess::start(alice.command(&[&args[..], &options[..]].concat()))
    };
    let mut waiting = start_waiting("shown", "one");
    let sent = waiting.json();
    run(
        bob.command(&["hook", "SessionStart"]),
        r#"{"session_id":"s1"}"#,
    )
    .ok();
    let shown = waiting.json();
    assert_eq!(
        (&shown["event"], &shown["trace_id"]),
        (&"shown".into(), &sent["trace_id"])
    );
    assert_eq!(waiting.await_exit(), Some(0));

    let mut waiting = start_waiting("answer", "two");
    waiting.json();
    // What is not of this conversation is no answer to it.
    send(&bob, "alice@chorus", "by the way");
    let answer = ["send", "alice@chorus", "three", "--conversation", "c1"];
    bob.run(&answer).ok();
    let heard = waiting.json();
    assert_eq!(
        (&heard["event"], text_of(&heard)),
        (&"message".into(), "three")
    );
    assert_eq!(waiting.await_exit(), Some(0));
}

/// Sends a message, answers it, and returns the answer that `send --wait answer` printed.
fn receive_answer(alice: &Agent, bob: &Agent, answer: &str) -> Value {
    let args = ["send", "bob@chorus", "well?", "--wait", "answer", "--json"];
    let mut waiting = RunningProcess::start(alice.command(&args));
    waiting.json();
    send(bob, "alice@chorus", answer);
    let heard = waiting.json();
    assert_eq!(text_of(&heard), answer);
    assert_eq!(waiting.await_exit(), Some(0));
    heard
}

// SKL-16, SKL-18: also where an older message waits, with a command, and in a session with hooks
#[test]
fn an_answer_that_was_waited_for_is_acknowledged_and_does_not_come_again() {
    let scene = Scene::open();
    let (alice, bob) = (scene.agent("alice"), scene.agent("bob"));
    send(&bob, "alice@chorus", "older");
    let heard = receive_answer(&alice, &bob, "first");
    let status = read_status(&bob, heard["trace_id"].as_str().unwrap());
    assert_eq!(status["status"], "acknowledged", "{status}");
    let local = alice.run(&["history", "bob"]).ok().out;
    assert!(local.contains("first"), "{local}");
    // Nothing was listened to before: what came before the answer is not skipped.
    send(&bob, "alice@chorus", "newer");
    let listened = alice.json(&["listen", "--count", "2"]);
    let texts: Vec<&str> = listened.iter().map(text_of).collect();
    assert_eq!(texts, ["older", "newer"]);
    // The same with a cursor, and with a command.
    receive_answer(&alice, &bob, "second");
    send(&bob, "alice@chorus", "last");
    let told = run(
        alice.command(&["hook", "SessionStart"]),
        r#"{"session_id":"s1"}"#,
    )
    .ok();
    assert!(
        told.out.contains("last") && !told.out.contains("second"),
        "{told:?}"
    );
    let exec = "printf '%s\\n' \"$(cat)\" >> handled.txt";
    alice.run(&["listen", "--count", "1", "--exec", exec]).ok();
    let handled = std::fs::read_to_string(alice.home.join("handled.txt")).unwrap();
    assert!(
        handled.contains("last") && !handled.contains("second"),
        "{handled}"
    );
}

// R-81: on a terminal a line runs with the time and the state
#[test]
fn a_sender_at_a_terminal_sees_how_far_its_message_is() {
    let scene = Scene::open();
    let (alice, _bob) = (scene.agent("alice"), scene.agent("bob"));
    let args = [
        "send",
        "bob@chorus",
        "hello",
        "--wait",
        "shown",
        "--timeout",
        "2s",
    ];
    let waited = run(on_terminal(&alice.command(&args)), "");
    assert_eq!(waited.code, 5, "{waited:?}");
    for expected in [
        "queued; waiting until it is shown, 0s of 2s",
        "queued; waiting until it is shown, 1s of 2s",
        "\r\u{1b}[K",
    ] {
        assert!(waited.out.contains(expected), "{expected}: {waited:?}");
    }
    let (_, after) = waited.out.rsplit_once("\u{1b}[K").unwrap();
    assert!(
        after.contains("not shown within 2s"),
        "the line is gone: {waited:?}"
    );
    // Elsewhere no line runs.
    let waited = alice.run(&args);
    assert!(!waited.err.contains("waiting"), "{waited:?}");
}

// R-81: the time is over, the message stays
#[test]
fn a_sender_stops_waiting_with_an_exit_code_of_its_own() {
    let scene = Scene::open();
    let (alice, bob) = (scene.agent("alice"), scene.agent("bob"));
    for fact in ["shown", "answer"] {
        let args = ["send", "bob@chorus", fact, "--wait", fact];
        let waited = alice.run(&[&args[..], &["--timeout", "1ms"]].concat());
        assert_eq!(waited.code, 5, "{waited:?}");
        assert!(waited.err.contains("chorus status"), "{waited:?}");
    }
    assert_eq!(bob.json(&["history", "--remote"]).len(), 2);
}
