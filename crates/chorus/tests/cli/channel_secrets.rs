//! Channels on the command line: secrets stay out of the log, and an invitation is declined.

use crate::actors::{Hub, RunningProcess, Scene, chorus};
use crate::channel::create_channel;

//
#[test]
fn no_log_line_contains_a_secret() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let mut command = chorus(folder.path());
    command.args([
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--log",
        "debug",
        "--allow-private-endpoints",
    ]);
    let process = RunningProcess::start_with_log(command, std::fs::File::create(&log).unwrap());
    let url = process
        .next_line()
        .strip_prefix("chorus listening on ")
        .unwrap()
        .to_owned();
    let scene = Scene {
        folder,
        hub: Hub { url, process },
    };
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    let id = create_channel(&alice, "ops");
    let connection = bob.run(&["connection"]).ok().out;
    alice
        .run_with_input(
            &["channel", "add", &id, "-", "--name", "timber"],
            &connection,
        )
        .ok();
    alice.run(&["channel", "post", &id, "by its own URL"]).ok();
    bob.run(&["listen", "--once"]).ok();
    bob.run(&["say", "heard"]).ok();
    bob.run(&["connection", "--rotate"]).ok();
    alice
        .run(&["channel", "post", &id, "to a dead string"])
        .ok();
    let tail = alice.tail_channel(&id, &[]);
    while tail.json()["change"] != "unreachable" {}
    let log_text = std::fs::read_to_string(&log).unwrap();
    assert!(
        log_text.contains("/inbox/{secret}"),
        "requests are logged by their route: {log_text}"
    );
    for secret in ["sk_", "tok_", "mcp_", "ca_"] {
        assert!(
            !log_text.contains(secret),
            "{secret} is in the log: {log_text}"
        );
    }
}

//
#[test]
fn an_invitation_is_declined() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    let id = create_channel(&alice, "ops");
    alice.run(&["channel", "add", &id, "bob@chorus"]).ok();
    let shown = alice.run(&["channel", "show", "ops"]).ok().out;
    assert!(shown.contains("offline  invited"), "{shown}");
    bob.run(&["channel", "decline", "ops"]).ok();
    assert_eq!(bob.run(&["channel", "list"]).ok().out, "");
    let history = alice.run(&["channel", "history", &id]).ok().out;
    assert!(history.contains("bob does not want to join"), "{history}");
}
