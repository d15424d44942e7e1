//! The frame tools find what is open, also when the frame ring has forgotten it.

use super::host_client::McpHost;
use serde_json::json;

story!(
    a_tool_finds_what_is_open_after_the_ring_forgot_it,
    |hub| async {
        // a claim, a decision and a handover of twenty minutes ago
        let alice = hub.agent("alice").await;
        let earlier = McpHost::of(&alice).await.with("x-chorus-session", "s1");
        let claim = json!({"resource": "src", "ttl_ms": 3_600_000});
        let claimed = earlier.call("agent_lock_acquire", claim).await.data();
        assert_eq!(claimed["kept"], true);
        let work = json!({"handover_body": "half done"});
        earlier.call("agent_handover", work).await.data();
        let moment = json!({"synopsis": "Ready.", "findings": [], "recommendations": [], "offer": "I start.",
        "question": {"stem": "Now?", "recommended_idx": 0,
            "options": [{"label": "Now", "reasoning": "calm"}, {"label": "Later", "reasoning": "safe"}]}});
        let ask = json!({"kind": "agent_binding_moment", "payload": moment, "ttl_ms": 1_800_000});
        let asked = earlier.call("agent_send", ask).await.data();
        hub.advance(std::time::Duration::from_secs(1_200));
        let host = McpHost::of(&alice).await.with("x-chorus-session", "s2");
        let second = host
            .call("agent_lock_acquire", json!({"resource": "src/main.rs"}))
            .await
            .data();
        assert_eq!(second["others"][0]["lease_id"], claimed["lease_id"]);
        let items = async || {
            let read = host.call("agent_frames", json!({})).await.data();
            let open = read["open"].as_array().unwrap().clone();
            let names = open
                .iter()
                .map(|item| item["item"].as_str().unwrap().to_owned());
            names.collect::<Vec<String>>()
        };
        assert_eq!(items().await, ["lock", "decision", "handover", "lock"]);
        let answer = json!({"query_id": asked["frame_id"], "response_text": "1: Now"});
        host.call("agent_respond", answer).await.data();
        assert_eq!(items().await, ["lock", "handover", "lock"]);
        let take = |session: &str| json!({"handover_body": "half done", "previous_session_id": "s1", "next_session_id": session});
        host.call("agent_handover", take("s2")).await.data();
        assert_eq!(items().await, ["lock", "lock"]);
    }
);
