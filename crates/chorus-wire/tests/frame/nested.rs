//! The decision of a binding moment: nested objects, and the paths of faults in them (FRM-39…41).

use crate::tools::{accepted, example, refused, with, without};
use chorus_wire::frame::FramePayload;
use serde_json::{Value, json};

const QUESTION: &str = "payload.question";

fn body() -> Value {
    example("agent_binding_moment")
}

fn options(count: usize) -> Value {
    Value::Array(vec![json!({"label": "a", "reasoning": "b"}); count])
}

// the path leads to the nested field
#[test]
fn a_fault_inside_a_question_is_named_by_its_whole_path() {
    for (field, max) in [
        ("stem", 2048),
        ("options[0].label", 256),
        ("options[1].reasoning", 2048),
    ] {
        let path = format!("{QUESTION}.{field}");
        accepted(&with(&body(), &path, json!("x".repeat(max))));
        accepted(&with(&body(), &path, json!("é".repeat(max / 2))));
        for value in [
            json!("x".repeat(max + 1)),
            json!("é".repeat(max / 2 + 1)),
            json!(""),
            json!(1),
            Value::Null,
        ] {
            refused(&with(&body(), &path, value), "field-invalid", &path);
        }
        refused(&without(&body(), &path), "field-missing", &path);
    }
    for field in ["extra", "options[1].extra", "hatches.extra"] {
        let path = format!("{QUESTION}.{field}");
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
fn the_recommended_option_is_one_of_the_options() {
    let path = format!("{QUESTION}.recommended_idx");
    let body = with(&body(), &format!("{QUESTION}.options"), options(3));
    for index in [json!(0), json!(2), json!(1.0)] {
        accepted(&with(&body, &path, index));
    }
    for index in [
        json!(3),
        json!(-1),
        json!(0.5),
        json!("0"),
        json!(u64::MAX),
        json!(true),
    ] {
        refused(&with(&body, &path, index), "field-invalid", &path);
    }
}

// FRM-41, R-53: absent means open
#[test]
fn at_least_one_escape_hatch_stays_open() {
    let path = format!("{QUESTION}.hatches");
    let open_hatches = |hatches: Option<Value>| {
        let body = match hatches {
            Some(hatches) => with(&body(), &path, hatches),
            None => without(&body(), &path),
        };
        let FramePayload::AgentBindingMoment(moment) = &accepted(&body).frame.payload else {
            panic!("{body}")
        };
        (
            moment.question.allows_free_text(),
            moment.question.allows_dialogue(),
        )
    };
    assert_eq!(open_hatches(None), (true, true));
    assert_eq!(open_hatches(Some(json!({}))), (true, true));
    assert_eq!(
        open_hatches(Some(json!({"free_text": false}))),
        (false, true)
    );
    assert_eq!(
        open_hatches(Some(json!({"dialogue": false, "free_text": true}))),
        (true, false)
    );
    let all_closed = with(
        &body(),
        &path,
        json!({"free_text": false, "dialogue": false}),
    );
    refused(&all_closed, "field-invalid", &path);
    for field in ["free_text", "dialogue"] {
        let path = format!("{path}.{field}");
        for value in [Value::Null, json!(0), json!("false")] {
            refused(&with(&body(), &path, value), "field-invalid", &path);
        }
    }
}

// an intent has the acted_by and drafted_with of its frame
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
