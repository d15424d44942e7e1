//! The channel delivery: the body that a service posts to a connection string (CHN-05…18, CHN-36).

use crate::contract::{self, CALLBACK_URL, FieldCheck, LengthUnit, RawJson, RefusedCharacters};
use crate::{Error, ErrorCode, Result, limits, secret::Secret, wire_object};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A message of a channel, delivered to an agent. Unknown fields of a service are ignored (CHN-38).
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
    /// The messages that the agent missed, oldest first (R-76).
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub backlog: Vec<ChannelMessage>,
    /// Where the delivery comes from, on an agent's inbox: the origin of the callback of a service that used the agent's
    /// connection string. The hub writes it; a delivery of one of the hub's own channels has none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub origin: Option<String>,
    /// The headers by which the service signed the delivery, on an agent's inbox. The hub writes them (CHN-34).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub webhook_headers: Option<WebhookHeaders>,
    /// The body that was signed, where the event does not repeat it exactly. The hub writes it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(value_type = Option<String>)]
    pub signed_body: Option<Secret>,
}

/// The headers of Standard Webhooks that came with a delivery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WebhookHeaders {
    #[serde(rename = "webhook-id")]
    pub id: String,
    #[serde(rename = "webhook-timestamp")]
    pub timestamp: String,
    #[serde(rename = "webhook-signature")]
    pub signature: String,
}

impl WebhookHeaders {
    /// The names of the headers.
    pub const NAMES: [&'static str; 3] = ["webhook-id", "webhook-timestamp", "webhook-signature"];

    /// The headers, if each is there and not too long to travel with the delivery.
    pub fn from_values(values: [Option<&str>; 3]) -> Option<Self> {
        let [id, timestamp, signature] = values;
        let fits =
            |value: &&str, max: usize| !value.is_empty() && value.len() <= max && value.is_ascii();
        Some(Self {
            id: id
                .filter(|id| fits(id, limits::WEBHOOK_ID_OCTETS))?
                .to_owned(),
            timestamp: timestamp
                .filter(|timestamp| fits(timestamp, limits::WEBHOOK_TIMESTAMP_OCTETS))?
                .to_owned(),
            signature: signature
                .filter(|signature| fits(signature, limits::WEBHOOK_SIGNATURE_OCTETS))?
                .to_owned(),
        })
    }
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
    /// The same in every retry of a delivery (R-72).
    pub id: String,
    pub sender: String,
    pub content: String,
    /// Structured content beside the text (R-76): A2A parts, unchanged.
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

wire_object! {
    /// A message of a channel that a service delivers to an agent. Further fields are ignored.
    DeliveryBody as "ChannelDelivery", allows unknown, example r#"{
        "channel": {"id": "C04ABCDEF", "name": "general", "service": "Slack", "context": "Where the team talks."},
        "message": {"id": "msg_1", "sender": "alice", "content": "hello"},
        "callback": "https://service.example.com/channels/C04ABCDEF/inbox/tok_1"}"# => {
        /// The channel.
        required channel: DeliveredChannel = FieldCheck::Object(DeliveredChannel::SHAPE);
        /// The message.
        required message: DeliveredMessage = FieldCheck::Object(DeliveredMessage::SHAPE);
        /// The complete URL for answers. It is a secret: it allows its holder to post.
        required callback: Secret = FieldCheck::Grammar(&CALLBACK_URL);
        /// The MCP server of the channel, to be passed to an MCP client unchanged.
        nullable mcp: DeliveredMcp = FieldCheck::Object(DeliveredMcp::SHAPE);
    }
}

wire_object! {
    /// The channel of a delivery.
    DeliveredChannel, allows unknown => {
        /// Never changes: agents store what they remember of the channel under it.
        required id: String = any_text(1);
        /// What people call it.
        nullable name: String = any_text(0);
        /// The service that it belongs to.
        nullable service: String = any_text(0);
        /// What it is for.
        nullable context: String = any_text(0);
    }
}

wire_object! {
    /// The message of a delivery.
    DeliveredMessage, allows unknown => {
        /// The same in every retry of the delivery.
        required id: String = any_text(1);
        /// Who wrote it.
        required sender: String = any_text(0);
        /// The text.
        required content: String = any_text(0);
        /// Structured content beside the text.
        nullable parts: RawJson = FieldCheck::AnyValue;
    }
}

wire_object! {
    /// The MCP server of a channel.
    DeliveredMcp, allows unknown => {
        /// The URL of the server.
        required url: String = any_text(0);
        /// The headers to send with every request.
        nullable headers: BTreeMap<String, Secret> = FieldCheck::MapOf(&HEADER_CHECK);
    }
}

const HEADER_CHECK: FieldCheck = any_text(0);

/// At least `min` characters; the size of the whole delivery is limited.
const fn any_text(min: usize) -> FieldCheck {
    FieldCheck::Text {
        min,
        max: limits::DELIVERY_CHARS,
        unit: LengthUnit::Characters,
        refused: RefusedCharacters::None,
    }
}

/// Where the hub's own fields begin in the data of a `channel` event.
pub const HUB_FIELDS_START: &str = r#","origin":"#;

/// The fields that the hub writes. What a service sends under these names is dropped.
pub const HUB_FIELDS: [&str; 3] = ["origin", "webhook_headers", "signed_body"];

impl ChannelDelivery {
    /// Parses a delivery of any service. `null` in an optional field counts as absent: many services write it so.
    pub fn parse(body: &[u8]) -> Result<Self> {
        let characters = String::from_utf8_lossy(body).chars().count();
        if characters > limits::DELIVERY_CHARS {
            return Err(Error::new(
                ErrorCode::TooLarge,
                format!(
                    "a delivery has at most {} characters",
                    limits::DELIVERY_CHARS
                ),
            ));
        }
        let delivery: DeliveryBody = contract::parse_body(body)?;
        let DeliveredChannel {
            id,
            name,
            service,
            context,
        } = delivery.channel;
        Ok(Self {
            channel: ChannelInfo {
                id,
                name,
                service,
                context,
            },
            message: ChannelMessage {
                id: delivery.message.id,
                sender: delivery.message.sender,
                content: delivery.message.content,
                parts: delivery.message.parts.map(|parts| parts.0),
            },
            callback: delivery.callback,
            mcp: delivery.mcp.map(|mcp| ChannelMcp {
                url: mcp.url,
                headers: mcp.headers,
            }),
            backlog: Vec::new(),
            origin: None,
            webhook_headers: None,
            signed_body: None,
        })
    }

    /// The body as the service wrote and signed it, out of the data of a `channel` event. The hub appends its own fields, the
    /// first of which is `origin`; quotes in later values are escaped, so its last occurrence is the hub's.
    pub fn cut_signed_body(event_data: &str) -> Option<String> {
        let end = event_data.rfind(HUB_FIELDS_START)?;
        Some(format!("{}}}", &event_data[..end]))
    }

    /// The origin of the service that sends this delivery: that of its callback, to which answers go. Two services may use the
    /// same channel id, so an agent tells their channels apart by origin and id.
    pub fn service_origin(&self) -> Option<String> {
        let callback = url::Url::parse(self.callback.expose()).ok()?;
        Some(callback.origin().ascii_serialization())
    }
}
