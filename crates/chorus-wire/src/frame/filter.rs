//! A subscriber's filter: comma-separated `axis:value` clauses that must all hold, compiled once per stream (FRM-73…82, R-48).

use super::error::{FrameCode, FrameError};
use super::kind::Kind;
use super::scope::{Ident, org_handle};
use super::word::words;
use crate::{identity::Handle, limits};
use serde::Serialize;
use std::{fmt, str::FromStr};

words! {
    /// What a frame may be filtered by.
    Axis {
        Kind "kind",
        Sender "sender",
        /// No kind of version 1.0 has a content type, so such a clause never matches (FRM-77).
        ContentType "content_type",
        Tool "tool",
        Org "org",
    }
}

/// One `axis:value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Clause {
    Kind(Kind),
    Sender(Handle),
    ContentType(String),
    Tool(Ident),
    Org(Handle),
}

/// The clauses, and what follows from them. Without clauses it matches every frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    clauses: Vec<Clause>,
    /// A bit per kind that may pass: most frames are refused by one look at it.
    kinds: u16,
    sender: Option<Handle>,
    tool: Option<Ident>,
    org: Option<Handle>,
}

impl Default for Filter {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

/// Two clauses on one axis that differ cannot both hold.
fn narrow<T: PartialEq + Clone>(slot: &mut Option<T>, value: &T) -> bool {
    slot.get_or_insert_with(|| value.clone()) == value
}

impl Filter {
    fn new(clauses: Vec<Clause>) -> Self {
        let mut filter = Self {
            clauses: Vec::new(),
            kinds: u16::MAX,
            sender: None,
            tool: None,
            org: None,
        };
        for clause in &clauses {
            let possible = match clause {
                Clause::Kind(kind) => {
                    filter.kinds &= kind.bit();
                    true
                }
                Clause::Sender(sender) => narrow(&mut filter.sender, sender),
                Clause::Tool(tool) => narrow(&mut filter.tool, tool),
                Clause::Org(org) => narrow(&mut filter.org, org),
                // FRM-80: what cannot take effect narrows to nothing, it never widens.
                Clause::ContentType(_) => false,
            };
            if !possible {
                filter.kinds = 0;
            }
        }
        Self { clauses, ..filter }
    }

    /// Faults are found from left to right.
    pub fn parse(text: &str) -> Result<Self, FrameError> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        let long = || {
            value(format!(
                "a filter has at most {} octets",
                limits::FILTER_OCTETS
            ))
        };
        if text.len() > limits::FILTER_OCTETS {
            return Err(long());
        }
        let clauses: Result<Vec<Clause>, FrameError> = text.split(',').map(clause).collect();
        let filter = Self::new(clauses?);
        // Organisations gain their `~`, and what is printed must read back.
        match filter.to_string().len() <= limits::FILTER_OCTETS {
            true => Ok(filter),
            false => Err(long()),
        }
    }

    pub fn clauses(&self) -> &[Clause] {
        &self.clauses
    }

    /// `tool` is that of the submitting session, `org` the organisation that the scope names ([`super::Scope::org`]).
    pub fn matches(
        &self,
        kind: Kind,
        sender: &Handle,
        tool: Option<&str>,
        org: Option<&Handle>,
    ) -> bool {
        self.kinds & kind.bit() != 0
            && self.sender.as_ref().is_none_or(|wanted| wanted == sender)
            && self
                .tool
                .as_ref()
                .is_none_or(|wanted| Some(wanted.as_str()) == tool)
            && self.org.as_ref().is_none_or(|wanted| Some(wanted) == org)
    }
}

fn value(message: String) -> FrameError {
    FrameError::at(FrameCode::FilterValueInvalid, "filter", message)
}

/// split at the first colon. The form is judged before the axis, so `typo` and `typo:` are faults of form.
fn clause(text: &str) -> Result<Clause, FrameError> {
    let (axis, wanted) = match text.split_once(':') {
        Some((axis, wanted)) if !wanted.is_empty() => (axis, wanted),
        Some(_) | None => return Err(value("every clause of a filter is axis:value".to_owned())),
    };
    let Some(axis) = Axis::parse(axis) else {
        let message = format!("a filter has the axes {}", Axis::TEXTS.join(", "));
        return Err(FrameError::at(
            FrameCode::FilterAxisUnknown,
            "filter",
            message,
        ));
    };
    let (clause, must) = match axis {
        Axis::Kind => (
            Kind::parse(wanted).map(Clause::Kind),
            "one of the fifteen kinds",
        ),
        Axis::Sender => (
            Handle::parse(wanted).map(Clause::Sender),
            "a handle such as ~alice",
        ),
        Axis::ContentType => (
            Some(Clause::ContentType(wanted.to_owned())),
            "a content type",
        ),
        Axis::Tool => (
            Ident::parse(wanted).map(Clause::Tool),
            "a tool class of letters, digits, '.', '_' and '-'",
        ),
        Axis::Org => (
            org_handle(wanted).map(Clause::Org),
            "an organisation's handle such as ~acme",
        ),
    };
    clause.ok_or_else(|| value(format!("{axis} in a filter must be {must}")))
}

impl FromStr for Filter {
    type Err = FrameError;

    fn from_str(text: &str) -> Result<Self, FrameError> {
        Self::parse(text)
    }
}

impl fmt::Display for Clause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind(kind) => write!(f, "{}:{kind}", Axis::Kind),
            Self::Sender(sender) => write!(f, "{}:{sender}", Axis::Sender),
            Self::ContentType(wanted) => write!(f, "{}:{wanted}", Axis::ContentType),
            Self::Tool(tool) => write!(f, "{}:{tool}", Axis::Tool),
            Self::Org(org) => write!(f, "{}:{org}", Axis::Org),
        }
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, clause) in self.clauses.iter().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            write!(f, "{comma}{clause}")?;
        }
        Ok(())
    }
}

impl Serialize for Filter {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}
