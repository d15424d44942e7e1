//! The `since` argument of tools: a number or the same digits as text, because models write both.

use super::tool_error::ToolError;
use chorus_hub::envelope::HistoryStart;
use chorus_wire::{limits, time::UnixMicros};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use std::borrow::Cow;

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum SinceArg {
    Id(u64),
    Text(String),
}

impl JsonSchema for SinceArg {
    fn schema_name() -> Cow<'static, str> {
        "SinceArg".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["integer", "string"], "minimum": 0, "maximum": limits::SAFE_INTEGER_MAX})
    }
}

impl SinceArg {
    /// The id of an event or a history row.
    pub fn parse_id(&self) -> Result<u64, ToolError> {
        let argument_error = || {
            ToolError::invalid_argument(
                "since",
                "it must be an id that was returned before, digits only",
            )
        };
        match self {
            Self::Id(id) => Ok(*id),
            Self::Text(text) if text.bytes().all(|b| b.is_ascii_digit()) => {
                text.parse().map_err(|_| argument_error())
            }
            Self::Text(_) => Err(argument_error()),
        }
    }

    /// An id, or an RFC 3339 instant.
    pub fn parse_since(&self) -> Result<HistoryStart, ToolError> {
        let instant = match self {
            Self::Id(_) => None,
            Self::Text(text) => UnixMicros::parse(text).map(HistoryStart::FromTime),
        };
        let argument_error = || {
            ToolError::invalid_argument(
                "since",
                "it must be an id (digits only) or an RFC 3339 instant",
            )
        };
        instant.map_or_else(
            || {
                self.parse_id()
                    .map(HistoryStart::AfterId)
                    .map_err(|_| argument_error())
            },
            Ok,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    ///
    #[test]
    fn since_is_a_number_or_its_digits() {
        let text = |text: &str| SinceArg::Text(text.into());
        assert_eq!(
            (
                SinceArg::Id(5).parse_id().unwrap(),
                text("5").parse_id().unwrap()
            ),
            (5, 5)
        );
        assert_eq!(text("5").parse_since().unwrap(), HistoryStart::AfterId(5));
        assert_eq!(
            text("1970-01-01T00:00:00Z").parse_since().unwrap(),
            HistoryStart::FromTime(UnixMicros(0))
        );
        for bad in ["", "x", "-1", "1e3", "2026-01-01"] {
            assert!(
                text(bad).parse_id().is_err() && text(bad).parse_since().is_err(),
                "{bad}"
            );
        }
    }
}
