//! The catalogue of errors, and secrets that do not print (invariants 8 and 12).

use chorus_wire::secret::Secret;
use chorus_wire::{Error, ErrorCode};
use std::collections::HashSet;

// JOB-27…31
const CODES_OF_THE_JOBS_DOCUMENT: [&str; 5] = [
    "SKILL_MISMATCH",
    "BUDGET_INSUFFICIENT",
    "AGENT_OFFLINE",
    "EXECUTION_ERROR",
    "TRANSFER_FAILED",
];

#[test]
fn every_code_is_listed_once_with_a_status_and_a_message() {
    let codes: HashSet<&str> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
    // TRANSFER_FAILED has two statuses.
    assert_eq!(codes.len(), ErrorCode::ALL.len() - 1);
    for code in ErrorCode::ALL {
        assert!(
            code.as_str().starts_with("ERR_")
                || CODES_OF_THE_JOBS_DOCUMENT.contains(&code.as_str()),
            "{code}"
        );
        assert_eq!(code.to_string(), code.as_str());
        assert!((400..600).contains(&code.status()), "{code}");
        let sentence = code.sentence();
        assert!(
            sentence.ends_with('.') && sentence.starts_with(|c: char| c.is_uppercase()),
            "{code}: {sentence}"
        );
    }
    let sentences: HashSet<&str> = ErrorCode::ALL.iter().map(|code| code.sentence()).collect();
    assert_eq!(sentences.len(), ErrorCode::ALL.len());
}

// TRN-21…26, TRN-46, TRN-47, R-36, lesson 8
#[test]
fn the_documented_codes_have_their_documented_status_and_retry_flag() {
    let documented = [
        ("ERR_VALIDATION", 400, false),
        ("ERR_AGENT_NOT_FOUND", 404, false),
        ("ERR_AGENT_UNREACHABLE", 502, true),
        ("ERR_TIMEOUT", 504, true),
        ("ERR_UNAUTHORIZED", 401, false),
        ("ERR_SENDER_NOT_REGISTERED", 400, false),
        ("ERR_SENDER_MISMATCH", 403, false),
        ("ERR_AGENT_ID_TAKEN", 409, false),
        ("ERR_ENDPOINT_BLOCKED", 400, false),
        ("ERR_REGISTRY_FULL", 429, true),
        ("ERR_RATE_LIMITED", 429, true),
        ("ERR_INVITE_REQUIRED", 403, false),
        ("ERR_INVITE_REVOKED", 403, false),
        ("ERR_INVITE_EXHAUSTED", 403, false),
        ("ERR_INVITE_EXPIRED", 403, false),
        ("ERR_DEPRECATED", 400, false),
        ("ERR_IDEMPOTENCY_CONFLICT", 409, false),
        ("ERR_NOT_FOUND", 404, false),
        ("ERR_METHOD_NOT_ALLOWED", 405, false),
        ("ERR_TOO_LARGE", 413, false),
        ("ERR_FORBIDDEN", 403, false),
        ("ERR_OWNER_TAKEN", 403, false),
        ("ERR_UNAVAILABLE", 503, true),
        ("ERR_INTERNAL", 500, true),
        ("SKILL_MISMATCH", 400, false),
        ("BUDGET_INSUFFICIENT", 400, false),
        ("TRANSFER_FAILED", 400, false),
        ("AGENT_OFFLINE", 409, true),
        ("EXECUTION_ERROR", 502, false),
    ];
    for (name, status, retryable) in documented {
        let code = ErrorCode::ALL
            .iter()
            .find(|code| code.as_str() == name)
            .expect(name);
        assert_eq!(
            (code.status(), code.retryable()),
            (status, retryable),
            "{name}"
        );
    }
}

// Invariant 8: one text for the client, one for the log
#[test]
fn the_cause_of_an_error_is_not_shown_to_the_client() {
    for error in [
        Error::internal("disk on fire"),
        Error::unavailable("disk on fire"),
    ] {
        assert!(!error.message.contains("fire") && !error.to_string().contains("fire"));
        assert_eq!(error.cause.as_deref(), Some("disk on fire"));
    }
}

// Invariant 12
#[test]
fn a_secret_prints_as_dots_and_serialises_as_itself() {
    let secret = Secret::new("not-for-logs");
    for printed in [
        format!("{secret}"),
        format!("{secret:?}"),
        format!("{:#?}", Some(&secret)),
    ] {
        assert!(!printed.contains("logs"), "{printed}");
    }
    assert_eq!(serde_json::to_string(&secret).unwrap(), "\"not-for-logs\"");
}
