//! The MCP part of the script: each tool of the hub and of a channel, called once with success and once with an error.

use super::channel::below;
use super::envelope::agent;
use super::transcript::{RawRequest, RawResponse, Transcript, raw_request};
use crate::support::hub::OPERATOR_KEY;
use serde_json::{Value, json};

const REVISION: &str = "2025-11-25";

fn rpc(path: &str, key: &str, body: &Value) -> RawRequest {
    let asked = raw_request("POST", path)
        .key(key)
        .header("accept", "application/json, text/event-stream");
    asked.header("mcp-protocol-version", REVISION).json(body)
}

async fn ask_and_record(
    transcript: &mut Transcript,
    path: &str,
    key: &str,
    method: &str,
    params: Value,
) -> RawResponse {
    let body = json!({"jsonrpc": "2.0", "id": "seven", "method": method, "params": params});
    transcript.record(rpc(path, key, &body)).await
}

/// The tool by this name, and the same with an argument that it does not know.
async fn call_tool(
    transcript: &mut Transcript,
    path: &str,
    key: &str,
    name: &str,
    args: &Value,
) -> Value {
    let response = ask_and_record(
        transcript,
        path,
        key,
        "tools/call",
        json!({"name": name, "arguments": args}),
    )
    .await
    .expect_status(200);
    let mut wrong = args.clone();
    wrong["surely_not"] = json!(1);
    ask_and_record(
        transcript,
        path,
        key,
        "tools/call",
        json!({"name": name, "arguments": wrong}),
    )
    .await;
    response.json()["result"]["structuredContent"].clone()
}

async fn protocol_errors(transcript: &mut Transcript, path: &str, key: &str) {
    let hello = json!({"protocolVersion": REVISION, "capabilities": {}, "clientInfo": {"name": "story", "version": "1"}});
    ask_and_record(transcript, path, key, "initialize", hello)
        .await
        .expect_status(200);
    transcript
        .record(rpc(
            path,
            key,
            &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        ))
        .await;
    for method in [
        "ping",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "nonsense",
    ] {
        ask_and_record(transcript, path, key, method, json!({})).await;
    }
    for body in ["{", "[]", "5", "{\"jsonrpc\":\"1.0\"}"] {
        let asked = raw_request("POST", path)
            .key(key)
            .header("accept", "application/json, text/event-stream");
        transcript
            .record(asked.header("content-type", "application/json").bytes(body))
            .await;
    }
    for accept in ["text/html", "application/json"] {
        let body = json!({"jsonrpc": "2.0", "id": "seven", "method": "ping"});
        transcript
            .record(
                raw_request("POST", path)
                    .key(key)
                    .header("accept", accept)
                    .json(&body),
            )
            .await;
    }
    let origin = rpc(
        path,
        key,
        &json!({"jsonrpc": "2.0", "id": "seven", "method": "ping"}),
    );
    transcript
        .record(origin.header("origin", "https://evil.example"))
        .await;
    for (method, key) in [
        ("GET", key),
        ("DELETE", key),
        ("POST", ""),
        ("POST", OPERATOR_KEY),
        ("POST", "ca_none"),
    ] {
        transcript
            .record(raw_request(method, path).key(key).json(&json!({})))
            .await;
    }
}

/// The hub's tools with arguments, in the order in which they are called.
fn tool_calls(room: &str) -> Vec<(&'static str, Value)> {
    let lease = "6f1c5e0b-8d3a-4f0e-9a57-2f6f3f0c9d11";
    vec![
        (
            "chorus_send",
            json!({"to": "lea@chorus", "text": "from a tool"}),
        ),
        ("chorus_inbox", json!({})),
        ("chorus_history", json!({"limit": 5})),
        ("chorus_discover", json!({})),
        ("agent_advise", json!({"advisory_text": "reading"})),
        (
            "agent_broadcast",
            json!({"broadcast_text": "done", "event_class": "merged"}),
        ),
        ("agent_handover", json!({"handover_body": "half done"})),
        (
            "agent_lock_acquire",
            json!({"resource": "src", "lease_id": lease, "ttl_ms": 1000}),
        ),
        (
            "agent_lease_extend",
            json!({"lease_id": lease, "ttl_ms": 1000}),
        ),
        (
            "agent_lock_release",
            json!({"lease_id": lease, "resource": "src"}),
        ),
        ("agent_query", json!({"query_text": "who?"})),
        (
            "agent_respond",
            json!({"query_id": lease, "response_text": "me"}),
        ),
        ("agent_frames", json!({"limit": 1})),
        ("agent_roster", json!({})),
        ("channel_list", json!({})),
        ("channel_join", json!({"channel_id": room})),
        ("channel_post", json!({"channel": room, "content": "hello"})),
        ("channel_history", json!({"channel": room})),
        ("market_discover", json!({"skill": "analyze_text"})),
        (
            "market_hire",
            json!({"skill_name": "analyze_text", "input_data": {"text": "x"}, "budget": 0.15, "job_id": "job-9"}),
        ),
        ("market_job", json!({"job_id": "job-9"})),
        ("market_job", json!({"board": true})),
        ("market_act", json!({"job_id": "job-9", "act": "cancel"})),
        (
            "market_offer",
            json!({"skill_name": "juggle", "cost_per_call": 0}),
        ),
        (
            "market_transfer",
            json!({"to_owner": "none", "amount": 0.05, "transfer_id": "t-9"}),
        ),
        ("market_balance", json!({})),
    ]
}

pub async fn run(transcript: &mut Transcript) {
    let (kim, lea) = (
        agent(transcript, "kim@chorus").await,
        agent(transcript, "lea@chorus").await,
    );
    protocol_errors(transcript, "/mcp", &kim).await;
    let room = transcript
        .post(&kim, "/channels", &json!({"name": "tools"}))
        .await
        .expect_status(201)
        .text_at("/data/id");
    let listed = ask_and_record(transcript, "/mcp", &kim, "tools/list", json!({}))
        .await
        .json()["result"]["tools"]
        .clone();
    let mut names: Vec<String> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().into())
        .collect();
    for (name, args) in tool_calls(&room) {
        call_tool(transcript, "/mcp", &kim, name, &args).await;
        names.retain(|other| other != name);
    }
    // Those that are not in the list above are at least refused alike.
    for name in names {
        call_tool(transcript, "/mcp", &lea, &name, &json!({})).await;
    }
    for path in [
        "",
        "/mcp",
        "/mcp/ch_none",
        "/mcp/%00",
        "/mcp?x=%zz",
        "?x=%zz",
    ] {
        transcript
            .get("", &format!("/.well-known/oauth-protected-resource{path}"))
            .await;
    }
}

pub async fn in_a_room(transcript: &mut Transcript, room: &str, delivery: &Value) {
    let path = below(transcript, &delivery["mcp"]["url"]);
    let bearer = delivery["mcp"]["headers"]["Authorization"]
        .as_str()
        .unwrap()
        .strip_prefix("Bearer ")
        .unwrap()
        .to_owned();
    protocol_errors(transcript, &path, &bearer).await;
    for (name, args) in [
        ("read_history", json!({"limit": 2})),
        ("send_message", json!({"content": "On it"})),
        ("set_status", json!({"status": "reading"})),
        ("get_roster", json!({})),
        (
            "artifact_create",
            json!({"slug": "spec", "title": "Spec", "content": "one two"}),
        ),
        (
            "artifact_edit",
            json!({"slug": "spec", "version": 1, "find": "two", "replace": "2"}),
        ),
        (
            "artifact_edit",
            json!({"slug": "spec", "version": 1, "content": "mine"}),
        ),
        ("artifact_read", json!({"slug": "spec"})),
        ("file_put", json!({"name": "trace.bin", "data": "AAECAw=="})),
        ("file_get", json!({"name": "trace.bin"})),
        ("artifact_list", json!({})),
    ] {
        call_tool(transcript, &path, &bearer, name, &args).await;
    }
    transcript
        .post(&bearer, "/mcp/ch_none", &json!({}))
        .await
        .expect_status(401);
    transcript.post(&bearer, "/mcp/%00", &json!({})).await;
    transcript
        .post(
            &bearer,
            &format!("{room}/messages"),
            &json!({"content": "x"}),
        )
        .await
        .expect_status(401);
}
