//! The words of a job: its ids, its instant and its three states.

use chorus_wire::market::job::{JobOutcome, JobRequest, JobResult, JobStatus};

fn asked(field: &str, value: &str) -> chorus_wire::Result<JobRequest> {
    JobRequest::parse(format!(r#"{{"skill_name":"s","budget":0.10,"{field}":{value}}}"#).as_bytes())
}

fn reported(status: &str) -> chorus_wire::Result<JobResult> {
    JobResult::parse(format!(r#"{{"status":{status}}}"#).as_bytes())
}

// JOB-02, JOB-03, R-60: a UUID of any version, since the document's own example is no v4; or a word
#[test]
fn an_id_is_any_uuid_or_a_plain_word() {
    for good in [
        "550e8400-e29b-41d4-a716-446655440000",
        "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
        "job-1",
    ] {
        assert_eq!(
            asked("job_id", &format!("\"{good}\""))
                .unwrap()
                .job_id
                .as_deref(),
            Some(good)
        );
        assert_eq!(
            asked("agent_id", &format!("\"{good}\""))
                .unwrap()
                .agent_id
                .as_deref(),
            Some(good)
        );
    }
    let long = format!("\"{}\"", "j".repeat(129));
    for bad in ["\"\"", "\"a b\"", "\"a/b\"", "\"é\"", "7", &long] {
        let refusal = asked("job_id", bad).expect_err(bad).message;
        assert!(refusal.contains("job_id"), "{refusal}");
    }
}

// JOB-04
#[test]
fn an_instant_is_one_of_utc() {
    for good in ["\"2026-02-11T14:15:09Z\"", "\"2026-02-11T14:15:09.5Z\""] {
        assert!(asked("timestamp_utc", good).is_ok(), "{good}");
    }
    for bad in [
        "\"2026-02-11\"",
        "\"yesterday\"",
        "\"2026-02-30T00:00:00Z\"",
        "\"\"",
        "1770819309",
    ] {
        let refusal = asked("timestamp_utc", bad).expect_err(bad).message;
        assert!(refusal.contains("timestamp_utc"), "{refusal}");
    }
}

// JOB-06; R-62: what is reported is an end, so it is not PENDING
#[test]
fn a_job_has_three_words_for_where_it_stands_and_two_of_them_are_ends() {
    let words: Vec<String> = JobStatus::ALL
        .iter()
        .map(|status| serde_json::to_string(status).unwrap())
        .collect();
    assert_eq!(words, ["\"PENDING\"", "\"SUCCESS\"", "\"FAILURE\""]);
    assert!(matches!(
        reported("\"SUCCESS\"").unwrap().outcome,
        JobOutcome::Success { .. }
    ));
    assert!(matches!(
        reported("\"FAILURE\"").unwrap().outcome,
        JobOutcome::Failure { .. }
    ));
    for bad in [
        "\"PENDING\"",
        "\"success\"",
        "\"DONE\"",
        "\"\"",
        "null",
        "true",
    ] {
        let refusal = reported(bad).expect_err(bad).message;
        assert!(refusal.contains("status"), "{refusal}");
    }
}
