//! A channel on one hub with an agent hosted by another, while either hub is killed and restarted.

use crate::actors::{Agent, Hub, RunningProcess, Scene};
use crate::channel::{create_channel, message_contents, next_rows};
use serde_json::Value;

fn kill_and_restart(scene: &mut Scene) {
    let address = scene.hub.url.strip_prefix("http://").unwrap().to_owned();
    scene.hub.process.send_signal("KILL");
    scene.hub.process.await_exit();
    scene.hub = Hub::start(
        scene.folder.path(),
        &["--listen", &address, "--allow-private-endpoints"],
    );
}

/// The next delivery, which must have this content. A restarted hub retries its own posts at once, without waiting for its
/// lease of a minute.
fn next_delivery(listening: &RunningProcess, content: &str) -> Value {
    let line = listening.json();
    assert_eq!(
        (&line["event"], &line["delivery"]["message"]["content"]),
        (&"channel".into(), &content.into()),
        "{line}"
    );
    line["delivery"].clone()
}

fn add_member(owner: &Agent, channel: &str, connection: &str) {
    owner
        .run_with_input(
            &["channel", "add", channel, "-", "--name", "timber"],
            connection,
        )
        .ok();
}

// CHN-01…05, CHN-15, CHN-16, CHN-39, R-72
#[test]
fn a_channel_and_an_agent_on_another_hub_survive_restarts_of_either_hub() {
    let mut service = Scene::open();
    let mut host = Scene::open();
    let alice = service.agent("alice");
    let bob = host.agent("bob");
    let id = create_channel(&alice, "ops");
    add_member(&alice, &id, &bob.run(&["connection"]).ok().out);
    let tail = alice.tail_channel(&id, &[]);
    let listening = bob.listen(&[]);

    alice.run(&["channel", "post", &id, "one"]).ok();
    let first = next_delivery(&listening, "one");
    assert_eq!(first["channel"]["id"], id.as_str());
    bob.run(&["say", "answer to one"]).ok();
    assert_eq!(
        message_contents(&next_rows(&tail, 2)),
        ["one", "answer to one"]
    );

    // The agent's hub is down while a message is posted: its outbox row is delivered after the restart.
    let address = host.hub.url.strip_prefix("http://").unwrap().to_owned();
    host.hub.process.send_signal("KILL");
    host.hub.process.await_exit();
    alice.run(&["channel", "post", &id, "two"]).ok();
    kill_and_restart(&mut service);
    host.hub = Hub::start(host.folder.path(), &["--listen", &address]);
    let second = next_delivery(&listening, "two");
    assert_ne!(
        second["callback"], first["callback"],
        "a new callback with every delivery"
    );
    assert_ne!(second["mcp"]["headers"], first["mcp"]["headers"]);

    // The channel's hub was killed since the first delivery: its callbacks still work.
    kill_and_restart(&mut service);
    let callback = first["callback"].as_str().unwrap();
    bob.run_with_input(&["say", "--callback", "-", "late answer to one"], callback)
        .ok();
    bob.run(&["say", "answer to two"]).ok();
    assert_eq!(
        message_contents(&next_rows(&tail, 3)),
        ["two", "late answer to one", "answer to two"]
    );

    // A removed member can no longer use its callback.
    alice.run(&["channel", "remove", &id, "timber"]).ok();
    assert_eq!(bob.run(&["say", "hello?"]).code, 4);
    let rows = alice.json(&["channel", "history", &id, "--since", "0"]);
    assert_eq!(
        message_contents(&rows).len(),
        5,
        "each message is there once: {rows:?}"
    );
}
