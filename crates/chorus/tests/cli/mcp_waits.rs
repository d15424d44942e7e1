//! Tool calls of `chorus mcp` that wait for others: they are limited, and end when the host cancels them.

use crate::actors::{Agent, Scene, TIMEOUT};
use crate::mcp::Host;
use chorus_wire::limits;
use serde_json::{Value, json};
use std::time::Instant;

const FULL: &str = "too many calls of yours wait already";

/// Begins a send that waits; its message is sent when this returns.
fn begin_wait(host: &mut Host, bob: &Agent, number: usize) -> u64 {
    let arguments = json!({ "receiver_id": "bob@chorus", "text": format!("wait {number}"), "wait": "answer",
        "timeout_ms": 30_000 });
    let params = json!({ "name": "chorus_send", "arguments": arguments });
    let id = host.begin("tools/call", params);
    let deadline = Instant::now() + TIMEOUT;
    while bob.json(&["history", "--remote"]).len() < number {
        assert!(Instant::now() < deadline, "{number} was not sent");
    }
    id
}

/// Sends with a short wait, until the answer is or is not that too many wait.
fn send_until(host: &mut Host, is_full: bool) {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let arguments = json!({ "receiver_id": "bob@chorus", "text": "more", "wait": "shown", "timeout_ms": 1 });
        let id = host.begin(
            "tools/call",
            json!({ "name": "chorus_send", "arguments": arguments }),
        );
        let mut answer = host.next_answer();
        // That of the cancelled call, if there is one.
        while answer["id"] != id {
            answer = host.next_answer();
        }
        let result = &answer["result"];
        assert!(
            result["structuredContent"]["trace_id"].is_string(),
            "{answer}"
        );
        if result["content"].to_string().contains(FULL) == is_full {
            return;
        }
        assert!(Instant::now() < deadline, "{answer}");
    }
}

// WAK-13
#[test]
fn waits_of_a_host_are_limited_and_end_when_it_cancels_them() {
    let scene = Scene::open();
    let (alice, bob) = (scene.agent("alice"), scene.agent("bob"));
    let mut host = Host::start(alice.command(&["mcp", "--session", "s1"]));
    let mut waits = Vec::new();
    for number in 1..=limits::TOOL_WAITS_PER_AGENT {
        waits.push(begin_wait(&mut host, &bob, number));
    }
    send_until(&mut host, true);
    // The hub has the same limit for all processes of the agent.
    let mut other = Host::start(alice.command(&["mcp", "--session", "s2"]));
    send_until(&mut other, true);
    let cancelled: Value = json!({ "requestId": waits[0], "reason": "the user pressed escape" });
    host.send(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled }),
    );
    send_until(&mut host, false);
    send_until(&mut other, false);
}
