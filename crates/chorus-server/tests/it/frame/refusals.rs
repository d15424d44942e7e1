//! Malformed frames: refused with code, field and status, and delivered to no session.

use crate::support::actors::Agent;
use crate::support::hub::Hub;
use serde_json::{Value, json};

/// The frame with one place set, or taken away.
pub(super) fn spoiled(frame: &Value, path: &str, value: Option<Value>) -> Value {
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

/// Runs the refused submissions, then checks that the next advisory of `alice` is the first one that her sessions receive.
pub(super) async fn untouched(hub: &Hub, alice: &Agent, story: impl AsyncFnOnce()) {
    let mut live = alice.open_session("cc-editor", "s1").await;
    alice.send_advisory("~alice", "before").await;
    let before = live.advisory().await.id.unwrap();
    story().await;
    assert_eq!(
        alice.send_advisory("~alice", "after").await,
        1,
        "the count is as it was"
    );
    assert_eq!(
        live.advisory_texts(1).await,
        ["after"],
        "FRM-95: no session received a refused frame"
    );
    let mut resumed = alice
        .resume_session("?instrument=cc-editor&session=s2", &before)
        .await;
    assert_eq!(
        resumed.advisory_texts(1).await,
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
    a_malformed_frame_is_refused_by_its_field_and_reaches_no_session,
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

memory_story!(every_kind_is_held_to_its_own_shape, |hub| async {
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
        "drafted_with": "~cc-editor@1.2", "declared_at": crate::support::actors::NOW, "withdrawable": true});
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
