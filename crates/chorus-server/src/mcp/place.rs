//! Where to go on from, as a number or as the same digits in quotes: models write both.

use super::refusal::Refusal;
use chorus_hub::envelope::Since;
use chorus_wire::{limits, time::Micros};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use std::borrow::Cow;

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Place {
    Id(u64),
    Text(String),
}

impl JsonSchema for Place {
    fn schema_name() -> Cow<'static, str> {
        "Place".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["integer", "string"], "minimum": 0, "maximum": limits::WHOLE_NUMBER})
    }
}

impl Place {
    /// The id of an event or a line.
    pub fn id(&self) -> Result<u64, Refusal> {
        let wrong = || {
            Refusal::argument(
                "since",
                "it must be an id that was returned before, digits only",
            )
        };
        match self {
            Self::Id(id) => Ok(*id),
            Self::Text(text) if text.bytes().all(|b| b.is_ascii_digit()) => {
                text.parse().map_err(|_| wrong())
            }
            Self::Text(_) => Err(wrong()),
        }
    }

    /// The same, or an instant.
    pub fn since(&self) -> Result<Since, Refusal> {
        let instant = match self {
            Self::Id(_) => None,
            Self::Text(text) => Micros::parse(text).map(Since::Instant),
        };
        let wrong = || {
            Refusal::argument(
                "since",
                "it must be an id (digits only) or an RFC 3339 instant",
            )
        };
        instant.map_or_else(|| self.id().map(Since::Id).map_err(|_| wrong()), Ok)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    ///
    #[test]
    fn a_place_is_read_as_a_number_and_as_its_digits() {
        let text = |text: &str| Place::Text(text.into());
        assert_eq!(
            (Place::Id(5).id().unwrap(), text("5").id().unwrap()),
            (5, 5)
        );
        assert_eq!(text("5").since().unwrap(), Since::Id(5));
        assert_eq!(
            text("1970-01-01T00:00:00Z").since().unwrap(),
            Since::Instant(Micros(0))
        );
        for bad in ["", "x", "-1", "1e3", "2026-01-01"] {
            assert!(
                text(bad).id().is_err() && text(bad).since().is_err(),
                "{bad}"
            );
        }
    }
}
