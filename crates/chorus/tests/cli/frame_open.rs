//! What is open stays open: claims, decisions and handovers outlive sessions, kill -9 and a hub, and every reader finds them
//!

use crate::actors::{Agent, Hub, Scene, run};
use crate::crash::register_with_key;
use crate::frame::{MOMENT, text};
use crate::frame_hooks::{create_repository, edit_input, shell};
use crate::mcp::Host;
use crate::postgres::Database;
use crate::servers::{Servers, await_condition, hub_address};
use crate::skewed_hubs::libfaketime;
use chorus_client::HubClient;
use chorus_client::frame::{FrameSender, FrameStreamEvent, parse_open_items, random_uuid};
use chorus_hub::Clock;
use chorus_wire::frame::payload::{AgentHandover, AgentLockRequest};
use chorus_wire::frame::{FrameFilter, FrameKind, FramePayload, OpenItemKind, ScopeIdent};
use chorus_wire::identity::Handle;
use chorus_wire::secret::Secret;
use serde_json::{Value, json};

/// A hub that is killed and started again on the same data and address, later by its clock.
struct MortalHub {
    scene: Scene,
    address: String,
    /// Where it keeps its data; without one, in a file.
    database: Option<String>,
}

impl MortalHub {
    fn open() -> Self {
        Self::open_on(None)
    }

    fn open_on(database: Option<String>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Hub::command(folder.path(), &[]);
        command.args(database.iter().flat_map(|url| ["--database", url]));
        let hub = Hub::start_command(command);
        let address = hub.url.strip_prefix("http://").unwrap().to_owned();
        Self {
            scene: Scene { folder, hub },
            address,
            database,
        }
    }

    fn kill_and_start_later(&mut self, library: &std::path::Path, minutes: u32) {
        self.scene.hub.process.send_signal("KILL");
        self.scene.hub.process.await_exit();
        let mut command = Hub::command(self.scene.folder.path(), &["--listen", &self.address]);
        command
            .args(self.database.iter().flat_map(|url| ["--database", url]))
            .env("LD_PRELOAD", library)
            .env("FAKETIME", format!("+{minutes}m"))
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
            .env("DONT_FAKE_MONOTONIC", "1");
        self.scene.hub = Hub::start_command(command);
    }
}

/// What a hook puts into the model's context; empty when it is silent.
fn context_of(agent: &Agent, event: &str, session: &str) -> String {
    let script = format!("cd shop; chorus hook {event} --instrument cc-claude || true");
    let input = json!({ "session_id": session, "hook_event_name": event });
    let out = shell(agent, &script, &input).ok().out;
    let answer: Value = serde_json::from_str(&out).unwrap_or_default();
    let context = &answer["hookSpecificOutput"]["additionalContext"];
    context.as_str().unwrap_or_default().to_owned()
}

/// The decision of the hook before an edit of `src/auth.rs`; empty when it is silent.
fn asks_before_edit(agent: &Agent, session: &str) -> String {
    let script = "chorus hook PreToolUse --instrument cc-claude || true";
    shell(agent, script, &edit_input(agent, session)).ok().out
}

//
#[test]
fn an_hour_later_the_claim_still_holds_and_the_note_is_there() {
    if let Some(library) = libfaketime() {
        live_through_an_hour(MortalHub::open(), &library);
    }
}

// on PostgreSQL alone, without NATS.
#[tokio::test(flavor = "multi_thread")]
async fn an_hour_later_the_claim_still_holds_on_postgresql() {
    let Some(library) = libfaketime() else {
        return;
    };
    if let Some(database) = Database::fresh().await {
        let hub = MortalHub::open_on(Some(database.url.clone()));
        tokio::task::block_in_place(|| live_through_an_hour(hub, &library));
    }
}

/// The story of two sessions in one repository, while their hub is killed three times.
fn live_through_an_hour(mut hub: MortalHub, library: &std::path::Path) {
    let alice = hub.scene.agent("alice");
    create_repository(&alice);
    let first = "cd shop; export CHORUS_SESSION=7f3a CHORUS_INSTRUMENT=cc-claude; ";
    let claim = "chorus lock src/auth.rs --ttl 1h --intent 'moving the token check'";
    shell(&alice, &format!("{first}{claim}"), &json!({})).ok();
    let note = "echo 'The check is moved. The cart fails.' | chorus handover";
    let told = shell(&alice, &format!("{first}{note}"), &json!({}))
        .ok()
        .out;
    assert!(told.starts_with("handed over, kept until 20"), "{told}");
    let ask = alice.command(&["frame", "agent_binding_moment", "--stale-after", "30m"]);
    run(ask, MOMENT).ok();
    hub.kill_and_start_later(library, 20);
    let decided = alice.run(&["decide", "--choose", "2"]).ok().out;
    assert!(decided.contains("answered: 2: Later"), "{decided}");
    assert_eq!(alice.run(&["decide", "--wait", "1ms"]).code, 5);
    hub.kill_and_start_later(library, 55);
    let held = alice.json(&["locks"]);
    assert_eq!(held.len(), 1, "{held:?}");
    let left = held[0]["left_ms"].as_u64().unwrap();
    assert!((1..=300_000).contains(&left), "{left}");
    let check = "cd shop; CHORUS_SESSION=91bc chorus locks --check src/auth.rs";
    assert_eq!(shell(&alice, check, &json!({})).code, 4);
    assert!(asks_before_edit(&alice, "91bc").contains("moving the token check"));
    assert_eq!(asks_before_edit(&alice, "7f3a"), "", "its own claim");
    let news = context_of(&alice, "SessionStart", "91bc");
    for expected in [
        "src/auth.rs is claimed by ~alice cc-claude@7f3a",
        "The check is moved. The cart fails.",
        "chorus handover --take",
    ] {
        assert!(news.contains(expected), "{news}");
    }
    assert_eq!(context_of(&alice, "UserPromptSubmit", "91bc"), "", "once");
    assert_eq!(alice.json(&["handover", "--list"]).len(), 1);
    let taken = alice.run_in_session("91bc", &["handover", "--take"]).ok();
    let body = taken.json()[0]["handover_body"].clone();
    assert_eq!(body, "The check is moved. The cart fails.\n");
    assert!(alice.json(&["handover", "--list"]).is_empty());
    hub.kill_and_start_later(library, 61);
    assert!(alice.json(&["locks"]).is_empty(), "the hour is over");
    assert_eq!(asks_before_edit(&alice, "91bc"), "");
}

// a session that runs on hears of what was opened while it was busy, also after the ring has forgotten it.
#[test]
fn a_running_session_is_told_what_was_opened_since() {
    let Some(library) = libfaketime() else {
        return;
    };
    let mut hub = MortalHub::open();
    let alice = hub.scene.agent("alice");
    create_repository(&alice);
    assert_eq!(context_of(&alice, "SessionStart", "91bc"), "");
    let claim = ["lock", "src/auth.rs", "--ttl", "1h"];
    alice.run_in_session("7f3a", &claim).ok();
    hub.kill_and_start_later(&library, 10);
    let news = context_of(&alice, "UserPromptSubmit", "91bc");
    assert!(news.contains("src/auth.rs is claimed by ~alice"), "{news}");
    assert_eq!(context_of(&alice, "UserPromptSubmit", "91bc"), "", "once");
}

// the command that asked goes on waiting while its hub is killed, and prints the answer of 20 minutes later.
#[test]
fn a_sender_that_waits_for_a_decision_outlasts_its_hub() {
    let Some(library) = libfaketime() else {
        return;
    };
    let mut hub = MortalHub::open();
    let alice = hub.scene.agent("alice");
    std::fs::write(alice.home.join("moment.json"), MOMENT).unwrap();
    let ask = ["frame", "agent_binding_moment", "moment.json"];
    let mut asking = alice.start_in_session("asker", &[&ask[..], &["--wait", "30m"]].concat());
    assert_eq!(asking.json()["kept"], true);
    hub.kill_and_start_later(&library, 20);
    await_condition("the session that asked listens again", || {
        !alice.json(&["roster"]).is_empty()
    });
    alice.run(&["decide", "--choose", "2"]).ok();
    assert_eq!(asking.json()["response_text"], "2: Later");
    assert_eq!(asking.await_exit(), Some(0));
}

fn sender() -> FrameSender {
    let ident = |text| ScopeIdent::parse(text).unwrap();
    let handle = Handle::parse("~alice").unwrap();
    FrameSender::new(handle, ident("cli"), ident("s1"))
}

async fn say(client: &HubClient, payload: impl Into<FramePayload>) {
    let mut sender = sender();
    sender.ttl_ms = Some(1_800_000);
    let scope = sender.handle_scope();
    let now = Clock::system().now();
    let frame = sender.draft_frame(&scope, payload.into(), now);
    let frame = frame.to_frame().unwrap();
    let said = client.submit_frame(&sender, &scope, &frame, false).await;
    assert_eq!(said.unwrap().kept, Some(true));
}

// two hubs on PostgreSQL; the one that took the frames is killed.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_open_outlives_the_hub_that_took_it() {
    let Some(servers) = tokio::task::block_in_place(Servers::start) else {
        return;
    };
    let first = servers.hub("first", "127.0.0.1:0");
    let second = servers.hub("second", "127.0.0.1:0");
    let (alice, key) = register_with_key(&first.url, "alice").await;
    let claim = AgentLockRequest {
        resource: "src/auth.rs".into(),
        lease_id: random_uuid(),
        ttl_ms: 3_600_000,
        intent: None,
    };
    say(&alice, claim).await;
    let note = AgentHandover {
        previous_session_id: "s1".into(),
        next_session_id: None,
        handover_body: "the cart fails".into(),
        pointer_refs: None,
    };
    say(&alice, note).await;
    first.process.send_signal("KILL");
    let elsewhere = HubClient::new(&second.url, Some(Secret::new(key))).unwrap();
    let handle = Handle::parse("~alice").unwrap();
    let items = elsewhere.list_open_items(&handle).await.unwrap();
    let items = parse_open_items(items, Clock::system().now());
    let kinds: Vec<OpenItemKind> = items.iter().map(|kept| kept.kind).collect();
    assert_eq!(kinds, [OpenItemKind::Lock, OpenItemKind::Handover]);
    let taken = elsewhere.take_handover(&sender(), &items[1].item).await;
    assert_eq!(taken.unwrap().outcome, "taken");
    assert_eq!(elsewhere.list_open_items(&handle).await.unwrap().len(), 1);
}

/// An agent of this key, with the credential file of a machine that knows this hub.
fn agent_at(hub: &Hub, folder: &std::path::Path, key: &str) -> Agent {
    std::fs::create_dir(folder.join(".chorus")).unwrap();
    let credentials = json!({ "agent_id": "alice@chorus", "api_key": key, "hub_url": hub.url });
    let file = folder.join(".chorus/config.json");
    std::fs::write(file, credentials.to_string()).unwrap();
    Agent {
        home: folder.into(),
        hub: hub.url.clone(),
    }
}

// two hubs on PostgreSQL; the decision that was asked for at the killed one is answered at the other.
#[tokio::test(flavor = "multi_thread")]
async fn a_decision_is_answered_at_the_second_hub_after_the_first_was_killed() {
    let Some(servers) = tokio::task::block_in_place(Servers::start) else {
        return;
    };
    let mut first = servers.hub("first", "127.0.0.1:0");
    let address = hub_address(&first).to_string();
    let second = servers.hub("second", "127.0.0.1:0");
    let (at_first, key) = register_with_key(&first.url, "alice").await;
    let moment = FramePayload::parse(FrameKind::AgentBindingMoment, MOMENT).unwrap();
    say(&at_first, moment).await;
    first.process.send_signal("KILL");
    first.process.await_exit();
    // The session that asked goes on at the second hub.
    let at_second = HubClient::new(&second.url, Some(Secret::new(key.clone()))).unwrap();
    let filter = FrameFilter::parse("kind:agent_response").unwrap();
    let now = || Clock::system().now();
    let mut asking = at_second.open_frame_stream(&sender(), &filter, None, now);
    asking.wait_opened().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let alice = agent_at(&second, folder.path(), &key);
    tokio::task::block_in_place(|| {
        let decided = alice.run(&["decide", "--choose", "2"]).ok().out;
        assert!(decided.contains("answered: 2: Later"), "{decided}");
        assert_eq!(alice.run(&["decide", "--wait", "1ms"]).code, 5);
    });
    let answer = loop {
        match asking.next().await.unwrap() {
            FrameStreamEvent::Frame(frame, _) => break frame.payload.clone(),
            FrameStreamEvent::Opened(_)
            | FrameStreamEvent::OpenItems(_)
            | FrameStreamEvent::Gap => {}
        }
    };
    let FramePayload::AgentResponse(answer) = answer else {
        panic!("not an answer: {answer:?}");
    };
    assert_eq!(answer.response_text, "2: Later");
    // The hub that was killed comes back, and asks no more.
    let first = servers.hub("first", &address);
    let handle = Handle::parse("~alice").unwrap();
    assert_eq!(hub_address(&first).to_string(), address);
    assert!(at_first.list_open_items(&handle).await.unwrap().is_empty());
}

// what the commands say, and the exit code of a question without an answer.
#[test]
fn commands_say_what_is_kept_and_a_question_without_an_answer_ends_with_5() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let in_s1 = |args: &[&str], input: &str| {
        let mut command = alice.command(args);
        command.env("CHORUS_SESSION", "s1");
        run(command, input)
    };
    in_s1(&["lock", "foo", "--ttl", "1h"], "").ok();
    let released = in_s1(&["lock", "foo", "--release"], "").ok().out;
    assert_eq!(released, "released foo\n");
    let empty = in_s1(&["handover", "--list"], "").ok();
    assert!(empty.err.contains("nothing is handed over"), "{empty:?}");
    let handed = in_s1(&["handover", "--json"], "work").ok().json().remove(0);
    assert_eq!(handed["kept"], true);
    let id = text(&handed["frame_id"]);
    let withdrawn = in_s1(&["handover", "--withdraw", &id], "").ok();
    assert!(withdrawn.out.starts_with("withdrawn"), "{withdrawn:?}");
    assert!(alice.json(&["handover", "--list"]).is_empty());
    for question in [
        in_s1(&["ask", "who?", "--window", "50ms"], ""),
        in_s1(&["frame", "agent_binding_moment", "--wait", "50ms"], MOMENT),
    ] {
        assert_eq!(question.code, 5, "{question:?}");
        assert!(question.err.contains("no answer within"), "{question:?}");
    }
    let over = alice.run(&["decide", "--wait", "1ms"]);
    assert_eq!(over.code, 5, "{over:?}");
    assert!(over.err.contains("no decision was asked for within"));
}

// a model that claims a file with a tool may edit it, though its host names no session to the MCP server.
#[test]
fn a_claim_by_tool_does_not_stop_the_own_next_edit() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    create_repository(&alice);
    context_of(&alice, "SessionStart", "7f3a");
    let mut command = alice.command(&["mcp"]);
    // After /clear the environment still has the session with which the host started.
    command.env("CLAUDE_CODE_SESSION_ID", "0ld1");
    let mut host = Host::start(command);
    let claimed = host.call("agent_lock_acquire", json!({"resource": "src/auth.rs"}));
    assert_eq!(claimed["structuredContent"]["kept"], true, "{claimed}");
    assert_eq!(asks_before_edit(&alice, "7f3a"), "");
    assert!(asks_before_edit(&alice, "91bc").contains("cc-claude@7f3a"));
    context_of(&alice, "SessionStart", "c1ea");
    host.call("agent_lock_acquire", json!({"resource": "src/cart.rs"}));
    let held = alice.json(&["locks"]);
    let sessions: Vec<String> = held.iter().map(|lock| text(&lock["session"])).collect();
    assert_eq!(sessions, ["cc-claude@7f3a", "cc-claude@c1ea"]);
}
