//! An agent's names (address, handle, UUID, short name), distinguished by their syntax.

use crate::contract::{FromNode, JsonNode, TextGrammar};
use crate::{Error, Result, limits};
use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// `name@host`, both of `[a-zA-Z0-9._-]+` (ENV-23), at most 128 characters, case-sensitive.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(transparent)]
#[schema(value_type = String, example = "alice@chorus")]
pub struct AgentAddress(String);

impl AgentAddress {
    pub const GRAMMAR: TextGrammar = TextGrammar {
        accepts: |text| is_address(text) && text.len() <= limits::ADDRESS_CHARS,
        requirement: "an address of the form name@host, letters, digits, '.', '_' and '-' on both sides",
        pattern: "^[A-Za-z0-9._-]+@[A-Za-z0-9._-]+$",
        refused_pattern: None,
        max_chars: limits::ADDRESS_CHARS,
        format: None,
        example: "alice@chorus",
    };

    /// `field` is the field's name in errors.
    pub fn parse(field: &str, text: &str) -> Result<Self> {
        if !is_address(text) {
            return Err(Error::validation(format!(
                "{field} must be an address of the form name@host, letters, digits, '.', '_' and '-' on both sides"
            )));
        }
        if text.len() > limits::ADDRESS_CHARS {
            return Err(Error::validation(format!(
                "{field} is longer than {} characters",
                limits::ADDRESS_CHARS
            )));
        }
        Ok(Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn name(&self) -> &str {
        self.0.split_once('@').map_or("", |(name, _)| name)
    }

    pub fn host(&self) -> &str {
        self.0.split_once('@').map_or("", |(_, host)| host)
    }

    /// The handle that belongs to this address on its own hub, if the name fits the grammar of handles.
    pub fn local_handle(&self, server_host: &str) -> Option<Handle> {
        if self.host() == server_host {
            Handle::parse(&format!("~{}", self.name()))
        } else {
            None
        }
    }
}

impl fmt::Display for AgentAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_address(text: &str) -> bool {
    match text.split_once('@') {
        Some((name, host)) => is_address_part(name) && is_address_part(host),
        None => false,
    }
}

pub(crate) fn is_address_part(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

/// `~name`. Never case-folded, never trimmed; `~org` is reserved.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Handle(String);

impl Handle {
    pub const GRAMMAR: TextGrammar = TextGrammar {
        accepts: is_handle,
        requirement: "a handle such as ~alice, in lower case",
        pattern: "^~[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?$",
        refused_pattern: Some("^~org$"),
        max_chars: 33,
        format: None,
        example: "~alice",
    };

    pub fn parse(text: &str) -> Option<Self> {
        is_handle(text).then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it names a tool that acts for a person.
    pub fn is_instrument(&self) -> bool {
        self.0.starts_with("~cc-")
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_handle(text: &str) -> bool {
    let Some(name) = text.strip_prefix('~') else {
        return false;
    };
    let is_lower_or_digit = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = name.as_bytes();
    (1..=32).contains(&bytes.len())
        && bytes.iter().all(|b| is_lower_or_digit(*b) || *b == b'-')
        && is_lower_or_digit(bytes[0])
        && is_lower_or_digit(bytes[bytes.len() - 1])
        && name != "org"
}

/// Any name of an agent, classified by its syntax.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentName {
    Handle(Handle),
    /// A market id that is a UUID, hyphenated and in lower case.
    Uuid(uuid::Uuid),
    Address(AgentAddress),
    /// A short name (alias of `name@{server-host}`) or another opaque market id.
    Short(String),
}

impl AgentName {
    pub const GRAMMAR: TextGrammar = TextGrammar {
        accepts: |text| match (text.starts_with('~'), text.contains('@')) {
            (true, _) => is_handle(text),
            (false, true) => (AgentAddress::GRAMMAR.accepts)(text),
            // A UUID is such an id too.
            (false, false) => is_opaque_id(text),
        },
        requirement: "an address, a UUID, a handle or a short name",
        pattern: "^(?:~[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?|[A-Za-z0-9._-]+@[A-Za-z0-9._-]+|[A-Za-z0-9._:-]+)$",
        refused_pattern: Some("^~org$"),
        max_chars: limits::ADDRESS_CHARS,
        format: None,
        example: "bob@chorus",
    };

    pub fn parse(field: &str, text: &str) -> Result<Self> {
        let name = if text.starts_with('~') {
            Handle::parse(text).map(AgentName::Handle)
        } else if let Some(id) = parse_hyphenated_uuid(text) {
            Some(AgentName::Uuid(id))
        } else if text.contains('@') {
            return AgentAddress::parse(field, text).map(AgentName::Address);
        } else {
            is_opaque_id(text).then(|| AgentName::Short(text.to_owned()))
        };
        name.ok_or_else(|| {
            Error::validation(format!(
                "{field} is not an address, a UUID, a handle or a short name"
            ))
        })
    }

    /// The text of the name.
    pub fn to_text(&self) -> String {
        match self {
            AgentName::Handle(handle) => handle.as_str().to_owned(),
            AgentName::Uuid(id) => id.hyphenated().to_string(),
            AgentName::Address(address) => address.as_str().to_owned(),
            AgentName::Short(short) => short.clone(),
        }
    }

    /// The one text under which the name is stored, so that every spelling finds the same agent.
    pub fn canonical_text(&self, server_host: &str) -> String {
        match self {
            AgentName::Handle(handle) => handle.as_str().to_owned(),
            AgentName::Uuid(id) => id.hyphenated().to_string(),
            AgentName::Address(address) => address.as_str().to_owned(),
            AgentName::Short(short) if is_address_part(short) => format!("{short}@{server_host}"),
            AgentName::Short(opaque) => opaque.clone(),
        }
    }
}

/// Only the hyphenated form counts as a UUID: 32 bare hex digits may be a chosen short name.
fn parse_hyphenated_uuid(text: &str) -> Option<uuid::Uuid> {
    if text.len() == 36 {
        uuid::Uuid::try_parse(text).ok()
    } else {
        None
    }
}

fn is_opaque_id(text: &str) -> bool {
    (1..=128).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'-'))
}

/// The grammar of [`check_culture_tag`], with the four irregular tags that begin with a language.
pub const CULTURE_TAG: TextGrammar = TextGrammar {
    accepts: |tag| check_culture_tag("", tag).is_ok(),
    requirement: "a BCP 47 language tag such as en, ja or zh-CN",
    pattern: concat!(
        "^(?:[A-Za-z]{2,3}(?:-[A-Za-z]{3}){0,3}(?:-[A-Za-z]{4})?(?:-(?:[A-Za-z]{2}|[0-9]{3}))?",
        "(?:-(?:[A-Za-z0-9]{5,8}|[0-9][A-Za-z0-9]{3}))*(?:-[0-9A-WY-Za-wy-z](?:-[A-Za-z0-9]{2,8})+)*",
        "(?:-[xX](?:-[A-Za-z0-9]{1,8})+)?",
        "|[eE][nN]-[gG][bB]-[oO][eE][dD]|[sS][gG][nN]-[bB][eE]-[fF][rR]|[sS][gG][nN]-[bB][eE]-[nN][lL]",
        "|[sS][gG][nN]-[cC][hH]-[dD][eE])$"
    ),
    refused_pattern: None,
    max_chars: limits::CULTURE_CHARS,
    format: None,
    example: "zh-CN",
};

impl FromNode for AgentAddress {
    fn from_node(node: Option<&JsonNode<'_>>) -> Option<Self> {
        Self::parse("", node?.as_text()?).ok()
    }
}

impl Serialize for AgentName {
    fn serialize<S: serde::Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        to.serialize_str(&self.to_text())
    }
}

impl FromNode for AgentName {
    fn from_node(node: Option<&JsonNode<'_>>) -> Option<Self> {
        Self::parse("", node?.as_text()?).ok()
    }
}

/// Accepts a well-formed RFC 5646 tag whose language has two or three letters, in any letter case.
pub fn check_culture_tag(field: &str, tag: &str) -> Result<()> {
    let language = tag.split('-').next().unwrap_or_default();
    let is_tag = matches!(language.len(), 2 | 3)
        && language.bytes().all(|b| b.is_ascii_alphabetic())
        && tag.len() <= limits::CULTURE_CHARS
        && oxilangtag::LanguageTag::parse(tag).is_ok();
    if is_tag {
        Ok(())
    } else {
        Err(Error::validation(format!(
            "{field} must be a BCP 47 language tag such as en, ja or zh-CN"
        )))
    }
}

impl<'de> Deserialize<'de> for AgentAddress {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Self::parse("address", &text).map_err(|e| serde::de::Error::custom(e.message))
    }
}
