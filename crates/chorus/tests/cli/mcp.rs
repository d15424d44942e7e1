//! `chorus mcp`: driven as a host drives it, with JSON-RPC lines on standard input and output.

use crate::actors::{Agent, Scene, TIMEOUT, text_of};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

/// A host with `chorus mcp` as its child process.
pub struct Host {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    last_id: u64,
}

impl Host {
    pub fn start(command: Command) -> Self {
        let mut host = Self::spawn(command);
        let hello = host.request(
            "initialize",
            json!({ "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "claude-code", "version": "1" } }),
        );
        assert_eq!(hello["result"]["serverInfo"]["name"], "chorus", "{hello}");
        host.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        host
    }

    /// A host that has sent no request yet.
    fn spawn(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let out = child.stdout.take().unwrap();
        let (line_sender, lines) = channel();
        std::thread::spawn(move || {
            BufReader::new(out)
                .lines()
                .map_while(Result::ok)
                .try_for_each(|l| line_sender.send(l))
        });
        Self {
            child,
            input,
            lines,
            last_id: 0,
        }
    }

    fn for_agent(agent: &Agent) -> Self {
        Self::start(agent.command(&["mcp", "--session", "s1"]))
    }

    pub fn send(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    /// Sends a request and returns its id. Its answer comes when it comes.
    pub fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// The next answer, whichever request it is for.
    pub fn next_answer(&mut self) -> Value {
        serde_json::from_str(&self.lines.recv_timeout(TIMEOUT).expect("an answer")).unwrap()
    }

    pub fn request(&mut self, method: &str, params: Value) -> Value {
        self.begin(method, params);
        let answer = self.next_answer();
        assert_eq!(answer["id"], self.last_id, "{answer}");
        answer
    }

    /// Calls a tool and returns its result.
    pub fn call(&mut self, name: &str, arguments: Value) -> Value {
        let answer = self.request(
            "tools/call",
            json!({ "name": name, "arguments": arguments }),
        );
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].clone()
    }

    pub fn tools(&mut self) -> Vec<Value> {
        self.request("tools/list", json!({}))["result"]["tools"]
            .as_array()
            .unwrap()
            .clone()
    }

    /// Calls a tool until its result is as expected, because a message arrives a moment after it is sent.
    fn call_until(&mut self, name: &str, is_expected: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let result = self.call(name, json!({}));
            if is_expected(&result) {
                return result;
            }
            assert!(Instant::now() < deadline, "{result}");
        }
    }

    /// Closes standard input, as a host that ends; returns the exit code and standard error.
    fn end(mut self) -> (Option<i32>, String) {
        drop(self.input.take());
        let status = self.child.wait().unwrap();
        let mut stderr_text = String::new();
        std::io::Read::read_to_string(&mut self.child.stderr.take().unwrap(), &mut stderr_text)
            .unwrap();
        (status.code(), stderr_text)
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
fn the_hubs_tools_are_listed_and_a_sent_message_is_in_the_local_history() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    let mut host = Host::for_agent(&alice);
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
    let history = alice.history_lines("bob@chorus");
    assert_eq!((history.len(), &history[0]["dir"]), (1, &json!("sent")));
    assert_eq!(history[0]["envelope"]["original_text"], "Good morning!");
    assert_eq!(bob.json(&["history", "--remote"]).len(), 1);
    // the error names the missing argument.
    let refused = host.call("chorus_send", json!({ "receiver_id": "bob@chorus" }));
    assert!(
        refused["isError"] == true && refused.to_string().contains("text"),
        "{refused}"
    );
    assert_eq!(alice.history_lines("bob@chorus").len(), 1);
    assert_eq!(host.end().0, Some(0));
}

#[test]
fn a_host_of_the_newer_mcp_revision_needs_no_initialize() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let mut host = Host::spawn(alice.command(&["mcp"]));
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "new", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {} });
    let hello = host.request("server/discover", json!({ "_meta": meta }));
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
        let answer = host.request(method, params);
        assert_eq!(
            answer["result"]["resultType"], "complete",
            "{method}: {answer}"
        );
    }
}

// SKL-13, SKL-24, SKL-26
#[test]
fn unread_mail_is_noted_in_every_result_until_it_is_acknowledged() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    let mut host = Host::for_agent(&alice);
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
    let noted = host.call_until("chorus_discover", |result| last_text(result) == line);
    assert_eq!(
        noted["structuredContent"]["chorus_notice"], line,
        "for hosts that show only the data"
    );
    assert_eq!(
        alice.history_lines("bob@chorus").len(),
        1,
        "it is in the local history before any tool reads it"
    );
    let inbox = host.call("chorus_inbox", json!({}));
    assert!(inbox.to_string().contains("are you there?"), "{inbox}");
    assert_eq!(
        last_text(&host.call("agent_roster", json!({}))),
        line,
        "reading is not acknowledging"
    );
    host.call("chorus_inbox", json!({ "acknowledge": [sent["trace_id"]] }));
    let quiet = host.call("chorus_discover", json!({}));
    assert!(!quiet.to_string().contains("unread"), "{quiet}");
    let status = bob
        .json(&["status", sent["trace_id"].as_str().unwrap()])
        .remove(0);
    assert_eq!(status["status"], "acknowledged");
}

/// Waits until the local history has what was sent to bob: these texts, each once.
fn await_sent(host: &mut Host, agent: &Agent, texts: &[&str]) {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let lines = agent.history_lines("bob@chorus");
        let sent = lines.iter().filter(|line| line["dir"] == "sent");
        let sent: Vec<&str> = sent.map(text_of).collect();
        if sent == texts {
            return;
        }
        assert!(Instant::now() < deadline, "{sent:?}");
        host.call("chorus_discover", json!({}));
    }
}

// SKL-26, SKL-35: as a listener does, when its stream opens and when a receipt comes
#[test]
fn what_was_sent_elsewhere_with_the_same_key_is_in_the_local_history() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    let elsewhere = scene.second_home(&alice);
    let send_elsewhere = |text: &str| {
        let send = ["send", "bob@chorus", text, "--culture", "en"];
        elsewhere.run(&send).ok();
    };
    send_elsewhere("before");
    let mut host = Host::for_agent(&alice);
    await_sent(&mut host, &alice, &["before"]);
    send_elsewhere("meanwhile");
    bob.run(&["listen", "--count", "2"]).ok();
    await_sent(&mut host, &alice, &["before", "meanwhile"]);
    let arguments = json!({ "receiver_id": "bob@chorus", "text": "with a tool" });
    host.call("chorus_send", arguments);
    send_elsewhere("last");
    bob.run(&["listen", "--count", "2"]).ok();
    let all = ["before", "meanwhile", "with a tool", "last"];
    await_sent(&mut host, &alice, &all);
}

#[test]
fn a_second_session_of_the_same_agent_works_beside_the_first() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    let mut first = Host::for_agent(&alice);
    bob.await_online("alice@chorus");
    let mut second = Host::for_agent(&alice);
    bob.run(&["send", "alice@chorus", "hello both"]).ok();
    for host in [&mut first, &mut second] {
        host.call_until("chorus_discover", |result| {
            last_text(result).starts_with("Chorus: 1 unread message")
        });
    }
    assert_eq!(alice.history_lines("bob@chorus").len(), 1);
}

//
#[test]
fn frames_have_the_same_session_as_the_hosts_hooks() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let mut host = Host::for_agent(&alice);
    let sent = host.call(
        "agent_advise",
        json!({ "advisory_text": "reworking the parser" }),
    );
    assert_ne!(sent["isError"], true, "{sent}");
    let frame = alice.kept_frames_for("s2", 1).remove(0);
    assert_eq!(frame["provenance_basis"], "session:cc-claude@s1");
}

// FRM-15, R-104: the host knows where its model runs, the hub does not
#[test]
fn a_host_says_where_its_model_runs() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let command = |more: &[&str]| alice.command(&[&["mcp", "--session", "s1"], more].concat());
    let mut by_environment = command(&[]);
    by_environment.env("CHORUS_COMPUTE", "server-aggregate");
    for command in [
        command(&[]),
        command(&["--compute", "local-only"]),
        by_environment,
    ] {
        let mut host = Host::start(command);
        let sent = host.call("agent_advise", json!({ "advisory_text": "reading" }));
        assert_ne!(sent["isError"], true, "{sent}");
    }
    let frames = alice.kept_frames_for("s2", 3);
    let said: Vec<_> = frames
        .iter()
        .map(|frame| frame["provenance_compute_location"].as_str().unwrap())
        .collect();
    assert_eq!(said, ["server-active", "local-only", "server-aggregate"]);
}

//
#[test]
fn without_credentials_it_exits_with_2_and_names_the_command() {
    let scene = Scene::open();
    let unregistered = scene.newcomer("stranger");
    let ended = unregistered.run(&["mcp"]);
    assert_eq!(ended.code, 2);
    assert!(
        ended.err.contains("chorus register NAME@HOST") && ended.out.is_empty(),
        "{ended:?}"
    );
    assert!(!unregistered.home.join(".chorus/config.json").exists());
}

// SKL-19, SKL-20
#[test]
fn it_registers_once_and_only_with_the_register_option() {
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
    assert_eq!(other.code, 0, "a saved identity is kept: {other:?}");
}

//
#[test]
fn without_the_hub_it_keeps_running_and_every_call_reports_it() {
    let scene = Scene::open();
    let alice = scene.agent("alice").while_hub_is_away();
    let mut host = Host::for_agent(&alice);
    assert!(host.tools().len() > 15);
    for name in ["chorus_discover", "market_balance"] {
        let result = host.call(name, json!({}));
        assert_eq!(result["isError"], true);
        assert!(
            last_text(&result).contains(&format!("cannot reach {}", alice.hub)),
            "{result}"
        );
        assert!(
            !last_text(&result).contains("Nothing was done"),
            "without an answer the outcome is unknown: {result}"
        );
    }
    assert_eq!(host.end().0, Some(0));
}

// Invariant 12
#[test]
fn a_host_never_sees_the_key() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    let config: Value = serde_json::from_str(
        &std::fs::read_to_string(alice.home.join(".chorus/config.json")).unwrap(),
    )
    .unwrap();
    let key = config["api_key"].as_str().unwrap().to_owned();
    bob.run(&["send", "alice@chorus", "psst"]).ok();
    let mut host = Host::for_agent(&alice);
    let mut output = json!(host.tools()).to_string();
    for name in [
        "chorus_discover",
        "chorus_inbox",
        "chorus_history",
        "market_balance",
        "agent_roster",
        "agent_subscribe",
    ] {
        output.push_str(&host.call(name, json!({})).to_string());
    }
    for (method, params) in [("resources/list", json!({})), ("prompts/list", json!({}))] {
        let answer = host.request(method, params);
        assert!(answer["result"].is_object(), "{method}: {answer}");
        output.push_str(&answer.to_string());
    }
    let (_, stderr_text) = host.end();
    assert!(!output.contains(&key) && !stderr_text.contains(&key));
}
