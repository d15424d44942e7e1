//! `chorus channel`, `connection` and `say`: channels, deliveries and callbacks (R-70, R-71, R-78).

use crate::actors::{Agent, RunningProcess, Scene, run};
use crate::channel_origins::post_delivery;
use serde_json::{Value, json};

impl Agent {
    /// Follows a channel from its beginning, one JSON line per row.
    pub fn tail_channel(&self, channel: &str, args: &[&str]) -> RunningProcess {
        RunningProcess::start(
            self.command(
                &[
                    &["channel", "tail", channel, "--since", "0", "--json"],
                    args,
                ]
                .concat(),
            ),
        )
    }

    /// Runs a command with `input` on standard input.
    pub fn run_with_input(&self, args: &[&str], input: &str) -> crate::actors::CommandOutput {
        run(self.command(args), input)
    }
}

/// Creates a channel of this agent, and returns its id.
pub fn create_channel(owner: &Agent, name: &str) -> String {
    let created = &owner.json(&["channel", "create", name])[0];
    assert_eq!(created["name"], name);
    created["id"].as_str().unwrap().to_owned()
}

/// Invites bob, who accepts (R-92).
fn add_bob(owner: &Agent, bob: &Agent, channel: &str) {
    owner.run(&["channel", "add", channel, "bob@chorus"]).ok();
    bob.run(&["channel", "accept", channel]).ok();
}

/// The next rows of a channel, without member changes.
pub fn next_rows(tail: &RunningProcess, count: usize) -> Vec<Value> {
    let mut rows = Vec::new();
    while rows.len() < count {
        let row = tail.json();
        if row["type"] != "member" {
            rows.push(row);
        }
    }
    rows
}

/// The contents of the messages among these rows.
pub fn message_contents(lines: &[Value]) -> Vec<String> {
    let messages = lines.iter().filter(|line| line["type"] == "message");
    messages
        .map(|line| line["content"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_channel_is_created_joined_used_and_deleted() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    let id = create_channel(&alice, "ops team");
    assert_eq!(bob.run(&["channel", "list"]).ok().out, "");
    let refused = bob.run(&["channel", "history", &id, "--json"]);
    assert!(
        refused.code == 4 && refused.err.contains("ERR_NOT_FOUND"),
        "{refused:?}"
    );
    alice
        .run(&["channel", "add", "ops team", "bob@chorus", "--mentions"])
        .ok();
    let listed = bob.run(&["channel", "list"]).ok().out;
    assert!(listed.contains("invited"), "{listed}");
    bob.run(&["channel", "accept", "ops team"]).ok();
    let shown = alice.run(&["channel", "show", "ops team"]).ok().out;
    assert!(
        shown.contains(&id) && shown.contains("bob  agent  hears mentions"),
        "{shown}"
    );
    let tail = bob.tail_channel(&id, &["--count", "4"]);
    alice
        .run(&["channel", "post", "ops team", "hello", "all"])
        .ok();
    bob.run_with_input(&["channel", "post", "ops team", "-"], "two\nlines\n")
        .ok();
    assert_eq!(
        message_contents(&next_rows(&tail, 2)),
        ["hello all", "two\nlines"]
    );
    let history = alice.run(&["channel", "history", &id]).ok().out;
    assert!(
        history.contains("bob joined") && history.contains("alice: hello all\n"),
        "{history}"
    );
    assert!(
        history.contains("bob: two\n    lines\n"),
        "further lines are indented: {history}"
    );
    let last = alice.json(&["channel", "history", &id, "--limit", "1"]);
    assert_eq!(
        message_contents(&last),
        ["two\nlines"],
        "the latest rows, unless --since is given"
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
    assert_eq!(message_contents(&after), ["two\nlines"]);
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
    remove_member_and_delete(&alice, &bob, &id);
}

// R-73, R-75, R-76: what people do with a channel beside talking.
#[test]
fn people_write_artifacts_fetch_files_and_choose_what_a_member_hears() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    let id = create_channel(&alice, "ops");
    add_bob(&alice, &bob, "ops");
    let write = ["channel", "write", "ops", "spec", "-"];
    let made = alice.run_with_input(&write, "one\n").ok().out;
    assert_eq!(made, "spec is version 1\n");
    let next = [&write[..], &["--from", "1"]].concat();
    alice.run_with_input(&next, "two\n").ok();
    let stale = alice.run_with_input(&next, "three\n");
    assert_eq!(stale.code, 4, "{stale:?}");
    let shown = bob.run(&["channel", "artifacts", "ops", "spec"]).ok().out;
    assert_eq!(shown.trim(), "two");
    let parts = r#"[{"data":{"n":1}}]"#;
    let said = &alice.json(&["channel", "post", "ops", "see", "--parts", parts])[0];
    assert_eq!(said["parts"][0]["data"]["n"], 1);
    let bad = alice.run(&["channel", "post", "ops", "see", "--parts", "[{}]"]);
    assert_eq!(bad.code, 4, "{bad:?}");
    let mode = &alice.json(&["channel", "deliver", "ops", "bob", "mentions"])[0];
    assert_eq!(mode["deliver"], "mentions");
    let history = alice.run(&["channel", "history", &id]).ok().out;
    assert!(history.contains("alice wrote spec, version 2"), "{history}");
    let none = bob.run(&["channel", "file", "ops", "none.bin"]);
    assert!(
        none.code == 4 && none.err.contains("ERR_NOT_FOUND"),
        "{none:?}"
    );
    bob.run(&["listen", "--count", "1"]).ok();
    bob.run(&["say", "--channel", "ops", "here", "--parts", parts])
        .ok();
    let last = alice.json(&["channel", "history", &id, "--limit", "1"]);
    assert_eq!(last[0]["parts"][0]["data"]["n"], 1, "{last:?}");
}

// R-75
#[test]
fn people_fetch_the_bytes_of_a_file_that_an_agent_put() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    let id = create_channel(&alice, "ops");
    add_bob(&alice, &bob, "ops");
    alice.run(&["channel", "post", &id, "begin"]).ok();
    let delivered = bob.json(&["listen", "--once"]);
    let mcp = &delivered.last().unwrap()["delivery"]["mcp"];
    let bearer = mcp["headers"]["Authorization"].as_str().unwrap();
    let headers =
        format!("authorization: {bearer}\r\naccept: application/json, text/event-stream\r\n");
    let file = json!({"name": "page.html", "media_type": "text/html", "data": "PGI+aGk8L2I+"});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "file_put", "arguments": file}});
    post_delivery(mcp["url"].as_str().unwrap(), &headers, &call.to_string());
    let fetch = ["channel", "file", "ops", "page.html"];
    assert_eq!(alice.run(&fetch).ok().out, "<b>hi</b>");
    let kept = alice.home.join("page.html");
    let fetch_to = [&fetch[..], &["--output", kept.to_str().unwrap()]].concat();
    assert_eq!(alice.json(&fetch_to)[0]["size"], 9);
    assert_eq!(std::fs::read_to_string(kept).unwrap(), "<b>hi</b>");
}

fn remove_member_and_delete(owner: &Agent, bob: &Agent, id: &str) {
    owner.run(&["channel", "remove", id, "bob"]).ok();
    assert_eq!(bob.run(&["channel", "history", id]).code, 4);
    assert_eq!(
        owner.run(&["channel", "delete", id]).code,
        1,
        "not without --yes"
    );
    owner.run(&["channel", "delete", id, "--yes"]).ok();
    assert_eq!(owner.json(&["channel", "list"]).len(), 0);
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
        "asking again does not rotate it"
    );
    let rotated = bob.json(&["connection", "--rotate"]);
    assert_ne!(rotated[0]["connection_string"], first.trim());
    assert_eq!(rotated[0]["new"], true);
    let alice = scene.agent("alice");
    let id = create_channel(&alice, "ops");
    assert_eq!(
        alice
            .run_with_input(&["channel", "add", &id, "-"], &first)
            .code,
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
fn a_persistent_callback_works_until_it_is_replaced() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    let id = create_channel(&alice, "ops");
    add_bob(&alice, &bob, &id);
    let first = bob.run(&["channel", "callback", "ops", "bob"]).ok().out;
    assert!(
        first.starts_with(&format!("{}/channels/{id}/inbox/tok_", scene.hub.url)),
        "{first}"
    );
    bob.run_with_input(&["say", "unprompted", "--callback", "-"], &first)
        .ok();
    let second = alice.json(&["channel", "callback", &id, "bob"]).remove(0);
    let second = second["callback"].as_str().unwrap();
    assert_ne!(second, first.trim());
    assert_eq!(
        bob.run_with_input(&["say", "too late", "--callback", "-"], &first)
            .code,
        4
    );
    bob.run_with_input(&["say", "once more", "--callback", "-"], second)
        .ok();
    assert_eq!(
        message_contents(&alice.json(&["channel", "history", &id])),
        ["unprompted", "once more"]
    );
    assert_eq!(
        bob.run(&["channel", "callback", &id, "alice"]).code,
        4,
        "an owner posts with its key"
    );
    assert_eq!(bob.run(&["channel", "callback", &id, "stranger"]).code, 4);
}

#[cfg(unix)]
#[test]
fn files_with_secrets_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    bob.run(&["connection"]).ok();
    let id = create_channel(&alice, "ops");
    add_bob(&alice, &bob, &id);
    alice.run(&["channel", "post", &id, "hi"]).ok();
    let shown = bob.run(&["listen", "--once"]).ok();
    assert_eq!(
        shown.out,
        format!(
            "alice@chorus invites you to #ops as bob: chorus channel accept {id}\n#ops alice: hi\n"
        ),
        "no callback is printed"
    );
    for file in ["connection.json", "callbacks.json"] {
        let mode = std::fs::metadata(bob.home.join(".chorus").join(file))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o077, 0, "{file}");
    }
}

// CHN-23…33, R-71: every kind of event, and every way to name the callback
#[test]
fn an_agent_can_post_every_kind_of_event() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    let id = create_channel(&alice, "ops");
    add_bob(&alice, &bob, &id);
    assert_eq!(bob.run(&["say", "too early"]).code, 1);
    alice
        .run(&["channel", "post", &id, "what is the weather in Oslo?"])
        .ok();
    let mut delivered = bob.json(&["listen", "--once"]);
    assert_eq!(delivered.remove(0)["event"], "channel_invite");
    assert_eq!(
        (
            &delivered[0]["event"],
            &delivered[0]["delivery"]["channel"]["name"]
        ),
        (&"channel".into(), &"ops".into())
    );
    let callback = delivered[0]["delivery"]["callback"].as_str().unwrap();
    post_events_of_every_kind(&bob, &id, callback);
    let all = alice.json(&["channel", "history", &id, "--since", "0"]);
    let rows: Vec<&Value> = all.iter().filter(|line| line["type"] != "member").collect();
    assert_events_of_every_kind(&rows);
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

fn post_events_of_every_kind(bob: &Agent, id: &str, callback: &str) {
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
        id,
        "--error",
        "no wind data",
        "--code",
        "tool_error",
    ])
    .ok();
    bob.run_with_input(
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
    assert_eq!(
        bob.run_with_input(&["say", "--ndjson"], stream).ok().out,
        "said 2\n"
    );
    let invalid = "{\"type\":\"message\",\"content\":\"before\"}\n{\"type\":\"shout\"}\n{\"type\":\"message\",\"content\":\"after\"}\n";
    let refused = bob.run_with_input(&["say", "--ndjson"], invalid);
    assert!(
        refused.code == 1 && refused.err.contains("line 2"),
        "{refused:?}"
    );
}

fn assert_events_of_every_kind(rows: &[&Value]) {
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
    let contents: Vec<&str> = rows[5..]
        .iter()
        .filter_map(|row| row["content"].as_str())
        .collect();
    assert_eq!(
        contents,
        [
            "The weather in Oslo is 3°C.",
            "from a file",
            "as it stands",
            "streamed",
            "before"
        ]
    );
}

#[test]
fn a_command_answers_deliveries() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    let id = create_channel(&alice, "ops");
    add_bob(&alice, &bob, &id);
    let binary = env!("CARGO_BIN_EXE_chorus");
    let handler = format!("grep -o '\"content\":\"[a-z]*\"' | {binary} say -");
    let _listening = bob.listen(&["--exec", &handler]);
    alice.run(&["channel", "post", &id, "ping"]).ok();
    let tail = alice.tail_channel(&id, &[]);
    assert_eq!(
        message_contents(&next_rows(&tail, 2)),
        ["ping", "\"content\":\"ping\""]
    );
}

// R-75
#[test]
fn a_channel_without_artifacts_lists_none() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let id = create_channel(&alice, "ops");
    assert_eq!(alice.run(&["channel", "artifacts", &id]).ok().out, "");
    assert_eq!(
        alice.run(&["channel", "artifacts", &id, "auth-spec"]).code,
        4
    );
}
