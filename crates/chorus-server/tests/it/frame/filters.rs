//! Frame filters: checked when the stream opens, then applied by the hub to every frame.

use crate::support::actors::{Agent, Answer, Session, frame};
use serde_json::json;

/// Sends as a session of a tool; how many it was emitted to.
async fn tells_as(agent: &Agent, tool: &str, scope: &str, text: &str) -> u64 {
    let frame = agent.advisory_to(scope, text);
    let answer = Answer::of(
        agent
            .submission("/frames", scope, &frame)
            .header("x-chorus-tool", tool),
    )
    .await;
    answer.recipient_count(frame["frame_id"].as_str().unwrap())
}

/// Everything up to the broadcast that closes every scene, by what it says.
async fn until_curtain(session: &mut Session) -> Vec<String> {
    let mut heard = Vec::new();
    loop {
        let event = session.any().await.expect("a frame");
        let payload = &event.data["payload"];
        let text = payload["advisory_text"]
            .as_str()
            .or(payload["broadcast_text"].as_str())
            .unwrap()
            .to_owned();
        if text == "curtain" {
            return heard;
        }
        heard.push(text);
    }
}

fn broadcast(from: &Agent, to: &str, text: &str) -> serde_json::Value {
    frame(
        &from.handle(),
        to,
        "agent_broadcast",
        &json!({"broadcast_text": text, "event_class": "merged"}),
    )
}

story!(each_axis_narrows_and_all_clauses_hold, |hub| async {
    // FRM-73…79, FRM-82, R-48
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    alice.grant(&bob).await;
    alice.found_organisation("~acme").await;
    let cases = [
        ("", &["a", "b", "v", "o", "m"][..]),
        ("kind:agent_advisory", &["a", "b", "v", "o"]),
        ("kind:agent_broadcast", &["m"]),
        ("sender:~bob", &["b"]),
        ("sender:~alice,kind:agent_advisory", &["a", "v", "o"]),
        ("tool:vim", &["v"]),
        ("tool:Vim", &[]),
        ("org:acme", &["o"]),
        ("org:~acme,sender:~alice,kind:agent_advisory", &["o"]),
        (
            "kind:agent_advisory,kind:agent_advisory",
            &["a", "b", "v", "o"],
        ),
        ("kind:agent_advisory,kind:agent_broadcast", &[]),
        ("sender:~alice,sender:~bob", &[]),
        ("org:other", &[]),
        ("content_type:text/plain", &[]),
        ("kind:agent_advisory,content_type:text/plain", &[]),
        ("content_type:a:b", &[]),
    ];
    let mut open = Vec::new();
    for (filter, _) in &cases {
        open.push(
            alice
                .open_session_with(&format!("?instrument=cc-x&session=s1&filter={filter}"))
                .await,
        );
    }
    let merged = broadcast(&alice, "~alice", "m");
    let counts = [
        ("a", alice.send_advisory("~alice", "a").await),
        ("b", bob.send_advisory("~alice", "b").await),
        ("v", tells_as(&alice, "vim", "~alice", "v").await),
        ("o", tells_as(&alice, "cc", "org:acme/members/*", "o").await),
        (
            "m",
            alice
                .submit("", &merged)
                .await
                .recipient_count(merged["frame_id"].as_str().unwrap()),
        ),
    ];
    for (session, (filter, expected)) in open.iter_mut().zip(&cases) {
        for text in *expected {
            let event = session.any().await.expect("a frame");
            let payload = &event.data["payload"];
            let said = payload["advisory_text"]
                .as_str()
                .or(payload["broadcast_text"].as_str());
            assert_eq!(said, Some(*text), "{filter}");
        }
    }
    for (text, count) in counts {
        let hearing = cases
            .iter()
            .filter(|(_, expected)| expected.contains(&text))
            .count() as u64;
        // Bob is another, and told no more than "some".
        assert_eq!(
            count,
            if text == "b" { 1 } else { hearing },
            "{text} went to no other session"
        );
    }
});

memory_story!(
    the_count_does_not_include_those_that_are_spared,
    |hub| async {
        // FRM-66, FRM-80, FRM-82
        let alice = hub.agent("alice").await;
        let mut open = Vec::new();
        for filter in [
            "kind:agent_advisory",
            "sender:~alice",
            "tool:vim",
            "org:acme",
            "content_type:x",
            "kind:flush_executed",
        ] {
            open.push(alice.open_session_with(&format!("?filter={filter}")).await);
        }
        assert_eq!(alice.send_advisory("~alice", "for two of six").await, 2);
        for session in &mut open[..2] {
            assert_eq!(session.advisory_texts(1).await, ["for two of six"]);
        }
    }
);

memory_story!(a_filter_that_cannot_be_kept_opens_no_stream, |hub| async {
    // FRM-75, FRM-76, FRM-81, FRM-83, FRM-93, FRM-94, R-45, R-48
    let alice = hub.agent("alice").await;
    let long = format!("kind:agent_advisory{}", ",kind:agent_advisory".repeat(60));
    for (filter, code) in [
        ("kidn:agent_advisory", "filter-axis-unknown"),
        ("Kind:agent_advisory", "filter-axis-unknown"),
        ("%20kind:agent_advisory", "filter-axis-unknown"),
        ("kind:agent_advisory,when:now", "filter-axis-unknown"),
        (":x", "filter-axis-unknown"),
        ("kind:gossip", "filter-value-invalid"),
        ("kind:agent_advisory%20", "filter-value-invalid"),
        ("sender:alice", "filter-value-invalid"),
        ("sender:~Alice", "filter-value-invalid"),
        ("tool:a%20b", "filter-value-invalid"),
        ("org:Acme", "filter-value-invalid"),
        ("kind:", "filter-value-invalid"),
        ("kind", "filter-value-invalid"),
        ("typo", "filter-value-invalid"),
        (",", "filter-value-invalid"),
        ("kind:agent_advisory,", "filter-value-invalid"),
        (",kind:agent_advisory", "filter-value-invalid"),
        (long.as_str(), "filter-value-invalid"),
    ] {
        let answer = alice.try_open_session(&format!("?filter={filter}")).await;
        assert_eq!(answer.json()["code"], code, "{filter}: {answer:?}");
        answer.frame_refused(400, code, Some("filter"));
    }
    assert!(
        alice.roster().await.is_empty(),
        "a refused stream is no session"
    );
});

memory_story!(a_filter_may_be_percent_encoded, |hub| async {
    // FRM-73: as any client writes a query
    let alice = hub.agent("alice").await;
    let mut session = alice
        .open_session_with("?filter=kind%3Aagent_advisory%2Csender%3A%7Ealice")
        .await;
    assert_eq!(
        alice.roster().await[0]["filter"],
        "kind:agent_advisory,sender:~alice"
    );
    alice.submit("", &broadcast(&alice, "~alice", "no")).await;
    alice.send_advisory("~alice", "yes").await;
    assert_eq!(session.advisory_texts(1).await, ["yes"]);
});

memory_story!(an_empty_filter_spares_nothing, |hub| async {
    // FRM-74
    let alice = hub.agent("alice").await;
    let mut session = alice.open_session_with("?filter=").await;
    alice.send_advisory("~alice", "one").await;
    alice.submit("", &broadcast(&alice, "~alice", "two")).await;
    alice
        .submit("", &broadcast(&alice, "~alice", "curtain"))
        .await;
    assert_eq!(until_curtain(&mut session).await, ["one", "two"]);
});

memory_story!(a_tool_is_told_or_taken_from_the_instrument, |hub| async {
    // FRM-78, R-42, R-43
    let alice = hub.agent("alice").await;
    let mut session = alice.open_session_with("?filter=tool:cc").await;
    for (instrument, tool, text) in [
        (Some("cc-editor"), None, "by its instrument"),
        (Some("ccc-editor"), None, "of another"),
        (Some("vim"), Some("cc"), "as it says"),
        (Some("cc-editor"), Some("vim"), "as it does not say"),
        (Some("cc"), None, "the whole of it"),
        (None, None, "of none"),
    ] {
        let mut request = alice.submission("/frames", "", &alice.advisory(text));
        for (header, value) in [("x-chorus-instrument", instrument), ("x-chorus-tool", tool)] {
            if let Some(value) = value {
                request = request.header(header, value);
            }
        }
        assert_eq!(Answer::of(request).await.status, 200);
    }
    tells_as(&alice, "cc", "~alice", "marker").await;
    assert_eq!(
        session.advisory_texts(4).await,
        [
            "by its instrument",
            "as it says",
            "the whole of it",
            "marker"
        ]
    );
});
