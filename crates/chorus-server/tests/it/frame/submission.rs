//! Submitting a frame: which sessions receive it, what is answered, and that a repeat has no second effect (R-41).

use crate::support::actors::{Answer, frame_id};
use chorus_wire::frame::FrameKind;
use serde_json::{Value, json};
use std::time::Duration;

/// The frame of the example that the workspace keeps for a kind, as `from` sends it to its own sessions.
fn printed(kind: &str, from: &str) -> Value {
    let path = format!(
        "{}/../chorus-wire/tests/frame/examples/{kind}.json",
        env!("CARGO_MANIFEST_DIR")
    );
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let mut frame = serde_json::from_str::<Value>(&text).unwrap()["frame"].take();
    for place in ["sender_handle", "recipient_handle", "acted_by"] {
        frame[place] = from.into();
    }
    if let Some(inner) = frame["payload"].get_mut("acted_by") {
        *inner = from.into();
    }
    frame["created_at"] = crate::support::actors::NOW.into();
    frame
}

story!(
    a_frame_reaches_every_session_of_the_handle_and_is_counted,
    |hub| async {
        // FRM-48, FRM-50, FRM-62…64, FRM-66, FRM-69, R-41, R-42
        let alice = hub.agent("alice").await;
        let (mut one, mut two) = (
            alice.open_session("cc-editor", "s1").await,
            alice.open_session("vim", "s2").await,
        );
        let frame = alice.advisory("editing src/lib.rs");
        let answer = alice.submit("~alice", &frame).await;
        assert_eq!(
            answer.recipient_count(frame["frame_id"].as_str().unwrap()),
            2
        );
        for session in [&mut one, &mut two] {
            let event = session.advisory().await;
            assert_eq!(event.data, frame);
            assert_eq!(
                event.text,
                frame.to_string(),
                "as it was submitted, to the byte"
            );
        }
    }
);

story!(every_kind_arrives_under_its_own_name, |hub| async {
    // FRM-05, FRM-21, FRM-28…46, FRM-97, R-40, R-42: the fifteen examples, none bound to another
    let alice = hub.agent("alice").await;
    let mut session = alice.open_session("cc-editor", "s1").await;
    for kind in FrameKind::TEXTS {
        let frame = printed(kind, "~alice");
        let answer = alice.submit("", &frame).await;
        assert_eq!(
            answer.recipient_count(frame["frame_id"].as_str().unwrap()),
            1,
            "{kind}"
        );
        let event = session.any().await.expect("a frame");
        assert_eq!((event.name.as_str(), &event.data), (*kind, &frame));
    }
});

memory_story!(an_absent_scope_is_the_recipients_handle, |hub| async {
    // FRM-22, FRM-49, R-41
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    bob.grant(&alice).await;
    let (mut mine, mut his) = (
        alice.open_session("cc-editor", "s1").await,
        bob.open_session("vim", "s1").await,
    );
    alice.submit("", &alice.advisory("to myself")).await;
    alice.submit("", &alice.advisory_to("~bob", "to bob")).await;
    alice.submit("", &alice.advisory("again")).await;
    assert_eq!(mine.advisory_texts(2).await, ["to myself", "again"]);
    assert_eq!(his.advisory_texts(1).await, ["to bob"]);
});

memory_story!(a_frame_without_recipients_is_no_error, |hub| async {
    // FRM-65
    let alice = hub.agent("alice").await;
    for scope in [
        "",
        "~alice",
        "~alice/*",
        "~alice/cc-*",
        "~alice/cc-editor@s1",
    ] {
        let frame = alice.advisory("hello?");
        assert_eq!(
            alice
                .submit(scope, &frame)
                .await
                .recipient_count(frame["frame_id"].as_str().unwrap()),
            0,
            "{scope}"
        );
    }
});

memory_story!(the_count_is_of_those_it_was_emitted_to, |hub| async {
    // FRM-66, FRM-82, R-50: exact for my own handle, also beyond ten
    let alice = hub.agent("alice").await;
    let mut open = Vec::new();
    for count in 1..=12 {
        open.push(alice.open_session("cc-editor", &format!("s{count}")).await);
        assert_eq!(alice.send_advisory("~alice", "how many?").await, count);
    }
    let _deaf = alice
        .open_session_with("?filter=kind:agent_broadcast")
        .await;
    assert_eq!(alice.send_advisory("~alice", "not for all").await, 12);
});

memory_story!(what_a_session_wrote_is_what_others_read, |hub| async {
    // R-42: key order, escapes and blanks as they came; only line ends outside of strings go
    let alice = hub.agent("alice").await;
    let mut session = alice.open_session("cc-editor", "s1").await;
    let (head, tail) = (
        r#""provenance_basis":"coordination","provenance_context_check":"passed","provenance_method":["a"],"#,
        r#""provenance_compute_location":"local-only","drafted_with":"~cc-x","acted_by":"~alice","kind":"agent_advisory","#,
    );
    let odd = |blank: &str| {
        format!(
            r#"{{{blank}{head} "payload" :  {{"advisory_text":"\u0041\u00e9 \/ \n é 🎶 \u2028"}},{blank}{tail}
            "created_at":"2026-03-20t10:30:00.5+00:30","recipient_handle":"~alice","sender_handle":"~alice",
            "ttl_ms":60000,"frame_id":"{}","envelope_version":"1.0"}}"#,
            frame_id()
        )
    };
    let one_line = odd(" ").replace('\n', " ");
    alice
        .post_text("/frames", format!("{{ \"frame\" :\t{one_line} }}\n"))
        .await
        .has_count(1);
    assert_eq!(session.advisory().await.text, one_line);
    let many_lines = odd("\r\n\t");
    alice
        .post_text("/frames", format!("{{\"frame\":{many_lines}}}"))
        .await
        .has_count(1);
    let event = session.advisory().await;
    assert!(!event.text.contains(['\n', '\r']), "{}", event.text);
    assert_eq!(
        event.data,
        serde_json::from_str::<Value>(&many_lines).unwrap()
    );
    assert!(
        event.text.contains(r"\u0041\u00e9 \/ \n é 🎶 \u2028"),
        "{}",
        event.text
    );
});

impl Answer {
    #[track_caller]
    fn has_count(&self, count: u64) {
        assert_eq!(
            (self.status, &self.json()["recipient_count"]),
            (200, &json!(count)),
            "{self:?}"
        );
    }
}

memory_story!(
    a_repeated_frame_is_answered_as_the_first_time_and_heard_once,
    |hub| async {
        // FRM-03, FRM-04, R-41, R-53
        let alice = hub.agent("alice").await;
        let mut first = alice.open_session("cc-editor", "s1").await;
        let frame = alice.advisory("once");
        let id = frame["frame_id"].as_str().unwrap().to_owned();
        let answer = alice.submit("~alice", &frame).await;
        assert_eq!(answer.recipient_count(&id), 1);
        let mut second = alice.open_session("cc-editor", "s2").await;
        let mut other = alice.advisory("with other content");
        other["frame_id"] = id.as_str().into();
        let mut shouted = frame.clone();
        shouted["frame_id"] = id.to_uppercase().into();
        for (scope, again) in [
            ("~alice", &frame),
            ("~alice/absent*", &frame),
            ("", &other),
            ("~alice", &shouted),
        ] {
            assert_eq!(
                alice.submit(scope, again).await.text,
                answer.text,
                "{again}"
            );
        }
        alice.send_advisory("~alice", "marker").await;
        assert_eq!(first.advisory_texts(2).await, ["once", "marker"]);
        assert_eq!(
            second.advisory_texts(1).await,
            ["marker"],
            "who came later hears no repetition"
        );
    }
);

memory_story!(
    an_id_is_remembered_as_long_as_frames_are_kept,
    |hub| async {
        // R-41, R-42: the window is the retention horizon of five minutes
        let alice = hub.agent("alice").await;
        let mut session = alice.open_session("cc-editor", "s1").await;
        let frame = alice.advisory("again");
        alice.submit("", &frame).await.has_count(1);
        hub.advance(Duration::from_secs(299));
        alice.submit("", &frame).await.has_count(1);
        hub.advance(Duration::from_secs(2));
        alice.submit("", &frame).await.has_count(1);
        alice.send_advisory("~alice", "marker").await;
        assert_eq!(
            session.advisory_texts(3).await,
            ["again", "again", "marker"]
        );
    }
);

memory_story!(an_id_is_its_senders_own, |hub| async {
    // R-41: "from the same sender"; a stranger's id never silences mine
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    let (mut hers, mut his) = (
        alice.open_session("vim", "s1").await,
        bob.open_session("vim", "s1").await,
    );
    let (mut one, mut two) = (alice.advisory("hers"), bob.advisory("his"));
    one["frame_id"] = frame_id().into();
    two["frame_id"] = one["frame_id"].clone();
    alice.submit("", &one).await.has_count(1);
    bob.submit("", &two).await.has_count(1);
    assert_eq!(
        (hers.advisory_texts(1).await, his.advisory_texts(1).await),
        (vec!["hers".to_owned()], vec!["his".to_owned()])
    );
});

memory_story!(
    racing_repeats_are_emitted_once_and_all_answered_alike,
    |hub| async {
        // R-41; failure 13
        let alice = hub.agent("alice").await;
        let mut session = alice.open_session("cc-editor", "s1").await;
        for round in 0..10 {
            let frame = alice.advisory(&format!("round {round}"));
            let racing: Vec<_> = (0..12)
                .map(|_| tokio::spawn(Answer::of(alice.submission("/frames", "", &frame))))
                .collect();
            for answer in racing {
                assert_eq!(
                    answer
                        .await
                        .unwrap()
                        .recipient_count(frame["frame_id"].as_str().unwrap()),
                    1
                );
            }
            assert_eq!(session.advisory_texts(1).await, [format!("round {round}")]);
        }
        alice.send_advisory("~alice", "marker").await;
        assert_eq!(session.advisory_texts(1).await, ["marker"]);
    }
);

memory_story!(after_a_refusal_the_id_is_free, |hub| async {
    // R-53, FRM-95
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    let mut session = bob.open_session("vim", "s1").await;
    let frame = alice.advisory_to("~bob", "let in at last");
    let mut malformed = frame.clone();
    malformed["payload"] = json!({"advisory_text": ""});
    alice.submit("~bob", &malformed).await.frame_refused(
        400,
        "field-invalid",
        Some("payload.advisory_text"),
    );
    let mut forged = frame.clone();
    forged["sender_handle"] = "~bob".into();
    alice.submit("~bob", &forged).await.frame_refused(
        403,
        "sender-identity-mismatch",
        Some("sender_handle"),
    );
    alice
        .submit("~bob", &frame)
        .await
        .frame_refused(403, "scope-unauthorised", Some("scope"));
    bob.grant(&alice).await;
    alice.submit("~bob", &frame).await.has_count(1);
    assert_eq!(session.advisory_texts(1).await, ["let in at last"]);
});

memory_story!(a_session_hears_itself_unless_it_asks_not_to, |hub| async {
    // FRM-50, R-43, R-52: all streams that share its name are that session
    let alice = hub.agent("alice").await;
    let (mut one, mut twin) = (
        alice.open_session("cc-editor", "s1").await,
        alice.open_session("cc-editor", "s1").await,
    );
    let (mut sibling, mut namesake) = (
        alice.open_session("cc-editor", "s2").await,
        alice.open_session("vim", "s1").await,
    );
    let submit_advisory = async |path: &str, text: &str| {
        let request = alice.submission(path, "~alice", &alice.advisory(text));
        let request = request
            .header("x-chorus-instrument", "cc-editor")
            .header("x-chorus-session", "s1");
        Answer::of(request).await
    };
    submit_advisory("/frames", "to all").await.has_count(4);
    submit_advisory("/frames?exclude_self=1", "to the others")
        .await
        .has_count(2);
    alice.send_advisory("~alice", "marker").await;
    for session in [&mut one, &mut twin] {
        assert_eq!(session.advisory_texts(2).await, ["to all", "marker"]);
    }
    for session in [&mut sibling, &mut namesake] {
        assert_eq!(
            session.advisory_texts(3).await,
            ["to all", "to the others", "marker"]
        );
    }
});

memory_story!(a_session_that_misnames_itself_is_refused, |hub| async {
    // R-43, R-53: the grammar of instrument, session and tool
    let alice = hub.agent("alice").await;
    let mut session = alice.open_session("cc-editor", "s1").await;
    let long = "x".repeat(129);
    for header in ["x-chorus-instrument", "x-chorus-session", "x-chorus-tool"] {
        for value in ["", "a b", "a/b", "a@b", "a*", long.as_str()] {
            let request = alice
                .submission("/frames", "", &alice.advisory("misnamed"))
                .header(header, value);
            let answer = Answer::of(request).await;
            assert_eq!(
                (answer.status, &answer.json()["code"]),
                (400, &json!("field-invalid")),
                "{header}: {value:?}"
            );
            answer.has_frame_form();
        }
    }
    alice.send_advisory("~alice", "marker").await;
    assert_eq!(session.advisory_texts(1).await, ["marker"]);
});

memory_story!(locks_are_announced_and_not_enforced, |hub| async {
    // FRM-23…27: no table of leases, no uniqueness, no release refused
    let alice = hub.agent("alice").await;
    let mut session = alice.open_session("cc-editor", "s1").await;
    let lease = "0b9fc5a1-7c1e-4b53-9d5c-1a2b3c4d5e6f";
    let claim = json!({"resource": "src/lib.rs", "lease_id": lease, "ttl_ms": 1000});
    let steps = [
        ("agent_lock_release", json!({"lease_id": lease})),
        (
            "agent_lease_extend",
            json!({"lease_id": lease, "ttl_ms": 3_600_000}),
        ),
        ("agent_lock_request", claim.clone()),
        ("agent_lock_request", claim),
        (
            "agent_lock_release",
            json!({"lease_id": lease, "resource": ""}),
        ),
        ("agent_lock_release", json!({"lease_id": lease})),
    ];
    for (kind, payload) in steps {
        alice
            .submit("", &alice.frame(kind, &payload))
            .await
            .has_count(1);
        let event = session.any().await.expect("an announcement");
        assert_eq!(
            (event.name.as_str(), &event.data["payload"]),
            (kind, &payload)
        );
    }
});

memory_story!(what_comes_of_a_frame_is_the_readers_affair, |hub| async {
    // FRM-11, FRM-20, FRM-32, FRM-72: ttl_ms, provenance and a claimed handover change nothing here
    let alice = hub.agent("alice").await;
    let mut session = alice.open_session("cc-editor", "s1").await;
    let mut stale = alice.advisory("stale on arrival");
    stale["created_at"] = "2026-03-19T10:00:00Z".into();
    stale["ttl_ms"] = 1.into();
    let mut skipped = alice.advisory("unchecked");
    skipped["provenance_context_check"] = "skipped".into();
    skipped["provenance_compute_location"] = "server-aggregate".into();
    skipped["provenance_return_ref"] = "".into();
    for frame in [&stale, &skipped] {
        alice.submit("", frame).await.has_count(1);
        assert_eq!(session.advisory().await.data, *frame);
    }
    let taken =
        json!({"previous_session_id": "s1", "next_session_id": "s9", "handover_body": "mine now"});
    alice
        .submit("", &alice.frame("agent_handover", &taken))
        .await
        .has_count(1);
    session.next("agent_handover").await;
});

memory_story!(plans_that_are_never_flushed_are_no_abuse, |hub| async {
    // FRM-104, R-104: the rate limit bounds them, as it bounds every frame
    let alice = hub.agent("alice").await;
    let mut session = alice.open_session("cc-editor", "s1").await;
    for number in 0..40 {
        let mut frame = printed("intent_declare", "~alice");
        frame["frame_id"] = frame_id().into();
        frame["payload"]["payload_ref"] = format!("change/{number}").into();
        let answer = alice.submit("", &frame).await;
        assert_eq!(
            answer.recipient_count(frame["frame_id"].as_str().unwrap()),
            1,
            "{number}"
        );
        assert_eq!(session.next("intent_declare").await.data, frame);
    }
});
