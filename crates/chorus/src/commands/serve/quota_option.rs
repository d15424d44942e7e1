//! The option `--quota NAME=VALUE` of `chorus serve`.

use chorus_wire::usage::QuotaName;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::str::FromStr;

/// One quota and its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaOption {
    pub name: QuotaName,
    pub bound: u64,
}

impl FromStr for QuotaOption {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parse_error = || {
            let names = QuotaName::TEXTS.join(", ");
            format!("a quota is NAME=NUMBER, with a NAME of {names}")
        };
        let (name, bound) = text.split_once('=').ok_or_else(parse_error)?;
        Ok(Self {
            name: QuotaName::parse(name).ok_or_else(parse_error)?,
            bound: bound.parse().map_err(|_| parse_error())?,
        })
    }
}

/// The table `[quota]` of the configuration file.
pub fn quota_table<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<QuotaOption>, D::Error> {
    let table = BTreeMap::<String, u64>::deserialize(from)?;
    table
        .iter()
        .map(|(name, bound)| {
            format!("{name}={bound}")
                .parse()
                .map_err(serde::de::Error::custom)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    ///
    #[test]
    fn a_quota_is_a_known_name_and_a_number() {
        let quota: QuotaOption = "stored_bytes=1000".parse().unwrap();
        assert_eq!((quota.name, quota.bound), (QuotaName::StoredBytes, 1_000));
        assert_eq!("channels=0".parse::<QuotaOption>().unwrap().bound, 0);
        for bad in [
            "",
            "channels",
            "channels=",
            "rooms=1",
            "channels=-1",
            "channels=1k",
        ] {
            let said = bad.parse::<QuotaOption>().unwrap_err();
            assert!(said.contains("open_jobs"), "{bad}: {said}");
        }
    }
}
