//! The `since` argument of tools: a number or the same digits as text, because models write both.

use chorus_wire::contract::{
    CheckedValue, ContractFault, CustomCheck, FieldCheck, FromNode, JsonNode,
};
use chorus_wire::cursor::HistoryStart;
use chorus_wire::{limits, time::UnixMicros};
use serde::Serialize;
use serde_json::{Value, json};

/// The id of an event or a history row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SinceId(pub u64);

impl SinceId {
    pub const CHECK: FieldCheck = FieldCheck::Custom(&CustomCheck {
        find_fault: |value| {
            find_since_fault::<Self>(value, "an id that was returned before, digits only")
        },
        schema: |_| since_schema(),
        nested: &[],
    });
}

impl FromNode for SinceId {
    fn from_node(node: Option<&JsonNode<'_>>) -> Option<Self> {
        let node = node?;
        let id = match node.as_text() {
            Some(text) if text.bytes().all(|b| b.is_ascii_digit()) => text.parse().ok(),
            Some(_) => None,
            None => node.as_u64(),
        };
        id.filter(|id| *id <= limits::SAFE_INTEGER_MAX).map(Self)
    }
}

/// An id, or an RFC 3339 instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum SincePoint {
    Id(SinceId),
    Time(UnixMicros),
}

impl SincePoint {
    pub const CHECK: FieldCheck = FieldCheck::Custom(&CustomCheck {
        find_fault: |value| {
            find_since_fault::<Self>(value, "an id (digits only) or an RFC 3339 instant")
        },
        schema: |_| since_schema(),
        nested: &[],
    });

    pub fn to_history_start(self) -> HistoryStart {
        match self {
            Self::Id(SinceId(id)) => HistoryStart::AfterId(id),
            Self::Time(instant) => HistoryStart::FromTime(instant),
        }
    }
}

impl FromNode for SincePoint {
    fn from_node(node: Option<&JsonNode<'_>>) -> Option<Self> {
        let instant = node?.as_text().and_then(UnixMicros::parse);
        match instant {
            Some(instant) => Some(Self::Time(instant)),
            None => SinceId::from_node(node).map(Self::Id),
        }
    }
}

fn find_since_fault<T: FromNode>(
    value: &CheckedValue<'_, '_>,
    requirement: &str,
) -> Option<ContractFault> {
    match T::from_node(Some(value.node)) {
        Some(_) => None,
        None => Some(ContractFault::invalid("", requirement)),
    }
}

fn since_schema() -> Value {
    json!({"type": ["integer", "string"]})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse<T: FromNode>(json: &str) -> Option<T> {
        T::from_node(Some(&JsonNode::parse(json).unwrap()))
    }

    ///
    #[test]
    fn since_is_a_number_or_its_digits() {
        for five in ["5", "5.0", "\"5\""] {
            assert_eq!(parse(five), Some(SinceId(5)), "{five}");
            assert_eq!(parse(five), Some(SincePoint::Id(SinceId(5))), "{five}");
        }
        assert_eq!(
            parse("\"1970-01-01T00:00:00Z\""),
            Some(SincePoint::Time(UnixMicros(0)))
        );
        let bad = [
            "\"\"",
            "\"x\"",
            "\"-1\"",
            "-1",
            "1.5",
            "\"1e3\"",
            "\"2026-01-01\"",
            "true",
            "9007199254740992",
        ];
        for bad in bad {
            assert_eq!(parse::<SinceId>(bad), None, "{bad}");
            assert_eq!(parse::<SincePoint>(bad), None, "{bad}");
        }
    }
}
