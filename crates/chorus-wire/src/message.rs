//! Messages: the send request, its delivery outcome, and the rows of history and inbox (TRN-13…27, R-22, R-30).

use crate::{
    Error, Result, envelope::Envelope, identity::AgentName, json, limits, time::UnixMicros,
};
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, value::RawValue};
use std::{borrow::Cow, fmt};
use utoipa::ToSchema;
use uuid::Uuid;

/// The media type that marks a Chorus envelope inside an A2A message.
pub const A2A_MEDIA_TYPE: &str = "application/vnd.chorus.envelope+json";

/// The checked body of `POST /messages`.
#[derive(Debug)]
pub struct SendRequest {
    pub receiver: AgentName,
    pub envelope: Envelope,
    /// The A2A message around the envelope, exactly as sent; a webhook receives it.
    pub a2a_message: Option<String>,
    pub stream: bool,
}

impl SendRequest {
    pub fn parse(body: &[u8]) -> Result<Self> {
        let fields: SendRequestFields<'_> = serde_json::from_str(json::decode_utf8(body)?)
            .map_err(|e| json::map_serde_error(&e))?;
        let missing = |field: &str| Error::validation(format!("{field} is required"));
        let receiver_id = fields.receiver_id.ok_or_else(|| missing("receiver_id"))?;
        let envelope = fields.envelope.ok_or_else(|| missing("envelope"))?;
        let receiver = AgentName::parse("receiver_id", &receiver_id)?;
        let (envelope, a2a_message) = unwrap_a2a(envelope.get())?;
        // Only a long text can exceed it, and only if JSON escapes its characters, such as control characters.
        if envelope.original_text().len() > limits::ORIGINAL_TEXT_CHARS / 2 {
            let characters = envelope.to_json().chars().count();
            if characters > limits::ENVELOPE_CHARS {
                return Err(Error::validation(format!(
                    "envelope is longer than {} characters as JSON",
                    limits::ENVELOPE_CHARS
                )));
            }
        }
        Ok(Self {
            receiver,
            envelope,
            a2a_message,
            stream: fields.stream.unwrap_or(false),
        })
    }
}

/// Parses a bare envelope, or the one inside an A2A message.
fn unwrap_a2a(text: &str) -> Result<(Envelope, Option<String>)> {
    let envelope_error = match Envelope::parse(text) {
        Ok(envelope) => return Ok((envelope, None)),
        Err(error) => error,
    };
    let Ok(Value::Object(message)) = json::parse_value(text) else {
        return Err(envelope_error);
    };
    let Some(Value::Array(parts)) = message.get("parts") else {
        return Err(envelope_error);
    };
    let mut matching = parts.iter().filter(|part| {
        let has_envelope_type = |holder: &Value| {
            holder.get("mediaType").and_then(Value::as_str) == Some(A2A_MEDIA_TYPE)
        };
        has_envelope_type(part) || part.get("metadata").is_some_and(has_envelope_type)
    });
    let (Some(part), None) = (matching.next(), matching.next()) else {
        return Err(Error::validation(format!(
            "an A2A message must have exactly one data part of type {A2A_MEDIA_TYPE}"
        )));
    };
    let data = part
        .get("data")
        .ok_or_else(|| Error::validation("the A2A part with the envelope has no data"))?;
    let envelope = Envelope::parse(&data.to_string())?;
    // Forwarded byte for byte: number formats and key order may matter to the receiver.
    Ok((envelope, Some(text.to_owned())))
}

#[derive(Default)]
struct SendRequestFields<'a> {
    receiver_id: Option<Cow<'a, str>>,
    envelope: Option<&'a RawValue>,
    stream: Option<bool>,
}

impl<'de> Deserialize<'de> for SendRequestFields<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        struct SendRequestVisitor;
        impl<'de> Visitor<'de> for SendRequestVisitor {
            type Value = SendRequestFields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the body to be a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> std::result::Result<SendRequestFields<'de>, A::Error> {
                let mut fields = SendRequestFields::default();
                while let Some(key) = map.next_key::<Cow<'de, str>>()? {
                    let is_duplicate = match key.as_ref() {
                        "receiver_id" => fields
                            .receiver_id
                            .replace(parse_typed(map.next_value()?, "receiver_id", "a string")?)
                            .is_some(),
                        "envelope" => fields.envelope.replace(map.next_value()?).is_some(),
                        "stream" => fields
                            .stream
                            .replace(parse_typed(map.next_value()?, "stream", "true or false")?)
                            .is_some(),
                        other => {
                            return Err(de::Error::custom(format!(
                                "{other} is not a field of this request"
                            )));
                        }
                    };
                    if is_duplicate {
                        return Err(de::Error::custom(format!("{key} is given twice")));
                    }
                }
                Ok(fields)
            }
        }
        from.deserialize_map(SendRequestVisitor)
    }
}

/// Parses `raw` as a `T`; the error names the field. `requirement` completes the sentence “it must be …”.
fn parse_typed<'a, T: Deserialize<'a>, E: de::Error>(
    raw: &'a RawValue,
    field: &str,
    requirement: &str,
) -> std::result::Result<T, E> {
    serde_json::from_str(raw.get()).map_err(|_| E::custom(format!("{field} must be {requirement}")))
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

    /// The body of `POST /agent/messages/{trace_id}/response`.
    pub fn parse(body: &[u8]) -> Result<Self> {
        let mut fields = json::parse_object(json::decode_utf8(body)?)?;
        let status = fields.required_string("status")?;
        let error_code = fields.optional_label("error_code", limits::CONVERSATION_ID_CHARS)?;
        let detail = fields.optional_label("detail", limits::DETAIL_CHARS)?;
        fields.reject_unknown()?;
        match (status.as_str(), &error_code) {
            ("ok", None) if detail.is_none() => {}
            ("ok", Some(_) | None) => {
                return Err(Error::validation(
                    "a reply with status \"ok\" has no other field",
                ));
            }
            ("error", Some(_)) => {}
            ("error", None) => {
                return Err(Error::validation(
                    "error_code is required when status is \"error\"",
                ));
            }
            (_, Some(_) | None) => {
                return Err(Error::validation("status must be \"ok\" or \"error\""));
            }
        }
        Ok(Self {
            status,
            error_code,
            detail,
        })
    }

    /// Whether an endpoint's answer is an acknowledgement of the protocol; extra fields are allowed.
    pub fn is_protocol_reply(value: &Value) -> bool {
        match value.get("status").and_then(Value::as_str) {
            Some("ok") => true,
            Some("error") => value.get("error_code").is_some_and(Value::is_string),
            Some(_) | None => false,
        }
    }
}

/// The outcome of an accepted send. A rejected send is a 4xx error instead.
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

/// `data` of a send: the documented keys first, then `trace_id`.
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

/// The first delivery of a message (lesson 4).
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

/// The data of a `receipt` event on the sender's inbox: the receiver's acknowledgement.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ReceiptEvent {
    pub trace_id: Uuid,
    pub receiver_id: String,
    pub response: ReceiverReply,
    #[schema(value_type = String, format = DateTime)]
    pub timestamp: UnixMicros,
}

/// The state of a message: `data` of `GET /messages/{trace_id}`.
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
