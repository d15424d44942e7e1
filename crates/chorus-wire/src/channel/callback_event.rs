//! Callback events: what a member posts to a callback, optionally with its identity (CHN-23…28, R-71, R-76, R-78).

use super::message_part;
use crate::json::{self, JsonFields};
use crate::{Error, ErrorCode, Result, limits};
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};
use utoipa::ToSchema;

/// One event and the sender's identity, if given. Unknown fields are ignored.
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

/// How an agent presents itself; the roster shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ChannelIdentity)]
pub struct ChannelIdentity {
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
    /// The URL of a picture.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub avatar: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub capabilities: Vec<String>,
}

impl CallbackPost {
    /// Parses one JSON object: a body, or one line of NDJSON.
    pub fn parse(body: &[u8]) -> Result<Self> {
        let text = json::decode_utf8(body)?;
        if text.chars().count() > limits::CHANNEL_MESSAGE_CHARS {
            return Err(message_too_large());
        }
        let mut fields = json::parse_object(text)?;
        let event = match fields.required_string("type")?.as_str() {
            "message" => ChannelEvent::Message {
                content: take_text(&mut fields, "content")?,
                parts: message_part::take_parts(&mut fields)?,
            },
            "tool_call" => ChannelEvent::ToolCall {
                id: take_label(&mut fields, "id")?,
                name: take_label(&mut fields, "name")?,
                args: take_args(&mut fields)?,
            },
            "tool_result" => ChannelEvent::ToolResult {
                id: take_label(&mut fields, "id")?,
                content: take_text(&mut fields, "content")?,
            },
            "status" => ChannelEvent::Status {
                status: take_status(&mut fields)?,
            },
            "error" => {
                let code = fields.take_value("code").filter(|code| !code.is_null());
                if let Some(code) = code {
                    fields.insert("code", code);
                }
                ChannelEvent::Error {
                    message: take_text(&mut fields, "message")?,
                    code: fields.optional_label("code", limits::LABEL_CHARS)?,
                }
            }
            _ => {
                return Err(Error::validation(
                    "type must be message, tool_call, tool_result, status or error",
                ));
            }
        };
        match &event {
            ChannelEvent::Message { content, parts } => {
                check_message_size(content, parts.as_deref())?
            }
            ChannelEvent::ToolCall { args, .. } => check_message_size("", args.as_deref())?,
            ChannelEvent::ToolResult { .. }
            | ChannelEvent::Status { .. }
            | ChannelEvent::Error { .. } => {}
        }
        let agent = fields
            .take_value("agent")
            .filter(|agent| !agent.is_null())
            .map(ChannelIdentity::from_value)
            .transpose()?;
        Ok(Self { event, agent })
    }
}

impl ChannelIdentity {
    /// Unknown fields are dropped.
    pub fn from_value(value: Value) -> Result<Self> {
        let mut fields = JsonFields::from_value("agent", value)?;
        let capabilities_error = || {
            Error::validation(format!(
                "agent.capabilities must be at most {} strings of at most {} characters",
                limits::CAPABILITIES_PER_AGENT,
                limits::LABEL_CHARS
            ))
        };
        let capabilities = match fields.take_value("capabilities") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(items)) if items.len() <= limits::CAPABILITIES_PER_AGENT => {
                let to_capability = |item: Value| {
                    item.as_str()
                        .filter(|text| is_label(text))
                        .map(str::to_owned)
                        .ok_or_else(capabilities_error)
                };
                items
                    .into_iter()
                    .map(to_capability)
                    .collect::<Result<_>>()?
            }
            Some(_) => return Err(capabilities_error()),
        };
        let avatar = match fields.take_value("avatar") {
            None | Some(Value::Null) => None,
            Some(Value::String(url)) if is_picture_url(&url) => Some(url),
            Some(_) => {
                return Err(Error::validation(
                    "agent.avatar must be an absolute http or https URL",
                ));
            }
        };
        Ok(Self {
            name: fields.optional_label("name", limits::LABEL_CHARS)?,
            avatar,
            capabilities,
        })
    }
}

fn is_label(text: &str) -> bool {
    text.chars().count() <= limits::LABEL_CHARS && !text.contains('\0')
}

fn is_picture_url(url: &str) -> bool {
    let is_http = url::Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
    is_http && url.len() <= limits::URL_CHARS
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

/// Takes a required text, which may be empty.
pub(super) fn take_text(fields: &mut JsonFields, key: &str) -> Result<String> {
    let text = fields.required_string(key)?;
    // PostgreSQL cannot store NUL in a text.
    if text.contains('\0') {
        return Err(Error::validation(format!(
            "{key} must not have NUL characters in it"
        )));
    }
    Ok(text)
}

fn take_label(fields: &mut JsonFields, key: &str) -> Result<String> {
    let label = fields.optional_label(key, limits::LABEL_CHARS)?;
    label.ok_or_else(|| Error::validation(format!("{key} is required")))
}

/// Takes a status, which the roster shows on one line.
pub fn take_status(fields: &mut JsonFields) -> Result<String> {
    let text = take_text(fields, "status")?;
    if text.chars().count() > limits::STATUS_CHARS {
        return Err(Error::validation(format!(
            "status must be at most {} characters long",
            limits::STATUS_CHARS
        )));
    }
    Ok(text)
}

fn take_args(fields: &mut JsonFields) -> Result<Option<Box<RawValue>>> {
    match fields.take_value("args") {
        None | Some(Value::Null) => Ok(None),
        Some(args @ Value::Object(_)) => RawValue::from_string(args.to_string())
            .map(Some)
            .map_err(Error::internal),
        Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            Err(Error::validation("args must be an object"))
        }
    }
}
