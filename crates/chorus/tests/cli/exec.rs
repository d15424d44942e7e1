//! `chorus listen --exec`: one command per message, without message text in its arguments (SKL-16, SKL-17).

use crate::actors::{Scene, text_of};
use serde_json::Value;

// SKL-17
#[test]
fn a_command_gets_the_event_on_standard_input_and_nothing_in_its_arguments() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    let hostile = "$(touch broken) `touch broken`; touch broken\n'\" && touch broken /new";
    let sent = alice.json(&["send", "bob@chorus", hostile]).remove(0);
    let command = r#"cat > got.json; echo "$CHORUS_SENDER_ID $CHORUS_TRACE_ID $0 $#" > words"#;
    bob.run(&["listen", "--count", "1", "--exec", command]).ok();
    let got: Value =
        serde_json::from_str(&std::fs::read_to_string(bob.home.join("got.json")).unwrap()).unwrap();
    assert_eq!(
        (text_of(&got), &got["trace_id"], &got["event"]),
        (hostile, &sent["trace_id"], &"message".into())
    );
    let arguments = std::fs::read_to_string(bob.home.join("words")).unwrap();
    assert_eq!(
        arguments,
        format!("alice@chorus {} sh 0\n", sent["trace_id"].as_str().unwrap())
    );
    assert!(!bob.home.join("broken").exists());
    assert_eq!(
        alice.json(&["listen", "--once"])[0]["response"]["status"],
        "ok"
    );
}

// SKL-16
#[test]
fn a_failed_command_is_reported_to_the_sender() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    alice.run(&["send", "bob@chorus", "hi"]).ok();
    bob.run(&["listen", "--count", "1", "--exec", "exit 3"])
        .ok();
    let receipt = alice.json(&["listen", "--once"]).remove(0);
    assert_eq!(
        (
            &receipt["response"]["status"],
            &receipt["response"]["error_code"]
        ),
        (&"error".into(), &"ADAPTATION_FAILED".into())
    );
}

#[test]
fn a_command_past_its_timeout_is_killed() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    alice.run(&["send", "bob@chorus", "hi"]).ok();
    bob.run(&[
        "listen",
        "--count",
        "1",
        "--exec",
        "exec tail -f /dev/null",
        "--exec-timeout",
        "1",
    ])
    .ok();
    assert_eq!(
        alice.json(&["listen", "--once"])[0]["response"]["error_code"],
        "ADAPTATION_FAILED"
    );
}

#[test]
fn commands_run_one_after_the_other() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    for number in 0..5 {
        alice
            .run(&["send", "bob@chorus", &format!("m{number}")])
            .ok();
    }
    let command = "mkdir busy && grep -o 'm[0-9]' >> order && rmdir busy";
    bob.run(&["listen", "--count", "5", "--exec", command]).ok();
    assert_eq!(
        std::fs::read_to_string(bob.home.join("order")).unwrap(),
        "m0\nm1\nm2\nm3\nm4\n"
    );
}

// SKL-16: the command is not run twice.
#[test]
fn a_listener_killed_during_its_command_replies_after_a_restart() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    alice.run(&["send", "bob@chorus", "slow"]).ok();
    let mut listening = bob.listen(&["--exec", "echo x >> runs; exec tail -f /dev/null"]);
    assert_eq!(text_of(&listening.json()), "slow");
    let runs = bob.home.join("runs");
    await_file(&runs);
    listening.send_signal("KILL");
    listening.await_exit();
    alice.run(&["send", "bob@chorus", "quick"]).ok();
    let received = bob.json(&["listen", "--count", "1", "--exec", "echo x >> runs"]);
    assert_eq!(text_of(&received[0]), "quick");
    assert_eq!(std::fs::read_to_string(runs).unwrap(), "x\nx\n");
    let answers = alice.json(&["listen", "--count", "2"]);
    assert_eq!(answers[0]["response"]["error_code"], "ADAPTATION_FAILED");
    assert_eq!(answers[1]["response"]["status"], "ok");
}

fn await_file(path: &std::path::Path) {
    let deadline = std::time::Instant::now() + crate::actors::TIMEOUT;
    while !std::fs::read_to_string(path).is_ok_and(|text| text.ends_with('\n')) {
        assert!(
            std::time::Instant::now() < deadline,
            "{} never came",
            path.display()
        );
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}
