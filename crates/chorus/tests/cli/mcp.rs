//! `chorus mcp`, spoken to as a host speaks: lines of JSON-RPC on its standard input and output.

use crate::actors::{Agent, PATIENCE, Scene};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

/// A host with our server as its child.
struct Host {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    last: u64,
}

impl Host {
    fn start(command: Command) -> Self {
        let mut host = Self::silent(command);
        let hello = host.ask(
            "initialize",
            json!({ "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "claude-code", "version": "1" } }),
        );
        assert_eq!(hello["result"]["serverInfo"]["name"], "chorus", "{hello}");
        host.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        host
    }

    /// One that has not said anything yet.
    fn silent(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, out) = (child.stdin.take(), child.stdout.take().unwrap());
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            BufReader::new(out)
                .lines()
                .map_while(Result::ok)
                .try_for_each(|l| tell.send(l))
        });
        Self {
            child,
            input,
            lines,
            last: 0,
        }
    }

    fn of(agent: &Agent) -> Self {
        Self::start(agent.command(&["mcp", "--session", "s1"]))
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        self.say(&json!({ "jsonrpc": "2.0", "id": self.last, "method": method, "params": params }));
        let answer: Value =
            serde_json::from_str(&self.lines.recv_timeout(PATIENCE).expect("an answer")).unwrap();
        assert_eq!(answer["id"], self.last, "{answer}");
        answer
    }

    /// What a tool returned.
    fn call(&mut self, name: &str, arguments: Value) -> Value {
        let answer = self.ask(
            "tools/call",
            json!({ "name": name, "arguments": arguments }),
        );
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].clone()
    }

    fn tools(&mut self) -> Vec<Value> {
        self.ask("tools/list", json!({}))["result"]["tools"]
            .as_array()
            .unwrap()
            .clone()
    }

    /// Calls until the result says what it should: what arrives is heard a moment after it is sent.
    fn eventually(&mut self, name: &str, good: impl Fn(&Value) -> bool) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            let result = self.call(name, json!({}));
            if good(&result) {
                return result;
            }
            assert!(Instant::now() < until, "{result}");
        }
    }

    /// Closes its input, as a host that ends; its exit code and what it said on the side.
    fn end(mut self) -> (Option<i32>, String) {
        drop(self.input.take());
        let status = self.child.wait().unwrap();
        let mut said = String::new();
        std::io::Read::read_to_string(&mut self.child.stderr.take().unwrap(), &mut said).unwrap();
        (status.code(), said)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn last_text(result: &Value) -> &str {
    result["content"].as_array().unwrap().last().unwrap()["text"]
        .as_str()
        .unwrap()
}

#[test]
fn the_tools_are_the_hubs_and_a_message_sent_with_one_is_in_the_local_history() {
    let scene = Scene::open();
    let (alice, bob) = (scene.agent("alice"), scene.agent("bob"));
    let mut host = Host::of(&alice);
    let names: Vec<String> = host
        .tools()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect();
    for name in ["chorus_send", "chorus_inbox", "agent_advise", "market_hire"] {
        assert!(names.iter().any(|known| known == name), "{names:?}");
    }
    let sent = host.call(
        "chorus_send",
        json!({ "receiver_id": "bob@chorus", "text": "Good morning!" }),
    );
    assert_eq!(sent["structuredContent"]["delivery"], "queued", "{sent}");
    let kept = alice.file("bob@chorus");
    assert_eq!((kept.len(), &kept[0]["dir"]), (1, &json!("sent")));
    assert_eq!(kept[0]["envelope"]["original_text"], "Good morning!");
    assert_eq!(bob.json(&["history", "--remote"]).len(), 1);
    // the argument is named.
    let refused = host.call("chorus_send", json!({ "receiver_id": "bob@chorus" }));
    assert!(
        refused["isError"] == true && refused.to_string().contains("text"),
        "{refused}"
    );
    assert_eq!(alice.file("bob@chorus").len(), 1);
    assert_eq!(host.end().0, Some(0));
}

#[test]
fn a_host_of_the_newer_revision_needs_no_handshake() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let mut host = Host::silent(alice.command(&["mcp"]));
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "new", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {} });
    let hello = host.ask("server/discover", json!({ "_meta": meta }));
    let versions = hello["result"]["supportedVersions"]
        .as_array()
        .unwrap_or_else(|| panic!("{hello}"));
    assert!(
        versions.contains(&json!("2026-07-28")) && versions.contains(&json!("2025-11-25")),
        "{hello}"
    );
    for (method, params) in [
        ("tools/list", json!({ "_meta": meta })),
        (
            "tools/call",
            json!({ "name": "chorus_discover", "arguments": {}, "_meta": meta }),
        ),
        ("resources/list", json!({ "_meta": meta })),
        ("prompts/list", json!({ "_meta": meta })),
    ] {
        let answer = host.ask(method, params);
        assert_eq!(
            answer["result"]["resultType"], "complete",
            "{method}: {answer}"
        );
    }
}

// SKL-13, SKL-24, SKL-26
#[test]
fn unread_mail_is_one_line_in_every_result_until_it_is_acknowledged() {
    let scene = Scene::open();
    let (alice, bob) = (scene.agent("alice"), scene.agent("bob"));
    let mut host = Host::of(&alice);
    bob.await_online("alice@chorus");
    let quiet = host.call("chorus_discover", json!({}));
    assert!(
        quiet["structuredContent"]["chorus_notice"].is_null(),
        "{quiet}"
    );
    let sent = bob
        .json(&["send", "alice@chorus", "are you there?"])
        .remove(0);
    assert_eq!(sent["delivery"], "delivered_sse");
    let line = "Chorus: 1 unread message from bob@chorus. See chorus_inbox.";
    let told = host.eventually("chorus_discover", |result| last_text(result) == line);
    assert_eq!(
        told["structuredContent"]["chorus_notice"], line,
        "for hosts that show only the data"
    );
    assert_eq!(
        alice.file("bob@chorus").len(),
        1,
        "it is in the local history before anybody asks"
    );
    let inbox = host.call("chorus_inbox", json!({}));
    assert!(inbox.to_string().contains("are you there?"), "{inbox}");
    assert_eq!(
        last_text(&host.call("agent_roster", json!({}))),
        line,
        "looking is not acknowledging"
    );
    host.call("chorus_inbox", json!({ "acknowledge": [sent["trace_id"]] }));
    let quiet = host.call("chorus_discover", json!({}));
    assert!(!quiet.to_string().contains("unread"), "{quiet}");
    let status = bob
        .json(&["status", sent["trace_id"].as_str().unwrap()])
        .remove(0);
    assert_eq!(status["status"], "acknowledged");
}

#[test]
fn a_second_session_of_the_same_agent_works_beside_the_first() {
    let scene = Scene::open();
    let (alice, bob) = (scene.agent("alice"), scene.agent("bob"));
    let mut first = Host::of(&alice);
    bob.await_online("alice@chorus");
    let mut second = Host::of(&alice);
    bob.run(&["send", "alice@chorus", "hello both"]).ok();
    for host in [&mut first, &mut second] {
        host.eventually("chorus_discover", |result| {
            last_text(result).starts_with("Chorus: 1 unread message")
        });
    }
    assert_eq!(alice.file("bob@chorus").len(), 1);
}

//
#[test]
fn frames_come_from_the_session_that_the_hooks_of_the_host_know() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let mut host = Host::of(&alice);
    let said = host.call(
        "agent_advise",
        json!({ "advisory_text": "reworking the parser" }),
    );
    assert_ne!(said["isError"], true, "{said}");
    let frame = alice.kept_for("s2", 1).remove(0);
    assert_eq!(frame["provenance_basis"], "session:cc-claude@s1");
}

//
#[test]
fn without_credentials_it_ends_with_2_and_says_what_to_run() {
    let scene = Scene::open();
    let stranger = scene.newcomer("stranger");
    let ended = stranger.run(&["mcp"]);
    assert_eq!(ended.code, 2);
    assert!(
        ended.err.contains("chorus register NAME@HOST") && ended.out.is_empty(),
        "{ended:?}"
    );
    assert!(!stranger.home.join(".chorus/config.json").exists());
}

// SKL-19, SKL-20
#[test]
fn it_registers_once_and_only_when_told_to() {
    let scene = Scene::open();
    let nell = scene.newcomer("nell");
    for _ in 0..2 {
        let mut host = Host::start(nell.command(&["mcp", "--register", "nell", "--culture", "ja"]));
        let agents = host.call("chorus_discover", json!({}));
        assert!(
            agents["structuredContent"]
                .to_string()
                .contains("nell@chorus"),
            "{agents}"
        );
    }
    assert_eq!(nell.json(&["discover"]).len(), 1);
    let other = nell.run(&["mcp", "--register", "other"]);
    assert_eq!(
        other.code, 0,
        "who is registered stays who it is: {other:?}"
    );
}

//
#[test]
fn with_the_hub_away_it_stays_and_every_call_says_so() {
    let scene = Scene::open();
    let mut alice = scene.agent("alice");
    alice.hub = "http://127.0.0.1:1".into();
    let mut host = Host::of(&alice);
    assert!(host.tools().len() > 15);
    for name in ["chorus_discover", "market_balance"] {
        let result = host.call(name, json!({}));
        assert_eq!(result["isError"], true);
        assert!(
            last_text(&result).contains("cannot reach http://127.0.0.1:1"),
            "{result}"
        );
        assert!(
            !last_text(&result).contains("Nothing was done"),
            "whoever hears no answer does not know: {result}"
        );
    }
    assert_eq!(host.end().0, Some(0));
}

// Law 12
#[test]
fn the_key_is_in_nothing_that_a_host_sees() {
    let scene = Scene::open();
    let (alice, bob) = (scene.agent("alice"), scene.agent("bob"));
    let config: Value = serde_json::from_str(
        &std::fs::read_to_string(alice.home.join(".chorus/config.json")).unwrap(),
    )
    .unwrap();
    let key = config["api_key"].as_str().unwrap().to_owned();
    bob.run(&["send", "alice@chorus", "psst"]).ok();
    let mut host = Host::of(&alice);
    let mut seen = json!(host.tools()).to_string();
    for name in [
        "chorus_discover",
        "chorus_inbox",
        "chorus_history",
        "market_balance",
        "agent_roster",
        "agent_subscribe",
    ] {
        seen.push_str(&host.call(name, json!({})).to_string());
    }
    for (method, params) in [("resources/list", json!({})), ("prompts/list", json!({}))] {
        let answer = host.ask(method, params);
        assert!(answer["result"].is_object(), "{method}: {answer}");
        seen.push_str(&answer.to_string());
    }
    let (_, aside) = host.end();
    assert!(!seen.contains(&key) && !aside.contains(&key));
}
