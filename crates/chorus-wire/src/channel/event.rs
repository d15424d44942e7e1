//! What an agent posts to a callback: one of five events, and perhaps who it is (CHN-23…28, R-71, R-76, R-78).

use super::part;
use crate::json::{self, Fields};
use crate::{Code, Error, Result, limits};
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};
use utoipa::ToSchema;

/// One event with what may come beside it. Fields that are not the document's are ignored.
#[derive(Clone, Debug)]
pub struct Callback {
    pub event: Event,
    pub agent: Option<Identity>,
}

#[derive(Clone, Debug)]
pub enum Event {
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
    /// Empty takes the status away.
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
pub struct Identity {
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
    /// The URL of a picture.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub avatar: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub capabilities: Vec<String>,
}

impl Callback {
    /// One JSON object: a body, or a line of NDJSON.
    pub fn parse(body: &[u8]) -> Result<Self> {
        let text = json::text(body)?;
        if text.chars().count() > limits::SAID_CHARS {
            return Err(too_large());
        }
        let mut fields = json::object(text)?;
        let event = match fields.string("type")?.as_str() {
            "message" => Event::Message {
                content: said(&mut fields, "content")?,
                parts: part::take(&mut fields)?,
            },
            "tool_call" => Event::ToolCall {
                id: word(&mut fields, "id")?,
                name: word(&mut fields, "name")?,
                args: args(&mut fields)?,
            },
            "tool_result" => Event::ToolResult {
                id: word(&mut fields, "id")?,
                content: said(&mut fields, "content")?,
            },
            "status" => Event::Status {
                status: status(&mut fields)?,
            },
            "error" => {
                let code = fields.take("code").filter(|code| !code.is_null());
                if let Some(code) = code {
                    fields.put("code", code);
                }
                Event::Error {
                    message: said(&mut fields, "message")?,
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
            Event::Message { content, parts } => bounded(content, parts.as_deref())?,
            Event::ToolCall { args, .. } => bounded("", args.as_deref())?,
            Event::ToolResult { .. } | Event::Status { .. } | Event::Error { .. } => {}
        }
        let agent = fields
            .take("agent")
            .filter(|agent| !agent.is_null())
            .map(Identity::read)
            .transpose()?;
        Ok(Self { event, agent })
    }
}

impl Identity {
    /// What else it says of itself is not kept.
    pub fn read(value: Value) -> Result<Self> {
        let mut fields = Fields::of("agent", value)?;
        let wrong = || {
            Error::validation(format!(
                "agent.capabilities must be at most {} strings of at most {} characters",
                limits::CAPABILITIES,
                limits::LABEL_CHARS
            ))
        };
        let capabilities = match fields.take("capabilities") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(items)) if items.len() <= limits::CAPABILITIES => {
                let text = |item: Value| {
                    item.as_str()
                        .filter(|text| fits(text))
                        .map(str::to_owned)
                        .ok_or_else(wrong)
                };
                items.into_iter().map(text).collect::<Result<_>>()?
            }
            Some(_) => return Err(wrong()),
        };
        let avatar = match fields.take("avatar") {
            None | Some(Value::Null) => None,
            Some(Value::String(url)) if is_picture(&url) => Some(url),
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

fn fits(text: &str) -> bool {
    text.chars().count() <= limits::LABEL_CHARS && !text.contains('\0')
}

fn is_picture(url: &str) -> bool {
    let http = url::Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
    http && url.len() <= limits::URL_CHARS
}

fn too_large() -> Error {
    Error::new(
        Code::TooLarge,
        format!(
            "what is said at once has at most {} characters",
            limits::SAID_CHARS
        ),
    )
}

/// As JSON, which is how it travels on: a number may be longer there than it was written.
pub(super) fn bounded(text: &str, structure: Option<&RawValue>) -> Result<()> {
    let structure = structure.map_or(0, |structure| structure.get().chars().count());
    let text = Value::from(text).to_string().chars().count();
    if text + structure > limits::SAID_CHARS {
        Err(too_large())
    } else {
        Ok(())
    }
}

/// A text that must be there and may be empty.
pub(super) fn said(fields: &mut Fields, key: &str) -> Result<String> {
    let text = fields.string(key)?;
    // One of the databases cannot hold it.
    if text.contains('\0') {
        return Err(Error::validation(format!(
            "{key} must not have NUL characters in it"
        )));
    }
    Ok(text)
}

fn word(fields: &mut Fields, key: &str) -> Result<String> {
    let word = fields.optional_label(key, limits::LABEL_CHARS)?;
    word.ok_or_else(|| Error::validation(format!("{key} is required")))
}

/// A status is shown on one line of a roster.
pub fn status(fields: &mut Fields) -> Result<String> {
    let text = said(fields, "status")?;
    if text.chars().count() > limits::STATUS_CHARS {
        return Err(Error::validation(format!(
            "status must be at most {} characters long",
            limits::STATUS_CHARS
        )));
    }
    Ok(text)
}

fn args(fields: &mut Fields) -> Result<Option<Box<RawValue>>> {
    match fields.take("args") {
        None | Some(Value::Null) => Ok(None),
        Some(args @ Value::Object(_)) => RawValue::from_string(args.to_string())
            .map(Some)
            .map_err(Error::internal),
        Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            Err(Error::validation("args must be an object"))
        }
    }
}
