//! Channels from the command line: rooms, deliveries on an inbox, and answers to them (R-70, R-71, R-78).

use crate::actors::{Agent, Hub, Ongoing, Scene, chorus, run};
use serde_json::Value;

impl Agent {
    /// Everything in a room from its beginning on, a JSON line each.
    pub fn tail(&self, room: &str, words: &[&str]) -> Ongoing {
        Ongoing::start(
            self.command(&[&["channel", "tail", room, "--since", "0", "--json"], words].concat()),
        )
    }

    /// The same words with something on standard input.
    pub fn fed(&self, words: &[&str], input: &str) -> crate::actors::Ended {
        run(self.command(words), input)
    }
}

/// A new room of this agent, by its id.
pub fn room(owner: &Agent, name: &str) -> String {
    let made = &owner.json(&["channel", "create", name])[0];
    assert_eq!(made["name"], name);
    made["id"].as_str().unwrap().to_owned()
}

/// The next lines of a room that are not about who came and went.
pub fn lines(tail: &Ongoing, count: usize) -> Vec<Value> {
    let mut lines = Vec::new();
    while lines.len() < count {
        let line = tail.json();
        if line["type"] != "member" {
            lines.push(line);
        }
    }
    lines
}

/// What was said in these lines.
pub fn contents(lines: &[Value]) -> Vec<String> {
    let said = lines.iter().filter(|line| line["type"] == "message");
    said.map(|line| line["content"].as_str().unwrap().to_owned())
        .collect()
}

// Deliver 6
#[test]
fn a_room_is_made_entered_talked_in_and_closed() {
    let scene = Scene::open();
    let (alice, bob) = (scene.agent("alice"), scene.agent("bob"));
    let id = room(&alice, "ops team");
    assert_eq!(bob.run(&["channel", "list"]).ok().out, "");
    let refused = bob.run(&["channel", "history", &id, "--json"]);
    assert!(
        refused.code == 4 && refused.err.contains("ERR_NOT_FOUND"),
        "{refused:?}"
    );
    alice
        .run(&["channel", "add", "ops team", "bob@chorus", "--mentions"])
        .ok();
    let shown = alice.run(&["channel", "show", "ops team"]).ok().out;
    assert!(
        shown.contains(&id) && shown.contains("bob  agent  hears mentions"),
        "{shown}"
    );
    let tail = bob.tail(&id, &["--count", "4"]);
    alice
        .run(&["channel", "post", "ops team", "hello", "all"])
        .ok();
    bob.fed(&["channel", "post", "ops team", "-"], "two\nlines\n")
        .ok();
    assert_eq!(contents(&lines(&tail, 2)), ["hello all", "two\nlines"]);
    let said = alice.run(&["channel", "history", &id]).ok().out;
    assert!(
        said.contains("bob joined") && said.contains("alice: hello all\n"),
        "{said}"
    );
    assert!(
        said.contains("bob: two\n    lines\n"),
        "further lines are set in: {said}"
    );
    let last = alice.json(&["channel", "history", &id, "--limit", "1"]);
    assert_eq!(
        contents(&last),
        ["two\nlines"],
        "the last ones, unless a cursor says from where"
    );
    let all = alice.json(&["channel", "history", &id, "--since", "0"]);
    let first = all.iter().find(|line| line["type"] == "message").unwrap();
    let after = alice.json(&[
        "channel",
        "history",
        &id,
        "--since",
        &first["cursor"].to_string(),
    ]);
    assert_eq!(contents(&after), ["two\nlines"]);
    alice.run(&["channel", "rename", &id, "operations"]).ok();
    assert_eq!(alice.json(&["channel", "list"])[0]["name"], "operations");
    let unknown = alice.run(&["channel", "post", "ops team", "x"]);
    assert!(
        unknown.code == 1 && unknown.err.contains("ops team"),
        "{unknown:?}"
    );
    assert_eq!(
        bob.run(&["channel", "rename", &id, "mine"]).code,
        4,
        "only its owner"
    );
    alice.run(&["channel", "remove", &id, "bob"]).ok();
    assert_eq!(bob.run(&["channel", "history", &id]).code, 4);
    assert_eq!(
        alice.run(&["channel", "delete", &id]).code,
        1,
        "not without --yes"
    );
    alice.run(&["channel", "delete", &id, "--yes"]).ok();
    assert_eq!(alice.json(&["channel", "list"]).len(), 0);
}

// CHN-01…04
#[test]
fn a_connection_string_is_kept_rotated_and_revoked() {
    let scene = Scene::open();
    let bob = scene.agent("bob");
    let first = bob.run(&["connection"]).ok().out;
    assert!(
        first.starts_with(&format!("{}/inbox/sk_", scene.hub.url)),
        "{first}"
    );
    assert_eq!(
        bob.run(&["connection"]).ok().out,
        first,
        "asking again cuts nobody off"
    );
    let rotated = bob.json(&["connection", "--rotate"]);
    assert_ne!(rotated[0]["connection_string"], first.trim());
    assert_eq!(rotated[0]["new"], true);
    let alice = scene.agent("alice");
    let id = room(&alice, "ops");
    // A dead one can be added, as any URL can; nothing ever comes of it.
    assert_eq!(
        alice.fed(&["channel", "add", &id, "-"], &first).code,
        1,
        "it needs a name"
    );
    let again = bob.run(&["connection", "--rotate", "--revoke"]);
    assert_eq!(again.code, 1, "{again:?}");
    assert_eq!(bob.json(&["connection", "--revoke"])[0]["revoked"], true);
    assert_eq!(bob.json(&["connection", "--revoke"])[0]["revoked"], false);
    assert_ne!(
        bob.json(&["connection"])[0]["connection_string"],
        rotated[0]["connection_string"]
    );
}

// R-76
#[test]
fn a_standing_callback_speaks_in_the_room_until_another_takes_its_place() {
    let scene = Scene::open();
    let (alice, bob) = (scene.agent("alice"), scene.agent("bob"));
    let id = room(&alice, "ops");
    alice.run(&["channel", "add", &id, "bob@chorus"]).ok();
    let first = bob.run(&["channel", "callback", "ops", "bob"]).ok().out;
    assert!(
        first.starts_with(&format!("{}/channels/{id}/inbox/tok_", scene.hub.url)),
        "{first}"
    );
    bob.fed(&["say", "nobody asked", "--callback", "-"], &first)
        .ok();
    let second = alice.json(&["channel", "callback", &id, "bob"]).remove(0);
    let second = second["callback"].as_str().unwrap();
    assert_ne!(second, first.trim());
    assert_eq!(
        bob.fed(&["say", "too late", "--callback", "-"], &first)
            .code,
        4
    );
    bob.fed(&["say", "once more", "--callback", "-"], second)
        .ok();
    assert_eq!(
        contents(&alice.json(&["channel", "history", &id])),
        ["nobody asked", "once more"]
    );
    assert_eq!(
        bob.run(&["channel", "callback", &id, "alice"]).code,
        4,
        "an owner speaks with its key"
    );
    assert_eq!(bob.run(&["channel", "callback", &id, "nobody"]).code, 4);
}

#[cfg(unix)]
#[test]
fn what_is_secret_is_for_its_owners_eyes_only() {
    use std::os::unix::fs::PermissionsExt;
    let scene = Scene::open();
    let (alice, bob) = (scene.agent("alice"), scene.agent("bob"));
    bob.run(&["connection"]).ok();
    let id = room(&alice, "ops");
    alice.run(&["channel", "add", &id, "bob@chorus"]).ok();
    alice.run(&["channel", "post", &id, "hi"]).ok();
    let shown = bob.run(&["listen", "--once"]).ok();
    assert_eq!(shown.out, "#ops alice: hi\n", "no callback on a screen");
    for file in ["connection.json", "callbacks.json"] {
        let mode = std::fs::metadata(bob.home.join(".chorus").join(file))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o077, 0, "{file}");
    }
}

// CHN-23…33, R-71: every kind, and every way to say where it goes
#[test]
fn an_agent_answers_in_every_way_the_document_knows() {
    let scene = Scene::open();
    let (alice, bob) = (scene.agent("alice"), scene.agent("bob"));
    let id = room(&alice, "ops");
    alice.run(&["channel", "add", &id, "bob@chorus"]).ok();
    assert_eq!(bob.run(&["say", "too early"]).code, 1);
    alice
        .run(&["channel", "post", &id, "what is the weather in Oslo?"])
        .ok();
    let heard = bob.json(&["listen", "--once"]);
    assert_eq!(
        (&heard[0]["event"], &heard[0]["delivery"]["channel"]["name"]),
        (&"channel".into(), &"ops".into())
    );
    let callback = heard[0]["delivery"]["callback"].as_str().unwrap();
    bob.run(&["say", "--status", "searching weather data"]).ok();
    bob.run(&[
        "say",
        "--tool-call",
        "web_search",
        "--args",
        r#"{"query":"oslo weather"}"#,
        "--id",
        "tc_001",
    ])
    .ok();
    bob.run(&[
        "say",
        "--channel",
        "ops",
        "--tool-result",
        "--id",
        "tc_001",
        "3°C,",
        "cloudy",
    ])
    .ok();
    bob.run(&[
        "say",
        "--channel",
        &id,
        "--error",
        "no wind data",
        "--code",
        "tool_error",
    ])
    .ok();
    bob.fed(
        &["say", "--callback", "-", "The weather in Oslo is 3°C."],
        &format!("{callback}\n"),
    )
    .ok();
    std::fs::write(bob.home.join("callback"), callback).unwrap();
    bob.run(&["say", "--callback", "callback", "from a file"])
        .ok();
    bob.run(&[
        "say",
        callback,
        "as",
        "it",
        "stands",
        "--as",
        "Bob the agent",
    ])
    .ok();
    let stream = "{\"type\":\"status\",\"status\":\"writing\"}\n\n{\"type\":\"message\",\"content\":\"streamed\"}\n";
    assert_eq!(bob.fed(&["say", "--ndjson"], stream).ok().out, "said 2\n");
    let torn = "{\"type\":\"message\",\"content\":\"before\"}\n{\"type\":\"shout\"}\n{\"type\":\"message\",\"content\":\"after\"}\n";
    let refused = bob.fed(&["say", "--ndjson"], torn);
    assert!(
        refused.code == 1 && refused.err.contains("line 2"),
        "{refused:?}"
    );
    let all = alice.json(&["channel", "history", &id, "--since", "0"]);
    let rows: Vec<&Value> = all.iter().filter(|line| line["type"] != "member").collect();
    let kinds: Vec<&str> = rows
        .iter()
        .map(|row| row["type"].as_str().unwrap())
        .collect();
    let expected = [
        "message",
        "status",
        "tool_call",
        "tool_result",
        "error",
        "message",
        "message",
        "message",
        "status",
    ];
    assert_eq!(kinds, [&expected[..], &["message", "message"]].concat());
    assert_eq!(rows[2]["args"]["query"], "oslo weather");
    assert_eq!(
        rows[3]["call"], rows[2]["cursor"],
        "a result is paired with its call"
    );
    let said: Vec<&str> = rows[5..]
        .iter()
        .filter_map(|row| row["content"].as_str())
        .collect();
    assert_eq!(
        said,
        [
            "The weather in Oslo is 3°C.",
            "from a file",
            "as it stands",
            "streamed",
            "before"
        ]
    );
    let shown = alice.run(&["channel", "history", &id]).ok().out;
    for line in [
        "bob → web_search {\"query\":\"oslo weather\"}",
        "bob ← 3°C, cloudy",
        "bob failed: no wind data (tool_error)",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    alice.run(&["channel", "remove", &id, "bob"]).ok();
    let gone = bob.run(&["say", "still there?"]);
    assert!(gone.code == 4 && !gone.err.contains("tok_"), "{gone:?}");
    assert_eq!(bob.run(&["say", "--channel", "elsewhere", "x"]).code, 1);
    assert_eq!(bob.run(&["say"]).code, 1);
}

#[test]
fn a_command_answers_deliveries() {
    let scene = Scene::open();
    let (alice, bob) = (scene.agent("alice"), scene.agent("bob"));
    let id = room(&alice, "ops");
    alice.run(&["channel", "add", &id, "bob@chorus"]).ok();
    let binary = env!("CARGO_BIN_EXE_chorus");
    let handler = format!("grep -o '\"content\":\"[a-z]*\"' | {binary} say -");
    let _listening = bob.listen(&["--exec", &handler]);
    alice.run(&["channel", "post", &id, "ping"]).ok();
    let tail = alice.tail(&id, &[]);
    assert_eq!(contents(&lines(&tail, 2)), ["ping", "\"content\":\"ping\""]);
}

// R-75: what the tools keep is shown to whoever is in the room
#[test]
fn a_room_without_artifacts_has_none_to_show() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let id = room(&alice, "ops");
    assert_eq!(alice.run(&["channel", "artifacts", &id]).ok().out, "");
    assert_eq!(
        alice.run(&["channel", "artifacts", &id, "auth-spec"]).code,
        4
    );
}

// R-74
#[test]
fn no_log_line_has_a_secret_in_it() {
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
    let process = Ongoing::start_with(command, std::fs::File::create(&log).unwrap());
    let url = process
        .line()
        .strip_prefix("chorus listening on ")
        .unwrap()
        .to_owned();
    let scene = Scene {
        folder,
        hub: Hub { url, process },
    };
    let (alice, bob) = (scene.agent("alice"), scene.agent("bob"));
    let id = room(&alice, "ops");
    let connection = bob.run(&["connection"]).ok().out;
    alice
        .fed(
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
    let tail = alice.tail(&id, &[]);
    while tail.json()["change"] != "unreachable" {}
    let written = std::fs::read_to_string(&log).unwrap();
    assert!(
        written.contains("/inbox/{secret}"),
        "requests are in it, by their route: {written}"
    );
    for secret in ["sk_", "tok_", "mcp_", "ca_"] {
        assert!(
            !written.contains(secret),
            "{secret} is in the log: {written}"
        );
    }
}
