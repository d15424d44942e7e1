//! What is refused: with which code, field and status, in which order, and that nobody hears of it.

use crate::actors::Agent;
use crate::hub::Hub;
use serde_json::{Value, json};

/// The frame with one place set, or taken away.
fn spoiled(frame: &Value, path: &str, value: Option<Value>) -> Value {
    let mut frame = frame.clone();
    let (parent, last) = match path.rsplit_once('.') {
        Some((parent, last)) => (
            frame
                .pointer_mut(&format!("/{}", parent.replace('.', "/")))
                .unwrap(),
            last,
        ),
        None => (&mut frame, path),
    };
    let object = parent.as_object_mut().unwrap();
    match value {
        Some(value) => object.insert(last.to_owned(), value),
        None => object.remove(last),
    };
    frame
}

/// Place, what is put there, code and the field that is named (FRM-84…89, R-44, R-53).
fn faults() -> Vec<(&'static str, Option<Value>, &'static str, &'static str)> {
    let (set, gone) = (|value: Value| Some(value), None::<Value>);
    let long = "é".repeat(1025);
    vec![
        (
            "envelope_version",
            set(json!("2.0")),
            "envelope-version-unsupported",
            "envelope_version",
        ),
        (
            "envelope_version",
            set(json!(1.0)),
            "field-invalid",
            "envelope_version",
        ),
        (
            "envelope_version",
            gone.clone(),
            "field-missing",
            "envelope_version",
        ),
        ("kind", set(json!("agent_gossip")), "kind-unknown", "kind"),
        ("kind", set(json!("Agent_Advisory")), "kind-unknown", "kind"),
        ("kind", set(json!(null)), "field-invalid", "kind"),
        ("kind", gone.clone(), "field-missing", "kind"),
        (
            "kind",
            set(json!("agent_broadcast")),
            "payload-kind-mismatch",
            "payload",
        ),
        (
            "payload",
            set(json!({})),
            "payload-kind-mismatch",
            "payload",
        ),
        (
            "payload",
            set(json!("words")),
            "payload-kind-mismatch",
            "payload",
        ),
        ("payload", set(json!(null)), "field-invalid", "payload"),
        ("payload", gone.clone(), "field-missing", "payload"),
        (
            "payload.advisory_text",
            set(json!("")),
            "field-invalid",
            "payload.advisory_text",
        ),
        (
            "payload.advisory_text",
            set(json!(long)),
            "field-invalid",
            "payload.advisory_text",
        ),
        (
            "payload.advisory_text",
            set(json!(null)),
            "field-invalid",
            "payload.advisory_text",
        ),
        (
            "payload.file_refs",
            set(json!(["a", 1])),
            "field-invalid",
            "payload.file_refs[1]",
        ),
        (
            "payload.urgency",
            set(json!("high")),
            "field-unknown",
            "payload.urgency",
        ),
        (
            "frame_id",
            set(json!("01890000-0000-7000-8000-000000000000")),
            "field-invalid",
            "frame_id",
        ),
        (
            "frame_id",
            set(json!("0000000a00004000800000000000000a")),
            "field-invalid",
            "frame_id",
        ),
        (
            "sender_handle",
            set(json!("alice")),
            "field-invalid",
            "sender_handle",
        ),
        (
            "sender_handle",
            set(json!("~Alice")),
            "field-invalid",
            "sender_handle",
        ),
        (
            "recipient_handle",
            set(json!(null)),
            "field-invalid",
            "recipient_handle",
        ),
        (
            "recipient_handle",
            gone.clone(),
            "field-missing",
            "recipient_handle",
        ),
        (
            "created_at",
            set(json!("2026-03-20T10:00:00")),
            "field-invalid",
            "created_at",
        ),
        (
            "created_at",
            set(json!("2026-03-21T10:00:01Z")),
            "field-invalid",
            "created_at",
        ),
        (
            "created_at",
            set(json!("2026-03-19T09:59:59Z")),
            "field-invalid",
            "created_at",
        ),
        ("ttl_ms", set(json!(0)), "field-invalid", "ttl_ms"),
        ("ttl_ms", set(json!(1.5)), "field-invalid", "ttl_ms"),
        ("ttl_ms", set(json!("60")), "field-invalid", "ttl_ms"),
        (
            "acted_by",
            set(json!("~cc-editor")),
            "field-invalid",
            "acted_by",
        ),
        ("acted_by", gone.clone(), "field-missing", "acted_by"),
        (
            "drafted_with",
            set(json!("cc-editor")),
            "field-invalid",
            "drafted_with",
        ),
        (
            "drafted_with",
            gone.clone(),
            "field-missing",
            "drafted_with",
        ),
        (
            "provenance_compute_location",
            set(json!("moon")),
            "field-invalid",
            "provenance_compute_location",
        ),
        (
            "provenance_method",
            set(json!([])),
            "field-invalid",
            "provenance_method",
        ),
        (
            "provenance_method",
            set(json!([""])),
            "field-invalid",
            "provenance_method[0]",
        ),
        (
            "provenance_context_check",
            set(json!("failed")),
            "field-invalid",
            "provenance_context_check",
        ),
        (
            "provenance_return_ref",
            set(json!(7)),
            "field-invalid",
            "provenance_return_ref",
        ),
        (
            "provenance_basis",
            set(json!("")),
            "field-invalid",
            "provenance_basis",
        ),
        ("x-note", set(json!(1)), "field-unknown", "x-note"),
    ]
}

/// Everything that is refused in this story, then a word of `alice`'s own that everybody hears next.
async fn untouched(hub: &Hub, alice: &Agent, story: impl AsyncFnOnce()) {
    let mut live = alice.opens("cc-editor", "s1").await;
    alice.tells("~alice", "before").await;
    let before = live.advisory().await.id.unwrap();
    story().await;
    assert_eq!(
        alice.tells("~alice", "after").await,
        1,
        "the count is as it was"
    );
    assert_eq!(
        live.hears(1).await,
        ["after"],
        "FRM-95: nobody heard a refused frame"
    );
    let mut resumed = alice
        .resumes("?instrument=cc-editor&session=s2", &before)
        .await;
    assert_eq!(
        resumed.hears(1).await,
        ["after"],
        "the ring holds no refused frame, and there is no gap"
    );
    assert!(
        hub.operator()
            .activity(0)
            .await
            .iter()
            .all(|row| !row.to_string().contains("spoiled"))
    );
}

story!(
    a_malformed_frame_is_refused_by_its_field_and_reaches_nobody,
    |hub| async {
        // FRM-01, FRM-02, FRM-05…19, FRM-83…89, FRM-95, FRM-98, R-40, R-44, R-45, R-49, R-53
        let alice = hub.agent("alice").await;
        untouched(&hub, &alice, async || {
            for (path, value, code, field) in faults() {
                let frame = spoiled(&alice.advisory("spoiled"), path, value.clone());
                let answer = alice.submit("~alice", &frame).await;
                assert_eq!(
                    answer.json()["code"],
                    code,
                    "{path} = {value:?}: {answer:?}"
                );
                answer.frame_refused(400, code, Some(field));
            }
        })
        .await;
    }
);

live_story!(every_kind_is_held_to_its_own_shape, |hub| async {
    // FRM-28, FRM-31, FRM-33, FRM-36, FRM-39…41, FRM-44, R-40, R-49
    let alice = hub.agent("alice").await;
    let lease = "0b9fc5a1-7c1e-4b53-9d5c-1a2b3c4d5e6f";
    let option = |label: &str| json!({"label": label, "reasoning": "because"});
    let moment = |options: Value, place: Value, hatches: Value| {
        json!({"synopsis": "s", "findings": [], "recommendations": [], "offer": "o",
            "question": {"stem": "?", "options": options, "recommended_idx": place, "hatches": hatches}})
    };
    let open = json!({"free_text": true});
    let two = json!([option("a"), option("b")]);
    let intent = json!({"convergence_class": "git:push", "payload_ref": "r", "acted_by": "~bob", "ttl": 1,
        "drafted_with": "~cc-editor@1.2", "declared_at": crate::actors::NOW, "withdrawable": true});
    let rows = [
        (
            "agent_lock_request",
            json!({"resource": "", "lease_id": lease, "ttl_ms": 1}),
            "payload.resource",
        ),
        (
            "agent_lock_request",
            json!({"resource": "r", "lease_id": lease, "ttl_ms": 3_600_001}),
            "payload.ttl_ms",
        ),
        (
            "agent_lease_extend",
            json!({"lease_id": lease, "ttl_ms": 0}),
            "payload.ttl_ms",
        ),
        (
            "agent_lock_release",
            json!({"lease_id": "mine"}),
            "payload.lease_id",
        ),
        (
            "agent_handover",
            json!({"previous_session_id": "s", "handover_body": ""}),
            "payload.handover_body",
        ),
        (
            "agent_handover",
            json!({"previous_session_id": "s", "handover_body": "x".repeat(8193)}),
            "payload.handover_body",
        ),
        (
            "agent_query",
            json!({"query_text": "?", "query_id": lease, "response_scope": "everyone", "timeout_ms": 1}),
            "payload.response_scope",
        ),
        (
            "agent_broadcast",
            json!({"broadcast_text": "x", "event_class": "lost"}),
            "payload.event_class",
        ),
        (
            "agent_binding_moment",
            moment(json!([option("a")]), json!(0), open.clone()),
            "payload.question.options",
        ),
        (
            "agent_binding_moment",
            moment(json!([option("a"), option("")]), json!(0), open.clone()),
            "payload.question.options[1].label",
        ),
        (
            "agent_binding_moment",
            moment(two.clone(), json!(2), open),
            "payload.question.recommended_idx",
        ),
        (
            "agent_binding_moment",
            moment(
                two,
                json!(1),
                json!({"free_text": false, "dialogue": false}),
            ),
            "payload.question.hatches",
        ),
        ("intent_declare", intent, "payload.acted_by"),
        (
            "agent_advisory",
            json!({"advisory_text": "x", "file_refs": vec!["f"; 257]}),
            "payload.file_refs",
        ),
        (
            "agent_advisory",
            json!({"advisory_text": "x", "file_refs": ["f".repeat(1025)]}),
            "payload.file_refs[0]",
        ),
    ];
    untouched(&hub, &alice, async || {
        for (kind, payload, field) in rows {
            let answer = alice.submit("", &alice.frame(kind, &payload)).await;
            answer.frame_refused(400, "field-invalid", Some(field));
        }
        let bare = json!({"resource": "r", "lease_id": lease});
        let answer = alice
            .submit("", &alice.frame("agent_lock_request", &bare))
            .await;
        answer.frame_refused(400, "field-missing", Some("payload.ttl_ms"));
    })
    .await;
});

live_story!(a_body_that_is_no_submission_is_refused, |hub| async {
    // R-41, R-53, FRM-01
    let alice = hub.agent("alice").await;
    let frame = alice.advisory("spoiled").to_string();
    let deep = format!(r#"{{"frame":{}{}}}"#, "[".repeat(200), "]".repeat(200));
    untouched(&hub, &alice, async || {
        let not_json = [
            String::new(),
            "{".into(),
            "[]".into(),
            "null".into(),
            "frame".into(),
            deep,
            format!(r#"{{"frame":{frame}}} x"#),
            format!(r#"{{"frame":{frame},"frame":{frame}}}"#),
            format!(r#"{{"scope":"~alice","scope":"~alice","frame":{frame}}}"#),
            format!(
                r#"{{"frame":{}}}"#,
                frame.replacen('{', r#"{"kind":"agent_advisory","#, 1)
            ),
        ];
        for body in not_json {
            alice
                .post_text("/frames", body)
                .await
                .frame_refused(400, "json-invalid", None);
        }
        alice
            .post_text("/frames", b"{\"frame\":\"\xff\"}".to_vec())
            .await
            .frame_refused(400, "json-invalid", None);
        for (body, code, field) in [
            ("{}".to_owned(), "field-missing", "frame"),
            (r#"{"scope":"~alice"}"#.to_owned(), "field-missing", "frame"),
            (r#"{"frame":7}"#.to_owned(), "field-invalid", "frame"),
            (r#"{"frame":null}"#.to_owned(), "field-invalid", "frame"),
            (
                format!(r#"{{"frame":{frame},"to":"~alice"}}"#),
                "field-unknown",
                "to",
            ),
            (
                format!(r#"{{"frame":{frame},"scope":null}}"#),
                "field-invalid",
                "scope",
            ),
            (
                format!(r#"{{"frame":{frame},"scope":["~alice"]}}"#),
                "field-invalid",
                "scope",
            ),
        ] {
            alice
                .post_text("/frames", body)
                .await
                .frame_refused(400, code, Some(field));
        }
    })
    .await;
});

live_story!(
    a_scope_outside_the_grammar_is_refused_by_name,
    |hub| async {
        // FRM-48…56, R-53
        let alice = hub.agent("alice").await;
        untouched(&hub, &alice, async || {
            for scope in [
                " ",
                "alice",
                "~Alice",
                "~alice/",
                "~alice/**",
                "~alice/cc-",
                "~alice/@s1",
                "~alice/cc-editor@",
                "~alice/cc-editor@s1*",
                "~alice/a/b",
                "~alice, ~bob",
                "*",
                "org:",
                "org:acme",
                "org:acme/members",
                "org:acme/members/",
                "org:acme/members/Lead/*",
                "org:acme/members/lead",
                "accord:acme",
                "accord:acme/grant:",
                "accord:acme/grant:*",
                "team:acme/members/*",
                "~alice/cc editor@s1",
            ] {
                let answer = alice.submit(scope, &alice.advisory("spoiled")).await;
                assert_eq!(
                    answer.json()["code"],
                    "field-invalid",
                    "{scope}: {answer:?}"
                );
                answer.frame_refused(400, "field-invalid", Some("scope"));
            }
            let empty = json!({"scope": "", "frame": alice.advisory("spoiled")});
            alice
                .post("/frames", &empty)
                .await
                .frame_refused(400, "field-invalid", Some("scope"));
        })
        .await;
    }
);

live_story!(the_first_fault_in_the_fixed_order_wins, |hub| async {
    // R-44: syntax, version, kind, unknown, missing, invalid, payload, identity, scope
    let alice = hub.agent("alice").await;
    let mut frame = alice.advisory("spoiled");
    let set = |frame: &mut Value, place: &str, value: Value| frame[place] = value;
    let refused = async |frame: &Value, code: &str, field: &str| {
        let status = if code.starts_with("sender") || code.starts_with("scope") {
            403
        } else {
            400
        };
        alice
            .submit("~bob", frame)
            .await
            .frame_refused(status, code, Some(field));
    };
    untouched(&hub, &alice, async || {
        refused(&frame, "scope-unauthorised", "scope").await;
        set(&mut frame, "acted_by", json!("~bob"));
        refused(&frame, "sender-identity-mismatch", "acted_by").await;
        set(&mut frame, "sender_handle", json!("~bob"));
        refused(&frame, "sender-identity-mismatch", "sender_handle").await;
        set(&mut frame, "payload", json!({"advisory_text": ""}));
        refused(&frame, "field-invalid", "payload.advisory_text").await;
        set(&mut frame, "payload", json!({"advisory_text": "", "x": 1}));
        refused(&frame, "field-unknown", "payload.x").await;
        set(&mut frame, "provenance_basis", json!(""));
        refused(&frame, "field-invalid", "provenance_basis").await;
        frame.as_object_mut().unwrap().remove("drafted_with");
        refused(&frame, "field-missing", "drafted_with").await;
        set(&mut frame, "x", json!(1));
        refused(&frame, "field-unknown", "x").await;
        set(&mut frame, "kind", json!("gossip"));
        refused(&frame, "kind-unknown", "kind").await;
        set(&mut frame, "envelope_version", json!("0.9"));
        refused(&frame, "envelope-version-unsupported", "envelope_version").await;
        let broken = json!({"scope": "~bob", "frame": frame})
            .to_string()
            .replacen(':', ";", 1);
        alice
            .post_text("/frames", broken)
            .await
            .frame_refused(400, "json-invalid", None);
        let stranger = hub.anyone().post_text("/frames", "{").await;
        stranger.frame_refused(401, "unauthenticated", None);
    })
    .await;
});

live_story!(a_refusal_is_counted_by_its_code, |hub| async {
    // "no trace in ring, count or metric but the rejection counter"
    let alice = hub.agent("alice").await;
    let refusals = async || -> u64 {
        let text = hub.anyone().get("/metrics").await.text;
        let line = text
            .lines()
            .find_map(|l| l.strip_prefix(r#"chorus_frames_rejected_total{code="kind-unknown"} "#));
        line.map_or(0, |count| count.parse().unwrap())
    };
    let before = refusals().await;
    let frame = spoiled(&alice.advisory("spoiled"), "kind", Some(json!("gossip")));
    alice
        .submit("", &frame)
        .await
        .frame_refused(400, "kind-unknown", Some("kind"));
    // Other stories may be told in this process at the same time.
    assert!(refusals().await > before);
});
