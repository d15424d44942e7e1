//! The body around a frame: its two keys, its limits, and invalid JSON.

use crate::tools::{accepted, example, example_text, parse, refused, with};
use chorus_wire::frame::{FrameCode, FrameScope, FrameSubmission};
use chorus_wire::limits;
use serde_json::{Value, json};

fn error_code(body: &[u8]) -> FrameCode {
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
        let submission = accepted(&body);
        assert_eq!(
            submission.scope().unwrap(),
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
fn a_malformed_scope_is_an_invalid_field() {
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
fn a_key_beside_scope_and_frame_is_unknown() {
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

// a key beside the frame is an unknown field like any other, and reported before those inside the frame
#[test]
fn a_key_beside_the_frame_is_reported_after_version_and_kind() {
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
fn a_body_that_is_not_a_utf_8_object_is_invalid_json() {
    let valid = example_text("agent_advisory");
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
        assert_eq!(
            error_code(body.as_bytes()),
            FrameCode::JsonInvalid,
            "{body}"
        );
    }
    for cut in (0..valid.trim_end().len()).step_by(7) {
        assert_eq!(
            error_code(&valid.as_bytes()[..cut]),
            FrameCode::JsonInvalid,
            "{cut}"
        );
    }
    let mut latin_1 = valid.clone().into_bytes();
    let at = valid.find("editing").unwrap();
    latin_1[at] = 0xe9;
    assert_eq!(error_code(&latin_1), FrameCode::JsonInvalid);
    for (original, replacement) in [
        ("editing", "edi\nting"),
        ("editing", "\\ud800"),
        ("editing", "\\x"),
        ("60000", "060000"),
        ("60000", "6e"),
    ] {
        assert_eq!(
            error_code(valid.replacen(original, replacement, 1).as_bytes()),
            FrameCode::JsonInvalid,
            "{replacement}"
        );
    }
}

// Two parsers would read such a body differently.
#[test]
fn a_duplicate_key_is_invalid_json_at_any_depth() {
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
        assert_eq!(
            error_code(twice.as_bytes()),
            FrameCode::JsonInvalid,
            "{key}"
        );
    }
    let escaped = binding.replacen("\"kind\":", "\"\\u006bind\":0,\"kind\":", 1);
    assert_eq!(error_code(escaped.as_bytes()), FrameCode::JsonInvalid);
    let in_unknown_field = binding.replacen("\"frame\":", "\"x\":{\"y\":1,\"y\":2},\"frame\":", 1);
    assert_eq!(
        error_code(in_unknown_field.as_bytes()),
        FrameCode::JsonInvalid,
        "also inside an unknown field"
    );
    let twice = binding.replacen("\"frame\":", "\"x\":1,\"x\":1,\"frame\":", 1);
    assert_eq!(error_code(twice.as_bytes()), FrameCode::JsonInvalid);
    let many: Vec<String> = (0..2_000)
        .map(|n| format!("\"k{}\":0", n % 1_999))
        .collect();
    let many = format!("{{\"frame\":{{{}}}}}", many.join(","));
    assert_eq!(error_code(many.as_bytes()), FrameCode::JsonInvalid);
}

#[test]
fn too_deep_nesting_is_invalid_json() {
    let nested =
        |levels: usize| format!("{{\"frame\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
    assert_eq!(
        error_code(nested(limits::JSON_DEPTH - 1).as_bytes()),
        FrameCode::FieldInvalid
    );
    assert_eq!(
        error_code(nested(limits::JSON_DEPTH).as_bytes()),
        FrameCode::JsonInvalid
    );
    assert_eq!(
        error_code(nested(20_000).as_bytes()),
        FrameCode::JsonInvalid
    );
}

// 64 KiB as submitted
#[test]
fn a_frame_of_64_kib_is_accepted_and_one_octet_more_is_too_large() {
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
        error_code(sized(64 * 1024 + 1).as_bytes()),
        FrameCode::FrameTooLarge
    );
    assert_eq!(
        error_code(sized(300_000).as_bytes()),
        FrameCode::FrameTooLarge
    );
    assert_eq!(
        error_code(&[b'x'; 300_000]),
        FrameCode::FrameTooLarge,
        "before it is parsed"
    );
}

// An error stays short for any input.
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
fn the_hub_parses_what_senders_format() {
    let submission = accepted(&example("agent_query"));
    let scope = submission.scope().unwrap();
    let printed = FrameSubmission::format_json(Some(scope), &submission.frame);
    assert_eq!(
        FrameSubmission::parse(printed.as_bytes()).unwrap(),
        submission
    );
    let without_scope =
        FrameSubmission::parse(FrameSubmission::format_json(None, &submission.frame).as_bytes())
            .unwrap();
    assert_eq!(without_scope.frame, submission.frame);
}
