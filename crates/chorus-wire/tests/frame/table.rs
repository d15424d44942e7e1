//! Every field of every kind: missing, null, of another type, at its limits, beyond them, and unknown (FRM-01…47).

use crate::rules::{FRAME, PAYLOADS, Row, Rule};
use crate::tools::{accepted, example, refused, with, without};
use serde_json::{Value, json};

/// A text of `octets` octets, in letters of two octets as far as possible.
fn two_octet_text(octets: usize) -> String {
    "é".repeat(octets / 2) + &"x".repeat(octets % 2)
}

fn ascii_text(octets: usize) -> String {
    "x".repeat(octets)
}

/// One value of every JSON type.
fn every_type() -> Vec<Value> {
    vec![
        Value::Null,
        json!(true),
        json!(7),
        json!(1.5),
        json!("text"),
        json!(["a"]),
        json!({"a": 1}),
    ]
}

/// Values that the rule accepts.
fn valid_values(rule: Rule) -> Vec<Value> {
    let to_values = |texts: &[&str]| texts.iter().map(|text| json!(text)).collect();
    match rule {
        Rule::Octets(min, max) => {
            vec![
                json!(ascii_text(min)),
                json!(ascii_text(max)),
                json!(two_octet_text(max)),
            ]
        }
        Rule::OneOf(texts) => to_values(texts),
        Rule::Integer(min, max) => vec![json!(min), json!(max), json!(2.0)],
        Rule::Bool => vec![json!(true), json!(false)],
        Rule::Uuid4 => to_values(&[
            "0a0b0c0d-0000-4000-8000-00000000000f",
            "0A0B0C0D-0000-4FFF-bFFF-00000000000F",
        ]),
        Rule::Time => to_values(&[
            "2026-05-22T10:00:00Z",
            "2026-05-22t10:00:00.123456789z",
            "2026-05-22T10:00:00-07:30",
        ]),
        Rule::Handle => to_values(&["~a", "~cc-editor", "~0-9", &format!("~{}", ascii_text(32))]),
        Rule::Sovereign => to_values(&["~a", "~ccx", &format!("~{}", ascii_text(32))]),
        Rule::Drafter => to_values(&[
            "~cc-editor",
            "~a",
            "~cc_x.y-",
            "~cc-a@1.2+rc-1",
            &format!("~{}", ascii_text(64)),
        ]),
        Rule::Class => to_values(&[
            "repo:pull-request",
            "a:b",
            "org.example/x:Y_1",
            &format!("a:{}", ascii_text(254)),
        ]),
        Rule::Scope => to_values(&[
            "~alice",
            "~alice/cc-*",
            "org:acme/members/*",
            "accord:~peer/grant:ops",
        ]),
        Rule::Texts(min_items, min, max) => vec![
            json!(vec![ascii_text(max.min(200)); 256]),
            json!(vec![ascii_text(min); min_items.max(1)]),
            json!(vec![two_octet_text(max); min_items]),
        ],
        Rule::SameAsFrame | Rule::Nested => Vec::new(),
    }
}

const BAD_UUIDS: [&str; 7] = [
    "",
    "0a0b0c0d00004000800000000000000f",
    "{0a0b0c0d-0000-4000-8000-00000000000f}",
    "0a0b0c0d-0000-1000-8000-00000000000f",
    "0a0b0c0d-0000-7000-8000-00000000000f",
    "0a0b0c0d-0000-4000-c000-00000000000f",
    "0a0b0c0d-0000-4000-8000-00000000000g",
];

const BAD_TIMES: [&str; 5] = [
    "",
    "2026-05-22",
    "2026-05-22T10:00:00",
    "2026-02-30T10:00:00Z",
    "1779444000",
];

/// Values of the right type that the rule refuses.
fn invalid_values(rule: Rule) -> Vec<Value> {
    let to_values = |texts: &[&str]| texts.iter().map(|text| json!(text)).collect();
    match rule {
        Rule::Octets(min, max) => {
            let mut values = vec![json!(ascii_text(max + 1)), json!(two_octet_text(max + 1))];
            values.extend((min > 0).then(|| json!("")));
            values
        }
        Rule::OneOf(texts) => {
            let mut values = vec![
                json!(""),
                json!("other-word"),
                json!(texts[0].to_uppercase()),
            ];
            values.push(json!(format!("{} ", texts[0])));
            values
        }
        Rule::Integer(min, max) => {
            vec![
                json!(min - 1),
                json!(max + 1),
                json!(-1),
                json!(u64::MAX),
                json!(1e300),
            ]
        }
        Rule::Uuid4 => to_values(&BAD_UUIDS),
        Rule::Time => to_values(&BAD_TIMES),
        Rule::Handle => to_values(&[
            "",
            "a",
            "~",
            "~A",
            "~-a",
            "~a-",
            "~a_b",
            "~org",
            &format!("~{}", ascii_text(33)),
        ]),
        Rule::Sovereign => to_values(&["a", "~A", "~org", "~cc-editor", "~cc-a"]),
        Rule::Drafter => to_values(&[
            "cc-editor",
            "~",
            "~-a",
            "~Cc",
            "~a@",
            "~a@ 1",
            "~a@1@2",
            &format!("~{}", ascii_text(65)),
        ]),
        Rule::Class => to_values(&[
            "",
            "repo",
            ":a",
            "a:",
            "a b:c",
            "a:b:c",
            "é:b",
            &format!("a:{}", ascii_text(255)),
        ]),
        Rule::Scope => to_values(&[
            "",
            "alice",
            "~alice/",
            "~alice/**",
            "org:acme",
            "accord:peer/ops",
            &ascii_text(600),
        ]),
        Rule::Texts(min_items, ..) => {
            let mut values = vec![json!(vec!["a"; 257])];
            values.extend((min_items > 0).then(|| json!([])));
            values
        }
        Rule::SameAsFrame => to_values(&["", "~bob", "~cc-editor", "~Alice"]),
        Rule::Bool | Rule::Nested => Vec::new(),
    }
}

/// Whether a value of `every_type` has the right type.
fn has_type(rule: Rule, value: &Value) -> bool {
    match rule {
        Rule::Integer(..) => value.is_u64(),
        Rule::Bool => value.is_boolean(),
        Rule::Texts(..) => value.is_array(),
        Rule::Nested => value.is_object(),
        Rule::Octets(..)
        | Rule::OneOf(_)
        | Rule::Uuid4
        | Rule::Time
        | Rule::Handle
        | Rule::Sovereign => value.is_string(),
        Rule::Drafter | Rule::Class | Rule::Scope | Rule::SameAsFrame => value.is_string(),
    }
}

fn check_rule(body: &Value, path: &str, rule: Rule) {
    // An intent repeats these two fields, so both copies must change together.
    let is_repeated =
        body["frame"]["kind"] == "intent_declare" && matches!(path, "acted_by" | "drafted_with");
    for value in valid_values(rule) {
        let mut changed = with(body, path, value.clone());
        if is_repeated {
            changed = with(&changed, &format!("payload.{path}"), value);
        }
        accepted(&changed);
    }
    for value in invalid_values(rule) {
        refused(&with(body, path, value), "field-invalid", path);
    }
    for value in every_type() {
        if !has_type(rule, &value) {
            refused(&with(body, path, value), "field-invalid", path);
        }
    }
    if let Rule::Texts(_, min, max) = rule {
        let mut invalid_items = vec![
            json!(ascii_text(max + 1)),
            json!(two_octet_text(max + 1)),
            json!(null),
            json!(1),
            json!(["a"]),
        ];
        invalid_items.extend((min > 0).then(|| json!("")));
        for item in invalid_items {
            let body = with(body, path, json!(["a", item]));
            refused(&body, "field-invalid", &format!("{path}[1]"));
        }
    }
}

#[test]
fn every_field_of_every_frame_is_checked() {
    for (kind, _) in PAYLOADS {
        let body = example(kind);
        accepted(&body);
        for (field, required, rule) in FRAME {
            check_rule(&body, field, *rule);
            match required {
                true => refused(&without(&body, field), "field-missing", field),
                false => drop(accepted(&without(&body, field))),
            }
        }
        refused(&with(&body, "extra", json!(1)), "field-unknown", "extra");
        refused(&with(&body, "Kind", json!(kind)), "field-unknown", "Kind");
    }
}

// a payload without any required field of its kind counts as one of another kind
fn assert_missing(body: &Value, rows: &[Row], field: &str) {
    let is_only_required = rows.iter().filter(|(_, required, _)| *required).count() == 1;
    let (code, reported_field) = match is_only_required {
        true => ("payload-kind-mismatch", "payload".to_owned()),
        false => ("field-missing", format!("payload.{field}")),
    };
    refused(
        &without(body, &format!("payload.{field}")),
        code,
        &reported_field,
    );
}

#[test]
fn every_field_of_every_payload_is_checked() {
    for (kind, rows) in PAYLOADS {
        let body = example(kind);
        let payload = body["frame"]["payload"].as_object().unwrap();
        assert_eq!(
            payload.len(),
            rows.len(),
            "the example of {kind} has every field"
        );
        for (field, required, rule) in rows {
            check_rule(&body, &format!("payload.{field}"), *rule);
            match required {
                true => assert_missing(&body, rows, field),
                false => drop(accepted(&without(&body, &format!("payload.{field}")))),
            }
        }
        refused(
            &with(&body, "payload.extra", json!(1)),
            "field-unknown",
            "payload.extra",
        );
        // FRM-77: no kind of this version has a content type
        refused(
            &with(&body, "payload.content_type", json!("a/b")),
            "field-unknown",
            "payload.content_type",
        );
    }
}

// FRM-28, FRM-86, R-44, R-53
#[test]
fn a_payload_that_is_not_an_object_or_of_another_kind_is_a_mismatch() {
    for (kind, _) in PAYLOADS {
        let body = example(kind);
        for value in [
            json!(5),
            json!("text"),
            json!([]),
            json!(true),
            json!({}),
            json!({"extra": 1}),
        ] {
            refused(
                &with(&body, "payload", value),
                "payload-kind-mismatch",
                "payload",
            );
        }
        refused(
            &with(&body, "payload", Value::Null),
            "field-invalid",
            "payload",
        );
        refused(&without(&body, "payload"), "field-missing", "payload");
        let optional = rows_of(kind).iter().filter(|(_, required, _)| !required);
        let optional_fields: serde_json::Map<String, Value> = optional
            .map(|(field, ..)| ((*field).to_owned(), body["frame"]["payload"][field].clone()))
            .collect();
        refused(
            &with(&body, "payload", Value::Object(optional_fields)),
            "payload-kind-mismatch",
            "payload",
        );
    }
    let body = with(&example("agent_advisory"), "kind", json!("agent_handover"));
    refused(&body, "payload-kind-mismatch", "payload");
}

fn rows_of(kind: &str) -> &'static [Row] {
    PAYLOADS.iter().find(|(name, _)| *name == kind).unwrap().1
}

// FRM-02, FRM-05, FRM-84, FRM-85, R-53
#[test]
fn only_version_1_0_and_the_fifteen_kinds_are_accepted() {
    for (kind, _) in PAYLOADS {
        let body = example(kind);
        for (field, code) in [
            ("envelope_version", "envelope-version-unsupported"),
            ("kind", "kind-unknown"),
        ] {
            for text in ["", "1", "1.0 ", "2.0", "agent_wish", "Agent_Query"] {
                refused(&with(&body, field, json!(text)), code, field);
            }
            for value in every_type().into_iter().filter(|value| !value.is_string()) {
                refused(&with(&body, field, value), "field-invalid", field);
            }
            refused(&without(&body, field), "field-missing", field);
        }
        refused(
            &with(&body, "envelope_version", json!(1.0)),
            "field-invalid",
            "envelope_version",
        );
    }
}
