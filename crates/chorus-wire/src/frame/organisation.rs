//! Grants, organisations and accords: their requests, parsed strictly, and their replies.

use super::error::FrameError;
use super::json_tree::{JsonNode, JsonObject, clip_key};
use super::scope::{RoleName, org_handle};
use crate::string_enum::string_enum;
use crate::{identity::Handle, limits, time::UnixMicros};
use serde::{Serialize, Serializer};
use std::fmt;
use utoipa::ToSchema;

/// The role that may change an organisation. The hub gives no other role a meaning.
pub const OWNER_ROLE: &str = "owner";

/// The body of `POST /orgs`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewOrganisation {
    pub handle: Handle,
}

/// The body of `PUT /orgs/{org}/members/{handle}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewOrganisationMember {
    /// Sorted, without duplicates.
    pub roles: Vec<RoleName>,
}

/// The body of `POST /orgs/{grantor}/accords`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewAccord {
    pub grantee: Handle,
    pub grant: RoleName,
    pub reaches: AccordReach,
    pub expires_at: Option<UnixMicros>,
}

/// Which members of the granting organisation an accord reaches.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AccordReach {
    Everyone,
    Role(RoleName),
}

impl AccordReach {
    /// `*` or a role.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "*" => Some(Self::Everyone),
            role => RoleName::parse(role).map(Self::Role),
        }
    }
}

impl fmt::Display for AccordReach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Everyone => f.write_str("*"),
            Self::Role(role) => role.fmt(f),
        }
    }
}

impl Serialize for AccordReach {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

string_enum! {
    /// The status of a handle in an organisation.
    MembershipStatus { Invited "invited", Accepted "accepted", }
}

string_enum! {
    /// The status of an accord. Only an accepted one allows frames.
    AccordStatus {
        Proposed "proposed",
        Accepted "accepted",
        Expired "expired",
        Revoked "revoked",
    }
}

/// The permission of one handle to address another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct HandleGrant {
    #[schema(value_type = String, example = "~alice")]
    pub grantee: Handle,
    #[schema(value_type = String, format = DateTime)]
    pub granted_at: UnixMicros,
}

/// The handles that may address a handle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct HandleGrants {
    #[schema(value_type = String, example = "~alice")]
    pub handle: Handle,
    pub grants: Vec<HandleGrant>,
}

/// The reply to the removal of a grant or a membership; `deleted` is false if there was none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct AccessRemoved {
    #[schema(value_type = String, example = "~alice")]
    pub handle: Handle,
    pub deleted: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Organisation {
    #[schema(value_type = String, example = "~alice")]
    pub handle: Handle,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: UnixMicros,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct OrganisationMember {
    #[schema(value_type = String, example = "~alice")]
    pub handle: Handle,
    #[schema(value_type = Vec<String>)]
    pub roles: Vec<RoleName>,
    /// `invited` or `accepted`.
    #[schema(value_type = String)]
    pub status: MembershipStatus,
}

/// The accepted members of an organisation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct OrganisationMembers {
    #[schema(value_type = String, example = "~alice")]
    pub org: Handle,
    pub members: Vec<OrganisationMember>,
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
    pub grant: RoleName,
    /// `*` or a role.
    #[schema(value_type = String, example = "*")]
    pub reaches: AccordReach,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<UnixMicros>,
    #[schema(value_type = String, format = DateTime)]
    pub proposed_at: UnixMicros,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub accepted_at: Option<UnixMicros>,
}

/// The accords that an organisation has granted and received.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct AccordList {
    #[schema(value_type = String, example = "~alice")]
    pub org: Handle,
    pub accords: Vec<Accord>,
}

const ORG_REQUIREMENT: &str = "the handle of an organisation, such as ~acme";
const ROLE_REQUIREMENT: &str =
    "a word of lower-case letters, digits, '.', '_' and '-', at most 64 octets long";

impl NewOrganisation {
    pub fn parse(body: &[u8]) -> Result<Self, FrameError> {
        let fields = StrictFields::parse_body(body, &["handle"], &[])?;
        // a handle ~cc-… is an instrument, not an organisation.
        let parse_org = |text: &str| org_handle(text).filter(|handle| !handle.is_instrument());
        Ok(Self {
            handle: fields.parse_field("handle", ORG_REQUIREMENT, parse_org)?,
        })
    }
}

impl NewOrganisationMember {
    pub fn parse(body: &[u8]) -> Result<Self, FrameError> {
        let fields = StrictFields::parse_body(body, &["roles"], &[])?;
        let requirement = || format!("an array of at most {} roles", limits::ROLES_PER_MEMBER);
        let list = fields
            .0
            .get("roles")
            .and_then(JsonNode::as_array)
            .filter(|list| list.len() <= limits::ROLES_PER_MEMBER);
        let list = list.ok_or_else(|| FrameError::invalid_field("roles", requirement()))?;
        let parse_role = |(index, node): (usize, &JsonNode<'_>)| {
            let role = node.as_text().and_then(RoleName::parse);
            role.ok_or_else(|| {
                FrameError::invalid_field(format!("roles[{index}]"), ROLE_REQUIREMENT)
            })
        };
        let mut roles: Vec<RoleName> = list
            .iter()
            .enumerate()
            .map(parse_role)
            .collect::<Result<_, _>>()?;
        roles.sort();
        roles.dedup();
        Ok(Self { roles })
    }
}

impl NewAccord {
    /// `expires_at` must be after `now`.
    pub fn parse(body: &[u8], now: UnixMicros) -> Result<Self, FrameError> {
        let fields =
            StrictFields::parse_body(body, &["grantee", "grant", "reaches"], &["expires_at"])?;
        let parse_future_time = |text: &str| UnixMicros::parse(text).filter(|at| *at > now);
        Ok(Self {
            grantee: fields.parse_field("grantee", ORG_REQUIREMENT, org_handle)?,
            grant: fields.parse_field("grant", ROLE_REQUIREMENT, RoleName::parse)?,
            reaches: fields.parse_field(
                "reaches",
                "* for all members, or one of their roles",
                AccordReach::parse,
            )?,
            expires_at: match fields.0.get("expires_at") {
                Some(_) => Some(fields.parse_field(
                    "expires_at",
                    "an RFC 3339 time with its zone, in the future",
                    parse_future_time,
                )?),
                None => None,
            },
        })
    }
}

/// An object with all required fields and no unknown ones, checked in the order of R-44.
struct StrictFields<'a>(JsonObject<'a>);

impl<'a> StrictFields<'a> {
    fn parse_body(
        body: &'a [u8],
        required: &[&str],
        optional: &[&str],
    ) -> Result<Self, FrameError> {
        let text =
            std::str::from_utf8(body).map_err(|_| FrameError::invalid_json("it is not UTF-8"))?;
        let JsonNode::Object(object) = JsonNode::parse(text, 0)? else {
            return Err(FrameError::invalid_json("it is not an object"));
        };
        let is_unknown = |key: &str| !required.contains(&key) && !optional.contains(&key);
        if let Some((key, _)) = object.0.iter().find(|(key, _)| is_unknown(key)) {
            return Err(FrameError::unknown_field(clip_key(key)));
        }
        match required.iter().find(|name| object.get(name).is_none()) {
            Some(name) => Err(FrameError::missing_field(*name)),
            None => Ok(Self(object)),
        }
    }

    fn parse_field<T>(
        &self,
        name: &str,
        requirement: &str,
        parse_value: impl Fn(&str) -> Option<T>,
    ) -> Result<T, FrameError> {
        let value = self
            .0
            .get(name)
            .and_then(JsonNode::as_text)
            .and_then(parse_value);
        value.ok_or_else(|| FrameError::invalid_field(name, requirement))
    }
}
