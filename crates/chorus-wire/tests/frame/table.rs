//! Every field of every kind: missing, null, of another type, at its bounds, beyond them, and one field too many (FRM-01…47).

use crate::rules::{FRAME, PAYLOADS, Row, Rule};
use crate::tools::{accepted, example, refused, with, without};
use serde_json::{Value, json};

/// Exactly so many octets, of which as many as possible are parts of two-octet letters.
fn wide(octets: usize) -> String {
    "é".repeat(octets / 2) + &"x".repeat(octets % 2)
}

fn narrow(octets: usize) -> String {
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

/// Values a field takes.
fn good(rule: Rule) -> Vec<Value> {
    let texts = |texts: &[&str]| texts.iter().map(|text| json!(text)).collect();
    match rule {
        Rule::Octets(least, most) => {
            vec![json!(narrow(least)), json!(narrow(most)), json!(wide(most))]
        }
        Rule::Words(words) => texts(words),
        Rule::Whole(least, most) => vec![json!(least), json!(most), json!(2.0)],
        Rule::Truth => vec![json!(true), json!(false)],
        Rule::Uuid4 => texts(&[
            "0a0b0c0d-0000-4000-8000-00000000000f",
            "0A0B0C0D-0000-4FFF-bFFF-00000000000F",
        ]),
        Rule::Time => texts(&[
            "2026-05-22T10:00:00Z",
            "2026-05-22t10:00:00.123456789z",
            "2026-05-22T10:00:00-07:30",
        ]),
        Rule::Handle => texts(&["~a", "~cc-editor", "~0-9", &format!("~{}", narrow(32))]),
        Rule::Sovereign => texts(&["~a", "~ccx", &format!("~{}", narrow(32))]),
        Rule::Drafter => texts(&[
            "~cc-editor",
            "~a",
            "~cc_x.y-",
            "~cc-a@1.2+rc-1",
            &format!("~{}", narrow(64)),
        ]),
        Rule::Class => texts(&[
            "repo:pull-request",
            "a:b",
            "org.example/x:Y_1",
            &format!("a:{}", narrow(254)),
        ]),
        Rule::Scope => texts(&[
            "~alice",
            "~alice/cc-*",
            "org:acme/members/*",
            "accord:~peer/grant:ops",
        ]),
        Rule::Texts(items, least, most) => vec![
            json!(vec![narrow(most.min(200)); 256]),
            json!(vec![narrow(least); items.max(1)]),
            json!(vec![wide(most); items]),
        ],
        Rule::Echo | Rule::Nested => Vec::new(),
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

/// Values of the right type that it does not take.
fn bad(rule: Rule) -> Vec<Value> {
    let texts = |texts: &[&str]| texts.iter().map(|text| json!(text)).collect();
    match rule {
        Rule::Octets(least, most) => {
            let mut bad = vec![json!(narrow(most + 1)), json!(wide(most + 1))];
            bad.extend((least > 0).then(|| json!("")));
            bad
        }
        Rule::Words(words) => {
            let mut bad = vec![
                json!(""),
                json!("other-word"),
                json!(words[0].to_uppercase()),
            ];
            bad.push(json!(format!("{} ", words[0])));
            bad
        }
        Rule::Whole(least, most) => {
            vec![
                json!(least - 1),
                json!(most + 1),
                json!(-1),
                json!(u64::MAX),
                json!(1e300),
            ]
        }
        Rule::Uuid4 => texts(&BAD_UUIDS),
        Rule::Time => texts(&BAD_TIMES),
        Rule::Handle => texts(&[
            "",
            "a",
            "~",
            "~A",
            "~-a",
            "~a-",
            "~a_b",
            "~org",
            &format!("~{}", narrow(33)),
        ]),
        Rule::Sovereign => texts(&["a", "~A", "~org", "~cc-editor", "~cc-a"]),
        Rule::Drafter => texts(&[
            "cc-editor",
            "~",
            "~-a",
            "~Cc",
            "~a@",
            "~a@ 1",
            "~a@1@2",
            &format!("~{}", narrow(65)),
        ]),
        Rule::Class => texts(&[
            "",
            "repo",
            ":a",
            "a:",
            "a b:c",
            "a:b:c",
            "é:b",
            &format!("a:{}", narrow(255)),
        ]),
        Rule::Scope => texts(&[
            "",
            "alice",
            "~alice/",
            "~alice/**",
            "org:acme",
            "accord:peer/ops",
            &narrow(600),
        ]),
        Rule::Texts(items, ..) => {
            let mut bad = vec![json!(vec!["a"; 257])];
            bad.extend((items > 0).then(|| json!([])));
            bad
        }
        Rule::Echo => texts(&["", "~bob", "~cc-editor", "~Alice"]),
        Rule::Truth | Rule::Nested => Vec::new(),
    }
}

/// Whether a value of `every_type` is at least of the right type.
fn is_type(rule: Rule, value: &Value) -> bool {
    match rule {
        Rule::Whole(..) => value.is_u64(),
        Rule::Truth => value.is_boolean(),
        Rule::Texts(..) => value.is_array(),
        Rule::Nested => value.is_object(),
        Rule::Octets(..)
        | Rule::Words(_)
        | Rule::Uuid4
        | Rule::Time
        | Rule::Handle
        | Rule::Sovereign => value.is_string(),
        Rule::Drafter | Rule::Class | Rule::Scope | Rule::Echo => value.is_string(),
    }
}

fn judge(body: &Value, path: &str, rule: Rule) {
    // An intent repeats these two, so they can only change together.
    let echoed =
        body["frame"]["kind"] == "intent_declare" && matches!(path, "acted_by" | "drafted_with");
    for value in good(rule) {
        let mut changed = with(body, path, value.clone());
        if echoed {
            changed = with(&changed, &format!("payload.{path}"), value);
        }
        accepted(&changed);
    }
    for value in bad(rule) {
        refused(&with(body, path, value), "field-invalid", path);
    }
    for value in every_type() {
        if !is_type(rule, &value) {
            refused(&with(body, path, value), "field-invalid", path);
        }
    }
    if let Rule::Texts(_, least, most) = rule {
        let mut wrong = vec![
            json!(narrow(most + 1)),
            json!(wide(most + 1)),
            json!(null),
            json!(1),
            json!(["a"]),
        ];
        wrong.extend((least > 0).then(|| json!("")));
        for item in wrong {
            let body = with(body, path, json!(["a", item]));
            refused(&body, "field-invalid", &format!("{path}[1]"));
        }
    }
}

#[test]
fn every_field_of_every_frame_is_held_to_its_rule() {
    for (kind, _) in PAYLOADS {
        let body = example(kind);
        accepted(&body);
        for (field, required, rule) in FRAME {
            judge(&body, field, *rule);
            match required {
                true => refused(&without(&body, field), "field-missing", field),
                false => drop(accepted(&without(&body, field))),
            }
        }
        refused(&with(&body, "extra", json!(1)), "field-unknown", "extra");
        refused(&with(&body, "Kind", json!(kind)), "field-unknown", "Kind");
    }
}

// without any of its kind's required fields a payload is of another kind
fn missing(body: &Value, rows: &[Row], field: &str) {
    let alone = rows.iter().filter(|(_, required, _)| *required).count() == 1;
    let (code, named) = match alone {
        true => ("payload-kind-mismatch", "payload".to_owned()),
        false => ("field-missing", format!("payload.{field}")),
    };
    refused(&without(body, &format!("payload.{field}")), code, &named);
}

#[test]
fn every_field_of_every_payload_is_held_to_its_rule() {
    for (kind, rows) in PAYLOADS {
        let body = example(kind);
        let payload = body["frame"]["payload"].as_object().unwrap();
        assert_eq!(
            payload.len(),
            rows.len(),
            "the example of {kind} has every field"
        );
        for (field, required, rule) in rows {
            judge(&body, &format!("payload.{field}"), *rule);
            match required {
                true => missing(&body, rows, field),
                false => drop(accepted(&without(&body, &format!("payload.{field}")))),
            }
        }
        refused(
            &with(&body, "payload.extra", json!(1)),
            "field-unknown",
            "payload.extra",
        );
        // FRM-77: no kind of this version has one
        refused(
            &with(&body, "payload.content_type", json!("a/b")),
            "field-unknown",
            "payload.content_type",
        );
    }
}

// FRM-28, FRM-86, R-44, R-53
#[test]
fn a_payload_that_is_no_object_or_of_another_kind_is_a_mismatch() {
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
        let only: serde_json::Map<String, Value> = optional
            .map(|(field, ..)| ((*field).to_owned(), body["frame"]["payload"][field].clone()))
            .collect();
        refused(
            &with(&body, "payload", Value::Object(only)),
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
fn only_version_1_0_and_the_fifteen_kinds_are_spoken() {
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
