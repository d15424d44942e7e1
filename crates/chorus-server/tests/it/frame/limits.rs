//! Frame limits: sizes, rates, and the refusal at each limit.

use crate::support::actors::{Agent, Answer};
use chorus_wire::limits;
use serde_json::json;
use std::time::Duration;

/// An advisory of exactly so many bytes; blanks are part of a frame.
fn sized(alice: &Agent, bytes: usize) -> String {
    let frame = alice.advisory("large").to_string();
    let padding = " ".repeat(bytes - frame.len());
    format!("{}{padding}}}", frame.strip_suffix('}').unwrap())
}

memory_story!(
    a_frame_of_64_kib_passes_and_one_byte_more_does_not,
    |hub| async {
        // FRM-103, R-45, R-49
        let alice = hub.agent("alice").await;
        let mut session = alice.open_session("cc-editor", "s1").await;
        let largest = sized(&alice, 64 * 1024);
        let longest_scope = format!("~alice/{}@{}", "i".repeat(128), "s".repeat(128));
        let answer = alice
            .post_text(
                "/frames",
                format!(r#"{{"scope":"{longest_scope}","frame":{largest}}}"#),
            )
            .await;
        assert_eq!(
            (answer.status, &answer.json()["recipient_count"]),
            (200, &json!(0)),
            "{answer:?}"
        );
        let largest = sized(&alice, 64 * 1024);
        assert_eq!(
            alice
                .post_text("/frames", format!(r#"{{"frame":{largest}}}"#))
                .await
                .status,
            200
        );
        assert_eq!(session.advisory().await.text, largest);
        for bytes in [64 * 1024 + 1, 66 * 1024, 300 * 1024] {
            let body = format!(r#"{{"frame":{}}}"#, sized(&alice, bytes));
            alice
                .post_text("/frames", body)
                .await
                .frame_refused(413, "frame-too-large", None);
        }
        alice.send_advisory("~alice", "marker").await;
        assert_eq!(session.advisory_texts(1).await, ["marker"]);
    }
);

memory_story!(texts_are_bounded_in_octets, |hub| async {
    // FRM-28, FRM-29, FRM-31, R-49
    let alice = hub.agent("alice").await;
    let mut session = alice.open_session("cc-editor", "s1").await;
    assert_eq!(alice.send_advisory("~alice", &"é".repeat(1024)).await, 1);
    assert_eq!(session.advisory_texts(1).await, ["é".repeat(1024)]);
    let handover = json!({"previous_session_id": "s".repeat(128), "handover_body": "b".repeat(8192),
        "pointer_refs": vec!["r".repeat(200); 256]});
    let answer = alice
        .submit("", &alice.frame("agent_handover", &handover))
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    session.next("agent_handover").await;
});

story!(
    a_sender_that_sends_too_often_waits_and_no_other_does,
    with(|set| set.rate_limit = 20),
    |hub| async {
        // FRM-101, R-45; failure 24
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let mut session = alice.open_session("cc-editor", "s1").await;
        let mut heard = 0;
        let refusal = loop {
            let answer = alice.submit("", &alice.advisory("again")).await;
            if answer.status != 200 {
                break answer;
            }
            heard += 1;
            assert!(heard <= 20, "twenty a minute");
        };
        refusal.frame_refused(429, "rate-limited", None);
        let wait: u64 = refusal
            .header("retry-after")
            .parse()
            .expect("Retry-After in seconds");
        assert!((1..=60).contains(&wait), "{wait}");
        assert!(
            !refusal.header("ratelimit").is_empty()
                && !refusal.header("ratelimit-policy").is_empty(),
            "{refusal:?}"
        );
        alice
            .try_open_session("")
            .await
            .frame_refused(429, "rate-limited", None);
        assert_eq!(bob.send_advisory("~bob", "unhindered").await, 0);
        hub.advance(Duration::from_secs(wait));
        assert_eq!(alice.send_advisory("~alice", "in good time").await, 1);
        assert_eq!(
            session.advisory_texts(heard + 1).await.last().unwrap(),
            "in good time"
        );
    }
);

memory_story!(
    headers_too_large_are_refused_in_the_form_of_frames,
    |hub| async {
        // R-45; failure 26
        let alice = hub.agent("alice").await;
        let request = alice.submission("/frames", "", &alice.advisory("x"));
        let answer =
            Answer::of(request.header("x-padding", "x".repeat(limits::HEADER_BYTES))).await;
        answer.frame_refused(431, "headers-too-large", None);
    }
);
