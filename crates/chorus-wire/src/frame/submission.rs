//! The body of `POST /frames`: a frame and its scope (R-41, R-53).

use super::Frame;
use super::error::{FrameCode, FrameError};
use super::json_tree::{JsonNode, KeyVisitor, clip_key, find_duplicate_key};
use super::scope::{self, FrameScope};
use crate::{limits, time::UnixMicros};
use serde::de::{self, DeserializeSeed, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::{borrow::Cow, fmt};

/// A well-formed frame with its scope. Errors of the scope are reported after those of the sender's identity (R-44).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameSubmission {
    pub frame: Frame,
    scope: Result<FrameScope, FrameError>,
}

impl FrameSubmission {
    /// Checks everything except the plausibility of `created_at`.
    pub fn parse(body: &[u8]) -> Result<Self, FrameError> {
        Self::parse_body(body, None)
    }

    /// Also checks `created_at` against the hub's clock, in the order of R-44.
    pub fn parse_at(body: &[u8], now: UnixMicros) -> Result<Self, FrameError> {
        Self::parse_body(body, Some(now))
    }

    /// The scope; by default the recipient's handle (R-41). It is an error if the scope is malformed or addresses another
    /// handle than `recipient_handle` (FRM-57). Call it after the check of the sender's identity.
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

    /// Formats the body that a sender posts.
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
        let fields: SubmissionFields<'_> = {
            let mut from = serde_json::Deserializer::from_str(text);
            let fields = SubmissionVisitor.deserialize(&mut from);
            fields
                .and_then(|fields| from.end().map(|()| fields))
                .map_err(FrameError::invalid_json)?
        };
        let unknown_keys = fields.unknown_keys()?;
        let prefer_unknown = |error: FrameError| match unknown_keys.first() {
            Some(key) => FrameError::unknown_field(key.clone()),
            None => error,
        };
        let scope = fields
            .scope
            .map(|text| JsonNode::parse(text.get(), 1))
            .transpose()?;
        let text = fields
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
        let frame = Frame::from_object(text, object, &unknown_keys, now)?;
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

/// The values of the body as raw text; receivers get the raw text of the frame.
#[derive(Default)]
struct SubmissionFields<'a> {
    scope: Option<&'a RawValue>,
    frame: Option<&'a RawValue>,
    others: Vec<(Cow<'a, str>, &'a RawValue)>,
}

impl SubmissionFields<'_> {
    /// The unknown keys, after a check that their values are valid JSON.
    fn unknown_keys(&self) -> Result<Vec<String>, FrameError> {
        let check_value = |(key, value): &(Cow<'_, str>, &RawValue)| {
            JsonNode::parse(value.get(), 1).map(|_| clip_key(key).to_owned())
        };
        self.others.iter().map(check_value).collect()
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
        let mut fields = SubmissionFields::default();
        while let Some(key) = map.next_key_seed(KeyVisitor)? {
            let value: &'de RawValue = map.next_value()?;
            let is_duplicate = match key.as_ref() {
                "scope" => fields.scope.replace(value).is_some(),
                "frame" => fields.frame.replace(value).is_some(),
                _ => {
                    fields.others.push((key, value));
                    false
                }
            };
            if is_duplicate {
                return Err(de::Error::custom("scope or frame is given twice"));
            }
        }
        match find_duplicate_key(&fields.others) {
            Some(key) => Err(de::Error::custom(format_args!(
                "{} is given twice",
                clip_key(key)
            ))),
            None => Ok(fields),
        }
    }
}
