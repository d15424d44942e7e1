//! What a service posts to an agent's connection string: everything the agent needs, in one body (CHN-05…18, CHN-36).

use crate::json::{self, Fields};
use crate::{Code, Error, Result, limits, register, secret::Secret};
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// The documented keys first, ours after. What else a service puts in is left alone (CHN-38).
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = ChannelDelivery, example = json!({
    "channel": {"id": "C04ABCDEF", "name": "general", "service": "Slack", "context": "Where the team talks."},
    "message": {"id": "msg_1", "sender": "alice", "content": "hello"},
    "callback": "https://service.example.com/channels/C04ABCDEF/inbox/tok_…"}))]
pub struct Delivery {
    pub channel: Where,
    pub message: Message,
    /// Where the answer goes, as it stands: whoever has it may speak (CHN-15).
    #[schema(value_type = String)]
    pub callback: Secret,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub mcp: Option<Mcp>,
    /// What was said while the agent was away, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub backlog: Vec<Message>,
}

/// Where it happens (CHN-06…10).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ChannelWhere)]
pub struct Where {
    /// Never changes: an agent keeps its memory of the channel under it.
    pub id: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub service: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub context: Option<String>,
}

/// What was said (CHN-11…14).
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = ChannelMessage)]
pub struct Message {
    /// The same when a delivery is tried again.
    pub id: String,
    pub sender: String,
    pub content: String,
    /// Structured content beside the text: A2A parts, as they were written.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(value_type = Option<Vec<Object>>)]
    pub parts: Option<Box<RawValue>>,
}

/// Tools of the service; an agent hands it to its MCP client unchanged (CHN-17, CHN-18).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ChannelMcp)]
pub struct Mcp {
    pub url: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(value_type = Option<Object>)]
    pub headers: Option<BTreeMap<String, Secret>>,
}

impl Delivery {
    /// The body of a delivery from anywhere. `null` in an optional field is an absent one: many services write it so.
    pub fn parse(body: &[u8]) -> Result<Self> {
        let text = json::text(body)?;
        if text.chars().count() > limits::DELIVERY_CHARS {
            return Err(Error::new(
                Code::TooLarge,
                format!(
                    "a delivery has at most {} characters",
                    limits::DELIVERY_CHARS
                ),
            ));
        }
        let mut fields = json::object(text)?;
        let mut channel = inner(&mut fields, "channel")?;
        let channel = Where {
            id: id(&mut channel, "channel.id")?,
            name: optional(&mut channel, "name")?,
            service: optional(&mut channel, "service")?,
            context: optional(&mut channel, "context")?,
        };
        let mut said = inner(&mut fields, "message")?;
        let message = Message {
            id: id(&mut said, "message.id")?,
            sender: said.string("sender")?,
            content: said.string("content")?,
            parts: raw(said.take("parts"))?,
        };
        let callback = register::endpoint(&mut fields, "callback")?;
        let callback = callback.ok_or_else(|| Error::validation("callback is required"))?;
        let mcp = fields
            .take("mcp")
            .filter(|mcp| !mcp.is_null())
            .map(Mcp::read)
            .transpose()?;
        Ok(Self {
            channel,
            message,
            callback: Secret::new(callback),
            mcp,
            backlog: Vec::new(),
        })
    }
}

impl Mcp {
    fn read(value: Value) -> Result<Self> {
        let mut fields = Fields::of("mcp", value)?;
        let url = fields.string("url")?;
        let Some(headers) = fields.take("headers").filter(|headers| !headers.is_null()) else {
            return Ok(Self { url, headers: None });
        };
        let wrong = || Error::validation("mcp.headers must be an object of strings");
        let Value::Object(headers) = headers else {
            return Err(wrong());
        };
        let text = |value: Value| value.as_str().map(Secret::new).ok_or_else(wrong);
        let headers = headers
            .into_iter()
            .map(|(name, value)| Ok((name, text(value)?)))
            .collect::<Result<_>>()?;
        Ok(Self {
            url,
            headers: Some(headers),
        })
    }
}

fn inner(fields: &mut Fields, key: &str) -> Result<Fields> {
    let value = fields
        .take(key)
        .ok_or_else(|| Error::validation(format!("{key} is required")))?;
    Fields::of(key, value)
}

/// An id names something, so it is not empty.
fn id(fields: &mut Fields, path: &str) -> Result<String> {
    let id = fields.string("id")?;
    if id.is_empty() {
        Err(Error::validation(format!("{path} must not be empty")))
    } else {
        Ok(id)
    }
}

fn optional(fields: &mut Fields, key: &str) -> Result<Option<String>> {
    match fields.take(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            fields.put(key, value);
            fields.optional_string(key)
        }
    }
}

fn raw(value: Option<Value>) -> Result<Option<Box<RawValue>>> {
    let value = value.filter(|value| !value.is_null());
    value
        .map(|value| RawValue::from_string(value.to_string()).map_err(Error::internal))
        .transpose()
}
