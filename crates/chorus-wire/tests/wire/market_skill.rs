//! Skills in registrations, and the public part of an endpoint.

use chorus_wire::market::discover::public_endpoint;
use chorus_wire::market::skill::SkillOffer;
use chorus_wire::registration::RegistrationRequest;
use chorus_wire::{Result, limits};

fn parse_skills(skills: &str) -> Result<Vec<SkillOffer>> {
    let body = format!(r#"{{"agent_id":"worker-1","skills":{skills}}}"#);
    RegistrationRequest::parse(body.as_bytes())
        .map(|registration| registration.market.unwrap_or_default().skills)
}

fn skill_with_price(price: &str) -> Result<Vec<SkillOffer>> {
    parse_skills(&format!(
        r#"[{{"skill_name":"s","cost_per_call":{price}}}]"#
    ))
}

#[track_caller]
fn refused(result: Result<Vec<SkillOffer>>, expected: &str) {
    let message = result.expect_err(expected).message;
    assert!(
        message.contains(expected),
        "{message} does not contain {expected}"
    );
}

// JOB-05, R-64: the price is parsed from its digits, not from a float
#[test]
fn a_price_is_not_negative_and_has_at_most_two_decimals() {
    for (price, hundredths) in [
        ("0", 0),
        ("0.00", 0),
        ("0.10", 10),
        ("0.1", 10),
        ("1", 100),
        ("0.01", 1),
        ("12.34", 1234),
    ] {
        assert_eq!(
            skill_with_price(price).unwrap()[0]
                .cost_per_call
                .to_hundredths(),
            hundredths,
            "{price}"
        );
    }
    for bad in [
        "-1", "0.101", "0.100", "1e-1", "1e2", "\"0.10\"", "null", "true", "[]", "1e400",
    ] {
        assert!(skill_with_price(bad).is_err(), "{bad}");
    }
    refused(skill_with_price("0.101"), "skills[0].cost_per_call");
    refused(
        parse_skills(r#"[{"skill_name":"s"}]"#),
        "skills[0].cost_per_call",
    );
}

// JOB-09
#[test]
fn a_skill_has_a_unique_name_and_no_unknown_field() {
    let longest = "n".repeat(limits::LABEL_CHARS);
    assert!(
        parse_skills(&format!(
            r#"[{{"skill_name":"{longest}","cost_per_call":1}}]"#
        ))
        .is_ok()
    );
    refused(
        parse_skills(&format!(
            r#"[{{"skill_name":"{longest}n","cost_per_call":1}}]"#
        )),
        "skill_name",
    );
    refused(
        parse_skills(r#"[{"skill_name":"","cost_per_call":1}]"#),
        "skill_name",
    );
    refused(
        parse_skills(r#"[{"skill_name":"a\u0000","cost_per_call":1}]"#),
        "skill_name",
    );
    refused(
        parse_skills(
            r#"[{"skill_name":"a","cost_per_call":1},{"skill_name":"a","cost_per_call":2}]"#,
        ),
        "skills[1]",
    );
    refused(
        parse_skills(r#"[{"skill_name":"a","cost_per_call":1,"cost_per_execution":2}]"#),
        "cost_per_execution",
    );
    refused(parse_skills(r#"["a"]"#), "skills[0]");
    refused(
        parse_skills(r#"[{"skill_name":"a","cost_per_call":1,"cost_per_call":2}]"#),
        "cost_per_call",
    );
}

#[test]
fn a_schema_is_an_object_of_bounded_size() {
    let with_schema = |schema: &str| {
        parse_skills(&format!(
            r#"[{{"skill_name":"a","cost_per_call":1,"input_schema":{schema}}}]"#
        ))
    };
    assert!(
        with_schema(r#"{"text":"string"}"#).unwrap()[0]
            .input_schema
            .is_some()
    );
    assert!(
        with_schema("{}").unwrap()[0].input_schema.is_none(),
        "an empty schema counts as none"
    );
    assert!(with_schema("null").unwrap()[0].input_schema.is_none());
    for bad in ["[]", "\"string\"", "true", "1"] {
        refused(with_schema(bad), "skills[0].input_schema");
    }
    let large = format!(r#"{{"text":"{}"}}"#, "x".repeat(limits::SCHEMA_BYTES));
    refused(with_schema(&large), "larger");
}

// R-67
#[test]
fn the_parts_of_an_endpoint_that_may_be_secret_are_not_shown() {
    for (url, expected) in [
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
        assert_eq!(public_endpoint(url), expected);
    }
}
