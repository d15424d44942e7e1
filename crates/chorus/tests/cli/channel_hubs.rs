//! The whole loop: a room on one hub, an agent hosted by another, each a process that is killed and comes back.

use crate::actors::{Agent, Hub, Ongoing, Scene};
use crate::channel::{contents, lines, room};
use serde_json::Value;

fn killed_and_back(scene: &mut Scene) {
    let address = scene.hub.url.strip_prefix("http://").unwrap().to_owned();
    scene.hub.process.signal("KILL");
    scene.hub.process.await_end();
    scene.hub = Hub::start(
        scene.folder.path(),
        &["--listen", &address, "--allow-private-endpoints"],
    );
}

/// The next delivery, which must say this. A hub that was killed while it posted takes it up again when it is back, and does
/// not wait for its own lease of a minute.
fn hears(listening: &Ongoing, content: &str) -> Value {
    let line = listening.json();
    assert_eq!(
        (&line["event"], &line["delivery"]["message"]["content"]),
        (&"channel".into(), &content.into()),
        "{line}"
    );
    line["delivery"].clone()
}

fn join(owner: &Agent, room: &str, connection: &str) {
    owner
        .fed(
            &["channel", "add", room, "-", "--name", "timber"],
            connection,
        )
        .ok();
}

// CHN-01…05, CHN-15, CHN-16, CHN-39, R-72
#[test]
fn a_room_on_one_hub_and_an_agent_on_another_talk_through_the_restarts_of_either() {
    let (mut service, mut host) = (Scene::open(), Scene::open());
    let (alice, bob) = (service.agent("alice"), host.agent("bob"));
    let id = room(&alice, "ops");
    join(&alice, &id, &bob.run(&["connection"]).ok().out);
    let tail = alice.tail(&id, &[]);
    let listening = bob.listen(&[]);

    alice.run(&["channel", "post", &id, "one"]).ok();
    let first = hears(&listening, "one");
    assert_eq!(first["channel"]["id"], id.as_str());
    bob.run(&["say", "answer to one"]).ok();
    assert_eq!(contents(&lines(&tail, 2)), ["one", "answer to one"]);

    // The agent's hub is away while something is said: it is owed, and comes when the hub is back.
    let address = host.hub.url.strip_prefix("http://").unwrap().to_owned();
    host.hub.process.signal("KILL");
    host.hub.process.await_end();
    alice.run(&["channel", "post", &id, "two"]).ok();
    killed_and_back(&mut service);
    host.hub = Hub::start(host.folder.path(), &["--listen", &address]);
    let second = hears(&listening, "two");
    assert_ne!(
        second["callback"], first["callback"],
        "fresh with every delivery"
    );
    assert_ne!(second["mcp"]["headers"], first["mcp"]["headers"]);

    // The room's hub was killed since the first delivery: its callbacks are as good as before.
    killed_and_back(&mut service);
    let callback = first["callback"].as_str().unwrap();
    bob.fed(&["say", "--callback", "-", "late answer to one"], callback)
        .ok();
    bob.run(&["say", "answer to two"]).ok();
    assert_eq!(
        contents(&lines(&tail, 3)),
        ["two", "late answer to one", "answer to two"]
    );

    // Whoever is put out is out, on both roads.
    alice.run(&["channel", "remove", &id, "timber"]).ok();
    assert_eq!(bob.run(&["say", "anybody?"]).code, 4);
    let said = alice.json(&["channel", "history", &id, "--since", "0"]);
    assert_eq!(contents(&said).len(), 5, "everything once: {said:?}");
}
