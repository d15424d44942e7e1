//! Jobs: ids, timestamps and the three statuses.

use chorus_wire::credits::Credits;
use chorus_wire::market::job::{JobBody, JobOutcome, JobRequest, JobResult, JobStatus, WorkerNote};

fn request_with(field: &str, value: &str) -> chorus_wire::Result<JobRequest> {
    JobRequest::parse(format!(r#"{{"skill_name":"s","budget":0.10,"{field}":{value}}}"#).as_bytes())
}

fn result_with(status: &str) -> chorus_wire::Result<JobResult> {
    JobResult::parse(format!(r#"{{"status":{status}}}"#).as_bytes())
}

// JOB-02, JOB-03, R-60: a UUID of any version, because the document's own example is not version 4, or an opaque id
#[test]
fn an_id_is_any_uuid_or_an_opaque_id() {
    for good in [
        "550e8400-e29b-41d4-a716-446655440000",
        "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
        "job-1",
    ] {
        assert_eq!(
            request_with("job_id", &format!("\"{good}\""))
                .unwrap()
                .job_id
                .as_deref(),
            Some(good)
        );
        assert_eq!(
            request_with("agent_id", &format!("\"{good}\""))
                .unwrap()
                .agent_id
                .as_deref(),
            Some(good)
        );
    }
    let long = format!("\"{}\"", "j".repeat(129));
    for bad in ["\"\"", "\"a b\"", "\"a/b\"", "\"é\"", "7", &long] {
        let message = request_with("job_id", bad).expect_err(bad).message;
        assert!(message.contains("job_id"), "{message}");
    }
}

// JOB-04
#[test]
fn a_timestamp_is_iso_8601_in_utc() {
    for good in [
        "\"2026-02-11T14:15:09Z\"",
        "\"2026-02-11T14:15:09.5Z\"",
        "\"2026-02-11T14:15:09\"",
        "\"2026-02-11T14:15:09.123456\"",
        "\"2026-02-11T14:15:09+00:00\"",
        "null",
    ] {
        assert!(request_with("timestamp_utc", good).is_ok(), "{good}");
    }
    for bad in [
        "\"2026-02-11\"",
        "\"yesterday\"",
        "\"2026-02-30T00:00:00Z\"",
        "\"2026-02-11T14:15:09+02:00\"",
        "\"2026-02-11T14:15:09.\"",
        "\"\"",
        "1770819309",
    ] {
        let message = request_with("timestamp_utc", bad).expect_err(bad).message;
        assert!(message.contains("timestamp_utc"), "{message}");
    }
}

// JOB-06; R-86: with PENDING a worker says how far it is, or asks
#[test]
fn a_job_has_three_statuses_and_two_of_them_are_final() {
    let printed: Vec<String> = JobStatus::ALL
        .iter()
        .map(|status| serde_json::to_string(status).unwrap())
        .collect();
    assert_eq!(printed, ["\"PENDING\"", "\"SUCCESS\"", "\"FAILURE\""]);
    assert!(matches!(
        result_with("\"SUCCESS\"").unwrap().outcome,
        JobOutcome::Success { .. }
    ));
    assert!(matches!(
        result_with("\"FAILURE\"").unwrap().outcome,
        JobOutcome::Failure { .. }
    ));
    assert_eq!(
        result_with("\"PENDING\"").unwrap().outcome,
        JobOutcome::Pending(None)
    );
    let asks = br#"{"status":"PENDING","progress":"half","question":"Which?"}"#;
    assert_eq!(
        JobResult::parse(asks).unwrap().outcome,
        JobOutcome::Pending(Some(WorkerNote::Question("Which?".into())))
    );
    for bad in ["\"success\"", "\"DONE\"", "\"\"", "null", "true"] {
        let message = result_with(bad).expect_err(bad).message;
        assert!(message.contains("status"), "{message}");
    }
}

// Failure 17: the same request is the same job, whether it comes as a body or as the arguments of a tool.
#[test]
fn a_request_from_checked_fields_equals_its_body() {
    let body = br#"{"job_id":"job-1","skill_name":"s","input_data":{"n":1.0},"budget":0.5,"deadline_ms":1000}"#;
    let fields = JobBody {
        job_id: Some("job-1".into()),
        orchestrator_id: None,
        agent_id: None,
        skill_name: "s".into(),
        input_data: Some(serde_json::json!({"n": 1})),
        budget: Credits::from_hundredths(50),
        callback_url: None,
        deadline_ms: Some(1000),
        board: None,
        approve_within_ms: None,
        timestamp_utc: None,
        currency: None,
    };
    let parsed = JobRequest::parse(body).unwrap();
    let checked = JobRequest::from_checked(fields).unwrap();
    assert_eq!(parsed.canonical_json, checked.canonical_json);
    assert_eq!(parsed.deadline, checked.deadline);
}
