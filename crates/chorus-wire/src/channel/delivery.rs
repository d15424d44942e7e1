//! The channel delivery: the body that a service posts to a connection string (CHN-05…18, CHN-36).

use crate::json::{self, JsonFields};
use crate::{Error, ErrorCode, Result, endpoint_url, limits, secret::Secret};
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// The documented keys first, then `backlog`. Unknown fields of a service are ignored (CHN-38).
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = ChannelDelivery, example = json!({
    "channel": {"id": "C04ABCDEF", "name": "general", "service": "Slack", "context": "Where the team talks."},
    "message": {"id": "msg_1", "sender": "alice", "content": "hello"},
    "callback": "https://service.example.com/channels/C04ABCDEF/inbox/tok_…"}))]
pub struct ChannelDelivery {
    pub channel: ChannelInfo,
    pub message: ChannelMessage,
    /// The complete URL for answers. It is a secret: it allows its holder to post (CHN-15).
    #[schema(value_type = String)]
    pub callback: Secret,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub mcp: Option<ChannelMcp>,
    /// The messages that the agent missed, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub backlog: Vec<ChannelMessage>,
}

/// The channel of a delivery (CHN-06…10).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ChannelWhere)]
pub struct ChannelInfo {
    /// Never changes: agents store what they remember of the channel under it.
    pub id: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub service: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub context: Option<String>,
}

/// A message of a delivery (CHN-11…14).
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = ChannelMessage)]
pub struct ChannelMessage {
    /// The same in every retry of a delivery.
    pub id: String,
    pub sender: String,
    pub content: String,
    /// Structured content beside the text: A2A parts, unchanged.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(value_type = Option<Vec<Object>>)]
    pub parts: Option<Box<RawValue>>,
}

/// The MCP server of the channel; an agent passes it to its MCP client unchanged (CHN-17, CHN-18).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ChannelMcp)]
pub struct ChannelMcp {
    pub url: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(value_type = Option<Object>)]
    pub headers: Option<BTreeMap<String, Secret>>,
}

impl ChannelDelivery {
    /// Parses a delivery of any service. `null` in an optional field counts as absent: many services write it so.
    pub fn parse(body: &[u8]) -> Result<Self> {
        let text = json::decode_utf8(body)?;
        if text.chars().count() > limits::DELIVERY_CHARS {
            return Err(Error::new(
                ErrorCode::TooLarge,
                format!(
                    "a delivery has at most {} characters",
                    limits::DELIVERY_CHARS
                ),
            ));
        }
        let mut fields = json::parse_object(text)?;
        let mut channel_fields = take_object(&mut fields, "channel")?;
        let channel = ChannelInfo {
            id: require_id(&mut channel_fields, "channel.id")?,
            name: take_nullable_string(&mut channel_fields, "name")?,
            service: take_nullable_string(&mut channel_fields, "service")?,
            context: take_nullable_string(&mut channel_fields, "context")?,
        };
        let mut message_fields = take_object(&mut fields, "message")?;
        let message = ChannelMessage {
            id: require_id(&mut message_fields, "message.id")?,
            sender: message_fields.required_string("sender")?,
            content: message_fields.required_string("content")?,
            parts: to_raw_value(message_fields.take_value("parts"))?,
        };
        let callback = endpoint_url::parse_endpoint(&mut fields, "callback")?;
        let callback = callback.ok_or_else(|| Error::validation("callback is required"))?;
        let mcp = fields
            .take_value("mcp")
            .filter(|mcp| !mcp.is_null())
            .map(ChannelMcp::from_value)
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

impl ChannelMcp {
    fn from_value(value: Value) -> Result<Self> {
        let mut fields = JsonFields::from_value("mcp", value)?;
        let url = fields.required_string("url")?;
        let Some(headers) = fields
            .take_value("headers")
            .filter(|headers| !headers.is_null())
        else {
            return Ok(Self { url, headers: None });
        };
        let headers_error = || Error::validation("mcp.headers must be an object of strings");
        let Value::Object(headers) = headers else {
            return Err(headers_error());
        };
        let to_secret = |value: Value| value.as_str().map(Secret::new).ok_or_else(headers_error);
        let headers = headers
            .into_iter()
            .map(|(name, value)| Ok((name, to_secret(value)?)))
            .collect::<Result<_>>()?;
        Ok(Self {
            url,
            headers: Some(headers),
        })
    }
}

fn take_object(fields: &mut JsonFields, key: &str) -> Result<JsonFields> {
    let value = fields
        .take_value(key)
        .ok_or_else(|| Error::validation(format!("{key} is required")))?;
    JsonFields::from_value(key, value)
}

/// Takes a required id, which must not be empty.
fn require_id(fields: &mut JsonFields, path: &str) -> Result<String> {
    let id = fields.required_string("id")?;
    if id.is_empty() {
        Err(Error::validation(format!("{path} must not be empty")))
    } else {
        Ok(id)
    }
}

fn take_nullable_string(fields: &mut JsonFields, key: &str) -> Result<Option<String>> {
    match fields.take_value(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            fields.insert(key, value);
            fields.optional_string(key)
        }
    }
}

fn to_raw_value(value: Option<Value>) -> Result<Option<Box<RawValue>>> {
    let value = value.filter(|value| !value.is_null());
    value
        .map(|value| RawValue::from_string(value.to_string()).map_err(Error::internal))
        .transpose()
}
