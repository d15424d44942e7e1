//! Agents that know each other's endpoints need no hub (TRN-44, ENV-12…14, R-28).

use crate::actors::{Agent, Ongoing, Scene, text_of};

fn receiver(bob: &Agent, words: &[&str]) -> (Ongoing, String) {
    let listening = bob.listen(&[&["--direct", "127.0.0.1:0"], words].concat());
    let url = listening.json()["url"].as_str().unwrap().to_owned();
    (listening, url)
}

fn homes() -> (tempfile::TempDir, Agent, Agent) {
    let folder = tempfile::tempdir().unwrap();
    let agent = |name: &str| {
        let home = folder.path().join(name);
        std::fs::create_dir(&home).unwrap();
        // A hub that is not there: nothing may ask it.
        Agent {
            home,
            hub: "http://127.0.0.1:1".into(),
        }
    };
    let (alice, bob) = (agent("alice"), agent("bob"));
    (folder, alice, bob)
}

const FROM: [&str; 4] = ["--from", "alice@example", "--culture", "en"];

// TRN-44
#[test]
fn two_agents_talk_without_a_hub() {
    let (_folder, alice, bob) = homes();
    let (mut listening, url) = receiver(&bob, &["--count", "1"]);
    let sent = alice.json(
        &[
            &["send", "--direct", &url, "bob@example", "hi there"],
            &FROM[..],
        ]
        .concat(),
    );
    assert_eq!(
        sent[0]["receiver_response"],
        serde_json::json!({"status":"ok"})
    );
    let heard = listening.json();
    assert_eq!(
        (text_of(&heard), &heard["sender_id"]),
        ("hi there", &"alice@example".into())
    );
    assert_eq!(listening.await_end(), Some(0));
    assert_eq!(text_of(&bob.file("alice@example")[0]), "hi there");
    assert_eq!(text_of(&alice.file("bob@example")[0]), "hi there");
}

// R-28, also across a restart of the receiver.
#[test]
fn a_turn_sent_directly_twice_is_shown_once_and_answered_twice() {
    let (_folder, alice, bob) = homes();
    let words = ["bob@example", "once", "--conversation", "c1", "--turn", "1"];
    for _ in 0..2 {
        let (listening, url) = receiver(&bob, &[]);
        for _ in 0..2 {
            let sent = alice.json(&[&["send", "--direct", &url], &words[..], &FROM[..]].concat());
            assert_eq!(sent[0]["receiver_response"]["status"], "ok");
        }
        listening.signal("TERM");
        listening.rest();
    }
    assert_eq!(bob.file("alice@example").len(), 1);
}

// SKL-16
#[test]
fn a_receivers_failure_reaches_the_direct_sender() {
    let (_folder, alice, bob) = homes();
    let (_listening, url) = receiver(&bob, &["--exec", "exit 1"]);
    let refused =
        alice.run(&[&["send", "--direct", &url, "bob@example", "hi"], &FROM[..]].concat());
    assert!(
        refused.code == 4 && refused.err.contains("ADAPTATION_FAILED"),
        "{refused:?}"
    );
}

// TRN-45, TRN-16: the same endpoint serves a hub's webhooks.
#[test]
fn a_direct_listener_is_an_endpoint_for_a_hub() {
    let scene = Scene::open();
    let (alice, bob) = (scene.agent("alice"), scene.newcomer("bob"));
    let (listening, url) = receiver(&bob, &[]);
    bob.run(&[
        "register",
        "bob@chorus",
        "--culture",
        "en",
        "--endpoint",
        &url,
    ])
    .ok();
    let sent = alice.json(&["send", "bob@chorus", "by webhook"]).remove(0);
    assert_eq!(
        (&sent["delivery"], &sent["receiver_response"]["status"]),
        (&"delivered".into(), &"ok".into())
    );
    assert_eq!(text_of(&listening.json()), "by webhook");
}
