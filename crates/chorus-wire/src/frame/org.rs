//! What is said about grants, organisations and accords: bodies that are read strictly, and the answers to them.

use super::error::FrameError;
use super::read::{Node, Object, clipped};
use super::scope::{Role, org_handle};
use super::word::words;
use crate::{identity::Handle, limits, time::Micros};
use serde::{Serialize, Serializer};
use std::fmt;
use utoipa::ToSchema;

/// The role that may change an organisation; every other role is opaque.
pub const OWNER: &str = "owner";

/// The body of `POST /orgs`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewOrg {
    pub handle: Handle,
}

/// The body of `PUT /orgs/{org}/members/{handle}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMember {
    /// Sorted, each once.
    pub roles: Vec<Role>,
}

/// The body of `POST /orgs/{grantor}/accords`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewAccord {
    pub grantee: Handle,
    pub grant: Role,
    pub reaches: Reaches,
    pub expires_at: Option<Micros>,
}

/// Which members of the granting organisation an accord reaches.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reaches {
    Everyone,
    Role(Role),
}

impl Reaches {
    /// `*` or a role.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "*" => Some(Self::Everyone),
            role => Role::parse(role).map(Self::Role),
        }
    }
}

impl fmt::Display for Reaches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Everyone => f.write_str("*"),
            Self::Role(role) => role.fmt(f),
        }
    }
}

impl Serialize for Reaches {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

words! {
    /// Where a handle stands in an organisation.
    Standing { Invited "invited", Accepted "accepted", }
}

words! {
    /// Where an accord stands. Only an accepted one lets a frame through.
    AccordStatus {
        Proposed "proposed",
        Accepted "accepted",
        Expired "expired",
        Revoked "revoked",
    }
}

/// One handle that another one lets address it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Grant {
    #[schema(value_type = String, example = "~alice")]
    pub grantee: Handle,
    #[schema(value_type = String, format = DateTime)]
    pub granted_at: Micros,
}

/// Whom a handle lets address it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Grants {
    #[schema(value_type = String, example = "~alice")]
    pub handle: Handle,
    pub grants: Vec<Grant>,
}

/// A grant or a membership that is over; `deleted` is false when there was none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Ended {
    #[schema(value_type = String, example = "~alice")]
    pub handle: Handle,
    pub deleted: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Org {
    #[schema(value_type = String, example = "~alice")]
    pub handle: Handle,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Micros,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Member {
    #[schema(value_type = String, example = "~alice")]
    pub handle: Handle,
    #[schema(value_type = Vec<String>)]
    pub roles: Vec<Role>,
    /// `invited` or `accepted`.
    #[schema(value_type = String)]
    pub status: Standing,
}

/// The accepted members of an organisation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Members {
    #[schema(value_type = String, example = "~alice")]
    pub org: Handle,
    pub members: Vec<Member>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Accord {
    pub id: String,
    /// `proposed`, `accepted`, `expired` or `revoked`.
    #[schema(value_type = String)]
    pub status: AccordStatus,
    #[schema(value_type = String, example = "~alice")]
    pub grantor: Handle,
    #[schema(value_type = String, example = "~alice")]
    pub grantee: Handle,
    #[schema(value_type = String, example = "ops")]
    pub grant: Role,
    /// `*` or a role.
    #[schema(value_type = String, example = "*")]
    pub reaches: Reaches,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Micros>,
    #[schema(value_type = String, format = DateTime)]
    pub proposed_at: Micros,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub accepted_at: Option<Micros>,
}

/// The accords that an organisation grants and those it was granted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Accords {
    #[schema(value_type = String, example = "~alice")]
    pub org: Handle,
    pub accords: Vec<Accord>,
}

const ORG: &str = "the handle of an organisation, such as ~acme";
const ROLE: &str = "a word of lower-case letters, digits, '.', '_' and '-', at most 64 octets long";

impl NewOrg {
    pub fn parse(body: &[u8]) -> Result<Self, FrameError> {
        let fields = Fields::read(body, &["handle"], &[])?;
        // what begins with ~cc- is an instrument, and no organisation.
        let org = |text: &str| org_handle(text).filter(|handle| !handle.is_instrument());
        Ok(Self {
            handle: fields.text("handle", ORG, org)?,
        })
    }
}

impl NewMember {
    pub fn parse(body: &[u8]) -> Result<Self, FrameError> {
        let fields = Fields::read(body, &["roles"], &[])?;
        let must = || format!("an array of at most {} roles", limits::MEMBER_ROLES);
        let list = fields
            .0
            .get("roles")
            .and_then(Node::list)
            .filter(|list| list.len() <= limits::MEMBER_ROLES);
        let list = list.ok_or_else(|| FrameError::invalid("roles", must()))?;
        let role = |(place, node): (usize, &Node<'_>)| {
            let role = node.text().and_then(Role::parse);
            role.ok_or_else(|| FrameError::invalid(format!("roles[{place}]"), ROLE))
        };
        let mut roles: Vec<Role> = list
            .iter()
            .enumerate()
            .map(role)
            .collect::<Result<_, _>>()?;
        roles.sort();
        roles.dedup();
        Ok(Self { roles })
    }
}

impl NewAccord {
    /// `now` is what `expires_at` must lie after.
    pub fn parse(body: &[u8], now: Micros) -> Result<Self, FrameError> {
        let fields = Fields::read(body, &["grantee", "grant", "reaches"], &["expires_at"])?;
        let ahead = |text: &str| Micros::parse(text).filter(|at| *at > now);
        Ok(Self {
            grantee: fields.text("grantee", ORG, org_handle)?,
            grant: fields.text("grant", ROLE, Role::parse)?,
            reaches: fields.text(
                "reaches",
                "* for all members, or one of their roles",
                Reaches::parse,
            )?,
            expires_at: match fields.0.get("expires_at") {
                Some(_) => Some(fields.text(
                    "expires_at",
                    "an RFC 3339 time with its zone, in the future",
                    ahead,
                )?),
                None => None,
            },
        })
    }
}

/// An object with all of its required fields and none that nobody knows, in the order of R-44.
struct Fields<'a>(Object<'a>);

impl<'a> Fields<'a> {
    fn read(body: &'a [u8], required: &[&str], optional: &[&str]) -> Result<Self, FrameError> {
        let text = std::str::from_utf8(body).map_err(|_| FrameError::json("it is not UTF-8"))?;
        let Node::Object(object) = Node::read(text, 0)? else {
            return Err(FrameError::json("it is not an object"));
        };
        let strange = |key: &str| !required.contains(&key) && !optional.contains(&key);
        if let Some((key, _)) = object.0.iter().find(|(key, _)| strange(key)) {
            return Err(FrameError::unknown(clipped(key)));
        }
        match required.iter().find(|name| object.get(name).is_none()) {
            Some(name) => Err(FrameError::missing(*name)),
            None => Ok(Self(object)),
        }
    }

    fn text<T>(
        &self,
        name: &str,
        must: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<T, FrameError> {
        let value = self.0.get(name).and_then(Node::text).and_then(read);
        value.ok_or_else(|| FrameError::invalid(name, must))
    }
}
