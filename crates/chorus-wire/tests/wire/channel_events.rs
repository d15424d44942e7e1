//! What comes to a callback and what is asked of a room, field by field (CHN-23…28, R-71, R-76, R-78).

use chorus_wire::channel::callback_event::{CallbackPost, ChannelEvent};
use chorus_wire::channel::channels::{DeliveryMode, MemberRoute, NewChannelMember, SenderKind};
use chorus_wire::channel::history_row::{ChannelRow, ChannelRowKind};
use chorus_wire::{Code, limits};
use serde_json::{Value, json};

fn read(value: &Value) -> Result<CallbackPost, chorus_wire::Error> {
    CallbackPost::parse(value.to_string().as_bytes())
}

#[test]
fn each_event_has_its_required_fields_and_no_more() {
    // R-78: `type`, the text and the `id` of tool events; `args` and `code` may be missing or null, the rest is ignored
    for event in [
        json!({"type": "message", "content": ""}),
        json!({"type": "message", "content": "x", "parts": [{"text": "y"}], "mood": "good"}),
        json!({"type": "tool_call", "id": "tc", "name": "search"}),
        json!({"type": "tool_call", "id": "tc", "name": "search", "args": null}),
        json!({"type": "tool_result", "id": "tc", "content": ""}),
        json!({"type": "status", "status": ""}),
        json!({"type": "error", "message": "x", "code": null}),
    ] {
        assert!(read(&event).is_ok(), "{event}");
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
        let error = read(&event).expect_err(&event.to_string());
        assert_eq!(error.code, Code::Validation, "{event}");
        assert!(error.message.contains(field), "{event}: {error}");
    }
    let large = json!({"type": "message", "content": "x".repeat(limits::CHANNEL_MESSAGE_CHARS)});
    assert_eq!(read(&large).unwrap_err().code, Code::TooLarge);
}

#[test]
fn an_agent_presents_itself_with_what_the_roster_shows() {
    // R-76
    let agent = json!({"name": "Timber", "avatar": "https://a.example/t.png", "capabilities": ["review"], "age": 3});
    let read = read(&json!({"type": "status", "status": "x", "agent": agent})).unwrap();
    let shown = serde_json::to_value(read.agent.unwrap()).unwrap();
    assert_eq!(
        shown,
        json!({"name": "Timber", "avatar": "https://a.example/t.png", "capabilities": ["review"]})
    );
}

#[test]
fn a_line_begins_with_the_event_as_it_is_printed() {
    // R-78
    for printed in [
        r#"{"type":"message","content":"The weather in Oslo is 3°C and cloudy."}"#,
        r#"{"type":"tool_result","id":"tc_001","content":"Oslo: 3°C, cloudy, wind 5m/s NW"}"#,
        r#"{"type":"status","status":"searching weather data"}"#,
        r#"{"type":"error","message":"Failed to connect to weather API","code":"tool_error"}"#,
    ] {
        let event = CallbackPost::parse(printed.as_bytes()).unwrap().event;
        let line =
            serde_json::to_string(&ChannelRow::from_event(event, "timber", SenderKind::Agent))
                .unwrap();
        let ours = format!(
            r#"{},"sender":"timber","sender_kind":"agent"}}"#,
            printed.strip_suffix('}').unwrap()
        );
        assert_eq!(line, ours);
    }
    let call = json!({"type": "tool_call", "name": "web_search", "args": {"query": "oslo weather"}, "id": "tc_001"});
    let ChannelEvent::ToolCall { .. } = read(&call).unwrap().event else {
        panic!("not a call")
    };
    let line = serde_json::to_value(ChannelRow::from_event(
        read(&call).unwrap().event,
        "timber",
        SenderKind::Agent,
    ))
    .unwrap();
    for (key, value) in call.as_object().unwrap() {
        assert_eq!(&line[key], value, "{line}");
    }
}

#[test]
fn every_word_is_read_as_it_is_written() {
    for deliver in DeliveryMode::ALL {
        assert_eq!(DeliveryMode::parse(deliver.as_str()), Some(deliver));
        assert_eq!(json!(deliver), deliver.as_str());
    }
    for via in MemberRoute::ALL {
        assert_eq!(MemberRoute::parse(via.as_str()), Some(via));
        assert_eq!(json!(via), via.as_str());
    }
    for kind in [
        ChannelRowKind::Message,
        ChannelRowKind::ToolCall,
        ChannelRowKind::ToolResult,
        ChannelRowKind::Status,
        ChannelRowKind::Error,
        ChannelRowKind::Member,
    ] {
        assert_eq!(json!(kind), kind.as_str());
    }
}

#[test]
fn a_members_secrets_do_not_print() {
    // Law 12
    let body = json!({"connection": "https://a.example/inbox/sk_fixture", "name": "timber", "signing_secret": "whsec_f"});
    let member = NewChannelMember::parse(body.to_string().as_bytes()).unwrap();
    let printed = format!("{member:?}");
    assert!(
        !printed.contains("sk_fixture") && !printed.contains("whsec_f"),
        "{printed}"
    );
}
