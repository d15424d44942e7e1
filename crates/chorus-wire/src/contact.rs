//! Who may contact an agent: blocks, contacts and the setting `accept_from` (R-93).

use crate::contract::{self, FieldCheck, impl_from_text_node};
use crate::identity::{AgentName, is_address_part};
use crate::string_enum::string_enum;
use crate::time::UnixMicros;
use crate::{Error, Result, limits, wire_object};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

string_enum! {
    /// From whom an agent takes messages, invitations, jobs and frames.
    #[derive(Default, ToSchema)]
    AcceptFrom {
        /// From every agent that it has not blocked.
        #[default]
        Anyone "anyone",
        /// Only from its contacts.
        Contacts "contacts",
    }
}

impl_from_text_node!(AcceptFrom);

wire_object! {
    /// A change of an agent's settings.
    SettingsChange, refuses unknown, example r#"{"accept_from": "contacts"}"# => {
        /// From whom the agent takes messages, invitations, jobs and frames.
        required accept_from: AcceptFrom = FieldCheck::OneOf(AcceptFrom::TEXTS);
    }
}

impl SettingsChange {
    pub fn parse(body: &[u8]) -> Result<Self> {
        Ok(contract::parse_body(body)?)
    }
}

/// An agent's settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AgentSettings {
    pub accept_from: AcceptFrom,
}

/// What an agent blocks: another agent, or every agent under a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockTarget {
    Agent(AgentName),
    /// In lower case, without the `@`.
    Host(String),
}

impl BlockTarget {
    /// Parses `@host` or any name of an agent.
    pub fn parse(text: &str) -> Result<Self> {
        let Some(host) = text.strip_prefix('@') else {
            return AgentName::parse("name", text).map(Self::Agent);
        };
        if is_address_part(host) && host.len() <= limits::ADDRESS_CHARS {
            return Ok(Self::Host(host.to_ascii_lowercase()));
        }
        let message = "name must be a name of an agent, or @ and a host";
        Err(Error::invalid_field("name", message))
    }
}

/// A name that an agent has blocked.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct BlockedName {
    /// An agent, or `@` and a host.
    #[schema(example = "@elsewhere.example")]
    pub name: String,
    #[schema(value_type = String, format = DateTime)]
    pub blocked_at: UnixMicros,
}

/// An agent that another has added as its contact.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AgentContact {
    #[schema(example = "bob@chorus")]
    pub name: String,
    #[schema(value_type = String, format = DateTime)]
    pub added_at: UnixMicros,
}

/// A name was taken from a list; `removed` is false when it was not on it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct NameRemoved {
    pub name: String,
    pub removed: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R-93
    #[test]
    fn an_at_sign_in_front_names_a_host_in_any_letter_case() {
        assert_eq!(
            BlockTarget::parse("@Evil.Example").unwrap_or_else(|e| panic!("{e}")),
            BlockTarget::Host("evil.example".into())
        );
        for bad in [
            "@",
            "@a b",
            "@a@b",
            "a b",
            "",
            &format!("@{}", "x".repeat(129)),
        ] {
            assert!(BlockTarget::parse(bad).is_err(), "{bad}");
        }
    }
}
