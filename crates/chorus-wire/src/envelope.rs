//! The envelope: a message with its sender and culture, parsed strictly (ENV-01…23).

use crate::{CHORUS_VERSION, Error, Result, identity, identity::AgentAddress, json, limits};
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::{borrow::Cow, fmt};
use utoipa::ToSchema;

/// An unchecked envelope: every field may be absent, only the types are checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnvelopeDraft {
    pub chorus_version: Option<String>,
    pub sender_id: Option<String>,
    pub original_text: Option<String>,
    pub sender_culture: Option<String>,
    pub cultural_context: Option<String>,
    pub conversation_id: Option<String>,
    pub turn_number: Option<u64>,
}

/// An envelope that satisfies every rule. Only [`EnvelopeDraft::into_envelope`] makes one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Envelope {
    #[schema(example = "0.4")]
    chorus_version: String,
    sender_id: AgentAddress,
    original_text: String,
    #[schema(example = "zh-CN")]
    sender_culture: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    cultural_context: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    conversation_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn_number: Option<u64>,
}

impl Envelope {
    pub fn parse(text: &str) -> Result<Self> {
        serde_json::from_str::<EnvelopeDraft>(text)
            .map_err(|e| json::map_serde_error(&e))?
            .into_envelope()
    }

    pub fn sender_id(&self) -> &AgentAddress {
        &self.sender_id
    }

    pub fn original_text(&self) -> &str {
        &self.original_text
    }

    pub fn sender_culture(&self) -> &str {
        &self.sender_culture
    }

    pub fn cultural_context(&self) -> Option<&str> {
        self.cultural_context.as_deref()
    }

    pub fn conversation_id(&self) -> Option<&str> {
        self.conversation_id.as_deref()
    }

    pub fn turn_number(&self) -> Option<u64> {
        self.turn_number
    }

    /// The JSON on one line, as it is stored, streamed and forwarded.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

fn require_field(field: &str, value: Option<String>) -> Result<String> {
    value.ok_or_else(|| Error::validation(format!("envelope.{field} is required")))
}

/// Checks that `text` has `min` to `max` code points. There are never more code points than bytes, so most texts
/// need no counting.
fn check_length(field: &str, text: &str, min: usize, max: usize) -> Result<()> {
    let fits = if text.len() <= max && (min <= 1) {
        text.len() >= min
    } else {
        (min..=max).contains(&text.chars().count())
    };
    if fits {
        Ok(())
    } else {
        Err(Error::validation(format!(
            "envelope.{field} must be {min} to {max} characters long"
        )))
    }
}

impl EnvelopeDraft {
    /// Checks every rule; the error is the first one that is broken.
    pub fn into_envelope(self) -> Result<Envelope> {
        let chorus_version = require_field("chorus_version", self.chorus_version)?;
        let sender_id = require_field("sender_id", self.sender_id)?;
        let original_text = require_field("original_text", self.original_text)?;
        let sender_culture = require_field("sender_culture", self.sender_culture)?;
        if chorus_version != CHORUS_VERSION {
            return Err(Error::validation(format!(
                "envelope.chorus_version must be \"{CHORUS_VERSION}\""
            )));
        }
        let sender_id = AgentAddress::parse("envelope.sender_id", &sender_id)?;
        check_length(
            "original_text",
            &original_text,
            1,
            limits::ORIGINAL_TEXT_CHARS,
        )?;
        identity::check_culture_tag("envelope.sender_culture", &sender_culture)?;
        if let Some(context) = &self.cultural_context {
            let bounds = limits::CULTURAL_CONTEXT_CHARS;
            check_length("cultural_context", context, *bounds.start(), *bounds.end())?;
        }
        if let Some(id) = &self.conversation_id {
            check_length("conversation_id", id, 0, limits::CONVERSATION_ID_CHARS)?;
        }
        if self.turn_number == Some(0) {
            return Err(Error::validation(
                "envelope.turn_number must be a whole number of at least 1",
            ));
        }
        Ok(Envelope {
            chorus_version,
            sender_id,
            original_text,
            sender_culture,
            cultural_context: self.cultural_context,
            conversation_id: self.conversation_id,
            turn_number: self.turn_number,
        })
    }
}

/// Reads one text field of the draft: given once, a string, never null.
fn read_string_once<'de, A: MapAccess<'de>>(
    map: &mut A,
    field: &str,
    slot: &mut Option<String>,
) -> std::result::Result<(), A::Error> {
    if slot.is_some() {
        return Err(de::Error::custom(format!(
            "envelope.{field} is given twice"
        )));
    }
    let MaybeString(text) = map.next_value()?;
    let text =
        text.ok_or_else(|| de::Error::custom(format!("envelope.{field} must be a string")))?;
    *slot = Some(text);
    Ok(())
}

/// A string, or `None` for any other type, so that the error can name the field.
struct MaybeString(Option<String>);

impl<'de> Deserialize<'de> for MaybeString {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        struct MaybeStringVisitor;
        impl<'de> Visitor<'de> for MaybeStringVisitor {
            type Value = MaybeString;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_str<E>(self, v: &str) -> std::result::Result<MaybeString, E> {
                Ok(MaybeString(Some(v.to_owned())))
            }
            fn visit_string<E>(self, v: String) -> std::result::Result<MaybeString, E> {
                Ok(MaybeString(Some(v)))
            }
            fn visit_bool<E>(self, _: bool) -> std::result::Result<MaybeString, E> {
                Ok(MaybeString(None))
            }
            fn visit_i64<E>(self, _: i64) -> std::result::Result<MaybeString, E> {
                Ok(MaybeString(None))
            }
            fn visit_u64<E>(self, _: u64) -> std::result::Result<MaybeString, E> {
                Ok(MaybeString(None))
            }
            fn visit_f64<E>(self, _: f64) -> std::result::Result<MaybeString, E> {
                Ok(MaybeString(None))
            }
            fn visit_unit<E>(self) -> std::result::Result<MaybeString, E> {
                Ok(MaybeString(None))
            }
            fn visit_seq<A: de::SeqAccess<'de>>(
                self,
                mut seq: A,
            ) -> std::result::Result<MaybeString, A::Error> {
                while seq.next_element::<de::IgnoredAny>()?.is_some() {}
                Ok(MaybeString(None))
            }
            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> std::result::Result<MaybeString, A::Error> {
                while map
                    .next_entry::<de::IgnoredAny, de::IgnoredAny>()?
                    .is_some()
                {}
                Ok(MaybeString(None))
            }
        }
        from.deserialize_any(MaybeStringVisitor)
    }
}

/// A whole number of at least 1; `2.0` is the same JSON number as `2`.
fn parse_turn_number(number: &serde_json::Value) -> Option<u64> {
    let whole = |f: f64| (f.fract() == 0.0 && (1.0..9e15).contains(&f)).then_some(f as u64);
    number
        .as_u64()
        .or_else(|| number.as_f64().and_then(whole))
        .filter(|n| (1..=i64::MAX as u64).contains(n))
}

impl<'de> Deserialize<'de> for EnvelopeDraft {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        struct EnvelopeVisitor;
        impl<'de> Visitor<'de> for EnvelopeVisitor {
            type Value = EnvelopeDraft;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the envelope to be a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> std::result::Result<EnvelopeDraft, A::Error> {
                let mut draft = EnvelopeDraft::default();
                while let Some(key) = map.next_key::<Cow<'de, str>>()? {
                    match key.as_ref() {
                        field @ "chorus_version" => {
                            read_string_once(&mut map, field, &mut draft.chorus_version)?
                        }
                        field @ "sender_id" => {
                            read_string_once(&mut map, field, &mut draft.sender_id)?
                        }
                        field @ "original_text" => {
                            read_string_once(&mut map, field, &mut draft.original_text)?
                        }
                        field @ "sender_culture" => {
                            read_string_once(&mut map, field, &mut draft.sender_culture)?
                        }
                        field @ "cultural_context" => {
                            read_string_once(&mut map, field, &mut draft.cultural_context)?
                        }
                        field @ "conversation_id" => {
                            read_string_once(&mut map, field, &mut draft.conversation_id)?
                        }
                        "turn_number" if draft.turn_number.is_some() => {
                            return Err(de::Error::custom("envelope.turn_number is given twice"));
                        }
                        "turn_number" => {
                            let message =
                                "envelope.turn_number must be a whole number of at least 1";
                            let number = parse_turn_number(&map.next_value()?)
                                .ok_or_else(|| de::Error::custom(message))?;
                            draft.turn_number = Some(number);
                        }
                        other => {
                            return Err(de::Error::custom(format!(
                                "envelope.{other} is not a field of an envelope"
                            )));
                        }
                    }
                }
                Ok(draft)
            }
        }
        from.deserialize_map(EnvelopeVisitor)
    }
}

impl<'de> Deserialize<'de> for Envelope {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        EnvelopeDraft::deserialize(from)?
            .into_envelope()
            .map_err(|e| de::Error::custom(e.message))
    }
}
