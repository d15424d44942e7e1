//! The frame filter of a stream: comma-separated `axis:value` clauses that must all match, compiled once per stream
//! (FRM-73…82, R-48).

use super::error::{FrameCode, FrameError};
use super::kind::FrameKind;
use super::scope::{ScopeIdent, org_handle};
use crate::string_enum::string_enum;
use crate::{identity::Handle, limits};
use serde::Serialize;
use std::{fmt, str::FromStr};

string_enum! {
    /// The property of a frame that a clause compares.
    FilterAxis {
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
pub enum FilterClause {
    Kind(FrameKind),
    Sender(Handle),
    ContentType(String),
    Tool(ScopeIdent),
    Org(Handle),
}

/// The clauses in compiled form. Without clauses it matches every frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameFilter {
    clauses: Vec<FilterClause>,
    /// One bit per kind that can match: one comparison rejects most frames.
    kind_mask: u16,
    sender: Option<Handle>,
    tool: Option<ScopeIdent>,
    org: Option<Handle>,
}

impl Default for FrameFilter {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

/// Two different values on one axis cannot both match.
fn narrow_slot<T: PartialEq + Clone>(slot: &mut Option<T>, value: &T) -> bool {
    slot.get_or_insert_with(|| value.clone()) == value
}

impl FrameFilter {
    fn new(clauses: Vec<FilterClause>) -> Self {
        let mut filter = Self {
            clauses: Vec::new(),
            kind_mask: u16::MAX,
            sender: None,
            tool: None,
            org: None,
        };
        for clause in &clauses {
            let is_satisfiable = match clause {
                FilterClause::Kind(kind) => {
                    filter.kind_mask &= kind.bit_mask();
                    true
                }
                FilterClause::Sender(sender) => narrow_slot(&mut filter.sender, sender),
                FilterClause::Tool(tool) => narrow_slot(&mut filter.tool, tool),
                FilterClause::Org(org) => narrow_slot(&mut filter.org, org),
                // FRM-80: a clause that cannot take effect matches nothing; it never widens the filter.
                FilterClause::ContentType(_) => false,
            };
            if !is_satisfiable {
                filter.kind_mask = 0;
            }
        }
        Self { clauses, ..filter }
    }

    /// The error is that of the leftmost faulty clause.
    pub fn parse(text: &str) -> Result<Self, FrameError> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        let too_long = || {
            value_error(format!(
                "a filter has at most {} octets",
                limits::FILTER_OCTETS
            ))
        };
        if text.len() > limits::FILTER_OCTETS {
            return Err(too_long());
        }
        let clauses: Result<Vec<FilterClause>, FrameError> =
            text.split(',').map(parse_clause).collect();
        let filter = Self::new(clauses?);
        // Printing adds the `~` to organisations, and the printed form must parse again.
        match filter.to_string().len() <= limits::FILTER_OCTETS {
            true => Ok(filter),
            false => Err(too_long()),
        }
    }

    pub fn clauses(&self) -> &[FilterClause] {
        &self.clauses
    }

    /// `tool` is the tool class of the sending session, `org` the scope's [`super::FrameScope::addressed_org`].
    pub fn matches(
        &self,
        kind: FrameKind,
        sender: &Handle,
        tool: Option<&str>,
        org: Option<&Handle>,
    ) -> bool {
        self.kind_mask & kind.bit_mask() != 0
            && self.sender.as_ref().is_none_or(|wanted| wanted == sender)
            && self
                .tool
                .as_ref()
                .is_none_or(|wanted| Some(wanted.as_str()) == tool)
            && self.org.as_ref().is_none_or(|wanted| Some(wanted) == org)
    }
}

fn value_error(message: String) -> FrameError {
    FrameError::at_field(FrameCode::FilterValueInvalid, "filter", message)
}

/// Splits a clause at the first colon. The form is checked before the axis, so `typo` and `typo:` are errors of
/// form.
fn parse_clause(text: &str) -> Result<FilterClause, FrameError> {
    let (axis, wanted) = match text.split_once(':') {
        Some((axis, wanted)) if !wanted.is_empty() => (axis, wanted),
        Some(_) | None => {
            return Err(value_error(
                "every clause of a filter is axis:value".to_owned(),
            ));
        }
    };
    let Some(axis) = FilterAxis::parse(axis) else {
        let message = format!("a filter has the axes {}", FilterAxis::TEXTS.join(", "));
        return Err(FrameError::at_field(
            FrameCode::FilterAxisUnknown,
            "filter",
            message,
        ));
    };
    let (clause, requirement) = match axis {
        FilterAxis::Kind => (
            FrameKind::parse(wanted).map(FilterClause::Kind),
            "one of the fifteen kinds",
        ),
        FilterAxis::Sender => (
            Handle::parse(wanted).map(FilterClause::Sender),
            "a handle such as ~alice",
        ),
        FilterAxis::ContentType => (
            Some(FilterClause::ContentType(wanted.to_owned())),
            "a content type",
        ),
        FilterAxis::Tool => (
            ScopeIdent::parse(wanted).map(FilterClause::Tool),
            "a tool class of letters, digits, '.', '_' and '-'",
        ),
        FilterAxis::Org => (
            org_handle(wanted).map(FilterClause::Org),
            "an organisation's handle such as ~acme",
        ),
    };
    clause.ok_or_else(|| value_error(format!("{axis} in a filter must be {requirement}")))
}

impl FromStr for FrameFilter {
    type Err = FrameError;

    fn from_str(text: &str) -> Result<Self, FrameError> {
        Self::parse(text)
    }
}

impl fmt::Display for FilterClause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind(kind) => write!(f, "{}:{kind}", FilterAxis::Kind),
            Self::Sender(sender) => write!(f, "{}:{sender}", FilterAxis::Sender),
            Self::ContentType(wanted) => write!(f, "{}:{wanted}", FilterAxis::ContentType),
            Self::Tool(tool) => write!(f, "{}:{tool}", FilterAxis::Tool),
            Self::Org(org) => write!(f, "{}:{org}", FilterAxis::Org),
        }
    }
}

impl fmt::Display for FrameFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, clause) in self.clauses.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(f, "{comma}{clause}")?;
        }
        Ok(())
    }
}

impl Serialize for FrameFilter {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}
