//! The frame scope: the set of live sessions that a frame is for (FRM-48…55, R-46, R-47).

use super::error::FrameError;
use crate::{identity::Handle, limits};
use serde::Serialize;
use std::{fmt, str::FromStr};

/// Defines a string type that accepts only the texts of one grammar.
macro_rules! grammar_name {
    ($(#[$about:meta])* $name:ident, $grammar:path) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            pub fn parse(text: &str) -> Option<Self> {
                $grammar(text).then(|| Self(text.to_owned()))
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

grammar_name! {
    /// An instrument, a session id, a tool class, or the beginning of an instrument: `[A-Za-z0-9._-]{1,128}`.
    ScopeIdent, is_ident
}

grammar_name! {
    /// A role in an organisation or the scope of a grant, compared exactly: `[a-z0-9][a-z0-9._-]{0,63}`.
    RoleName, is_role
}

impl ScopeIdent {
    /// Completes the sentence “it must be …”.
    pub const REQUIREMENT: &'static str = "1 to 128 letters, digits, '.', '_' and '-'";
}

fn is_ident(text: &str) -> bool {
    (1..=limits::SESSION_OCTETS).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

fn is_role(text: &str) -> bool {
    let is_lower_or_digit = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    (1..=limits::ROLE_OCTETS).contains(&text.len())
        && is_lower_or_digit(text.as_bytes()[0])
        && text
            .bytes()
            .all(|b| is_lower_or_digit(b) || matches!(b, b'.' | b'_' | b'-'))
}

/// The sessions that a frame is for. Two scopes with the same meaning are equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FrameScope {
    /// `~alice` or `~alice/*`: all sessions of the handle (FRM-49, FRM-50).
    Handle(Handle),
    /// `~alice/cc-*`: the sessions whose instrument has this prefix (FRM-51).
    Prefix(Handle, ScopeIdent),
    /// `~alice/cc-editor@s1`: one session (FRM-52).
    Session(Handle, ScopeIdent, ScopeIdent),
    /// `org:~acme/members/*`: all members of an organisation (FRM-53).
    OrgMembers(Handle),
    /// `org:~acme/members/reviewer/*`: its members with a role (FRM-54).
    OrgRole(Handle, RoleName),
    /// `accord:~peer/grant:ops`: the members of a peer organisation that an accord grants (FRM-55).
    Accord(Handle, RoleName),
}

impl FrameScope {
    /// The forms as the discovery document shows them.
    pub const FORMS: [&'static str; 7] = [
        "~handle",
        "~handle/*",
        "~handle/<prefix>*",
        "~handle/<instrument>@<session>",
        "org:<org>/members/*",
        "org:<org>/members/<role>/*",
        "accord:<peer-org>/grant:<grant>",
    ];

    /// Returns `None` for any text outside the grammar.
    pub fn parse(text: &str) -> Option<Self> {
        let (head, tail) = match text.split_once('/') {
            Some((head, tail)) => (head, Some(tail)),
            None => (text, None),
        };
        if let Some(org) = head.strip_prefix("org:") {
            let members = tail?.strip_prefix("members/")?;
            let org = org_handle(org)?;
            return match members.strip_suffix("/*") {
                Some(role) => Some(Self::OrgRole(org, RoleName::parse(role)?)),
                None => (members == "*").then_some(Self::OrgMembers(org)),
            };
        }
        if let Some(peer) = head.strip_prefix("accord:") {
            let grant = RoleName::parse(tail?.strip_prefix("grant:")?)?;
            return Some(Self::Accord(org_handle(peer)?, grant));
        }
        let handle = Handle::parse(head)?;
        let Some(sessions) = tail.filter(|tail| *tail != "*") else {
            return Some(Self::Handle(handle));
        };
        if let Some(prefix) = sessions.strip_suffix('*') {
            return Some(Self::Prefix(handle, ScopeIdent::parse(prefix)?));
        }
        let (instrument, session) = sessions.split_once('@')?;
        Some(Self::Session(
            handle,
            ScopeIdent::parse(instrument)?,
            ScopeIdent::parse(session)?,
        ))
    }

    /// The handle that `recipient_handle` must equal (FRM-57): that of the agent, organisation or peer organisation.
    pub fn addressed_handle(&self) -> &Handle {
        match self {
            Self::Handle(handle) | Self::Prefix(handle, _) | Self::Session(handle, ..) => handle,
            Self::OrgMembers(org) | Self::OrgRole(org, _) | Self::Accord(org, _) => org,
        }
    }

    /// The organisation whose sessions the scope reaches, which the filter axis `org` compares (FRM-79).
    pub fn addressed_org(&self) -> Option<&Handle> {
        match self {
            Self::OrgMembers(org) | Self::OrgRole(org, _) | Self::Accord(org, _) => Some(org),
            Self::Handle(_) | Self::Prefix(..) | Self::Session(..) => None,
        }
    }
}

/// Parses the handle of an organisation, with or without `~`.
pub fn org_handle(text: &str) -> Option<Handle> {
    match text.starts_with('~') {
        true => Handle::parse(text),
        false => Handle::parse(&format!("~{text}")),
    }
}

impl fmt::Display for FrameScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Handle(handle) => write!(f, "{handle}"),
            Self::Prefix(handle, prefix) => write!(f, "{handle}/{prefix}*"),
            Self::Session(handle, instrument, session) => {
                write!(f, "{handle}/{instrument}@{session}")
            }
            Self::OrgMembers(org) => write!(f, "org:{org}/members/*"),
            Self::OrgRole(org, role) => write!(f, "org:{org}/members/{role}/*"),
            Self::Accord(peer, grant) => write!(f, "accord:{peer}/grant:{grant}"),
        }
    }
}

impl FromStr for FrameScope {
    type Err = FrameError;

    /// A text outside the grammar is `field-invalid`.
    fn from_str(text: &str) -> Result<Self, FrameError> {
        Self::parse(text).ok_or_else(|| FrameError::invalid_field("scope", SCOPE_REQUIREMENT))
    }
}

/// The grammar of [`FrameScope::parse`] as a regular expression, but for the reserved handle `~org`.
pub(super) const SCOPE_PATTERN: &str = concat!(
    "^(?:~[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?(?:/(?:\\*|[A-Za-z0-9._-]{1,128}(?:\\*|@[A-Za-z0-9._-]{1,128})))?",
    "|org:~?[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?/members/(?:[a-z0-9][a-z0-9._-]{0,63}/)?\\*",
    "|accord:~?[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?/grant:[a-z0-9][a-z0-9._-]{0,63})$"
);
/// A scope with the reserved handle.
pub(super) const RESERVED_SCOPE_PATTERN: &str = "^(?:~org(?:$|/)|(?:org|accord):~?org/)";

pub(super) const SCOPE_REQUIREMENT: &str = "a scope such as ~alice, ~alice/cc-*, ~alice/cc-editor@s1, org:~acme/members/*, \
                               org:~acme/members/reviewer/* or accord:~peer/grant:ops";

impl Serialize for FrameScope {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}
