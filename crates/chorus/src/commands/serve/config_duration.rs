//! A time in the options of `chorus serve`, such as `90d`.

use serde::{Deserialize, Deserializer};
use std::str::FromStr;
use std::time::Duration;

/// `90d`, `12h`, `30m`, `10s` or `500ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigDuration(pub Duration);

impl FromStr for ConfigDuration {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parse_error = || "a time looks like 90d, 12h, 30m, 10s or 500ms".to_owned();
        let unit = text
            .find(|c: char| !c.is_ascii_digit())
            .ok_or_else(parse_error)?;
        let count: u64 = text[..unit].parse().map_err(|_| parse_error())?;
        let millis: u64 = match &text[unit..] {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(parse_error()),
        };
        let millis = count
            .checked_mul(millis)
            .filter(|millis| *millis > 0)
            .ok_or_else(parse_error)?;
        Ok(Self(Duration::from_millis(millis)))
    }
}

impl<'de> Deserialize<'de> for ConfigDuration {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}
