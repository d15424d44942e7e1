//! Skills as registrations bring them, and what strangers see of an endpoint.

use chorus_wire::market::discover::public_endpoint;
use chorus_wire::market::skill::SkillOffer;
use chorus_wire::registration::RegistrationRequest;
use chorus_wire::{Result, limits};

fn read(skills: &str) -> Result<Vec<SkillOffer>> {
    let body = format!(r#"{{"agent_id":"worker-1","skills":{skills}}}"#);
    RegistrationRequest::parse(body.as_bytes()).map(|read| read.market.unwrap_or_default().skills)
}

fn priced(price: &str) -> Result<Vec<SkillOffer>> {
    read(&format!(
        r#"[{{"skill_name":"s","cost_per_call":{price}}}]"#
    ))
}

#[track_caller]
fn refused(read: Result<Vec<SkillOffer>>, named: &str) {
    let message = read.expect_err(named).message;
    assert!(message.contains(named), "{message} does not name {named}");
}

// JOB-05, R-64: the digits decide, not the float they make
#[test]
fn a_price_is_above_zero_and_has_at_most_two_decimals() {
    for (price, hundredths) in [
        ("0.10", 10),
        ("0.1", 10),
        ("1", 100),
        ("0.01", 1),
        ("12.34", 1234),
    ] {
        assert_eq!(
            priced(price).unwrap()[0].cost_per_call.to_hundredths(),
            hundredths,
            "{price}"
        );
    }
    for bad in [
        "0", "0.00", "-1", "0.101", "0.100", "1e-1", "1e2", "\"0.10\"", "null", "true", "[]",
        "1e400",
    ] {
        assert!(priced(bad).is_err(), "{bad}");
    }
    refused(priced("0.101"), "skills[0].cost_per_call");
    refused(read(r#"[{"skill_name":"s"}]"#), "skills[0].cost_per_call");
}

// JOB-09
#[test]
fn a_skill_has_a_name_of_its_own_and_no_field_that_nobody_knows() {
    let longest = "n".repeat(limits::LABEL_CHARS);
    assert!(
        read(&format!(
            r#"[{{"skill_name":"{longest}","cost_per_call":1}}]"#
        ))
        .is_ok()
    );
    refused(
        read(&format!(
            r#"[{{"skill_name":"{longest}n","cost_per_call":1}}]"#
        )),
        "skill_name",
    );
    refused(
        read(r#"[{"skill_name":"","cost_per_call":1}]"#),
        "skill_name",
    );
    refused(
        read(r#"[{"skill_name":"a\u0000","cost_per_call":1}]"#),
        "skill_name",
    );
    refused(
        read(r#"[{"skill_name":"a","cost_per_call":1},{"skill_name":"a","cost_per_call":2}]"#),
        "skills[1]",
    );
    refused(
        read(r#"[{"skill_name":"a","cost_per_call":1,"cost_per_execution":2}]"#),
        "cost_per_execution",
    );
    refused(read(r#"["a"]"#), "skills[0]");
    refused(
        read(r#"[{"skill_name":"a","cost_per_call":1,"cost_per_call":2}]"#),
        "cost_per_call",
    );
}

#[test]
fn a_schema_is_an_object_of_bounded_size() {
    let with = |schema: &str| {
        read(&format!(
            r#"[{{"skill_name":"a","cost_per_call":1,"input_schema":{schema}}}]"#
        ))
    };
    assert!(
        with(r#"{"text":"string"}"#).unwrap()[0]
            .input_schema
            .is_some()
    );
    assert!(
        with("{}").unwrap()[0].input_schema.is_none(),
        "it asks for nothing"
    );
    for bad in ["null", "[]", "\"string\"", "true", "1"] {
        refused(with(bad), "skills[0].input_schema");
    }
    let large = format!(r#"{{"text":"{}"}}"#, "x".repeat(limits::SCHEMA_BYTES));
    refused(with(&large), "larger");
}

// R-67
#[test]
fn what_may_be_secret_in_an_endpoint_is_not_shown() {
    for (url, shown) in [
        ("https://a.example/jobs", "https://a.example/jobs"),
        (
            "https://agent-host:port/jobs",
            "https://agent-host:port/jobs",
        ),
        (
            "https://a.example:8443/hook?token=abc#x",
            "https://a.example:8443/hook",
        ),
        ("https://user:word@a.example/jobs", "https://a.example/jobs"),
        ("https://a.example?key=abc", "https://a.example"),
    ] {
        assert_eq!(public_endpoint(url), shown);
    }
}
