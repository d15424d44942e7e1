//! The body of `POST /frames`: a frame and the scope it is for (R-41, R-53).

use super::Frame;
use super::error::{FrameCode, FrameError};
use super::read::{Key, Node, clipped, doubled};
use super::scope::{self, Scope};
use crate::{limits, time::Micros};
use serde::de::{self, DeserializeSeed, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::{borrow::Cow, fmt};

/// A frame that is well-formed, with the scope that came beside it, which is judged after the sender's identity (R-44).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submission {
    pub frame: Frame,
    scope: Result<Scope, FrameError>,
}

impl Submission {
    /// Everything but the plausibility of `created_at`.
    pub fn parse(body: &[u8]) -> Result<Self, FrameError> {
        Self::read(body, None)
    }

    /// With `created_at` held against the hub's clock, at its place among the faults.
    pub fn parse_at(body: &[u8], now: Micros) -> Result<Self, FrameError> {
        Self::read(body, Some(now))
    }

    /// The scope, or whose fault it is: malformed, or naming another than `recipient_handle` (FRM-57). To be asked after
    /// the sender's identity is known to be right. Absent, it is the recipient's handle (R-41).
    pub fn scope(&self) -> Result<&Scope, FrameError> {
        let scope = self.scope.as_ref().map_err(Clone::clone)?;
        if scope.names() == &self.frame.recipient_handle {
            return Ok(scope);
        }
        let message = format!(
            "the scope names {}, recipient_handle another",
            scope.names()
        );
        Err(FrameError::at(
            FrameCode::ScopeUnauthorised,
            "scope",
            message,
        ))
    }

    /// The text of a submission, for senders.
    pub fn print(scope: Option<&Scope>, frame: &Frame) -> String {
        match scope {
            Some(scope) => format!(r#"{{"scope":"{scope}","frame":{}}}"#, frame.text()),
            None => format!(r#"{{"frame":{}}}"#, frame.text()),
        }
    }

    fn read(body: &[u8], now: Option<Micros>) -> Result<Self, FrameError> {
        if body.len() > limits::SUBMISSION_BYTES {
            return Err(FrameError::too_large());
        }
        let text = std::str::from_utf8(body).map_err(|_| FrameError::json("it is not UTF-8"))?;
        let pieces: Pieces<'_> = {
            let mut from = serde_json::Deserializer::from_str(text);
            let pieces = Body.deserialize(&mut from);
            pieces
                .and_then(|pieces| from.end().map(|()| pieces))
                .map_err(FrameError::json)?
        };
        let unknown = pieces.unknown()?;
        let alone = |error: FrameError| match unknown.first() {
            Some(key) => FrameError::unknown(key.clone()),
            None => error,
        };
        let scope = pieces
            .scope
            .map(|text| Node::read(text.get(), 1))
            .transpose()?;
        let text = pieces
            .frame
            .ok_or_else(|| alone(FrameError::missing("frame")))?
            .get();
        if text.len() > limits::FRAME_BYTES {
            return Err(FrameError::too_large());
        }
        let node = Node::read(text, 1)?;
        let object = node
            .object()
            .ok_or_else(|| alone(FrameError::invalid("frame", "an object")))?;
        let frame = Frame::of(text, object, &unknown, now)?;
        let scope = match scope {
            Some(node) => node
                .text()
                .and_then(Scope::parse)
                .ok_or_else(|| FrameError::invalid("scope", scope::MUST)),
            None => Ok(Scope::Handle(frame.recipient_handle.clone())),
        };
        Ok(Self { frame, scope })
    }
}

/// The values of the body as texts: the frame's is what subscribers will get.
#[derive(Default)]
struct Pieces<'a> {
    scope: Option<&'a RawValue>,
    frame: Option<&'a RawValue>,
    others: Vec<(Cow<'a, str>, &'a RawValue)>,
}

impl Pieces<'_> {
    /// The keys that nobody knows, once what they hold is known to be JSON.
    fn unknown(&self) -> Result<Vec<String>, FrameError> {
        let read = |(key, value): &(Cow<'_, str>, &RawValue)| {
            Node::read(value.get(), 1).map(|_| clipped(key).to_owned())
        };
        self.others.iter().map(read).collect()
    }
}

struct Body;

impl<'de> DeserializeSeed<'de> for Body {
    type Value = Pieces<'de>;

    fn deserialize<D: de::Deserializer<'de>>(self, from: D) -> Result<Pieces<'de>, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Body {
    type Value = Pieces<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with scope and frame")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pieces<'de>, A::Error> {
        let mut pieces = Pieces::default();
        while let Some(key) = map.next_key_seed(Key)? {
            let value: &'de RawValue = map.next_value()?;
            let twice = match key.as_ref() {
                "scope" => pieces.scope.replace(value).is_some(),
                "frame" => pieces.frame.replace(value).is_some(),
                _ => {
                    pieces.others.push((key, value));
                    false
                }
            };
            if twice {
                return Err(de::Error::custom("scope or frame is given twice"));
            }
        }
        match doubled(&pieces.others) {
            Some(key) => Err(de::Error::custom(format_args!(
                "{} is given twice",
                clipped(key)
            ))),
            None => Ok(pieces),
        }
    }
}
