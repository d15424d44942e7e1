//! Other request bodies and their faults: sends, registrations, agent cards and receivers' replies.

use chorus_wire::agent_card::AgentCard;
use chorus_wire::message::{ReceiverReply, SendRequest};
use chorus_wire::registration::{RegistrationRequest, looks_like_market};
use chorus_wire::{ErrorCode, Result, limits};
use serde_json::{Value, json};

fn envelope() -> Value {
    json!({"chorus_version": "0.4", "sender_id": "a@chorus", "original_text": "hi", "sender_culture": "en"})
}

fn refused<T>(result: Result<T>, expected: &str) {
    match result {
        Ok(_) => panic!("accepted what should fail for {expected}"),
        Err(error) => {
            assert_eq!(error.code, ErrorCode::Validation);
            assert!(
                error.message.contains(expected),
                "{} should contain {expected}",
                error.message
            );
        }
    }
}

fn send(body: &Value) -> Result<SendRequest> {
    SendRequest::parse(body.to_string().as_bytes())
}

// TRN-14, TRN-52, ENV-16
#[test]
fn a_send_has_a_receiver_an_envelope_and_optionally_stream() {
    let body = json!({"receiver_id": "bob", "envelope": envelope(), "stream": true});
    assert!(send(&body).unwrap().stream);
    for (field, value) in [
        ("receiver_id", json!(1)),
        ("receiver_id", Value::Null),
        ("stream", json!("yes")),
        ("stream", Value::Null),
    ] {
        let mut changed = body.clone();
        changed[field] = value;
        refused(send(&changed), field);
    }
    for field in ["receiver_id", "envelope"] {
        let mut without = body.clone();
        without.as_object_mut().unwrap().remove(field);
        refused(send(&without), field);
    }
    for extra in ["sender_id", "chorus_version", "Envelope"] {
        let mut extended = body.clone();
        extended[extra] = json!("x");
        refused(send(&extended), extra);
    }
    for receiver in ["", "a@b@c", "~Bob", "a b", "@"] {
        refused(
            send(&json!({"receiver_id": receiver, "envelope": envelope()})),
            "receiver_id",
        );
    }
    refused(SendRequest::parse(b"\xff"), "UTF-8");
    refused(SendRequest::parse(b"[]"), "object");
    let twice = format!(
        r#"{{"receiver_id":"bob","receiver_id":"bob","envelope":{}}}"#,
        envelope()
    );
    refused(
        SendRequest::parse(twice.as_bytes()),
        "receiver_id is given twice",
    );
}

// ENV-01: envelope fields at the root are not an envelope
#[test]
fn an_envelope_at_the_root_is_not_a_send() {
    let mut root = envelope();
    root["receiver_id"] = json!("bob");
    refused(send(&root), "chorus_version");
    for envelope in [Value::Null, json!([]), json!("x"), json!(1)] {
        assert!(send(&json!({"receiver_id": "bob", "envelope": envelope})).is_err());
    }
}

// ENV-21, R-30
#[test]
fn both_versions_of_the_a2a_wrapping_are_parsed_and_kept_as_sent() {
    let kind = "application/vnd.chorus.envelope+json";
    let old = json!({"kind": "data", "data": envelope(), "metadata": {"mediaType": kind}});
    let new = json!({"data": envelope(), "mediaType": kind});
    let other = json!({"kind": "text", "text": "hello"});
    for parts in [json!([old]), json!([new]), json!([other, new])] {
        let message = json!({"role": "user", "messageId": "m1", "parts": parts});
        let request = send(&json!({"receiver_id": "bob", "envelope": message})).unwrap();
        assert_eq!(request.envelope.original_text(), "hi");
        assert_eq!(request.a2a_message.unwrap(), message.to_string());
    }
    for parts in [
        json!([]),
        json!([other]),
        json!([old, new]),
        json!([{"mediaType": kind}]),
        json!({}),
    ] {
        assert!(
            send(&json!({"receiver_id": "bob", "envelope": {"parts": parts}})).is_err(),
            "{parts}"
        );
    }
    let mut broken = envelope();
    broken["sender_culture"] = json!(null);
    let message = json!({"parts": [{"data": broken, "mediaType": kind}]});
    refused(
        send(&json!({"receiver_id": "bob", "envelope": message})),
        "sender_culture",
    );
}

// R-30: key order and number formats stay as the sender wrote them
#[test]
fn a_wrapped_envelope_is_forwarded_byte_for_byte() {
    let text = format!(
        r#"{{ "z":1.0e2, "parts":[{{"mediaType":"application/vnd.chorus.envelope+json","data":{}}}], "a":123456789012345678901234567890 }}"#,
        envelope()
    );
    let body = format!(r#"{{"receiver_id":"bob","envelope":{text}}}"#);
    assert_eq!(
        SendRequest::parse(body.as_bytes())
            .unwrap()
            .a2a_message
            .unwrap(),
        text
    );
}

// R-25: an event stays under 64 000 characters, escapes included
#[test]
fn an_envelope_that_is_too_long_as_json_is_refused() {
    let mut escaped = envelope();
    escaped["original_text"] = json!("\u{1}".repeat(10_000));
    escaped["cultural_context"] = json!("\u{1}".repeat(500));
    refused(
        send(&json!({"receiver_id": "bob", "envelope": escaped})),
        "envelope",
    );
    escaped["original_text"] = json!("🎼".repeat(10_000));
    assert!(send(&json!({"receiver_id": "bob", "envelope": escaped})).is_ok());
}

fn register(body: &Value) -> Result<RegistrationRequest> {
    RegistrationRequest::parse(body.to_string().as_bytes())
}

// R-10, R-38
#[test]
fn the_form_of_a_registration_follows_from_its_fields() {
    let card = json!({"card_version": "0.3"});
    let cases = [
        (json!({"agent_id": "a@chorus"}), Some(false)),
        (
            json!({"agent_id": "a@chorus", "agent_card": card}),
            Some(false),
        ),
        (
            json!({"agent_id": "a@chorus", "agent_name": "A"}),
            Some(false),
        ),
        (
            json!({"agent_id": "a@chorus", "agent_card": card, "skills": []}),
            Some(false),
        ),
        (json!({"agent_id": "worker-1", "skills": []}), Some(true)),
        (
            json!({"agent_id": "a3b8d1b6-0b3b-4b1a-9c1a-1a2b3c4d5e6f", "owner_id": "o"}),
            Some(true),
        ),
        (
            json!({"agent_id": "a3b8d1b6-0b3b-4b1a-9c1a-1a2b3c4d5e6f", "owner_id": "o", "agent_card": card}),
            Some(false),
        ),
        (json!({"agent_id": "worker-1"}), None),
        (json!({"agent_id": "worker-1", "agent_card": card}), None),
        (
            json!({"agent_id": "worker-1", "agent_card": card, "skills": []}),
            None,
        ),
        (json!({"agent_id": "~worker", "skills": []}), None),
        (json!({"agent_card": card}), None),
        (json!({}), None),
    ];
    for (body, expected) in cases {
        match (register(&body), expected) {
            (Ok(registration), Some(is_market)) => {
                assert_eq!(registration.is_market_form(), is_market, "{body}")
            }
            (result, None) => refused(result, "agent_id"),
            (Err(error), Some(_)) => panic!("{error}: {body}"),
        }
    }
}

#[test]
fn faults_of_a_registration_are_refused_by_name() {
    let long = format!("https://a.example/{}", "x".repeat(limits::URL_CHARS));
    let faults = [
        ("endpoint", json!("ftp://a.example/")),
        ("endpoint", json!("a.example/hook")),
        ("endpoint", json!("https://user:word@a.example/")),
        ("endpoint", json!("https://user@a.example/")),
        ("endpoint", json!("https://a.example:port/")),
        ("endpoint", json!(long)),
        ("endpoint", Value::Null),
        ("api_endpoint", json!("https://user@agent-host:port/")),
        ("api_endpoint", json!("ftp://agent-host:port/")),
        ("api_endpoint", json!("nonsense")),
        ("agent_card", Value::Null),
        ("agent_card", json!([])),
        ("invite_code", json!(1)),
        ("owner_id", json!("")),
        ("owner_id", json!("x".repeat(limits::LABEL_CHARS + 1))),
        ("skills", json!({})),
        ("skills", json!([{"description": "no name"}])),
        (
            "skills",
            json!(vec![
                json!({"skill_name": "s"});
                limits::SKILLS_PER_AGENT + 1
            ]),
        ),
        ("api_key", json!("x")),
    ];
    for (field, value) in faults {
        let mut body = json!({"agent_id": "a@chorus"});
        body[field] = value;
        refused(register(&body), field);
    }
}

// TRN-29
#[test]
fn an_operator_registers_an_address_with_an_endpoint() {
    let parse = |body: Value| RegistrationRequest::parse_operator(body.to_string().as_bytes());
    assert!(parse(json!({"agent_id": "a@chorus", "endpoint": "http://a.example/"})).is_ok());
    refused(parse(json!({"agent_id": "a@chorus"})), "endpoint");
    refused(
        parse(json!({"agent_id": "a", "endpoint": "http://a.example/"})),
        "agent_id",
    );
    refused(
        parse(json!({"agent_id": "a@chorus", "endpoint": "http://a.example/", "skills": []})),
        "skills",
    );
}

// R-65: errors of the jobs document have another shape, also for a body that does not parse
#[test]
fn a_body_is_recognised_as_a_market_registration() {
    assert!(looks_like_market(br#"{"agent_id":"x","skills":3}"#));
    for other in [
        r#"{"agent_id":"x@y","skills":[]}"#,
        r#"{"agent_id":"x"}"#,
        r#"{"skills":[],"agent_card":{}}"#,
        "[",
        "1",
    ] {
        assert!(!looks_like_market(other.as_bytes()), "{other}");
    }
}

// ENV-17…20, R-20
#[test]
fn a_card_keeps_unknown_fields_and_checks_known_ones() {
    let kept = json!({"card_version": "0.3", "user_culture": "en", "motto": {"any": ["thing"]}});
    assert_eq!(
        serde_json::to_value(AgentCard::from_value(kept.clone()).unwrap()).unwrap(),
        kept
    );
    assert!(AgentCard::from_value(json!({"card_version": "0.3", "chorus_version": "0.4"})).is_ok());
    let faults = [
        ("card_version", json!({"chorus_version": "0.2"})),
        ("card_version", json!({"card_version": "0.2"})),
        ("card_version", json!({"card_version": 0.3})),
        ("user_culture", json!({"user_culture": "english"})),
        ("user_culture", json!({"user_culture": null})),
        ("supported_languages", json!({"supported_languages": "en"})),
        (
            "supported_languages[1]",
            json!({"supported_languages": ["en", 1]}),
        ),
        (
            "supported_languages[1]",
            json!({"supported_languages": ["en", "??"]}),
        ),
        (
            "supported_languages",
            json!({"supported_languages": vec!["en"; limits::CARD_LANGUAGES + 1]}),
        ),
        (
            "agent_card",
            json!({"motto": "x".repeat(limits::CARD_BYTES)}),
        ),
        ("agent_card", json!("card")),
    ];
    for (expected, card) in faults {
        refused(AgentCard::from_value(card), expected);
    }
}

// ENV-13, ENV-14
#[test]
fn a_receivers_reply_is_ok_alone_or_an_error_with_its_code() {
    let parse = |body: Value| ReceiverReply::parse(body.to_string().as_bytes());
    assert!(parse(json!({"status": "ok"})).is_ok());
    assert!(parse(json!({"status": "error", "error_code": "ADAPTATION_FAILED"})).is_ok());
    let faults = [
        ("status", json!({})),
        ("status", json!({"status": "fine"})),
        ("status", json!({"status": null})),
        ("ok", json!({"status": "ok", "detail": "and more"})),
        ("error_code", json!({"status": "error"})),
        ("error_code", json!({"status": "error", "error_code": ""})),
        (
            "error_code",
            json!({"status": "error", "error_code": "x".repeat(65)}),
        ),
        (
            "detail",
            json!({"status": "error", "error_code": "X", "detail": "x".repeat(limits::DETAIL_CHARS + 1)}),
        ),
        ("mood", json!({"status": "ok", "mood": "good"})),
    ];
    for (expected, body) in faults {
        refused(parse(body), expected);
    }
}
