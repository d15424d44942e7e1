//! The catalogue of frame codes: text, status, and the JSON of an error (FRM-83…94, R-45, R-53).

use chorus_wire::frame::{FrameCode, FrameError};
use chorus_wire::{Error, ErrorCode};
use std::collections::HashSet;

#[test]
fn every_code_is_listed_once_with_a_status_and_a_message() {
    let codes: HashSet<&str> = FrameCode::ALL.iter().map(|code| code.as_str()).collect();
    let sentences: HashSet<&str> = FrameCode::ALL.iter().map(|code| code.sentence()).collect();
    assert_eq!(
        (codes.len(), sentences.len()),
        (FrameCode::ALL.len(), FrameCode::ALL.len())
    );
    for code in FrameCode::ALL {
        assert!(
            code.as_str()
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b == b'-'),
            "{code}"
        );
        assert!((400..600).contains(&code.status()), "{code}");
        assert!(code.sentence().ends_with('.'), "{code}");
    }
}

// FRM-84…94, R-45, R-53
#[test]
fn the_codes_of_the_draft_have_their_decided_status() {
    let decided = [
        ("envelope-version-unsupported", 400),
        ("kind-unknown", 400),
        ("payload-kind-mismatch", 400),
        ("field-missing", 400),
        ("field-invalid", 400),
        ("field-unknown", 400),
        ("filter-axis-unknown", 400),
        ("filter-value-invalid", 400),
        ("json-invalid", 400),
        ("unauthenticated", 401),
        ("sender-identity-mismatch", 403),
        ("scope-unauthorised", 403),
        ("forbidden", 403),
        ("frame-too-large", 413),
        ("rate-limited", 429),
        ("scope-unimplemented", 501),
    ];
    for (text, status) in decided {
        let code = FrameCode::ALL
            .iter()
            .find(|code| code.as_str() == text)
            .expect(text);
        assert_eq!(code.status(), status, "{text}");
        assert_eq!(code.retryable(), status == 429, "{text}");
    }
}

// FRM-83
#[test]
fn an_error_prints_code_then_field_then_message_and_not_its_cause() {
    let mut error =
        FrameError::at_field(FrameCode::FieldInvalid, "payload.ttl_ms", "it is too long");
    error.cause = Some("our own business".into());
    error.retry_after = Some(3);
    let printed = r#"{"code":"field-invalid","field":"payload.ttl_ms","message":"it is too long"}"#;
    assert_eq!(error.to_json(), printed);
    let printed = r#"{"code":"rate-limited","message":"later"}"#;
    assert_eq!(
        FrameError::new(FrameCode::RateLimited, "later").to_json(),
        printed
    );
}

// R-45: an error of the shared parts takes the form of the frame protocol, with the same status
#[test]
fn every_other_error_of_the_hub_keeps_its_status_and_message() {
    for code in ErrorCode::ALL {
        let error = FrameError::from(Error::new(*code, "the words"));
        let status = match code.status() {
            410 => 404,
            502 | 504 => 503,
            status => status,
        };
        assert_eq!(
            (error.code.status(), error.message.as_str()),
            (status, "the words"),
            "{code}"
        );
    }
    let error = FrameError::from(Error::unavailable("disk on fire"));
    assert_eq!(error.retry_after, Some(1));
    assert!(!error.to_json().contains("fire"));
}
