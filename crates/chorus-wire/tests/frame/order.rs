//! Which error is reported: every pair of faults of in one frame, applied in both orders.

use crate::tools::{example, parse, refused, with, without};
use chorus_wire::frame::{FrameCode, FrameSubmission};
use chorus_wire::time::UnixMicros;
use serde_json::{Value, json};

type ApplyFault = fn(&Value) -> Value;

/// The faults in the order of R-44: expected code, expected field, and how to apply it.
const FAULTS: [(&str, &str, ApplyFault); 9] = [
    ("envelope-version-unsupported", "envelope_version", |b| {
        with(b, "envelope_version", json!("2.0"))
    }),
    ("kind-unknown", "kind", |b| {
        with(b, "kind", json!("agent_wish"))
    }),
    ("field-unknown", "extra", |b| with(b, "extra", json!(1))),
    ("field-missing", "provenance_basis", |b| {
        without(b, "provenance_basis")
    }),
    ("field-invalid", "acted_by", |b| {
        with(b, "acted_by", json!("~cc-editor"))
    }),
    ("field-unknown", "payload.extra", |b| {
        with(b, "payload.extra", json!(1))
    }),
    ("field-missing", "payload.offer", |b| {
        without(b, "payload.offer")
    }),
    ("field-invalid", "payload.synopsis", |b| {
        with(b, "payload.synopsis", json!(""))
    }),
    ("field-invalid", "scope", |b| {
        let mut b = b.clone();
        b["scope"] = json!("not a scope");
        b
    }),
];

fn reported_error(body: &Value) -> (FrameCode, Option<String>) {
    let error = parse(body)
        .and_then(|submission| submission.scope().cloned())
        .unwrap_err();
    (error.code, error.field)
}

//
#[test]
fn of_two_faults_that_of_the_earlier_step_is_reported() {
    let valid = example("agent_binding_moment");
    for (first, (code, field, earlier)) in FAULTS.iter().enumerate() {
        let expected = (*code, Some(*field));
        let (code, field) = reported_error(&earlier(&valid));
        assert_eq!((code.as_str(), field.as_deref()), expected);
        for (_, other, later) in &FAULTS[first + 1..] {
            for body in [earlier(&later(&valid)), later(&earlier(&valid))] {
                let (code, field) = reported_error(&body);
                assert_eq!(
                    (code.as_str(), field.as_deref()),
                    expected,
                    "with {other}: {body}"
                );
            }
        }
    }
}

// invalid JSON is reported before everything else
#[test]
fn syntax_errors_and_duplicate_keys_come_before_every_other_fault() {
    for (_, field, apply) in FAULTS {
        let text = apply(&example("agent_binding_moment")).to_string();
        let nested_duplicate = text.replacen(
            "\"findings\"",
            "\"offer\":\"again\",\"offer\":\"again\",\"findings\"",
            1,
        );
        for text in [
            format!("{text},"),
            text.replacen(':', "", 1),
            format!("{text}{text}"),
            nested_duplicate,
        ] {
            let fault = FrameSubmission::parse(text.as_bytes()).unwrap_err();
            assert_eq!(
                (fault.code, fault.field),
                (FrameCode::JsonInvalid, None),
                "{field}: {text}"
            );
        }
    }
}

// a payload of another kind is reported after the frame's faults and before those inside the payload
#[test]
fn a_kind_mismatch_is_reported_after_the_frame_and_before_the_payload() {
    let other_payload = json!({"extra": 1, "hatches": null});
    let body = with(&example("agent_query"), "payload", other_payload);
    refused(&body, "payload-kind-mismatch", "payload");
    refused(&with(&body, "ttl_ms", json!(0)), "field-invalid", "ttl_ms");
    refused(&without(&body, "acted_by"), "field-missing", "acted_by");
    refused(&with(&body, "extra", json!(1)), "field-unknown", "extra");
}

// over the whole payload, not object by object
#[test]
fn in_a_payload_unknown_comes_before_missing_and_missing_before_invalid() {
    let body = example("agent_binding_moment");
    let invalid = with(&body, "payload.synopsis", json!(""));
    let missing = without(&invalid, "payload.question.options[1].label");
    refused(
        &missing,
        "field-missing",
        "payload.question.options[1].label",
    );
    let unknown = with(&missing, "payload.question.hatches.extra", json!(1));
    refused(&unknown, "field-unknown", "payload.question.hatches.extra");
}

#[test]
fn of_several_faults_of_one_sort_the_first_of_the_shape_is_reported() {
    let body = example("agent_handover");
    let body = with(&body, "payload.pointer_refs", json!([1]));
    let body = with(&body, "payload.handover_body", json!(""));
    refused(&body, "field-invalid", "payload.handover_body");
    let body = without(
        &without(&example("agent_query"), "provenance_basis"),
        "sender_handle",
    );
    refused(&body, "field-missing", "sender_handle");
    let body = with(
        &with(&example("agent_query"), "drafted_with", json!(1)),
        "created_at",
        json!("now"),
    );
    refused(&body, "field-invalid", "created_at");
}

#[test]
fn of_several_unknown_fields_the_first_written_one_is_reported() {
    let text = example("agent_query").to_string();
    let text = text.replacen("\"frame\":{", "\"frame\":{\"zebra\":1,\"ape\":2,", 1);
    let fault = FrameSubmission::parse(text.as_bytes()).unwrap_err();
    assert_eq!(
        (fault.code, fault.field.as_deref()),
        (FrameCode::FieldUnknown, Some("zebra"))
    );
}

// FRM-10, R-49: reported like an invalid field
#[test]
fn an_implausible_time_is_a_fault_of_created_at() {
    let body = example("agent_binding_moment");
    let at = UnixMicros::parse("2026-05-22T10:00:00Z").unwrap().0;
    let day = 24 * 3600 * 1_000_000;
    let parse =
        |body: &Value, now| FrameSubmission::parse_at(body.to_string().as_bytes(), UnixMicros(now));
    for now in [at, at - day, at + day] {
        let submission = parse(&body, now).unwrap();
        submission.frame.check_time(UnixMicros(now)).unwrap();
    }
    for now in [at - day - 1, at + day + 1, 0, i64::MAX, i64::MIN] {
        let fault = parse(&with(&body, "payload.extra", json!(1)), now).unwrap_err();
        assert_eq!(
            (fault.code, fault.field.as_deref()),
            (FrameCode::FieldInvalid, Some("created_at"))
        );
        let late = FrameSubmission::parse(body.to_string().as_bytes())
            .unwrap()
            .frame
            .check_time(UnixMicros(now));
        assert_eq!(late.unwrap_err().field.as_deref(), Some("created_at"));
        let fault = parse(&without(&body, "frame_id"), now).unwrap_err();
        assert_eq!(fault.code, FrameCode::FieldMissing);
    }
}
