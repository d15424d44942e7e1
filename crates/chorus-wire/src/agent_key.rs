//! Further keys of an agent: what each may do, and the requests and replies about them (R-94).

use crate::contract::{self, FieldCheck, impl_from_text_node, integer_between, single_line};
use crate::secret::Secret;
use crate::string_enum::string_enum;
use crate::{Result, limits, time::UnixMicros, wire_object};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

string_enum! {
    /// What a key may do.
    #[derive(ToSchema)]
    KeyScope {
        /// Read messages: the inbox, the history, the state of a message.
        Read "read",
        /// Send messages and respond to them.
        Send "send",
        /// Frames, handles and organisations.
        Frames "frames",
        /// Channels and the connection string.
        Channels "channels",
        /// Skills, jobs and credits.
        Market "market",
        /// The agent itself: its keys, its registration, its end.
        Admin "admin",
    }
}

impl_from_text_node!(KeyScope);

impl KeyScope {
    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// A set of scopes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyScopes(u8);

impl KeyScopes {
    /// The scopes of a registration's key.
    pub const ALL: Self = Self((1 << KeyScope::ALL.len()) - 1);

    pub fn contains(self, scope: KeyScope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// The scopes in the order of [`KeyScope::ALL`].
    pub fn to_list(self) -> Vec<KeyScope> {
        let all = KeyScope::ALL.iter().copied();
        all.filter(|scope| self.contains(*scope)).collect()
    }

    /// The names with blanks between them.
    pub fn to_text(self) -> String {
        let names: Vec<&str> = self.to_list().into_iter().map(KeyScope::as_str).collect();
        names.join(" ")
    }

    /// Reads [`Self::to_text`]. A name that is not known grants nothing.
    pub fn from_text(text: &str) -> Self {
        text.split(' ').filter_map(KeyScope::parse).collect()
    }
}

impl FromIterator<KeyScope> for KeyScopes {
    fn from_iter<I: IntoIterator<Item = KeyScope>>(scopes: I) -> Self {
        Self(scopes.into_iter().fold(0, |set, scope| set | scope.bit()))
    }
}

const SCOPE_CHECK: FieldCheck = FieldCheck::OneOf(KeyScope::TEXTS);

wire_object! {
    /// A further key of the agent.
    NewAgentKey, refuses unknown, example r#"{"label": "build server", "scopes": ["read", "send"], "expires_in_s": 2592000}"# => {
        /// What it is for, so that the agent recognises it in the list.
        required label: String = single_line(1, limits::LABEL_CHARS);
        /// What it may do.
        required scopes: Vec<KeyScope> = FieldCheck::List { min: 1, max: KeyScope::ALL.len(), of: &SCOPE_CHECK };
        /// After how many seconds it ends; never if absent.
        optional expires_in_s: u64 = integer_between(1, limits::KEY_LIFETIME_SECONDS);
    }
}

impl NewAgentKey {
    pub fn parse(body: &[u8]) -> Result<Self> {
        Ok(contract::parse_body(body)?)
    }
}

wire_object! {
    /// The rotation of a registration's key.
    KeyRotation, refuses unknown, example r#"{"overlap_s": 3600}"# => {
        /// For how many seconds the old key still works; 0 if absent.
        optional overlap_s: u64 = integer_between(0, limits::KEY_OVERLAP_SECONDS);
    }
}

impl KeyRotation {
    pub fn parse(body: &[u8]) -> Result<Self> {
        Ok(contract::parse_body(body)?)
    }
}

/// A further key, as its agent sees it. `key` is present only in the reply that creates it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AgentKeyRecord {
    pub id: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(value_type = Option<String>, example = "ca_…")]
    pub key: Option<Secret>,
    pub label: String,
    pub scopes: Vec<KeyScope>,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: UnixMicros,
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    pub expires_at: Option<UnixMicros>,
    /// The day of its last use, in UTC; null if it was never used.
    #[schema(required = true, format = Date, example = "2026-03-20")]
    pub last_used: Option<String>,
}

/// `data` of `DELETE /agent/keys/{id}`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AgentKeyRevoked {
    pub id: String,
    pub revoked: bool,
}

/// `data` of `POST /agent/keys/rotate`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RotatedKey {
    pub agent_id: String,
    /// The new key of the registration. It is shown only here.
    #[schema(value_type = String, example = "ca_…")]
    pub api_key: Secret,
    /// Until when the old key works; null if it stopped at once.
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    pub old_key_until: Option<UnixMicros>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R-94
    #[test]
    fn a_set_of_scopes_has_what_was_put_into_it_and_survives_its_text() {
        let some: KeyScopes = [KeyScope::Market, KeyScope::Read].into_iter().collect();
        assert_eq!(some.to_text(), "read market");
        assert_eq!(KeyScopes::from_text("read market unheard"), some);
        assert!(!some.contains(KeyScope::Admin));
        assert_eq!(KeyScopes::ALL.to_list(), KeyScope::ALL);
        assert_eq!(KeyScopes::from_text("").to_list(), []);
    }

    /// R-94
    #[test]
    fn a_key_needs_a_label_and_scopes_that_exist() {
        let body = br#"{"label":"ci","scopes":["send"],"expires_in_s":60}"#;
        let new = NewAgentKey::parse(body).unwrap();
        assert_eq!(
            (new.scopes, new.expires_in_s),
            (vec![KeyScope::Send], Some(60))
        );
        for (body, field) in [
            (r#"{"scopes":["send"]}"#, "label"),
            (r#"{"label":"ci","scopes":[]}"#, "scopes"),
            (r#"{"label":"ci","scopes":["all"]}"#, "scopes"),
            (
                r#"{"label":"ci","scopes":["send"],"expires_in_s":0}"#,
                "expires_in_s",
            ),
        ] {
            let error = NewAgentKey::parse(body.as_bytes()).unwrap_err();
            assert!(error.message.contains(field), "{body}: {error}");
        }
        assert!(KeyRotation::parse(br#"{"overlap_s":86401}"#).is_err());
        assert_eq!(KeyRotation::parse(b"{}").unwrap().overlap_s, None);
    }
}
