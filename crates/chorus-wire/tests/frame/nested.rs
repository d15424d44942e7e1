//! The decision that a binding moment asks for: objects in objects, and faults that are named to the letter (FRM-39…41).

use crate::tools::{accepted, example, refused, with, without};
use chorus_wire::frame::Payload;
use serde_json::{Value, json};

const QUESTION: &str = "payload.question";

fn body() -> Value {
    example("agent_binding_moment")
}

fn options(count: usize) -> Value {
    Value::Array(vec![json!({"label": "a", "reasoning": "b"}); count])
}

// the path goes down to the field
#[test]
fn a_fault_inside_a_question_is_named_by_its_whole_path() {
    for (at, code) in [
        ("stem", 2048),
        ("options[0].label", 256),
        ("options[1].reasoning", 2048),
    ] {
        let path = format!("{QUESTION}.{at}");
        accepted(&with(&body(), &path, json!("x".repeat(code))));
        accepted(&with(&body(), &path, json!("é".repeat(code / 2))));
        for value in [
            json!("x".repeat(code + 1)),
            json!("é".repeat(code / 2 + 1)),
            json!(""),
            json!(1),
            Value::Null,
        ] {
            refused(&with(&body(), &path, value), "field-invalid", &path);
        }
        refused(&without(&body(), &path), "field-missing", &path);
    }
    for at in ["extra", "options[1].extra", "hatches.extra"] {
        let path = format!("{QUESTION}.{at}");
        refused(&with(&body(), &path, json!(true)), "field-unknown", &path);
    }
    for field in ["options", "recommended_idx"] {
        let path = format!("{QUESTION}.{field}");
        refused(&without(&body(), &path), "field-missing", &path);
        refused(&with(&body(), &path, Value::Null), "field-invalid", &path);
    }
    for value in [Value::Null, json!("text"), json!([]), json!(true)] {
        refused(
            &with(&body(), QUESTION, value.clone()),
            "field-invalid",
            QUESTION,
        );
        let path = format!("{QUESTION}.options[1]");
        refused(&with(&body(), &path, value), "field-invalid", &path);
    }
}

// FRM-40
#[test]
fn a_question_has_two_to_four_options() {
    let path = format!("{QUESTION}.options");
    for count in 2..=4 {
        accepted(&with(&body(), &path, options(count)));
    }
    for count in [0, 1, 5, 300] {
        refused(
            &with(&body(), &path, options(count)),
            "field-invalid",
            &path,
        );
    }
}

// FRM-40, R-53: counted from 0
#[test]
fn the_recommended_option_is_one_of_them() {
    let path = format!("{QUESTION}.recommended_idx");
    let body = with(&body(), &format!("{QUESTION}.options"), options(3));
    for place in [json!(0), json!(2), json!(1.0)] {
        accepted(&with(&body, &path, place));
    }
    for place in [
        json!(3),
        json!(-1),
        json!(0.5),
        json!("0"),
        json!(u64::MAX),
        json!(true),
    ] {
        refused(&with(&body, &path, place), "field-invalid", &path);
    }
}

// FRM-41, R-53: absent means open
#[test]
fn a_recipient_is_left_a_way_out_of_the_options() {
    let path = format!("{QUESTION}.hatches");
    let open = |hatches: Option<Value>| {
        let body = match hatches {
            Some(hatches) => with(&body(), &path, hatches),
            None => without(&body(), &path),
        };
        let Payload::AgentBindingMoment(moment) = &accepted(&body).frame.payload else {
            panic!("{body}")
        };
        (
            moment.question.allows_free_text(),
            moment.question.allows_dialogue(),
        )
    };
    assert_eq!(open(None), (true, true));
    assert_eq!(open(Some(json!({}))), (true, true));
    assert_eq!(open(Some(json!({"free_text": false}))), (false, true));
    assert_eq!(
        open(Some(json!({"dialogue": false, "free_text": true}))),
        (true, false)
    );
    let shut = with(
        &body(),
        &path,
        json!({"free_text": false, "dialogue": false}),
    );
    refused(&shut, "field-invalid", &path);
    for field in ["free_text", "dialogue"] {
        let path = format!("{path}.{field}");
        for value in [Value::Null, json!(0), json!("false")] {
            refused(&with(&body(), &path, value), "field-invalid", &path);
        }
    }
}

// an intent speaks for the frame's own pair
#[test]
fn an_intent_repeats_the_attribution_of_its_frame() {
    let body = example("intent_declare");
    let other = with(&body, "acted_by", json!("~bob"));
    refused(&other, "field-invalid", "payload.acted_by");
    accepted(&with(&other, "payload.acted_by", json!("~bob")));
    let other = with(&body, "drafted_with", json!("~cc-shell"));
    refused(&other, "field-invalid", "payload.drafted_with");
    accepted(&with(&other, "payload.drafted_with", json!("~cc-shell")));
}
