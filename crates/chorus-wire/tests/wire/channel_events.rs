//! Callback events and channel requests, field by field (CHN-23…28, R-71, R-76, R-78).

use chorus_wire::channel::callback_event::{CallbackPost, ChannelEvent};
use chorus_wire::channel::channels::{DeliveryMode, MemberRoute, NewChannelMember, SenderKind};
use chorus_wire::channel::history_row::{ChannelRow, ChannelRowKind};
use chorus_wire::market::job::JobStatus;
use chorus_wire::{ErrorCode, limits};
use serde_json::{Value, json};
use utoipa::PartialSchema;

fn parse_post(value: &Value) -> Result<CallbackPost, chorus_wire::Error> {
    CallbackPost::parse(value.to_string().as_bytes())
}

#[test]
fn each_event_requires_its_fields_and_no_more() {
    // R-78: required are `type`, the text and the `id` of tool events. `args` and `code` may be missing or null, other
    // fields are ignored.
    for event in [
        json!({"type": "message", "content": ""}),
        json!({"type": "message", "content": "x", "parts": [{"text": "y"}], "mood": "good"}),
        json!({"type": "tool_call", "id": "tc", "name": "search"}),
        json!({"type": "tool_call", "id": "tc", "name": "search", "args": null}),
        json!({"type": "tool_result", "id": "tc", "content": ""}),
        json!({"type": "status", "status": ""}),
        json!({"type": "error", "message": "x", "code": null}),
    ] {
        assert!(parse_post(&event).is_ok(), "{event}");
    }
    for (event, field) in [
        (json!({}), "type"),
        (json!({"type": "shout", "content": "x"}), "type"),
        (json!({"type": 1}), "type"),
        (json!({"type": "message"}), "content"),
        (json!({"type": "message", "content": null}), "content"),
        (
            json!({"type": "message", "content": {"text": "x"}}),
            "content",
        ),
        (
            json!({"type": "message", "content": "x", "parts": [{}]}),
            "parts[0]",
        ),
        (json!({"type": "tool_call", "name": "search"}), "id"),
        (json!({"type": "tool_call", "id": "tc"}), "name"),
        (
            json!({"type": "tool_call", "id": "", "name": "search"}),
            "id",
        ),
        (
            json!({"type": "tool_call", "id": "tc", "name": "search", "args": [1]}),
            "args",
        ),
        (json!({"type": "tool_result", "content": "x"}), "id"),
        (json!({"type": "tool_result", "id": "tc"}), "content"),
        (json!({"type": "status"}), "status"),
        (
            json!({"type": "status", "status": "x".repeat(limits::STATUS_CHARS + 1)}),
            "status",
        ),
        (json!({"type": "status", "status": "a\nb"}), "status"),
        (json!({"type": "error", "code": "tool_error"}), "message"),
        (json!({"type": "error", "message": "x", "code": 7}), "code"),
        (
            json!({"type": "status", "status": "x", "agent": "bob"}),
            "agent",
        ),
        (
            json!({"type": "status", "status": "x", "agent": {"avatar": "javascript:x"}}),
            "agent.avatar",
        ),
        (
            json!({"type": "status", "status": "x", "agent": {"capabilities": [1]}}),
            "agent.capabilities",
        ),
    ] {
        let error = parse_post(&event).expect_err(&event.to_string());
        assert_eq!(error.code, ErrorCode::Validation, "{event}");
        assert!(error.message.contains(field), "{event}: {error}");
    }
    let large = json!({"type": "message", "content": "x".repeat(limits::CHANNEL_MESSAGE_CHARS)});
    assert_eq!(parse_post(&large).unwrap_err().code, ErrorCode::TooLarge);
}

#[test]
fn an_identity_keeps_only_the_fields_of_the_roster() {
    // R-76
    let agent = json!({"name": "Timber", "avatar": "https://a.example/t.png", "capabilities": ["review"], "age": 3});
    let post = parse_post(&json!({"type": "status", "status": "x", "agent": agent})).unwrap();
    let shown = serde_json::to_value(post.agent.unwrap()).unwrap();
    assert_eq!(
        shown,
        json!({"name": "Timber", "avatar": "https://a.example/t.png", "capabilities": ["review"]})
    );
}

#[test]
fn a_row_begins_with_the_event_as_documented() {
    // R-78
    for printed in [
        r#"{"type":"message","content":"The weather in Oslo is 3°C and cloudy."}"#,
        r#"{"type":"tool_result","id":"tc_001","content":"Oslo: 3°C, cloudy, wind 5m/s NW"}"#,
        r#"{"type":"status","status":"searching weather data"}"#,
        r#"{"type":"error","message":"Failed to connect to weather API","code":"tool_error"}"#,
    ] {
        let event = CallbackPost::parse(printed.as_bytes()).unwrap().event;
        let row =
            serde_json::to_string(&ChannelRow::from_event(event, "timber", SenderKind::Agent))
                .unwrap();
        let expected = format!(
            r#"{},"sender":"timber","sender_kind":"agent"}}"#,
            printed.strip_suffix('}').unwrap()
        );
        assert_eq!(row, expected);
    }
    let call = json!({"type": "tool_call", "name": "web_search", "args": {"query": "oslo weather"}, "id": "tc_001"});
    let ChannelEvent::ToolCall { .. } = parse_post(&call).unwrap().event else {
        panic!("not a tool call")
    };
    let row = serde_json::to_value(ChannelRow::from_event(
        parse_post(&call).unwrap().event,
        "timber",
        SenderKind::Agent,
    ))
    .unwrap();
    for (key, value) in call.as_object().unwrap() {
        assert_eq!(&row[key], value, "{row}");
    }
}

#[test]
fn every_enum_text_parses_back_to_its_variant() {
    for mode in DeliveryMode::ALL {
        assert_eq!(DeliveryMode::parse(mode.as_str()), Some(*mode));
        assert_eq!(json!(mode), mode.as_str());
    }
    for route in MemberRoute::ALL {
        assert_eq!(MemberRoute::parse(route.as_str()), Some(*route));
        assert_eq!(json!(route), route.as_str());
    }
    for kind in [
        ChannelRowKind::Message,
        ChannelRowKind::ToolCall,
        ChannelRowKind::ToolResult,
        ChannelRowKind::Status,
        ChannelRowKind::Error,
        ChannelRowKind::Member,
        ChannelRowKind::Artifact,
        ChannelRowKind::File,
    ] {
        assert_eq!(json!(kind), kind.as_str());
    }
}

#[test]
fn every_enum_is_published_with_its_texts() {
    fn published<T: PartialSchema>() -> Value {
        serde_json::to_value(T::schema()).unwrap()["enum"].clone()
    }
    assert_eq!(published::<DeliveryMode>(), json!(DeliveryMode::TEXTS));
    assert_eq!(published::<MemberRoute>(), json!(MemberRoute::TEXTS));
    assert_eq!(published::<ChannelRowKind>(), json!(ChannelRowKind::TEXTS));
    assert_eq!(published::<JobStatus>(), json!(JobStatus::TEXTS));
}

#[test]
fn the_secrets_of_a_member_do_not_print() {
    // Invariant 12
    let body = json!({"connection": "https://a.example/inbox/sk_fixture", "name": "timber", "signing_secret": "whsec_fixturefixturefixturefixturefixt"});
    let member = NewChannelMember::parse(body.to_string().as_bytes()).unwrap();
    let printed = format!("{member:?}");
    assert!(
        !printed.contains("sk_fixture") && !printed.contains("whsec_f"),
        "{printed}"
    );
}
