//! The tools of frames: announcements reach live sessions, and questions return their answers.

use super::host_client::{InvalidCall, McpHost};
use crate::support::actors::{Answer, frame_id};
use serde_json::{Value, json};

/// Tool, arguments, the kind of the frame, and a field of its payload.
fn announcements(lease: &str) -> Vec<(&'static str, Value, &'static str, &'static str)> {
    vec![
        (
            "agent_advise",
            json!({"advisory_text": "reading", "file_refs": ["a.rs"]}),
            "agent_advisory",
            "advisory_text",
        ),
        (
            "agent_advise",
            json!({"text": "reading"}),
            "agent_advisory",
            "advisory_text",
        ),
        (
            "agent_broadcast",
            json!({"broadcast_text": "done", "event_class": "merged"}),
            "agent_broadcast",
            "event_class",
        ),
        (
            "agent_handover",
            json!({"handover_body": "half done"}),
            "agent_handover",
            "previous_session_id",
        ),
        (
            "agent_lock_acquire",
            json!({"resource": "src", "lease_id": lease}),
            "agent_lock_request",
            "ttl_ms",
        ),
        (
            "agent_lease_extend",
            json!({"lease_id": lease, "ttl_ms": 1000}),
            "agent_lease_extend",
            "ttl_ms",
        ),
        (
            "agent_lock_release",
            json!({"lease_id": lease, "resource": "src"}),
            "agent_lock_release",
            "resource",
        ),
        (
            "agent_query",
            json!({"query_text": "who?"}),
            "agent_query",
            "response_scope",
        ),
        (
            "agent_respond",
            json!({"query_id": lease, "response_text": "me"}),
            "agent_response",
            "responder_session_id",
        ),
        (
            "agent_send",
            json!({"kind": "peer_diagnostic_request", "scope": "~alice/cc-*", "ttl_ms": 1000,
                "payload": {"symptom": "slow", "diagnostic_id": lease, "severity": "info"}}),
            "peer_diagnostic_request",
            "symptom",
        ),
    ]
}

memory_story!(
    each_announcement_is_heard_as_a_frame_of_its_kind,
    |hub| async {
        let alice = hub.agent("alice").await;
        let mut session = alice
            .open_session_with("?instrument=cc-editor&session=s1")
            .await;
        let host = McpHost::of(&alice)
            .await
            .with("x-chorus-instrument", "cc-desk")
            .with("x-chorus-session", "d1");
        let lease = "6f1c5e0b-8d3a-4f0e-9a57-2f6f3f0c9d11";
        for (tool, args, kind, field) in announcements(lease) {
            let data = host.call(tool, args).await.data();
            assert_eq!(data["recipient_count"], 1, "{tool} {data}");
            let event = session.stream.next(kind).await;
            assert_eq!(event.data["frame_id"], data["frame_id"], "{tool}");
            assert!(
                !event.data["payload"][field].is_null(),
                "{tool} {}",
                event.text
            );
            assert_eq!(
                event.data["provenance_basis"], "session:cc-desk@d1",
                "{tool}"
            );
            assert_eq!(
                (&event.data["drafted_with"], &event.data["acted_by"]),
                (&json!("~cc-desk"), &json!("~alice"))
            );
        }
        let asked = host
            .call(
                "agent_query",
                json!({"query_text": "who?", "timeout_ms": 9}),
            )
            .await
            .data();
        assert_eq!(
            (&asked["response_scope"], &asked["responses"]),
            (&json!("~alice/cc-desk@d1"), &json!([]))
        );
        let claimed = host
            .call(
                "agent_lock_acquire",
                json!({"resource": "b", "ttl_ms": 1000, "session": "d2"}),
            )
            .await
            .data();
        assert_eq!(claimed["expires_at"], "2026-03-20T10:00:01.000000Z");
        assert_ne!(claimed["lease_id"], lease);
    }
);

memory_story!(
    a_question_that_waits_comes_back_with_its_answer,
    |hub| async {
        let alice = hub.agent("alice").await;
        let mut session = alice
            .open_session_with("?instrument=cc-editor&session=s1&filter=kind:agent_query")
            .await;
        let host = McpHost::of(&alice).await;
        let asking = {
            let host = host.clone();
            tokio::spawn(async move {
                host.call(
                    "agent_query",
                    json!({"query_text": "who?", "timeout_ms": 60_000, "wait": true}),
                )
                .await
                .data()
            })
        };
        let question = session.stream.next("agent_query").await;
        let payload = &question.data["payload"];
        let answer = json!({"query_id": payload["query_id"], "scope": payload["response_scope"], "response_text": "me",
        "responded_to_frame_id": question.data["frame_id"], "session": "s1"});
        assert_eq!(
            host.call("agent_respond", answer).await.data()["recipient_count"],
            1
        );
        let heard = asking.await.unwrap();
        assert_eq!(heard["query_id"], payload["query_id"]);
        assert_eq!(
            heard["responses"],
            json!([{"sender_handle": "~alice", "responder_session_id": "s1", "response_text": "me"}])
        );
        let late = host
            .call(
                "agent_query",
                json!({"query_text": "who?", "timeout_ms": 1, "wait": true}),
            )
            .await
            .data();
        assert_eq!(late["responses"], json!([]), "no answer is no fault");
    }
);

memory_story!(
    a_stream_that_a_tool_hands_out_opens_once_and_without_a_key,
    |hub| async {
        let alice = hub.agent("alice").await;
        let host = McpHost::of(&alice).await;
        let args =
            json!({"filter": "kind:agent_advisory", "instrument": "cc-desk", "session": "d 1"});
        host.call("agent_subscribe", args).await.refused("session");
        let args =
            json!({"filter": "kind:agent_advisory", "instrument": "cc-desk", "session": "d1"});
        let data = host.call("agent_subscribe", args).await.data();
        let path = data["stream_url"]
            .as_str()
            .unwrap()
            .strip_prefix(&hub.url)
            .unwrap()
            .to_owned();
        let mut stream = hub.anonymous().stream(&path).await;
        let connected = stream.next("connected").await;
        assert_eq!(
            (&connected.data["instrument"], &connected.data["session"]),
            (&json!("cc-desk"), &json!("d1"))
        );
        stream.next("open-items").await;
        let roster = host.call("agent_roster", json!({})).await.data();
        assert_eq!(roster["sessions"][0]["filter"], "kind:agent_advisory");
        host.call(
            "agent_broadcast",
            json!({"broadcast_text": "no", "event_class": "other"}),
        )
        .await
        .data();
        host.call("agent_advise", json!({"advisory_text": "yes"}))
            .await
            .data();
        assert_eq!(
            stream.next("agent_advisory").await.data["payload"]["advisory_text"],
            "yes"
        );
        let again = Answer::of(hub.anonymous().request("GET", &path)).await;
        assert_eq!(again.status, 401, "{again:?}");
    }
);

fn invalid_announcement_calls() -> Vec<InvalidCall> {
    let long = "x".repeat(2_049);
    vec![
        (
            "agent_send",
            json!({"kind": "gossip", "payload": {}}),
            "kind",
        ),
        (
            "agent_send",
            json!({"kind": "agent_advisory", "payload": {"advisory_text": ""}}),
            "advisory_text",
        ),
        (
            "agent_send",
            json!({"kind": "agent_advisory", "payload": "x"}),
            "payload",
        ),
        (
            "agent_advise",
            json!({"advisory_text": long}),
            "advisory_text",
        ),
        (
            "agent_advise",
            json!({"advisory_text": "é".repeat(1_100)}),
            "advisory_text",
        ),
        (
            "agent_advise",
            json!({"advisory_text": "x", "scope": "everyone"}),
            "scope",
        ),
        (
            "agent_advise",
            json!({"advisory_text": "x", "scope": "~bob"}),
            "scope",
        ),
        (
            "agent_advise",
            json!({"advisory_text": "x", "instrument": "a b"}),
            "instrument",
        ),
        (
            "agent_broadcast",
            json!({"broadcast_text": "x", "event_class": "rumour"}),
            "event_class",
        ),
        ("agent_handover", json!({}), "handover_body"),
    ]
}

fn invalid_lock_and_query_calls() -> Vec<InvalidCall> {
    let id = frame_id();
    vec![
        ("agent_lock_acquire", json!({"resource": ""}), "resource"),
        (
            "agent_lock_acquire",
            json!({"resource": "x", "ttl_ms": 3_600_001}),
            "ttl_ms",
        ),
        (
            "agent_lock_acquire",
            json!({"resource": "x", "lease_id": "x".repeat(36)}),
            "lease_id",
        ),
        (
            "agent_lock_release",
            json!({"lease_id": "short"}),
            "lease_id",
        ),
        ("agent_lease_extend", json!({"lease_id": id}), "ttl_ms"),
        (
            "agent_query",
            json!({"query_text": "x", "response_scope": "x"}),
            "response_scope",
        ),
        (
            "agent_query",
            json!({"query_text": "x", "response_scope": "~bob", "wait": true}),
            "wait",
        ),
        (
            "agent_respond",
            json!({"query_id": "x".repeat(36), "response_text": "x"}),
            "query_id",
        ),
        ("agent_roster", json!({"handle": "~bob"}), "handle"),
        ("agent_roster", json!({"handle": "bob"}), "handle"),
        ("agent_subscribe", json!({"filter": "colour:red"}), "filter"),
    ]
}

memory_story!(
    a_bad_argument_of_a_frame_tool_is_named_and_no_frame_is_sent,
    |hub| async {
        let (alice, _bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let mut session = alice.open_session_with("").await;
        let host = McpHost::of(&alice).await;
        for (tool, args, field) in invalid_announcement_calls()
            .into_iter()
            .chain(invalid_lock_and_query_calls())
        {
            host.call(tool, args).await.refused(field);
        }
        host.clone()
            .with("x-chorus-session", "a b")
            .call("agent_advise", json!({"text": "x"}))
            .await
            .refused("session");
        host.call(
            "agent_advise",
            json!({"advisory_text": "the first that is heard"}),
        )
        .await
        .data();
        assert_eq!(session.advisory_texts(1).await, ["the first that is heard"]);
        // an agent without a handle
        let market: Value = hub
            .anonymous()
            .post("/register", &json!({"agent_id": "m-1", "owner_id": "o"}))
            .await
            .json();
        let other = crate::support::actors::Agent::new(
            &hub.anonymous().0,
            "m-1",
            market["api_key"].as_str().unwrap(),
        );
        McpHost::of(&other)
            .await
            .call("agent_advise", json!({"advisory_text": "x"}))
            .await
            .refused("handle");
    }
);

memory_story!(the_second_claimant_is_told_who_came_first, |hub| async {
    let alice = hub.agent("alice").await;
    let host = McpHost::of(&alice).await;
    let claim = async |resource: &str, session: &str| {
        let args = json!({"resource": resource, "session": session, "ttl_ms": 60_000, "intent": "to mend it"});
        host.call("agent_lock_acquire", args).await.data()
    };
    let first = claim("src", "s1").await;
    assert_eq!(
        (&first["others"], &first["recipient_count"]),
        (&json!([]), &json!(0)),
        "also when no session listens"
    );
    let second = claim("src/main.rs", "s2").await;
    let others = second["others"].as_array().unwrap();
    assert_eq!(others.len(), 1, "{second}");
    assert_eq!(
        (&others[0]["lease_id"], &others[0]["holder"]),
        (&first["lease_id"], &json!("~alice"))
    );
    assert_eq!(
        (&others[0]["intent"], &others[0]["expires_at"]),
        (&json!("to mend it"), &first["expires_at"])
    );
    assert_eq!(
        claim("docs", "s2").await["others"],
        json!([]),
        "another resource"
    );
    host.call("agent_lock_release", json!({"lease_id": first["lease_id"]}))
        .await
        .data();
    let third = claim("src", "s3").await;
    assert_eq!(
        third["others"][0]["lease_id"], second["lease_id"],
        "the second is now the first"
    );
    hub.advance(std::time::Duration::from_secs(60));
    assert_eq!(
        claim("src", "s4").await["others"],
        json!([]),
        "FRM-27: all have run out"
    );

    claim("own", "s5").await;
    assert_eq!(
        claim("own", "s5").await["others"],
        json!([]),
        "no session blocks itself"
    );
    assert_eq!(
        claim("own", "s6").await["others"].as_array().unwrap().len(),
        2
    );

    let racing: Vec<_> = (0..6)
        .map(|n| {
            let host = host.clone();
            let args = json!({"resource": "race", "session": format!("r{n}")});
            tokio::spawn(async move {
                host.call("agent_lock_acquire", args).await.data()["others"] == json!([])
            })
        })
        .collect();
    let mut alone = 0;
    for one in racing {
        alone += usize::from(one.await.unwrap());
    }
    assert_eq!(alone, 1, "of those who claim at once exactly one is first");
});

memory_story!(a_host_without_a_stream_reads_recent_frames, |hub| async {
    // a question or a handover reaches a model that can open no stream
    let alice = hub.agent("alice").await;
    let host = McpHost::of(&alice).await;
    let other = McpHost::of(&alice).await;
    let empty = host.call("agent_frames", json!({})).await.data();
    assert_eq!(empty["frames"], json!([]));
    let asked = other
        .call("agent_query", json!({"query_text": "who?"}))
        .await
        .data();
    other
        .call("agent_handover", json!({"handover_body": "half done"}))
        .await
        .data();
    let read = host.call("agent_frames", json!({})).await.data();
    assert_eq!(read["more"], false);
    let frames = read["frames"].as_array().unwrap();
    let kinds: Vec<&Value> = frames.iter().map(|frame| &frame["kind"]).collect();
    assert_eq!(kinds, ["agent_query", "agent_handover"]);
    let query_id = &frames[0]["frame"]["payload"]["query_id"];
    assert_eq!(query_id, &asked["query_id"]);
    host.call(
        "agent_respond",
        json!({"query_id": query_id, "response_text": "me"}),
    )
    .await
    .data();
    let handovers = json!({"filter": "kind:agent_handover"});
    let handovers = host.call("agent_frames", handovers).await.data();
    assert_eq!(handovers["frames"].as_array().unwrap().len(), 1);
    // What came after the last reading, one by one.
    let since = json!({"since": empty["next_since"], "limit": 1});
    let first = host.call("agent_frames", since).await.data();
    assert_eq!(first["frames"][0]["kind"], "agent_query");
    assert_eq!(first["more"], true);
    let since = json!({"since": first["next_since"], "limit": 2});
    let rest = host.call("agent_frames", since).await.data();
    assert_eq!(rest["frames"][1]["kind"], "agent_response");
    assert_eq!(rest["more"], false);
    let newest = host.call("agent_frames", json!({"limit": 1})).await.data();
    assert_eq!(newest["frames"][0]["kind"], "agent_response");
});
