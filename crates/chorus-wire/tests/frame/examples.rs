//! One example per kind: accepted as written, and parsed to values that print the same JSON.

use crate::rules::PAYLOADS;
use crate::tools::{accepted, example, example_text, without};
use chorus_wire::frame::{FrameKind, FramePayload, FrameScope, FrameSubmission};
use chorus_wire::json;
use serde_json::Value;
use std::{collections::BTreeSet, fs, path::Path};

// FRM-21
#[test]
fn there_are_exactly_the_fifteen_kinds_of_the_draft() {
    let draft = "agent_advisory agent_broadcast agent_handover agent_lock_request agent_lock_release agent_lease_extend \
        agent_query agent_response agent_return_event agent_binding_moment peer_diagnostic_request \
        peer_diagnostic_response intent_declare intent_withdraw flush_executed";
    let draft: Vec<&str> = draft.split_whitespace().collect();
    assert_eq!(FrameKind::TEXTS, draft);
    assert_eq!(
        FrameKind::ALL
            .iter()
            .map(|kind| kind.as_str())
            .collect::<Vec<_>>(),
        draft
    );
    for text in &draft {
        assert_eq!(FrameKind::parse(text).map(FrameKind::as_str), Some(*text));
        assert_eq!(FrameKind::parse(&text.to_uppercase()), None);
    }
}

#[test]
fn every_kind_has_its_example_and_every_example_its_kind() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/frame/examples");
    let found: BTreeSet<String> = fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    let expected: BTreeSet<String> = FrameKind::TEXTS
        .iter()
        .map(|kind| format!("{kind}.json"))
        .collect();
    assert_eq!(found, expected);
    assert!(
        PAYLOADS
            .iter()
            .map(|(kind, _)| *kind)
            .eq(FrameKind::TEXTS.iter().copied())
    );
}

#[test]
fn an_example_parses_and_prints_the_same_json() {
    for kind in FrameKind::ALL {
        let written = example(kind.as_str());
        let submission = FrameSubmission::parse(example_text(kind.as_str()).as_bytes()).unwrap();
        let frame = &submission.frame;
        assert_eq!(frame.kind(), *kind);
        let assert_same_json = |text: &str, value: &Value| {
            let parsed: Value = serde_json::from_str(text).unwrap();
            assert_eq!(
                json::to_canonical_json(&parsed),
                json::to_canonical_json(value)
            );
        };
        assert_same_json(frame.submitted_json(), &written["frame"]);
        // Times are printed in UTC with microseconds, so they are left out of the comparison.
        let printed: Value = serde_json::from_str(&frame.to_json()).unwrap();
        let without_times = |value: &Value| {
            let mut value = value.clone();
            for field in ["created_at", "declared_at", "withdrawn_at", "executed_at"] {
                value.as_object_mut().unwrap().remove(field);
                value["payload"].as_object_mut().unwrap().remove(field);
            }
            json::to_canonical_json(&value)
        };
        assert_eq!(without_times(&printed), without_times(&written["frame"]));
        assert_eq!(frame.to_frame().unwrap().payload, frame.payload);
        let scope = submission.scope().unwrap();
        assert_eq!(
            Some(scope.clone()),
            FrameScope::parse(written["scope"].as_str().unwrap())
        );
        let payload = FramePayload::parse(*kind, &written["frame"]["payload"].to_string()).unwrap();
        assert_eq!(payload, frame.payload);
    }
}

// FRM-105
#[test]
fn a_frame_is_stale_after_its_time_to_live() {
    let frame = accepted(&example("agent_advisory")).frame;
    assert_eq!(
        frame.stale_at().unwrap().to_string(),
        "2026-05-22T10:01:00.000000Z"
    );
    let endless = accepted(&without(&example("agent_advisory"), "ttl_ms")).frame;
    assert_eq!(endless.stale_at(), None);
}
