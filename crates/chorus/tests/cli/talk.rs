//! Two agents exchange messages: send, listen, status, reply and history (SKL-11, SKL-26…31, SKL-35…37, R-34).

use crate::actors::{Scene, run, text_of};

// SKL-16, SKL-18, R-34
#[test]
fn a_message_to_an_offline_agent_is_queued_received_once_and_acknowledged() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    let sent = &alice.json(&["send", "bob@chorus", "Shall", "we", "meet?"])[0];
    assert_eq!(sent["delivery"], "queued");
    let received = &bob.json(&["listen", "--count", "1"])[0];
    assert_eq!(
        (&received["event"], text_of(received)),
        (&"message".into(), "Shall we meet?")
    );
    assert_eq!(
        (&received["sender_id"], &received["trace_id"]),
        (&"alice@chorus".into(), &sent["trace_id"])
    );
    let receipt = &alice.json(&["listen", "--once"])[0];
    assert_eq!(
        (&receipt["event"], &receipt["trace_id"]),
        (&"receipt".into(), &sent["trace_id"])
    );
    assert_eq!(receipt["response"], serde_json::json!({"status":"ok"}));
    let status = &alice.json(&["status", sent["trace_id"].as_str().unwrap()])[0];
    assert_eq!(status["status"], "acknowledged");
    alice.run(&["send", "bob@chorus", "second"]).ok();
    assert_eq!(
        text_of(&bob.json(&["listen", "--count", "1"])[0]),
        "second",
        "the first one is not repeated"
    );
}

// SKL-27, SKL-28
#[test]
fn both_agents_keep_the_same_envelope() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    let context = "an invitation among colleagues";
    alice
        .run(&[
            "send",
            "bob@chorus",
            "喝咖啡?",
            "--culture",
            "zh-CN",
            "--context",
            context,
        ])
        .ok();
    bob.run(&["listen", "--count", "1"]).ok();
    let sent = alice.history_lines("bob@chorus").remove(0);
    let received = bob.history_lines("alice@chorus").remove(0);
    assert_eq!(
        (&sent["dir"], &sent["peer"]),
        (&"sent".into(), &"bob@chorus".into())
    );
    assert_eq!(
        (&received["dir"], &received["peer"]),
        (&"received".into(), &"alice@chorus".into())
    );
    assert_eq!(sent["envelope"], received["envelope"]);
    assert_eq!(sent["envelope"]["cultural_context"], context);
    let keys: Vec<&String> = sent.as_object().unwrap().keys().collect();
    assert_eq!(keys.len(), 4, "{keys:?}");
    assert_eq!(alice.json(&["history", "bob@chorus"]), [sent]);
    assert_eq!(text_of(&bob.json(&["history", "--remote"])[0]), "喝咖啡?");
}

// ENV-07, ENV-08
#[test]
fn turn_numbers_count_across_both_agents() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    let turn = |line: &serde_json::Value| line["envelope"]["turn_number"].as_u64();
    alice
        .run(&["send", "bob@chorus", "one", "--conversation", "c1"])
        .ok();
    alice
        .run(&["send", "bob", "two", "--conversation", "c1"])
        .ok();
    bob.run(&["listen", "--count", "2"]).ok();
    bob.run(&["send", "alice@chorus", "three", "--conversation", "c1"])
        .ok();
    bob.run(&["send", "alice@chorus", "aside"]).ok();
    bob.run(&[
        "send",
        "alice@chorus",
        "elsewhere",
        "--conversation",
        "c2",
        "--turn",
        "9",
    ])
    .ok();
    let turns: Vec<_> = bob.history_lines("alice@chorus").iter().map(turn).collect();
    assert_eq!(turns, [Some(1), Some(2), Some(3), None, Some(9)]);
    assert_eq!(
        alice
            .history_lines("bob@chorus")
            .iter()
            .map(turn)
            .collect::<Vec<_>>(),
        [Some(1), Some(2)]
    );
}

// R-28
#[test]
fn a_repeated_turn_is_printed_once_and_acknowledged_twice() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    let turn = [
        "send",
        "bob@chorus",
        "once",
        "--conversation",
        "c1",
        "--turn",
        "1",
    ];
    alice.run(&turn).ok();
    alice.run(&turn).ok();
    alice.run(&["send", "bob@chorus", "end"]).ok();
    let received: Vec<String> = bob
        .json(&["listen", "--count", "2"])
        .iter()
        .map(|m| text_of(m).to_owned())
        .collect();
    assert_eq!(received, ["once", "end"]);
    let receipts = alice.json(&["listen", "--count", "3"]);
    assert!(
        receipts
            .iter()
            .all(|receipt| receipt["response"]["status"] == "ok"),
        "{receipts:?}"
    );
    assert_eq!(bob.history_lines("alice@chorus").len(), 2);
}

// SKL-04…09
#[test]
fn standard_input_is_sent_unchanged() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    let text = "erste Zeile\n  \"zweite\" \u{1b}[2J $(rm -rf x) 👋";
    run(
        alice.command(&["send", "bob@chorus", "-"]),
        &format!("{text}\n"),
    )
    .ok();
    alice.run(&["send", "bob@chorus", "end"]).ok();
    assert_eq!(
        text_of(&bob.json(&["listen", "--since", "0", "--count", "2"])[0]),
        text
    );
    let shown = bob
        .run(&["listen", "--since", "0", "--count", "2"])
        .ok()
        .out;
    assert!(
        !shown.contains('\u{1b}') && shown.contains("\n      \"zweite\""),
        "{shown:?}"
    );
}

// TRN-20, R-23: a failed delivery is reported, stored, and not a success.
#[test]
fn an_unreachable_endpoint_is_reported_with_its_code() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.newcomer("bob");
    let unreachable_url = "http://127.0.0.1:1/receive";
    bob.run(&[
        "register",
        "bob@chorus",
        "--culture",
        "en",
        "--endpoint",
        unreachable_url,
    ])
    .ok();
    let ended = alice.run(&["send", "bob@chorus", "hi", "--json"]);
    assert_eq!(
        (ended.code, &ended.json()[0]["delivery"]),
        (3, &"failed".into()),
        "{ended:?}"
    );
    assert_eq!(ended.json()[0]["error_code"], "ERR_AGENT_UNREACHABLE");
    assert_eq!(
        text_of(&bob.json(&["listen", "--count", "1"])[0]),
        "hi",
        "the message is stored all the same"
    );
}

// TRN-61
#[test]
fn the_invite_link_names_the_agent() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let link = alice.run(&["invite"]).ok().out;
    assert_eq!(
        link.trim_end(),
        format!("{}/invite/alice@chorus", scene.hub.url)
    );
}

// R-34, R-38
#[test]
fn a_manual_reply_is_possible_and_the_first_reply_counts() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    let sent = alice.json(&["send", "bob@chorus", "hi"]).remove(0);
    let trace = sent["trace_id"].as_str().unwrap();
    bob.run(&["listen", "--count", "1", "--no-reply"]).ok();
    assert_eq!(alice.json(&["status", trace])[0]["status"], "delivered");
    bob.run(&[
        "reply",
        trace,
        "error",
        "--code",
        "ADAPTATION_FAILED",
        "--detail",
        "no words for it",
    ])
    .ok();
    assert_eq!(bob.run(&["reply", trace, "ok"]).code, 4);
    assert_eq!(
        bob.run(&["reply", trace, "error"]).code,
        1,
        "an error needs its code"
    );
    let receipt = alice.json(&["listen", "--once"]).remove(0);
    assert_eq!(receipt["response"]["error_code"], "ADAPTATION_FAILED");
}

// As in `chorus listen | head -1`.
#[test]
fn a_listener_stops_when_its_pipe_is_closed() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    let mut pipe = std::process::Command::new("bash");
    let script = r#"set -o pipefail; "$0" listen | head -n 1"#;
    pipe.args(["-c", script, env!("CARGO_BIN_EXE_chorus")])
        .current_dir(&bob.home);
    pipe.env("HOME", &bob.home)
        .env("CHORUS_HUB", &bob.hub)
        .env_remove("CHORUS_HOME");
    for text in ["one", "two", "three"] {
        alice.run(&["send", "bob@chorus", text]).ok();
    }
    let ended = run(pipe, "").ok();
    assert!(
        ended.out.ends_with("one\n") && ended.out.lines().count() == 1,
        "{ended:?}"
    );
}
