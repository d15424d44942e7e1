//! Options in the configuration file that are texts there, and are parsed like their flags.

use serde::{Deserialize, Deserializer};
use std::str::FromStr;

/// One text or a list of them, each parsed.
pub fn text_list<'de, D, T>(from: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: std::fmt::Display>,
{
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "it is a list of texts")]
    enum TextList {
        One(String),
        Several(Vec<String>),
    }
    let given = match TextList::deserialize(from)? {
        TextList::One(text) => vec![text],
        TextList::Several(texts) => texts,
    };
    given
        .iter()
        .map(|text| text.parse().map_err(serde::de::Error::custom))
        .collect()
}

/// One text, parsed.
pub fn parsed_text<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: std::fmt::Display>,
{
    let text = String::deserialize(from)?;
    text.parse().map(Some).map_err(serde::de::Error::custom)
}
