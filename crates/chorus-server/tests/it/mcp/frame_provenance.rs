//! What the frame tools say about the model that calls them, and for whom an instrument acts (FRM-15, FRM-66, FRM-96).

use super::host_client::McpHost;
use crate::support::actors::{Agent, registration};
use serde_json::{Value, json};

/// The id of a claim, and of a question.
const LEASE: &str = "00000000-0000-4000-8000-000000000007";

memory_story!(
    a_model_is_not_said_to_run_on_the_device_unless_its_host_says_so,
    |hub| async {
        // FRM-15
        let alice = hub.agent("alice").await;
        let mut session = alice.open_session("editor", "s1").await;
        let host = McpHost::of(&alice).await;
        for (header, expected) in [
            (None, "server-active"),
            (Some("local-only"), "local-only"),
            (Some("server-aggregate"), "server-aggregate"),
        ] {
            let host = match header {
                Some(value) => host.clone().with("x-chorus-compute", value),
                None => host.clone(),
            };
            host.call("agent_advise", json!({"advisory_text": "reading"}))
                .await
                .data();
            let heard = session.advisory().await;
            assert_eq!(heard.data["provenance_compute_location"], expected);
        }
        host.clone()
            .with("x-chorus-compute", "on the moon")
            .call("agent_advise", json!({"advisory_text": "reading"}))
            .await
            .refused("X-Chorus-Compute");
    }
);

memory_story!(
    an_instrument_sends_frames_for_its_owner_by_every_tool,
    |hub| async {
        // FRM-96, R-04
        let alice = hub.agent("alice").await;
        let mut body = registration("cc-editor@chorus");
        body["owner_id"] = json!(alice.id);
        let data = alice.post("/register", &body).await.data(201);
        let key = data["api_key"].as_str().unwrap();
        let editor = Agent::new(&alice, "cc-editor@chorus", key);
        let mut session = editor.open_session("editor", "s1").await;
        let host = McpHost::of(&editor).await;
        for (tool, args, kind) in [
            (
                "agent_advise",
                json!({"advisory_text": "reading"}),
                "agent_advisory",
            ),
            (
                "agent_broadcast",
                json!({"broadcast_text": "done", "event_class": "merged"}),
                "agent_broadcast",
            ),
            (
                "agent_handover",
                json!({"handover_body": "half done"}),
                "agent_handover",
            ),
            (
                "agent_lock_acquire",
                json!({"resource": "src", "lease_id": LEASE}),
                "agent_lock_request",
            ),
            (
                "agent_lease_extend",
                json!({"lease_id": LEASE, "ttl_ms": 60_000}),
                "agent_lease_extend",
            ),
            (
                "agent_lock_release",
                json!({"lease_id": LEASE}),
                "agent_lock_release",
            ),
            ("agent_query", json!({"query_text": "who?"}), "agent_query"),
            (
                "agent_respond",
                json!({"query_id": LEASE, "response_text": "I do"}),
                "agent_response",
            ),
            (
                "agent_send",
                json!({"kind": "agent_advisory", "payload": {"advisory_text": "reading"}}),
                "agent_advisory",
            ),
        ] {
            host.call(tool, args).await.data();
            let heard = session.next(kind).await;
            assert_eq!(
                (&heard.data["acted_by"], &heard.data["sender_handle"]),
                (&json!("~alice"), &json!("~cc-editor")),
                "{tool}"
            );
            // FRM-15: no tool knows where the model runs.
            let location = &heard.data["provenance_compute_location"];
            assert_eq!(location, "server-active", "{tool}");
        }
    }
);

memory_story!(a_coarse_count_is_told_as_a_range, |hub| async {
    // FRM-66, FRM-108, R-50
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    bob.grant(&alice).await;
    let mut open = Vec::new();
    for session in ["s1", "s2", "s3"] {
        open.push(bob.open_session("editor", session).await);
    }
    let host = McpHost::of(&alice).await;
    let args = json!({"advisory_text": "hello", "scope": "~bob"});
    let said = host.call("agent_advise", args).await;
    assert_eq!(said.data()["recipient_count"], 1);
    let text = said.0["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("1 to 9 sessions"), "{text}");
    let own = host
        .call("agent_advise", json!({"advisory_text": "hello"}))
        .await;
    let text = own.0["content"][0]["text"].as_str().unwrap();
    assert_eq!(
        text, "no session is listening",
        "its own sessions are counted"
    );
});

memory_story!(a_secret_in_a_diagnostic_does_not_leave, |hub| async {
    // FRM-107
    let alice = hub.agent("alice").await;
    let mut session = alice.open_session("editor", "s1").await;
    let secret = "ca_0123456789abcdef0123456789abcdef";
    let payload = json!({"symptom": format!("401 with {secret}"), "severity": "info",
        "diagnostic_id": "00000000-0000-4000-8000-000000000001"});
    let args = json!({"kind": "peer_diagnostic_request", "payload": payload});
    McpHost::of(&alice)
        .await
        .call("agent_send", args)
        .await
        .data();
    let heard = session.next("peer_diagnostic_request").await;
    assert_eq!(heard.data["payload"]["symptom"], "401 with [redacted]");
});

memory_story!(models_are_told_to_scope_narrowly, |hub| async {
    // FRM-107, FRM-110: what a model reads of a tool is all that it knows about scopes
    let host = McpHost::of(&hub.agent("alice").await).await;
    let mut scoped = Vec::new();
    for name in host.names() {
        let scope = &host.schema(name)["properties"]["scope"];
        if let Some(text) = scope["description"].as_str() {
            assert!(
                text.contains("narrow") && text.contains("~me"),
                "{name}: {text}"
            );
            scoped.push(name);
        }
    }
    for name in [
        "agent_send",
        "agent_advise",
        "agent_broadcast",
        "agent_query",
    ] {
        assert!(scoped.contains(&name), "{scoped:?}");
    }
    let described = host.description("agent_send");
    for word in ["No secrets", "diagnostics most narrowly"] {
        assert!(described.contains(word), "{described}");
    }
    let listed = host.result("resources/list", json!({})).await;
    let resources = listed["resources"].as_array().unwrap();
    let frames = resources.iter().find(|one| one["uri"] == "chorus://frames");
    let about = frames.unwrap()["description"].as_str().unwrap();
    assert!(
        about.contains("No secrets") && about.contains("narrowest scope"),
        "{about}"
    );
    let read = host
        .result("resources/read", json!({"uri": "chorus://frames"}))
        .await;
    let document: Value =
        serde_json::from_str(read["contents"][0]["text"].as_str().unwrap()).unwrap();
    for (kind, field) in [
        ("peer_diagnostic_request", "symptom"),
        ("peer_diagnostic_response", "finding"),
    ] {
        let about = &document["payloads"][kind]["properties"][field]["description"];
        let about = about.as_str().unwrap();
        assert!(
            about.contains("No secrets") && about.contains("narrowest scope"),
            "{about}"
        );
    }
});
