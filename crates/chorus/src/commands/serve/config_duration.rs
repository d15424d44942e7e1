//! A time in the options of `chorus serve`, such as `90d`.

use crate::commands::duration::parse_duration;
use serde::{Deserialize, Deserializer};
use std::str::FromStr;
use std::time::Duration;

/// `90d`, `12h`, `30m`, `10s` or `500ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigDuration(pub Duration);

impl FromStr for ConfigDuration {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse_duration(text).map(Self)
    }
}

impl<'de> Deserialize<'de> for ConfigDuration {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}
