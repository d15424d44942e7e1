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

/// A frame with one fault, and how it is refused.
struct FrameFault {
    /// The place of the fault, with dots between its keys.
    place: &'static str,
    /// What is put there; nothing if the key is taken away.
    value: Option<Value>,
    code: &'static str,
    /// The field that the refusal names.
    field: &'static str,
}

fn fault(place: &'static str, value: Value, code: &'static str, field: &'static str) -> FrameFault {
    FrameFault {
        place,
        value: Some(value),
        code,
        field,
    }
}

fn invalid_field(place: &'static str, value: Value) -> FrameFault {
    fault(place, value, "field-invalid", place)
}

fn mismatched_payload(place: &'static str, value: Value) -> FrameFault {
    fault(place, value, "payload-kind-mismatch", "payload")
}

fn missing_field(place: &'static str) -> FrameFault {
    FrameFault {
        place,
        value: None,
        code: "field-missing",
        field: place,
    }
}

/// Faults of an advisory that was good before (FRM-84…89, R-44, R-53).
fn frame_faults() -> Vec<FrameFault> {
    let long = "é".repeat(1025);
    vec![
        fault(
            "envelope_version",
            json!("2.0"),
            "envelope-version-unsupported",
            "envelope_version",
        ),
        invalid_field("envelope_version", json!(1.0)),
        missing_field("envelope_version"),
        fault("kind", json!("agent_gossip"), "kind-unknown", "kind"),
        fault("kind", json!("Agent_Advisory"), "kind-unknown", "kind"),
        invalid_field("kind", json!(null)),
        missing_field("kind"),
        mismatched_payload("kind", json!("agent_broadcast")),
        mismatched_payload("payload", json!({})),
        mismatched_payload("payload", json!("words")),
        invalid_field("payload", json!(null)),
        missing_field("payload"),
        invalid_field("payload.advisory_text", json!("")),
        invalid_field("payload.advisory_text", json!(long)),
        invalid_field("payload.advisory_text", json!(null)),
        fault(
            "payload.file_refs",
            json!(["a", 1]),
            "field-invalid",
            "payload.file_refs[1]",
        ),
        fault(
            "payload.urgency",
            json!("high"),
            "field-unknown",
            "payload.urgency",
        ),
        invalid_field("frame_id", json!("01890000-0000-7000-8000-000000000000")),
        invalid_field("frame_id", json!("0000000a00004000800000000000000a")),
        invalid_field("sender_handle", json!("alice")),
        invalid_field("sender_handle", json!("~Alice")),
        invalid_field("recipient_handle", json!(null)),
        missing_field("recipient_handle"),
        invalid_field("created_at", json!("2026-03-20T10:00:00")),
        invalid_field("created_at", json!("2026-03-21T10:00:01Z")),
        invalid_field("created_at", json!("2026-03-19T09:59:59Z")),
        invalid_field("ttl_ms", json!(0)),
        invalid_field("ttl_ms", json!(1.5)),
        invalid_field("ttl_ms", json!("60")),
        invalid_field("acted_by", json!("~cc-editor")),
        missing_field("acted_by"),
        invalid_field("drafted_with", json!("cc-editor")),
        missing_field("drafted_with"),
        invalid_field("provenance_compute_location", json!("moon")),
        invalid_field("provenance_method", json!([])),
        fault(
            "provenance_method",
            json!([""]),
            "field-invalid",
            "provenance_method[0]",
        ),
        invalid_field("provenance_context_check", json!("failed")),
        invalid_field("provenance_return_ref", json!(7)),
        invalid_field("provenance_basis", json!("")),
        fault("x-note", json!(1), "field-unknown", "x-note"),
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
            for FrameFault {
                place,
                value,
                code,
                field,
            } in frame_faults()
            {
                let frame = spoiled(&alice.advisory("spoiled"), place, value.clone());
                let answer = alice.submit("~alice", &frame).await;
                assert_eq!(
                    answer.json()["code"],
                    code,
                    "{place} = {value:?}: {answer:?}"
                );
                answer.frame_refused(400, code, Some(field));
            }
        })
        .await;
    }
);

const LEASE: &str = "0b9fc5a1-7c1e-4b53-9d5c-1a2b3c4d5e6f";

/// Kind, payload, and the field that the refusal names.
type InvalidPayload = (&'static str, Value, &'static str);

fn invalid_payloads() -> Vec<InvalidPayload> {
    let mut all = invalid_announcements();
    all.extend(invalid_binding_moments());
    all.extend(invalid_intents_and_advisories());
    all
}

fn invalid_announcements() -> Vec<InvalidPayload> {
    vec![
        (
            "agent_lock_request",
            json!({"resource": "", "lease_id": LEASE, "ttl_ms": 1}),
            "payload.resource",
        ),
        (
            "agent_lock_request",
            json!({"resource": "r", "lease_id": LEASE, "ttl_ms": 3_600_001}),
            "payload.ttl_ms",
        ),
        (
            "agent_lease_extend",
            json!({"lease_id": LEASE, "ttl_ms": 0}),
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
            json!({"query_text": "?", "query_id": LEASE, "response_scope": "everyone", "timeout_ms": 1}),
            "payload.response_scope",
        ),
        (
            "agent_broadcast",
            json!({"broadcast_text": "x", "event_class": "lost"}),
            "payload.event_class",
        ),
    ]
}

fn invalid_binding_moments() -> Vec<InvalidPayload> {
    let option = |label: &str| json!({"label": label, "reasoning": "because"});
    let moment = |options: Value, place: Value, hatches: Value| {
        json!({"synopsis": "s", "findings": [], "recommendations": [], "offer": "o",
            "question": {"stem": "?", "options": options, "recommended_idx": place, "hatches": hatches}})
    };
    let open = json!({"free_text": true});
    let two = json!([option("a"), option("b")]);
    let invalid = |payload: Value, field| ("agent_binding_moment", payload, field);
    vec![
        invalid(
            moment(json!([option("a")]), json!(0), open.clone()),
            "payload.question.options",
        ),
        invalid(
            moment(json!([option("a"), option("")]), json!(0), open.clone()),
            "payload.question.options[1].label",
        ),
        invalid(
            moment(two.clone(), json!(2), open),
            "payload.question.recommended_idx",
        ),
        invalid(
            moment(
                two,
                json!(1),
                json!({"free_text": false, "dialogue": false}),
            ),
            "payload.question.hatches",
        ),
    ]
}

fn invalid_intents_and_advisories() -> Vec<InvalidPayload> {
    let intent = json!({"convergence_class": "git:push", "payload_ref": "r", "acted_by": "~bob", "ttl": 1,
        "drafted_with": "~cc-editor@1.2", "declared_at": crate::support::actors::NOW, "withdrawable": true});
    vec![
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
    ]
}

memory_story!(every_kind_is_held_to_its_own_shape, |hub| async {
    // FRM-28, FRM-31, FRM-33, FRM-36, FRM-39…41, FRM-44, R-40, R-49
    let alice = hub.agent("alice").await;
    untouched(&hub, &alice, async || {
        for (kind, payload, field) in invalid_payloads() {
            let answer = alice.submit("", &alice.frame(kind, &payload)).await;
            answer.frame_refused(400, "field-invalid", Some(field));
        }
        let bare = json!({"resource": "r", "lease_id": LEASE});
        let answer = alice
            .submit("", &alice.frame("agent_lock_request", &bare))
            .await;
        answer.frame_refused(400, "field-missing", Some("payload.ttl_ms"));
    })
    .await;
});

memory_story!(a_refused_query_names_its_field, |hub| async {
    // FRM-88: also where code refuses that all protocols share
    let alice = hub.agent("alice").await;
    for (query, field) in [
        ("?filter=kind:agent_query&filter=kind:agent_query", "filter"),
        ("?token=x", "token"),
        ("?session=s1&session=s2", "session"),
    ] {
        let refused = alice.get(&alice.stream_path(query)).await;
        let body = refused.json();
        assert_eq!(
            (&body["code"], &body["field"]),
            (&"field-invalid".into(), &field.into()),
            "{query}: {body}"
        );
    }
});
