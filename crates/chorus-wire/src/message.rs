//! Messages: the send request, its delivery outcome, and the rows of history and inbox (TRN-13…27, R-22, R-30).

use crate::contract::{
    self, ContractFault, CustomCheck, FieldCheck, FromNode, JsonNode, ObjectRule, WireObject,
    characters,
};
use crate::{
    Result, envelope::Envelope, identity::AgentName, limits, time::UnixMicros, wire_object,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json, value::RawValue};
use utoipa::ToSchema;
use uuid::Uuid;

/// The media type that marks a Chorus envelope inside an A2A message.
pub const A2A_MEDIA_TYPE: &str = "application/vnd.chorus.envelope+json";

wire_object! {
    /// A message to another agent.
    SendBody as "SendRequest", refuses unknown, example r#"{
        "receiver_id": "bob@chorus",
        "envelope": {"chorus_version": "0.4", "sender_id": "alice@chorus", "original_text": "hello", "sender_culture": "en"}}"# => {
        /// Whom it is for: an address, a short name, a UUID or a handle.
        required receiver_id: AgentName = FieldCheck::Grammar(&AgentName::GRAMMAR);
        /// The envelope, or an A2A message with exactly one data part that is an envelope.
        required envelope: SentEnvelope = FieldCheck::Custom(&ENVELOPE_OR_A2A);
        /// Whether to answer with an event stream that follows the delivery.
        optional stream: bool = FieldCheck::Bool;
    }
}

/// The checked body of `POST /messages`.
#[derive(Debug)]
pub struct SendRequest {
    pub receiver: AgentName,
    pub envelope: Envelope,
    /// The A2A message around the envelope, exactly as sent; a webhook receives it (R-38).
    pub a2a_message: Option<String>,
    pub stream: bool,
}

impl SendRequest {
    pub fn parse(body: &[u8]) -> Result<Self> {
        let SendBody {
            receiver_id,
            envelope:
                SentEnvelope {
                    envelope,
                    a2a_message,
                },
            stream,
        } = contract::parse_body(body)?;
        // Only a long text can exceed it, and only if JSON escapes its characters, such as control characters.
        if envelope.original_text().len() > limits::ORIGINAL_TEXT_CHARS / 2 {
            let characters = envelope.to_json().chars().count();
            if characters > limits::ENVELOPE_CHARS {
                let sentence = format!(
                    "envelope is longer than {} characters as JSON",
                    limits::ENVELOPE_CHARS
                );
                return Err(ContractFault::explain("envelope", sentence).into());
            }
        }
        Ok(Self {
            receiver: receiver_id,
            envelope,
            a2a_message,
            stream: stream.unwrap_or(false),
        })
    }
}

/// An envelope as a client sends it: bare, or inside an A2A message (R-30).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SentEnvelope {
    #[serde(flatten)]
    pub envelope: Envelope,
    /// The A2A message around it, byte for byte: number formats and key order may matter to its receiver.
    #[serde(skip)]
    pub a2a_message: Option<String>,
}

const ENVELOPE_OR_A2A: CustomCheck = CustomCheck {
    find_fault: |value| match find_a2a_parts(value.node) {
        None => Envelope::check_node(value.node),
        Some(parts) => match find_envelope_part(parts) {
            Err(fault) => Some(fault),
            Ok(data) => Envelope::check_node(data),
        },
    },
    schema: |refs| {
        let envelope = contract::value_schema(&FieldCheck::Object(Envelope::SHAPE), refs);
        let marked = json!({"properties": {"mediaType": {"const": A2A_MEDIA_TYPE}}, "required": ["mediaType"]});
        let marked = json!({"anyOf": [marked, {"properties": {"metadata": marked}, "required": ["metadata"]}]});
        json!({"anyOf": [envelope, {
            "type": "object",
            "description": "An A2A message with exactly one data part that is an envelope.",
            "required": ["parts"],
            "properties": {"parts": {
                "type": "array",
                "contains": marked, "minContains": 1, "maxContains": 1,
                "items": {
                    "type": "object", "if": marked,
                    "then": {"required": ["data"], "properties": {"data": envelope}},
                },
            }},
        }]})
    },
    nested: &[Envelope::SHAPE],
};

/// The text of the envelope inside an A2A message of either generation (ENV-21); `None` for a bare envelope.
pub fn unwrap_a2a_message(text: &str) -> Result<Option<String>> {
    let root = contract::parse_root(text.as_bytes())?;
    match find_a2a_parts(&root) {
        None => Ok(None),
        Some(parts) => Ok(Some(find_envelope_part(parts)?.text.to_owned())),
    }
}

/// The parts of an A2A message; `None` for a bare envelope, which has no such field.
fn find_a2a_parts<'n, 'a>(node: &'n JsonNode<'a>) -> Option<&'n [JsonNode<'a>]> {
    node.as_object()?.get("parts")?.as_array()
}

/// The data of the one part that is an envelope.
fn find_envelope_part<'n, 'a>(
    parts: &'n [JsonNode<'a>],
) -> std::result::Result<&'n JsonNode<'a>, ContractFault> {
    fn is_envelope_type(holder: &JsonNode<'_>) -> bool {
        let media_type = holder
            .as_object()
            .and_then(|object| object.get("mediaType"));
        media_type.and_then(JsonNode::as_text) == Some(A2A_MEDIA_TYPE)
    }
    let is_marked = |part: &&JsonNode<'_>| {
        let metadata = part.as_object().and_then(|part| part.get("metadata"));
        is_envelope_type(part) || metadata.is_some_and(is_envelope_type)
    };
    let mut marked_parts = parts.iter().filter(is_marked);
    let (Some(part), None) = (marked_parts.next(), marked_parts.next()) else {
        let sentence =
            format!("an A2A message must have exactly one data part of type {A2A_MEDIA_TYPE}");
        return Err(ContractFault::explain("parts", sentence));
    };
    part.as_object()
        .and_then(|part| part.get("data"))
        .ok_or_else(|| {
            ContractFault::explain("parts", "the A2A part with the envelope has no data")
        })
}

impl FromNode for SentEnvelope {
    fn from_node(node: Option<&JsonNode<'_>>) -> Option<Self> {
        let node = node?;
        match find_a2a_parts(node) {
            None => Some(Self {
                envelope: Envelope::from_node(Some(node))?,
                a2a_message: None,
            }),
            Some(parts) => Some(Self {
                envelope: Envelope::from_node(Some(find_envelope_part(parts).ok()?))?,
                a2a_message: Some(node.text.to_owned()),
            }),
        }
    }
}

/// A receiver's acknowledgement of a message: `{"status":"ok"}`, or an error with its code (ENV-13, ENV-14).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReceiverReply {
    /// `ok` or `error`.
    pub status: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(example = "INVALID_ENVELOPE")]
    pub error_code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub detail: Option<String>,
}

impl ReceiverReply {
    pub fn ok() -> Self {
        Self {
            status: "ok".into(),
            error_code: None,
            detail: None,
        }
    }

    pub fn error(code: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            status: "error".into(),
            error_code: Some(code.into()),
            detail: Some(detail.into()),
        }
    }

    /// Parses the body of `POST /agent/messages/{trace_id}/response`.
    pub fn parse(body: &[u8]) -> Result<Self> {
        let request: ReceiverReplyRequest = contract::parse_body(body)?;
        Ok(Self {
            status: request.status,
            error_code: request.error_code,
            detail: request.detail,
        })
    }

    /// Whether an endpoint's answer is an acknowledgement of the protocol; extra fields are allowed (R-23).
    pub fn is_protocol_reply(value: &Value) -> bool {
        match value.get("status").and_then(Value::as_str) {
            Some("ok") => true,
            Some("error") => value.get("error_code").is_some_and(Value::is_string),
            Some(_) | None => false,
        }
    }
}

wire_object! {
    /// A receiver's acknowledgement of a message.
    ReceiverReplyRequest as "ReceiverReply", refuses unknown, rules [REPLY_RULE], example r#"{"status": "ok"}"# => {
        /// Whether the receiver accepts the message.
        required status: String = FieldCheck::OneOf(&["ok", "error"]);
        /// Why not; required when the status is error.
        optional error_code: String = characters(1, limits::CONVERSATION_ID_CHARS);
        /// More about the error.
        optional detail: String = characters(1, limits::DETAIL_CHARS);
    }
}

const REPLY_RULE: ObjectRule = ObjectRule {
    find_fault: |reply| {
        let is_ok = reply.get("status").and_then(JsonNode::as_text) == Some("ok");
        match (is_ok, reply.get("error_code"), reply.get("detail")) {
            (true, None, None) | (false, Some(_), _) => None,
            (true, Some(_), _) => Some(ContractFault::explain("error_code", OK_SENTENCE)),
            (true, None, Some(_)) => Some(ContractFault::explain("detail", OK_SENTENCE)),
            (false, None, _) => Some(ContractFault::explain(
                "error_code",
                "error_code is required when status is \"error\"",
            )),
        }
    },
    describe: |schema, _| {
        schema["oneOf"] = json!([
            {"properties": {"status": {"const": "ok"}, "error_code": false, "detail": false}, "required": ["status"]},
            {"properties": {"status": {"const": "error"}, "error_code": {}}, "required": ["status", "error_code"]},
        ]);
    },
};

const OK_SENTENCE: &str = "a reply with status \"ok\" has no other field";

/// The outcome of an accepted send (R-22). A rejected send is a 4xx error instead.
#[derive(Clone, Debug, PartialEq)]
pub enum DeliveryOutcome {
    /// Queued on a live stream that is draining.
    DeliveredSse,
    /// Posted to the receiver's endpoint, which answered.
    Delivered { receiver_response: Value },
    /// Stored; the receiver has no draining stream.
    Queued,
    /// The receiver's endpoint did not accept it.
    Failed { error_code: String, detail: String },
}

impl DeliveryOutcome {
    pub fn http_status(&self) -> u16 {
        match self {
            DeliveryOutcome::Queued => 202,
            DeliveryOutcome::DeliveredSse
            | DeliveryOutcome::Delivered { .. }
            | DeliveryOutcome::Failed { .. } => 200,
        }
    }

    pub fn as_str(&self) -> &'static str {
        match self {
            DeliveryOutcome::DeliveredSse => "delivered_sse",
            DeliveryOutcome::Delivered { .. } => "delivered",
            DeliveryOutcome::Queued => "queued",
            DeliveryOutcome::Failed { .. } => "failed",
        }
    }
}

/// `data` of a send: how the message was delivered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SendReply {
    /// `delivered_sse`, `delivered`, `queued` or `failed`.
    #[schema(example = "delivered_sse")]
    pub delivery: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub receiver_response: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error_code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub detail: Option<String>,
    // R-102: another hub may leave it out; then it is the nil UUID.
    #[serde(default)]
    #[schema(required = true)]
    pub trace_id: Uuid,
}

impl SendReply {
    pub fn new(delivery: &DeliveryOutcome, trace_id: Uuid) -> Self {
        let mut reply = Self {
            delivery: delivery.as_str().into(),
            receiver_response: None,
            error_code: None,
            detail: None,
            trace_id,
        };
        match delivery {
            DeliveryOutcome::DeliveredSse | DeliveryOutcome::Queued => {}
            DeliveryOutcome::Delivered { receiver_response } => {
                reply.receiver_response = Some(receiver_response.clone())
            }
            DeliveryOutcome::Failed { error_code, detail } => {
                reply.error_code = Some(error_code.clone());
                reply.detail = Some(detail.clone());
            }
        }
        reply
    }
}

/// How the message was first delivered (lesson 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum DeliveredVia {
    Sse,
    Webhook,
    Queued,
    Failed,
}

/// A row of `GET /agent/messages`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct HistoryRow {
    pub id: u64,
    pub trace_id: Uuid,
    pub sender_id: String,
    pub receiver_id: String,
    #[schema(value_type = Envelope)]
    pub envelope: Box<RawValue>,
    pub delivered_via: DeliveredVia,
    #[schema(value_type = String, format = DateTime)]
    pub timestamp: UnixMicros,
    /// When its text was first shown to the receiver.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub shown_at: Option<UnixMicros>,
}

/// A row of `GET /conversations`: what the messages of one page say of one conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConversationRow {
    /// The two agents, sorted by name. Both are the same when an agent writes to itself.
    #[schema(min_items = 2, max_items = 2, example = json!(["alice@chorus", "bob@chorus"]))]
    pub agents: Vec<String>,
    /// As the envelopes have it. Operators do not get it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub conversation_id: Option<String>,
    /// The id of the newest message.
    pub last_id: u64,
    #[schema(value_type = String, format = DateTime)]
    pub last_at: UnixMicros,
    pub last_sender_id: String,
    /// The beginning of its text. Operators do not get it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub last_text: Option<String>,
    /// How many messages of the conversation are on this page.
    pub messages: u64,
    /// How many of them could not be delivered.
    pub failed: u64,
    /// How many of them this agent received and neither was shown nor answered. Operators do not get it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unread: Option<u64>,
}

/// The data of a `message` event on the inbox.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct MessageEvent {
    pub trace_id: Uuid,
    pub sender_id: String,
    #[schema(value_type = Envelope)]
    pub envelope: Box<RawValue>,
    #[schema(value_type = String, format = DateTime)]
    pub timestamp: UnixMicros,
}

/// The data of a `receipt` event on the sender's inbox: the receiver's acknowledgement (R-34).
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ReceiptEvent {
    pub trace_id: Uuid,
    pub receiver_id: String,
    pub response: ReceiverReply,
    #[schema(value_type = String, format = DateTime)]
    pub timestamp: UnixMicros,
}

/// The data of a `shown` event on the sender's inbox: the text of its message was part of a model's turn or on a screen (R-81).
/// It implies no answer.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ShownEvent {
    pub trace_id: Uuid,
    pub receiver_id: String,
    #[schema(value_type = String, format = DateTime)]
    pub timestamp: UnixMicros,
}

/// The data of a `gap` event: events after the id `from`, up to the id `to`, were deleted by retention before this reader came
/// for them (R-25).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GapEvent {
    /// The reader's cursor.
    pub from: u64,
    /// The last deleted event; the stream goes on after it.
    pub to: u64,
}

/// The state of a message: `data` of `GET /messages/{trace_id}` (R-35).
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct MessageStatus {
    pub trace_id: Uuid,
    /// `queued`, `delivered`, `acknowledged` or `failed`.
    pub status: String,
    pub sender_id: String,
    pub receiver_id: String,
    pub delivered_via: DeliveredVia,
    #[schema(value_type = String, format = DateTime)]
    pub sent_at: UnixMicros,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub delivered_at: Option<UnixMicros>,
    /// When its text was first part of a model's turn or on a screen.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub shown_at: Option<UnixMicros>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub acknowledged_at: Option<UnixMicros>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub receiver_response: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error_code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub detail: Option<String>,
}
