//! The body of `POST /frames`: a frame and the scope it is for (R-41, R-53).

use super::Frame;
use super::error::{FrameCode, FrameError};
use super::json_tree::{JsonNode, KeyVisitor, clip_key, find_duplicate_key};
use super::scope::{self, FrameScope};
use crate::{limits, time::UnixMicros};
use serde::de::{self, DeserializeSeed, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::{borrow::Cow, fmt};

/// A frame that is well-formed, with the scope that came beside it, which is judged after the sender's identity (R-44).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameSubmission {
    pub frame: Frame,
    scope: Result<FrameScope, FrameError>,
}

impl FrameSubmission {
    /// Everything but the plausibility of `created_at`.
    pub fn parse(body: &[u8]) -> Result<Self, FrameError> {
        Self::parse_body(body, None)
    }

    /// With `created_at` held against the hub's clock, at its place among the faults.
    pub fn parse_at(body: &[u8], now: UnixMicros) -> Result<Self, FrameError> {
        Self::parse_body(body, Some(now))
    }

    /// The scope, or whose fault it is: malformed, or naming another than `recipient_handle` (FRM-57). To be asked after
    /// the sender's identity is known to be right. Absent, it is the recipient's handle (R-41).
    pub fn scope(&self) -> Result<&FrameScope, FrameError> {
        let scope = self.scope.as_ref().map_err(Clone::clone)?;
        if scope.addressed_handle() == &self.frame.recipient_handle {
            return Ok(scope);
        }
        let message = format!(
            "the scope names {}, recipient_handle another",
            scope.addressed_handle()
        );
        Err(FrameError::at_field(
            FrameCode::ScopeUnauthorised,
            "scope",
            message,
        ))
    }

    /// The text of a submission, for senders.
    pub fn format_json(scope: Option<&FrameScope>, frame: &Frame) -> String {
        match scope {
            Some(scope) => format!(
                r#"{{"scope":"{scope}","frame":{}}}"#,
                frame.submitted_json()
            ),
            None => format!(r#"{{"frame":{}}}"#, frame.submitted_json()),
        }
    }

    fn parse_body(body: &[u8], now: Option<UnixMicros>) -> Result<Self, FrameError> {
        if body.len() > limits::SUBMISSION_BYTES {
            return Err(FrameError::too_large());
        }
        let text =
            std::str::from_utf8(body).map_err(|_| FrameError::invalid_json("it is not UTF-8"))?;
        let pieces: SubmissionFields<'_> = {
            let mut from = serde_json::Deserializer::from_str(text);
            let pieces = SubmissionVisitor.deserialize(&mut from);
            pieces
                .and_then(|pieces| from.end().map(|()| pieces))
                .map_err(FrameError::invalid_json)?
        };
        let unknown = pieces.unknown_keys()?;
        let prefer_unknown = |error: FrameError| match unknown.first() {
            Some(key) => FrameError::unknown_field(key.clone()),
            None => error,
        };
        let scope = pieces
            .scope
            .map(|text| JsonNode::parse(text.get(), 1))
            .transpose()?;
        let text = pieces
            .frame
            .ok_or_else(|| prefer_unknown(FrameError::missing_field("frame")))?
            .get();
        if text.len() > limits::FRAME_BYTES {
            return Err(FrameError::too_large());
        }
        let node = JsonNode::parse(text, 1)?;
        let object = node
            .as_object()
            .ok_or_else(|| prefer_unknown(FrameError::invalid_field("frame", "an object")))?;
        let frame = Frame::from_object(text, object, &unknown, now)?;
        let scope = match scope {
            Some(node) => node
                .as_text()
                .and_then(FrameScope::parse)
                .ok_or_else(|| FrameError::invalid_field("scope", scope::SCOPE_REQUIREMENT)),
            None => Ok(FrameScope::Handle(frame.recipient_handle.clone())),
        };
        Ok(Self { frame, scope })
    }
}

/// The values of the body as texts: the frame's is what subscribers will get.
#[derive(Default)]
struct SubmissionFields<'a> {
    scope: Option<&'a RawValue>,
    frame: Option<&'a RawValue>,
    others: Vec<(Cow<'a, str>, &'a RawValue)>,
}

impl SubmissionFields<'_> {
    /// The keys that nobody knows, once what they hold is known to be JSON.
    fn unknown_keys(&self) -> Result<Vec<String>, FrameError> {
        let read = |(key, value): &(Cow<'_, str>, &RawValue)| {
            JsonNode::parse(value.get(), 1).map(|_| clip_key(key).to_owned())
        };
        self.others.iter().map(read).collect()
    }
}

struct SubmissionVisitor;

impl<'de> DeserializeSeed<'de> for SubmissionVisitor {
    type Value = SubmissionFields<'de>;

    fn deserialize<D: de::Deserializer<'de>>(
        self,
        from: D,
    ) -> Result<SubmissionFields<'de>, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for SubmissionVisitor {
    type Value = SubmissionFields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with scope and frame")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<SubmissionFields<'de>, A::Error> {
        let mut pieces = SubmissionFields::default();
        while let Some(key) = map.next_key_seed(KeyVisitor)? {
            let value: &'de RawValue = map.next_value()?;
            let is_duplicate = match key.as_ref() {
                "scope" => pieces.scope.replace(value).is_some(),
                "frame" => pieces.frame.replace(value).is_some(),
                _ => {
                    pieces.others.push((key, value));
                    false
                }
            };
            if is_duplicate {
                return Err(de::Error::custom("scope or frame is given twice"));
            }
        }
        match find_duplicate_key(&pieces.others) {
            Some(key) => Err(de::Error::custom(format_args!(
                "{} is given twice",
                clip_key(key)
            ))),
            None => Ok(pieces),
        }
    }
}
