//! The events of every stream, with the schema of their data: OpenAPI 3.1 has no keyword for them, so they are in
//! `x-event-types`.

use chorus_hub::delivery::StreamEnd;
use chorus_wire::frame::{FrameKind, payload_schema};
use serde_json::{Map, Value, json};

/// Why the hub may end a stream, as `closing` says it.
const STREAM_ENDS: [StreamEnd; 6] = [
    StreamEnd::Shutdown,
    StreamEnd::KeyRotated,
    StreamEnd::Unregistered,
    StreamEnd::Unavailable,
    StreamEnd::MemberRemoved,
    StreamEnd::ChannelDeleted,
];

/// Schemas that no request and no other reply uses.
const EVENT_ONLY_SCHEMAS: [&str; 6] = [
    "MessageEvent",
    "ReceiptEvent",
    "ShownEvent",
    "GapEvent",
    "DispatchedJob",
    "ChannelInvite",
];

/// The events of the stream that this operation answers with, by event name.
pub fn event_types(operation_id: &str) -> Option<Value> {
    let events = match operation_id {
        "stream_inbox" => inbox_events(),
        "stream_channel" => channel_events(),
        "stream_activity" => activity_events(),
        "stream_frames" => frame_events(),
        "send_message" => return Some(send_events()),
        _ => return None,
    };
    let Value::Object(mut events) = events else {
        return None;
    };
    events.insert("closing".into(), closing_event());
    Some(Value::Object(events))
}

/// Writes the schemas that only events use in place of the references to them: some linters look for references in
/// extensions and some do not, and would report those schemas as unused.
pub fn inline_event_data(paths: &mut Value, schemas: &Map<String, Value>) {
    match paths {
        Value::Array(parts) => {
            for part in parts {
                inline_event_data(part, schemas);
            }
        }
        Value::Object(object) => {
            let events = object
                .get_mut("x-event-types")
                .and_then(Value::as_object_mut);
            for event in events.into_iter().flat_map(Map::values_mut) {
                for name in EVENT_ONLY_SCHEMAS {
                    if event["data"] == reference(name) {
                        event["data"] = schemas.get(name).cloned().unwrap_or_default();
                    }
                }
            }
            for part in object.values_mut() {
                inline_event_data(part, schemas);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn event(description: &str, data: Value) -> Value {
    json!({"description": description, "data": data})
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// An object with these fields, all required.
fn object_of(fields: &[(&str, Value)]) -> Value {
    let names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    let properties: Map<String, Value> = fields
        .iter()
        .map(|(name, schema)| ((*name).to_owned(), schema.clone()))
        .collect();
    json!({"type": "object", "required": names, "properties": properties})
}

fn text() -> Value {
    json!({"type": "string"})
}

fn instant() -> Value {
    json!({"type": "string", "format": "date-time"})
}

fn closing_event() -> Value {
    let reason = json!({"type": "string", "enum": STREAM_ENDS.map(StreamEnd::reason)});
    event(
        "The last event before the hub ends the stream. `retry` says when to reconnect.",
        object_of(&[("reason", reason)]),
    )
}

fn gap_event() -> Value {
    event(
        "Events after the id `from`, up to the id `to`, are gone: the hub deleted them before this reader came for them. The stream goes on after `to`.",
        reference("GapEvent"),
    )
}

fn inbox_events() -> Value {
    json!({
        "connected": event("The stream is open.", object_of(&[("agent_id", text()), ("timestamp", instant())])),
        "message": event("A message for this agent.", reference("MessageEvent")),
        "receipt": event("The receiver's answer to a message that this agent sent.", reference("ReceiptEvent")),
        "shown": event("The text of a message that this agent sent was shown to its receiver. It implies no answer.", reference("ShownEvent")),
        "channel": event("A delivery of a channel that this agent is in.", reference("ChannelDelivery")),
        "channel_invite": event("An invitation to a channel. Nothing else of the channel comes before it is accepted.", reference("ChannelInvite")),
        "job": event("A job that this agent shall do.", reference("DispatchedJob")),
        "job_update": event("What happened to a job of this agent before its end: `timeline` has the update.", reference("Job")),
        "job_result": event("The end of a job that this agent requested or worked on.", reference("Job")),
        "gap": gap_event(),
    })
}

fn channel_events() -> Value {
    let connected = object_of(&[
        ("channel_id", text()),
        ("name", text()),
        ("as", text()),
        ("timestamp", instant()),
    ]);
    json!({
        "connected": event("The stream is open. `as` is the name under which the reader is in the channel.", connected),
        "message": event("A message.", reference("ChannelRow")),
        "tool_call": event("A member calls a tool.", reference("ChannelRow")),
        "tool_result": event("The result of a tool call.", reference("ChannelRow")),
        "status": event("What a member is doing.", reference("ChannelRow")),
        "error": event("A member reports an error.", reference("ChannelRow")),
        "member": event("A member joined, declined, left, or became reachable or unreachable.", reference("ChannelRow")),
        "gap": gap_event(),
    })
}

fn activity_events() -> Value {
    json!({
        "connected": event("The stream is open.", object_of(&[("timestamp", instant())])),
        "activity": event("Something happened on this hub.", reference("ActivityRow")),
        "gap": gap_event(),
    })
}

fn frame_events() -> Value {
    let count = || json!({"type": "integer", "minimum": 0});
    let retention = object_of(&[
        ("seconds", count()),
        ("frames", count()),
        ("bytes", count()),
    ]);
    let connected = object_of(&[
        ("handle", text()),
        ("instrument", text()),
        ("session", text()),
        ("retention", retention),
    ]);
    let mut events = Map::new();
    events.insert(
        "connected".into(),
        event(
            "The stream is open. `retention` says how long frames are kept for a resume.",
            connected,
        ),
    );
    events.insert(
        "open-items".into(),
        event(
            "The locks, decisions and handovers that are open for this session when the stream begins, newest first. `more` says \
             that some did not fit; `GET /handles/{handle}/open` has all.",
            reference("OpenItems"),
        ),
    );
    events.insert(
        "resume-gap".into(),
        event(
            "Frames may be missing. The kept ones follow the id in `after`.",
            object_of(&[("after", text())]),
        ),
    );
    for kind in FrameKind::ALL {
        let frame = object_of(&[
            ("frame_id", json!({"type": "string", "format": "uuid"})),
            ("kind", json!({"type": "string", "const": kind.as_str()})),
            ("sender_handle", text()),
            ("payload", payload_schema(*kind)),
        ]);
        events.insert(
            kind.as_str().into(),
            event("A frame of this kind, as its sender submitted it.", frame),
        );
    }
    Value::Object(events)
}

fn send_events() -> Value {
    let failed = json!({"allOf": [object_of(&[("code", text()), ("message", text())]), reference("SendReply")]});
    json!({
        "chunk": event("A part of the receiver's answer.", json!({"type": "object"})),
        "done": event("The message was delivered; the fields of the receiver's final answer come with it.", reference("SendReply")),
        "error": event("The message was not delivered.", failed),
    })
}
