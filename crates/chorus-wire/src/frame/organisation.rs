//! Grants, organisations and accords: their requests, parsed strictly, and their replies (R-46, R-47, R-51).

use super::error::FrameError;
use super::grammars::{INSTANT_CHECK, ORG_CHECK, ROLE_CHECK};
use super::scope::{RoleName, org_handle};
use crate::contract::{self, FieldCheck, TextGrammar, impl_from_text_node, list_of};
use crate::string_enum::string_enum;
use crate::{identity::Handle, limits, time::UnixMicros, wire_object};
use serde::{Serialize, Serializer};
use std::fmt;
use utoipa::ToSchema;

/// The role that may change an organisation. The hub gives no other role a meaning.
pub const OWNER_ROLE: &str = "owner";

wire_object! {
    /// A new organisation.
    NewOrganisation, refuses unknown, example r#"{"handle": "~acme"}"# => {
        /// The handle of the organisation.
        required handle: OrgHandle = ORG_CHECK;
    }
}

wire_object! {
    /// The roles of a member.
    NewOrganisationMember, refuses unknown, example r#"{"roles": ["reviewer"]}"# => {
        /// The roles; `owner` may change the organisation.
        required roles: Vec<RoleName> = list_of(limits::ROLES_PER_MEMBER, &ROLE_CHECK);
    }
}

wire_object! {
    /// A proposal that members of another organisation may address members of this one.
    NewAccord, refuses unknown, example r#"{"grantee": "~peer", "grant": "ops", "reaches": "*"}"# => {
        /// The organisation whose members may address.
        required grantee: OrgHandle = ORG_CHECK;
        /// The name of the grant, which scopes repeat.
        required grant: RoleName = ROLE_CHECK;
        /// `*` for all members, or one of their roles.
        required reaches: AccordReach = REACH_CHECK;
        /// When the accord ends; it must be in the future.
        optional expires_at: UnixMicros = INSTANT_CHECK;
    }
}

const REACH_CHECK: FieldCheck = FieldCheck::Grammar(&TextGrammar {
    accepts: |text| AccordReach::parse(text).is_some(),
    requirement: "* for all members, or one of their roles",
    pattern: r"^(?:\*|[a-z0-9][a-z0-9._-]{0,63})$",
    refused_pattern: None,
    max_chars: limits::ROLE_OCTETS,
    format: None,
    example: "*",
});

/// The handle of an organisation, which a client may write without its `~` (R-46).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct OrgHandle(pub Handle);

impl OrgHandle {
    fn parse(text: &str) -> Option<Self> {
        org_handle(text).map(Self)
    }
}

impl_from_text_node!(OrgHandle, AccordReach);

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
    /// The status of a handle in an organisation (R-51).
    MembershipStatus { Invited "invited", Accepted "accepted", }
}

string_enum! {
    /// The status of an accord (R-47). Only an accepted one allows frames.
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

/// The accepted members of an organisation (R-51).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct OrganisationMembers {
    #[schema(value_type = String, example = "~alice")]
    pub org: Handle,
    pub members: Vec<OrganisationMember>,
}

/// One organisation of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct OwnMembership {
    /// The handle of the organisation.
    #[schema(value_type = String, example = "~acme")]
    pub handle: Handle,
    #[schema(value_type = Vec<String>)]
    pub roles: Vec<RoleName>,
    /// `invited` or `accepted`.
    #[schema(value_type = String)]
    pub status: MembershipStatus,
}

/// The organisations that an agent belongs to, and those that have invited it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct OwnMemberships {
    pub orgs: Vec<OwnMembership>,
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

impl NewOrganisation {
    pub fn parse(body: &[u8]) -> Result<Self, FrameError> {
        Ok(contract::parse_body(body)?)
    }
}

impl NewOrganisationMember {
    /// The roles are sorted and without duplicates.
    pub fn parse(body: &[u8]) -> Result<Self, FrameError> {
        let mut member: Self = contract::parse_body(body)?;
        member.roles.sort();
        member.roles.dedup();
        Ok(member)
    }
}

impl NewAccord {
    /// `expires_at` must be after `now`.
    pub fn parse(body: &[u8], now: UnixMicros) -> Result<Self, FrameError> {
        let accord: Self = contract::parse_body(body)?;
        match accord.expires_at {
            Some(at) if at <= now => Err(FrameError::invalid_field(
                "expires_at",
                "an RFC 3339 time with its zone, in the future",
            )),
            Some(_) | None => Ok(accord),
        }
    }
}
