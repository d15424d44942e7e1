//! The body around a frame: its two keys, its bounds, and what of it is no JSON.

use crate::tools::{accepted, example, example_text, parse, refused, with};
use chorus_wire::frame::{FrameCode, FrameScope, FrameSubmission};
use chorus_wire::limits;
use serde_json::{Value, json};

fn code(body: &[u8]) -> FrameCode {
    FrameSubmission::parse(body).unwrap_err().code
}

//
#[test]
fn without_a_scope_a_frame_is_for_its_recipient() {
    let mut body = example("agent_query");
    body.as_object_mut().unwrap().remove("scope");
    assert_eq!(accepted(&body).scope().unwrap().to_string(), "~acme");
}

// FRM-57, R-46: for every form
#[test]
fn a_scope_that_names_another_than_the_recipient_is_unauthorised() {
    let scopes = [
        "~X",
        "~X/*",
        "~X/cc-*",
        "~X/cc@s",
        "org:X/members/*",
        "org:~X/members/dev/*",
        "accord:X/grant:ops",
    ];
    for form in scopes {
        let mut body = with(&example("agent_query"), "recipient_handle", json!("~bob"));
        body["scope"] = json!(form.replace('X', "bob"));
        let kept = accepted(&body);
        assert_eq!(
            kept.scope().unwrap(),
            &FrameScope::parse(body["scope"].as_str().unwrap()).unwrap()
        );
        body["scope"] = json!(form.replace('X', "bobby"));
        let fault = accepted(&body).scope().unwrap_err();
        assert_eq!(
            (fault.code, fault.field.as_deref()),
            (FrameCode::ScopeUnauthorised, Some("scope")),
            "{form}"
        );
    }
}

//
#[test]
fn a_malformed_scope_is_a_fault_of_the_scope() {
    for scope in [
        Value::Null,
        json!(1),
        json!(["~alice"]),
        json!({}),
        json!(""),
        json!("~Alice"),
        json!("all"),
    ] {
        let mut body = example("agent_advisory");
        body["scope"] = scope;
        let fault = accepted(&body).scope().unwrap_err();
        assert_eq!(
            (fault.code, fault.field.as_deref()),
            (FrameCode::FieldInvalid, Some("scope")),
            "{body}"
        );
    }
}

//
#[test]
fn nothing_stands_beside_scope_and_frame() {
    let mut body = example("agent_advisory");
    body["session"] = json!("s1");
    refused(&body, "field-unknown", "session");
    body["frame"] = json!(null);
    refused(&body, "field-unknown", "session");
    body.as_object_mut().unwrap().remove("session");
    refused(&body, "field-invalid", "frame");
    for frame in [json!([]), json!("text"), json!(1), json!(true)] {
        body["frame"] = frame;
        refused(&body, "field-invalid", "frame");
    }
    body.as_object_mut().unwrap().remove("frame");
    refused(&body, "field-missing", "frame");
    refused(&json!({"kind": "agent_query"}), "field-unknown", "kind");
}

// a key beside the frame is an unknown field like any other, and told before those inside
#[test]
fn a_key_beside_the_frame_is_told_after_version_and_kind() {
    let mut body = with(&example("agent_advisory"), "extra", json!(1));
    body["session"] = json!("s1");
    refused(&body, "field-unknown", "session");
    refused(
        &with(&body, "kind", json!("agent_wish")),
        "kind-unknown",
        "kind",
    );
    let other = with(&body, "envelope_version", json!("2.0"));
    refused(&other, "envelope-version-unsupported", "envelope_version");
}

//
#[test]
fn what_is_no_object_in_utf_8_is_bad_json() {
    let whole = example_text("agent_advisory");
    for body in [
        "",
        " ",
        "null",
        "[]",
        "\"text\"",
        "1",
        "{",
        "{]",
        "nul",
        "\u{feff}{}",
        "{\"frame\":{}} x",
        "{'frame':{}}",
    ] {
        assert_eq!(code(body.as_bytes()), FrameCode::JsonInvalid, "{body}");
    }
    for cut in (0..whole.trim_end().len()).step_by(7) {
        assert_eq!(
            code(&whole.as_bytes()[..cut]),
            FrameCode::JsonInvalid,
            "{cut}"
        );
    }
    let mut latin = whole.clone().into_bytes();
    let at = whole.find("editing").unwrap();
    latin[at] = 0xe9;
    assert_eq!(code(&latin), FrameCode::JsonInvalid);
    for (good, bad) in [
        ("editing", "edi\nting"),
        ("editing", "\\ud800"),
        ("editing", "\\x"),
        ("60000", "060000"),
        ("60000", "6e"),
    ] {
        assert_eq!(
            code(whole.replacen(good, bad, 1).as_bytes()),
            FrameCode::JsonInvalid,
            "{bad}"
        );
    }
}

// Two parsers would read such a body differently.
#[test]
fn a_key_that_comes_twice_is_bad_json_wherever_it_is() {
    let binding = example("agent_binding_moment").to_string();
    for key in [
        "\"frame\":",
        "\"scope\":",
        "\"kind\":",
        "\"synopsis\":",
        "\"stem\":",
        "\"label\":",
        "\"dialogue\":",
    ] {
        let twice = binding.replacen(key, &format!("{key}0,{key}"), 1);
        assert_ne!(twice, binding);
        assert_eq!(code(twice.as_bytes()), FrameCode::JsonInvalid, "{key}");
    }
    let escaped = binding.replacen("\"kind\":", "\"\\u006bind\":0,\"kind\":", 1);
    assert_eq!(code(escaped.as_bytes()), FrameCode::JsonInvalid);
    let strange = binding.replacen("\"frame\":", "\"x\":{\"y\":1,\"y\":2},\"frame\":", 1);
    assert_eq!(
        code(strange.as_bytes()),
        FrameCode::JsonInvalid,
        "also where nobody looks"
    );
    let twice = binding.replacen("\"frame\":", "\"x\":1,\"x\":1,\"frame\":", 1);
    assert_eq!(code(twice.as_bytes()), FrameCode::JsonInvalid);
    let many: Vec<String> = (0..2_000)
        .map(|n| format!("\"k{}\":0", n % 1_999))
        .collect();
    let many = format!("{{\"frame\":{{{}}}}}", many.join(","));
    assert_eq!(code(many.as_bytes()), FrameCode::JsonInvalid);
}

#[test]
fn what_is_nested_too_deep_is_bad_json() {
    let nested =
        |levels: usize| format!("{{\"frame\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
    assert_eq!(
        code(nested(limits::JSON_DEPTH - 1).as_bytes()),
        FrameCode::FieldInvalid
    );
    assert_eq!(
        code(nested(limits::JSON_DEPTH).as_bytes()),
        FrameCode::JsonInvalid
    );
    assert_eq!(code(nested(20_000).as_bytes()), FrameCode::JsonInvalid);
}

// 64 KiB as submitted
#[test]
fn a_frame_of_64_kib_is_taken_and_one_octet_more_is_too_large() {
    let frame = example("agent_advisory")["frame"].to_string();
    let sized = |bytes: usize| {
        let blanks = " ".repeat(bytes - frame.len());
        format!(
            "{{\"scope\":\"~alice\",\"frame\":{{{blanks}{}}}",
            &frame[1..]
        )
    };
    FrameSubmission::parse(sized(64 * 1024).as_bytes()).unwrap();
    assert_eq!(
        code(sized(64 * 1024 + 1).as_bytes()),
        FrameCode::FrameTooLarge
    );
    assert_eq!(code(sized(300_000).as_bytes()), FrameCode::FrameTooLarge);
    assert_eq!(
        code(&[b'x'; 300_000]),
        FrameCode::FrameTooLarge,
        "before it is read"
    );
}

// An error is short, whatever was sent.
#[test]
fn an_error_repeats_only_the_beginning_of_a_long_name() {
    let mut body = example("agent_advisory");
    body["frame"]["é".repeat(10_000)] = json!(1);
    let fault = parse(&body).unwrap_err();
    assert_eq!(fault.code, FrameCode::FieldUnknown);
    assert_eq!(fault.field.as_deref(), Some("é".repeat(64).as_str()));
    assert!(fault.to_json().len() < 1_000);
}

#[test]
fn what_senders_print_is_what_the_hub_reads() {
    let submission = accepted(&example("agent_query"));
    let scope = submission.scope().unwrap();
    let printed = FrameSubmission::format_json(Some(scope), &submission.frame);
    assert_eq!(
        FrameSubmission::parse(printed.as_bytes()).unwrap(),
        submission
    );
    let own =
        FrameSubmission::parse(FrameSubmission::format_json(None, &submission.frame).as_bytes())
            .unwrap();
    assert_eq!(own.frame, submission.frame);
}
