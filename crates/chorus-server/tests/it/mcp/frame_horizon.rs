//! Which frames a host without a stream still reads as news (FRM-11, FRM-105).

use super::host_client::McpHost;
use serde_json::{Value, json};

memory_story!(stale_frames_are_not_read_as_news, |hub| async {
    // FRM-11, FRM-105, R-104: an hour without ttl_ms, else ttl_ms; a handover says itself how long it is valid
    let alice = hub.agent("alice").await;
    let mut old = alice.advisory("old news");
    let mut short = alice.advisory("short");
    short["ttl_ms"] = 1_000.into();
    let mut lasting = alice.advisory("for a day");
    lasting["ttl_ms"] = 86_400_000.into();
    let work = json!({"previous_session_id": "s1", "handover_body": "half done"});
    let mut handover = alice.frame("agent_handover", &work);
    for frame in [&mut old, &mut short, &mut lasting, &mut handover] {
        frame["created_at"] = "2026-03-20T08:59:00Z".into();
        assert_eq!(alice.submit("", frame).await.status, 200);
    }
    let fresh = alice.advisory("fresh");
    assert_eq!(alice.submit("", &fresh).await.status, 200);
    let host = McpHost::of(&alice).await;
    let read = host.call("agent_frames", json!({})).await.data();
    let frames: Vec<&Value> = read["frames"]
        .as_array()
        .unwrap()
        .iter()
        .map(|frame| &frame["frame"])
        .collect();
    assert_eq!(frames, [&lasting, &handover, &fresh]);
    // The cursor is past what was dropped.
    let since = json!({"since": read["next_since"]});
    let rest = host.call("agent_frames", since).await.data();
    assert_eq!(rest["frames"], json!([]));
});
