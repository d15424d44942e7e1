//! What the commands say of a frame's receivers: how many heard it, and which frames are no longer news (FRM-11, FRM-66).

use crate::actors::{RunningProcess, Scene};
use crate::crash::register_with_key;
use chorus_client::HubClient;
use chorus_client::frame::FrameSender;
use chorus_hub::Clock;
use chorus_wire::frame::payload::{AgentAdvisory, AgentHandover};
use chorus_wire::frame::{FramePayload, ScopeIdent};
use chorus_wire::identity::Handle;
use std::time::Duration;

// FRM-66, FRM-108, R-104: a count towards others is coarse, and the commands say so
#[test]
fn a_coarse_count_is_printed_as_a_range_and_an_exact_one_as_a_number() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    bob.run(&["grant", "add", "~alice"]).ok();
    let unheard = alice.run(&["advise", "hello", "--to", "~bob"]).ok().out;
    assert!(unheard.starts_with("no session is listening"), "{unheard}");
    let _watchers = ["s1", "s2", "s3"].map(|session| {
        let watcher = bob.start_in_session(session, &["watch"]);
        await_session(&scene, &bob, session);
        watcher
    });
    let told = alice.run(&["advise", "hello", "--to", "~bob"]).ok().out;
    assert!(told.starts_with("heard by 1 to 9 sessions"), "{told}");
    let event = ["broadcast", "done", "--event", "merged", "--to", "~bob"];
    let told = alice.run(&event).ok().out;
    assert!(told.starts_with("heard by 1 to 9 sessions"), "{told}");
    let question = ["ask", "who?", "--to", "~bob", "--window", "1ms"];
    let asked = alice.run(&question);
    assert_eq!(asked.code, 5, "{asked:?}");
    assert!(asked.err.contains("heard by 1 to 9 sessions"), "{asked:?}");
    // A program gets the number that the hub answers.
    let sent = alice.json(&["advise", "hello", "--to", "~bob"]).remove(0);
    assert_eq!(sent["recipient_count"], 1);
    let own = bob.run_in_session("s4", &["advise", "hello"]).ok();
    assert_eq!(own.json()[0]["recipient_count"], 3);
    let own = bob.run(&["advise", "hello"]).ok().out;
    assert!(own.starts_with("heard by 3 sessions"), "{own}");
}

/// Waits until the hub lists the session.
fn await_session(scene: &Scene, agent: &crate::actors::Agent, session: &str) {
    let deadline = std::time::Instant::now() + crate::actors::TIMEOUT;
    while std::time::Instant::now() < deadline {
        if agent.run(&["roster"]).ok().out.contains(session) {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("{session} never listened at {}", scene.hub.url);
}

/// Says something of an hour and a minute ago.
async fn say_late(client: &HubClient, ttl_ms: Option<u64>, payload: impl Into<FramePayload>) {
    let ident = |text| ScopeIdent::parse(text).unwrap();
    let handle = Handle::parse("~alice").unwrap();
    let mut sender = FrameSender::new(handle, ident("cli"), ident("s1"));
    sender.ttl_ms = ttl_ms;
    let scope = sender.handle_scope();
    let now = Clock::system().now().0;
    let created = chorus_wire::time::UnixMicros(now - 61 * 60 * 1_000_000);
    let frame = sender.draft_frame(&scope, payload.into(), created);
    let frame = frame.to_frame().unwrap();
    client
        .submit_frame(&sender, &scope, &frame, false)
        .await
        .unwrap();
}

fn advisory(text: &str) -> AgentAdvisory {
    AgentAdvisory {
        advisory_text: text.to_owned(),
        file_refs: None,
        worktree: None,
        branch: None,
    }
}

// FRM-11, R-104: without ttl_ms a frame is news for an hour; ttl_ms and what a handover says go before it
#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_drops_a_frame_of_more_than_an_hour_ago_unless_it_says_otherwise() {
    let scene = tokio::task::block_in_place(Scene::open);
    let (client, key) = register_with_key(&scene.hub.url, "alice").await;
    say_late(&client, None, advisory("old news")).await;
    say_late(&client, Some(86_400_000), advisory("for a day")).await;
    let work = AgentHandover {
        previous_session_id: "s1".into(),
        next_session_id: None,
        handover_body: "half done".into(),
        pointer_refs: None,
    };
    say_late(&client, None, work).await;
    tokio::task::block_in_place(|| {
        let alice = scene.newcomer("alice");
        std::fs::create_dir_all(alice.home.join(".chorus")).unwrap();
        let file = serde_json::json!({"agent_id": "alice@chorus", "api_key": key, "hub_url": scene.hub.url});
        std::fs::write(alice.home.join(".chorus/config.json"), file.to_string()).unwrap();
        let watcher: RunningProcess = alice.start_in_session("s2", &["watch", "--since", "0"]);
        let first = watcher.json();
        assert_eq!(first["frame"]["payload"]["advisory_text"], "for a day");
        assert_eq!(watcher.json()["event"], "agent_handover");
    });
}
