//! The envelope: a message with its sender and culture, parsed strictly (ENV-01…23).

use crate::contract::{
    self, CheckContext, ContractFault, FieldCheck, FromNode, JsonNode, JsonObject, LengthUnit,
    ObjectShape, RefusedCharacters, WireObject, integer_between,
};
use crate::identity::{AgentAddress, CULTURE_TAG};
use crate::{CHORUS_VERSION, Result, limits, wire_object};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// An unchecked envelope that a sender fills in. [`EnvelopeDraft::into_envelope`] checks it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EnvelopeDraft {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chorus_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub original_text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender_culture: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cultural_context: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_number: Option<u64>,
}

impl EnvelopeDraft {
    /// Checks the fields exactly as the hub does.
    pub fn into_envelope(self) -> Result<Envelope> {
        Ok(self.check()?)
    }

    /// Like [`Self::into_envelope`], with the fault by its field.
    pub fn check(self) -> std::result::Result<Envelope, ContractFault> {
        let turn_number = self.turn_number.map(|number| number.to_string());
        let fields = [
            text_field("chorus_version", &self.chorus_version),
            text_field("sender_id", &self.sender_id),
            text_field("original_text", &self.original_text),
            text_field("sender_culture", &self.sender_culture),
            text_field("cultural_context", &self.cultural_context),
            text_field("conversation_id", &self.conversation_id),
            turn_number
                .as_deref()
                .map(|digits| ("turn_number".into(), JsonNode::from_digits(digits))),
        ];
        contract::parse_object(&JsonObject(fields.into_iter().flatten().collect()))
    }
}

fn text_field<'a>(
    name: &'static str,
    text: &'a Option<String>,
) -> Option<(Cow<'a, str>, JsonNode<'a>)> {
    let node = JsonNode::from_text(text.as_deref()?);
    Some((name.into(), node))
}

wire_object! {
    /// A message from one agent to another, with the culture it comes from.
    EnvelopeFields as "Envelope", refuses unknown, example r#"{
        "chorus_version": "0.4", "sender_id": "alice@chorus", "original_text": "請多指教", "sender_culture": "zh-TW",
        "cultural_context": "A polite phrase on first meeting; it asks for patience and guidance.",
        "conversation_id": "c-17", "turn_number": 1}"# => {
        /// The version of the envelope.
        required chorus_version: EnvelopeVersion = FieldCheck::OneOf(&[CHORUS_VERSION]);
        /// The address of the sender.
        required sender_id: AgentAddress = FieldCheck::Grammar(&AgentAddress::GRAMMAR);
        /// The message in the sender's own language and words.
        required original_text: String = any_characters(1, limits::ORIGINAL_TEXT_CHARS);
        /// The culture that the text comes from, as a BCP 47 language tag.
        required sender_culture: String = FieldCheck::Grammar(&CULTURE_TAG);
        /// Why it is phrased so, for a receiver of another culture.
        optional cultural_context: String = any_characters(*limits::CULTURAL_CONTEXT_CHARS.start(), *limits::CULTURAL_CONTEXT_CHARS.end());
        /// The same on every turn of a conversation.
        optional conversation_id: String = any_characters(0, limits::CONVERSATION_ID_CHARS);
        /// 1 on the first turn, one more on each further one.
        optional turn_number: u64 = integer_between(1, i64::MAX as u64);
    }
}

/// The only version that the hub accepts, so there is nothing to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnvelopeVersion;

impl FromNode for EnvelopeVersion {
    fn from_node(node: Option<&JsonNode<'_>>) -> Option<Self> {
        (node?.as_text()? == CHORUS_VERSION).then_some(Self)
    }
}

impl Serialize for EnvelopeVersion {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        to.serialize_str(CHORUS_VERSION)
    }
}

/// A text of `min` to `max` code points (R-20), NUL included: the log stores it escaped.
const fn any_characters(min: usize, max: usize) -> FieldCheck {
    FieldCheck::Text {
        min,
        max,
        unit: LengthUnit::Characters,
        refused: RefusedCharacters::None,
    }
}

/// About how many octets the JSON of an envelope has beside its two long texts.
const OTHER_FIELDS_BYTES: usize = 256;

/// An envelope that satisfies every rule. Only parsing makes one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Envelope(EnvelopeFields);

impl Envelope {
    pub fn parse(text: &str) -> Result<Self> {
        Ok(contract::parse_body(text.as_bytes()).map(Self)?)
    }

    /// The first fault of a parsed value.
    pub fn check_node(node: &JsonNode<'_>) -> Option<ContractFault> {
        match node.as_object() {
            Some(object) => {
                contract::check_object(Self::SHAPE, object, &CheckContext::default()).err()
            }
            None => Some(ContractFault::invalid("", "an object")),
        }
    }

    pub fn sender_id(&self) -> &AgentAddress {
        &self.0.sender_id
    }

    pub fn original_text(&self) -> &str {
        &self.0.original_text
    }

    pub fn sender_culture(&self) -> &str {
        &self.0.sender_culture
    }

    pub fn cultural_context(&self) -> Option<&str> {
        self.0.cultural_context.as_deref()
    }

    pub fn conversation_id(&self) -> Option<&str> {
        self.0.conversation_id.as_deref()
    }

    pub fn turn_number(&self) -> Option<u64> {
        self.0.turn_number
    }

    /// The JSON on one line, as it is stored, streamed and forwarded.
    pub fn to_json(&self) -> String {
        // Room for it all from the start: this runs for every message.
        let text_bytes = self.0.original_text.len();
        let context_bytes = self.0.cultural_context.as_ref().map_or(0, String::len);
        let mut json = Vec::with_capacity(text_bytes + context_bytes + OTHER_FIELDS_BYTES);
        match serde_json::to_writer(&mut json, self) {
            Ok(()) => String::from_utf8(json).unwrap_or_default(),
            Err(_) => String::new(),
        }
    }
}

impl WireObject for Envelope {
    const SHAPE: &'static ObjectShape = EnvelopeFields::SHAPE;

    fn from_object(object: &JsonObject<'_>) -> Option<Self> {
        EnvelopeFields::from_object(object).map(Self)
    }
}

crate::impl_to_schema!(Envelope);

impl FromNode for Envelope {
    fn from_node(node: Option<&JsonNode<'_>>) -> Option<Self> {
        EnvelopeFields::from_node(node).map(Self)
    }
}

impl<'de> Deserialize<'de> for Envelope {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(from)?;
        Self::parse(raw.get()).map_err(|e| de::Error::custom(e.message))
    }
}
