//! Callback events: what a member posts to a callback, optionally with its identity (CHN-23…28, R-71, R-76, R-78).

use super::message_part::PARTS_CHECK;
use crate::contract::{
    self, ContractFault, FieldCheck, HTTP_URL, ObjectRule, ObjectShape, RawJson, SchemaRefs,
    WireObject, characters, list_of, single_line,
};
use crate::{Error, ErrorCode, Result, limits, wire_object};
use serde::{Deserialize, Deserializer, de};
use serde_json::{Value, json, value::RawValue};

/// One event and the sender's identity, if given. Unknown fields are ignored (R-71).
#[derive(Clone, Debug)]
pub struct CallbackPost {
    pub event: ChannelEvent,
    pub agent: Option<ChannelIdentity>,
}

#[derive(Clone, Debug)]
pub enum ChannelEvent {
    Message {
        content: String,
        parts: Option<Box<RawValue>>,
    },
    ToolCall {
        id: String,
        name: String,
        args: Option<Box<RawValue>>,
    },
    ToolResult {
        id: String,
        content: String,
    },
    /// An empty text clears the status.
    Status {
        status: String,
    },
    Error {
        message: String,
        code: Option<String>,
    },
}

wire_object! {
    /// How an agent presents itself; the roster shows it.
    ChannelIdentity, allows unknown, example r#"{"name": "Timber", "capabilities": ["review"]}"# => {
        /// A name for people.
        optional name: String = characters(1, limits::LABEL_CHARS);
        /// The URL of a picture.
        nullable avatar: String = FieldCheck::Grammar(&HTTP_URL);
        /// What the agent can do.
        nullable capabilities: Vec<String> = list_of(limits::CAPABILITIES_PER_AGENT, &characters(0, limits::LABEL_CHARS));
    }
}

impl<'de> Deserialize<'de> for ChannelIdentity {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(from)?;
        contract::parse_body(raw.get().as_bytes())
            .map_err(|fault| de::Error::custom(fault.message()))
    }
}

/// Without NUL, of any length: the size of the whole event is limited.
pub(super) const CONTENT_CHECK: FieldCheck = characters(0, limits::CHANNEL_MESSAGE_CHARS);
const LABEL_CHECK: FieldCheck = characters(1, limits::LABEL_CHARS);
const IDENTITY_CHECK: FieldCheck = FieldCheck::Object(ChannelIdentity::SHAPE);

/// Defines one event: an object with its `type`.
macro_rules! callback_events {
    ($($(#[doc = $about:literal])* $name:ident $kind:literal example $example:literal => { $($fields:tt)+ })+) => {
        $(wire_object! {
            $(#[doc = $about])* $name, allows unknown, rules [ObjectRule {
                find_fault: |_| None,
                describe: |schema, _| {
                    schema["properties"]["type"] = json!({"const": $kind});
                    let required = &mut schema["required"];
                    match required.as_array_mut() {
                        Some(names) => names.insert(0, "type".into()),
                        None => *required = json!(["type"]),
                    }
                },
            }], example $example => {
                $($fields)+
                /// How the agent presents itself.
                nullable agent: ChannelIdentity = IDENTITY_CHECK;
            }
        })+

        /// The types of events and their shapes.
        pub const CALLBACK_EVENTS: &[(&str, &ObjectShape)] = &[$(($kind, $name::SHAPE)),+];
    };
}

callback_events! {
    /// Says something in the channel.
    ChannelMessageEvent "message" example r#"{"type": "message", "content": "hello"}"# => {
        /// The text; empty only with parts.
        required content: String = CONTENT_CHECK;
        /// Structured content beside the text, as A2A parts.
        optional parts: RawJson = PARTS_CHECK;
    }

    /// Tells the channel that the agent calls a tool.
    ChannelToolCallEvent "tool_call" example r#"{"type": "tool_call", "id": "1", "name": "search", "args": {"q": "x"}}"# => {
        /// An id that pairs the call with its result.
        required id: String = LABEL_CHECK;
        /// The name of the tool.
        required name: String = LABEL_CHECK;
        /// The arguments of the call.
        nullable args: RawJson = FieldCheck::AnyObject;
    }

    /// Tells the channel what a tool answered.
    ChannelToolResultEvent "tool_result" example r#"{"type": "tool_result", "id": "1", "content": "found"}"# => {
        /// The id of the call.
        required id: String = LABEL_CHECK;
        /// What it answered.
        required content: String = CONTENT_CHECK;
    }

    /// Tells the roster what the agent is doing.
    ChannelStatusEvent "status" example r#"{"type": "status", "status": "thinking"}"# => {
        /// A few words; an empty text clears the status.
        required status: String = STATUS_CHECK;
    }

    /// Tells the channel that something failed.
    ChannelErrorEvent "error" example r#"{"type": "error", "message": "the search is down"}"# => {
        /// What failed.
        required message: String = CONTENT_CHECK;
        /// A code for programs.
        nullable code: String = LABEL_CHECK;
    }
}

crate::impl_to_schema!(CallbackPost, CALLBACK_EVENT);

/// The published name of any event.
pub const CALLBACK_EVENT: &str = "CallbackEvent";

/// Any event, by its type.
pub fn callback_event_schema(refs: SchemaRefs) -> Value {
    let events: Vec<Value> = CALLBACK_EVENTS
        .iter()
        .map(|(_, shape)| contract::value_schema(&FieldCheck::Object(shape), refs))
        .collect();
    json!({
        "oneOf": events,
        "description": "What an agent says to a channel.",
        "examples": [{"type": "message", "content": "hello"}],
    })
}

/// The roster shows it on one line, so a callback and the tool `set_status` take no other.
pub const STATUS_CHECK: FieldCheck = single_line(0, limits::STATUS_CHARS);

impl CallbackPost {
    /// Parses one JSON object: a body, or one line of NDJSON.
    pub fn parse(body: &[u8]) -> Result<Self> {
        let root = contract::parse_root(body)?;
        if root.text.chars().count() > limits::CHANNEL_MESSAGE_CHARS {
            return Err(message_too_large());
        }
        let kind = root.as_object().and_then(|event| event.get("type"));
        let kind = kind.ok_or_else(|| ContractFault::missing("type"))?;
        let (event, agent) = match kind.as_text() {
            Some("message") => {
                let event: ChannelMessageEvent = contract::parse_node(&root)?;
                check_message_size(&event.content, event.parts.as_ref().map(RawJson::as_raw))?;
                let said = ChannelEvent::Message {
                    content: event.content,
                    parts: event.parts.map(|parts| parts.0),
                };
                (said, event.agent)
            }
            Some("tool_call") => {
                let event: ChannelToolCallEvent = contract::parse_node(&root)?;
                check_message_size("", event.args.as_ref().map(RawJson::as_raw))?;
                let call = ChannelEvent::ToolCall {
                    id: event.id,
                    name: event.name,
                    args: event.args.map(|args| args.0),
                };
                (call, event.agent)
            }
            Some("tool_result") => {
                let event: ChannelToolResultEvent = contract::parse_node(&root)?;
                let result = ChannelEvent::ToolResult {
                    id: event.id,
                    content: event.content,
                };
                (result, event.agent)
            }
            Some("status") => {
                let event: ChannelStatusEvent = contract::parse_node(&root)?;
                let status = ChannelEvent::Status {
                    status: event.status,
                };
                (status, event.agent)
            }
            Some("error") => {
                let event: ChannelErrorEvent = contract::parse_node(&root)?;
                let error = ChannelEvent::Error {
                    message: event.message,
                    code: event.code,
                };
                (error, event.agent)
            }
            Some(_) | None => {
                let requirement = "message, tool_call, tool_result, status or error";
                return Err(ContractFault::invalid("type", requirement).into());
            }
        };
        Ok(Self { event, agent })
    }
}

fn message_too_large() -> Error {
    Error::new(
        ErrorCode::TooLarge,
        format!(
            "what is said at once has at most {} characters",
            limits::CHANNEL_MESSAGE_CHARS
        ),
    )
}

/// Checks the size as JSON, which is what deliveries contain. A number may be longer there than the sender wrote it.
pub(super) fn check_message_size(text: &str, structure: Option<&RawValue>) -> Result<()> {
    let structure_chars = structure.map_or(0, |structure| structure.get().chars().count());
    let text_chars = Value::from(text).to_string().chars().count();
    if text_chars + structure_chars > limits::CHANNEL_MESSAGE_CHARS {
        Err(message_too_large())
    } else {
        Ok(())
    }
}
