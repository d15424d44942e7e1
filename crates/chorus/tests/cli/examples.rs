//! The worked examples, each as a process of its own against hubs that are processes too.

use crate::actors::{Hub, Ongoing, Scene};
use crate::channel::{contents, lines, room};
use std::path::PathBuf;
use std::process::Command;

/// The binary of an example, which lies beside ours.
fn example(name: &str) -> Command {
    let folder = PathBuf::from(env!("CARGO_BIN_EXE_chorus")).parent().unwrap().join("examples");
    let binary = folder.join(name);
    assert!(binary.exists(), "{name} is not built; cargo test builds it unless told to build less (--examples)");
    let mut command = Command::new(binary);
    command.env_clear();
    command
}

// Deliver 7: a complete agent, also over its own restart and its hub's
#[test]
fn the_echo_agent_answers_what_it_hears_also_after_restarts() {
    let mut scene = Scene::open();
    let alice = scene.agent("alice");
    let echo = scene.agent("echo");
    let credentials = echo.home.join(".chorus/config.json");
    let start = || {
        let mut command = example("echo-agent");
        command.arg(&credentials);
        let agent = Ongoing::start(command);
        assert_eq!(agent.line(), "echo@chorus is listening");
        agent
    };
    let room = room(&alice, "ops");
    alice.run(&["channel", "add", &room, "echo@chorus"]).ok();
    let agent = start();
    let tail = alice.tail(&room, &[]);
    alice.run(&["channel", "post", &room, "hello", "@echo"]).ok();
    let heard = lines(&tail, 4);
    assert_eq!(contents(&heard), ["hello @echo", "alice said: hello echo"]);
    assert_eq!(heard.iter().filter(|line| line["type"] == "status").count(), 2, "{heard:?}");
    drop(agent);
    alice.run(&["channel", "post", &room, "are you there?"]).ok();
    let address = scene.hub.url.strip_prefix("http://").unwrap().to_owned();
    scene.hub.process.signal("KILL");
    scene.hub.process.await_end();
    scene.hub = Hub::start(scene.folder.path(), &["--listen", &address]);
    let _agent = start();
    assert_eq!(contents(&lines(&tail, 4)), ["are you there?", "alice said: are you there?"]);
}

// Deliver 7: two hubs, and between them only connection strings and callbacks
#[test]
fn the_room_relay_mirrors_two_rooms_and_echoes_nothing() {
    let scenes = [Scene::open(), Scene::open()];
    let (alice, bob) = (scenes[0].agent("alice"), scenes[1].agent("bob"));
    let mut command = example("room-relay");
    command.arg("127.0.0.1:0");
    let relay = Ongoing::start(command);
    let rooms = [room(&alice, "here"), room(&bob, "there")];
    for (owner, room) in [&alice, &bob].into_iter().zip(&rooms) {
        let mut command = owner.command(&["channel", "add", room, "-", "--name", "relay"]);
        command.current_dir(&owner.home);
        crate::actors::run(command, &relay.line()).ok();
    }
    let (here, there) = (alice.tail(&rooms[0], &[]), bob.tail(&rooms[1], &[]));
    // The first word waits until the other side has spoken, and is not lost.
    alice.run(&["channel", "post", &rooms[0], "first"]).ok();
    bob.run(&["channel", "post", &rooms[1], "second"]).ok();
    assert_eq!(sorted(&lines(&here, 2)), ["bob: second", "first"]);
    assert_eq!(sorted(&lines(&there, 2)), ["alice: first", "second"]);
    for text in ["third @relay", "fourth"] {
        alice.run(&["channel", "post", &rooms[0], text]).ok();
    }
    bob.run(&["channel", "post", &rooms[1], "fifth"]).ok();
    let mirrored = sorted(&lines(&there, 3));
    assert_eq!(mirrored, ["alice: fourth", "alice: third @relay", "fifth"]);
    assert_eq!(sorted(&lines(&here, 3)), ["bob: fifth", "fourth", "third @relay"]);
    // Nothing came back: each room has what was said in it and what was mirrored, once.
    for (owner, room) in [(&alice, &rooms[0]), (&bob, &rooms[1])] {
        let all = owner.json(&["channel", "history", room]);
        assert_eq!(all.iter().filter(|line| line["type"] == "message").count(), 5, "{all:?}");
    }
}

fn sorted(lines: &[serde_json::Value]) -> Vec<String> {
    let mut texts = contents(lines);
    texts.sort();
    texts
}
