//! Organisations: created by one handle, joined only by handles that accept, and never without an owner.

use super::Frames;
use super::addressing_cache::{AddressingChange, write_and_invalidate};
use super::grants::{check_registered, find_agent, parse_path_handle, require_own_agent};
use crate::Result;
use crate::identity::{Principal, is_reserved_name};
use crate::store::orgs::{self as table, OrgMemberRecord as Row};
use crate::store::{AgentId, DbConnection, OrgId, WriteTxn, principals};
use chorus_wire::frame::organisation::{
    AccessRemoved, MembershipStatus, NewOrganisation, NewOrganisationMember, OWNER_ROLE,
    Organisation, OrganisationMember, OrganisationMembers, OwnMembership, OwnMemberships,
};
use chorus_wire::frame::{FrameError, RoleName, org_handle};
use chorus_wire::{Error, ErrorCode, identity::Handle, limits};

type OrgResult<T> = std::result::Result<T, FrameError>;

/// An organisation's handle from a path, with or without `~`.
pub(super) fn parse_org_handle(text: &str) -> OrgResult<Handle> {
    org_handle(text).ok_or_else(|| {
        FrameError::invalid_field("org", "the handle of an organisation, such as ~acme")
    })
}

pub(super) async fn find_org(tx: &DbConnection<'_>, handle: &Handle) -> Result<table::OrgRecord> {
    let not_found = || {
        Error::new(
            ErrorCode::NotFound,
            format!("no organisation has the handle {handle}"),
        )
    };
    table::find_org(tx, handle).await?.ok_or_else(not_found)
}

/// The organisation, if the agent owns it.
pub(super) async fn find_owned_org(
    tx: &DbConnection<'_>,
    handle: &Handle,
    agent: AgentId,
) -> Result<table::OrgRecord> {
    let org = find_org(tx, handle).await?;
    match table::find_member(tx, org.id, agent)
        .await?
        .is_some_and(|member| member.is_owner())
    {
        true => Ok(org),
        false => Err(Error::new(
            ErrorCode::Forbidden,
            format!("only an owner of {handle} may do that"),
        )),
    }
}

fn conflict_error(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::Conflict, message)
}

/// The organisation keeps an owner even without this member.
async fn check_owner_remains(txn: &WriteTxn<'_>, org: OrgId, member: Option<&Row>) -> Result<()> {
    let Some(member) = member.filter(|member| member.is_owner()) else {
        return Ok(());
    };
    match table::has_other_owner(&txn.tx, org, member.id).await? {
        true => Ok(()),
        false => Err(conflict_error(
            "an organisation keeps at least one owner; make another one first",
        )),
    }
}

async fn check_join_limit(txn: &WriteTxn<'_>, agent: AgentId) -> Result<()> {
    match table::count_joined_orgs(&txn.tx, agent).await? < limits::ORGS_PER_HANDLE {
        true => Ok(()),
        false => Err(conflict_error(format!(
            "a handle joins at most {} organisations",
            limits::ORGS_PER_HANDLE
        ))),
    }
}

fn render_member(row: Row) -> OrganisationMember {
    let status = if row.accepted_at.is_some() {
        MembershipStatus::Accepted
    } else {
        MembershipStatus::Invited
    };
    OrganisationMember {
        handle: row.handle,
        roles: row.roles,
        status,
    }
}

/// The member as the transaction left it.
async fn reload_member(
    txn: &WriteTxn<'_>,
    org: &table::OrgRecord,
    agent: AgentId,
) -> Result<(OrganisationMember, Vec<AddressingChange>)> {
    let row = table::find_member(&txn.tx, org.id, agent).await?;
    let row = row.ok_or_else(|| Error::internal("a member that was just written is gone"))?;
    Ok((
        render_member(row),
        vec![AddressingChange::Org(org.handle.clone())],
    ))
}

/// `POST /orgs`: the caller is its first member and owner.
pub async fn create_org(
    principal: &Principal,
    frames: &Frames,
    new: NewOrganisation,
) -> OrgResult<Organisation> {
    let agent = principal.require_agent()?.clone();
    if agent.handle.is_none() {
        return Err(Error::new(
            ErrorCode::Forbidden,
            "an agent without a handle has no place in an organisation",
        )
        .into());
    }
    if is_reserved_name(new.handle.0.as_str().trim_start_matches('~')) {
        return Err(Error::from(ErrorCode::NameReserved).into());
    }
    let host_name = frames.context().options().host_name.clone();
    let owner = RoleName::parse(OWNER_ROLE).ok_or_else(|| Error::internal("owner is no role"))?;
    write_and_invalidate(frames, async move |txn| {
        check_registered(txn, agent.id).await?;
        check_join_limit(txn, agent.id).await?;
        let now = txn.now();
        let org = table::OrgRecord {
            id: principals::allocate_subject_id(&txn.tx).await?,
            handle: new.handle.0.clone(),
            created_at: now,
        };
        // The address too: an agent of that name would otherwise be without its handle.
        let address = format!(
            "{}@{host_name}",
            org.handle.as_str().trim_start_matches('~')
        );
        if !principals::claim_name(&txn.tx, org.handle.as_str(), org.id.into()).await?
            || !principals::claim_name(&txn.tx, &address, org.id.into()).await?
        {
            return Err(conflict_error(format!(
                "the handle {} is taken",
                org.handle
            )));
        }
        table::insert_org(&txn.tx, &org).await?;
        table::upsert_member(&txn.tx, org.id, agent.id, std::slice::from_ref(&owner), now).await?;
        table::accept_membership(&txn.tx, org.id, agent.id, now).await?;
        let changes = vec![AddressingChange::Org(org.handle.clone())];
        Ok((
            Organisation {
                handle: org.handle,
                created_at: now,
            },
            changes,
        ))
    })
    .await
}

/// `PUT /orgs/{org}/members/{handle}`: an owner invites a handle, or changes the roles of a member.
pub async fn invite_member(
    principal: &Principal,
    frames: &Frames,
    org: &str,
    member: &str,
    new: NewOrganisationMember,
) -> OrgResult<OrganisationMember> {
    let inviter = principal.require_agent()?.clone();
    let org = parse_org_handle(org)?;
    let member = parse_path_handle("member", member)?;
    let hub = frames.context().clone();
    write_and_invalidate(frames, async move |txn| {
        let org = find_owned_org(&txn.tx, &org, inviter.id).await?;
        let invited = find_agent(txn, &member).await?;
        let agent = invited.id;
        let before = table::find_member(&txn.tx, org.id, agent).await?;
        if before.is_none() {
            hub.identity()
                .check_contact_in(&txn.tx, &invited, &inviter)
                .await?;
        }
        if !new.roles.iter().any(|role| role.as_str() == OWNER_ROLE) {
            check_owner_remains(txn, org.id, before.as_ref()).await?;
        }
        if before.is_none()
            && table::count_members(&txn.tx, org.id).await? >= limits::MEMBERS_PER_ORG
        {
            return Err(conflict_error(format!(
                "an organisation has at most {} members",
                limits::MEMBERS_PER_ORG
            )));
        }
        table::upsert_member(&txn.tx, org.id, agent, &new.roles, txn.now()).await?;
        reload_member(txn, &org, agent).await
    })
    .await
}

/// `POST /orgs/{org}/members/{handle}/accept`: only the invited handle accepts; accepting again changes nothing.
pub async fn accept_invitation(
    principal: &Principal,
    frames: &Frames,
    org: &str,
    member: &str,
) -> OrgResult<OrganisationMember> {
    let org = parse_org_handle(org)?;
    let member = parse_path_handle("member", member)?;
    let agent = require_own_agent(principal, &member)?.id;
    write_and_invalidate(frames, async move |txn| {
        let org = find_org(&txn.tx, &org).await?;
        let uninvited = || {
            Error::new(
                ErrorCode::NotFound,
                format!("{} has not invited {member}", org.handle),
            )
        };
        let before = table::find_member(&txn.tx, org.id, agent)
            .await?
            .ok_or_else(uninvited)?;
        if before.accepted_at.is_none() {
            check_join_limit(txn, agent).await?;
            table::accept_membership(&txn.tx, org.id, agent, txn.now()).await?;
        }
        reload_member(txn, &org, agent).await
    })
    .await
}

/// `DELETE /orgs/{org}/members/{handle}`: an owner removes, a member leaves, an invited handle declines; the last owner stays.
pub async fn remove_member(
    principal: &Principal,
    frames: &Frames,
    org: &str,
    member: &str,
) -> OrgResult<AccessRemoved> {
    let acting_agent = principal.require_agent()?.clone();
    let org = parse_org_handle(org)?;
    let member = parse_path_handle("member", member)?;
    write_and_invalidate(frames, async move |txn| {
        let org = match acting_agent.handle.as_deref() == Some(member.as_str()) {
            true => find_org(&txn.tx, &org).await?,
            false => find_owned_org(&txn.tx, &org, acting_agent.id).await?,
        };
        let Some(agent) = principals::find_agent_by_name(&txn.tx, member.as_str())
            .await?
            .map(|agent| agent.id)
        else {
            return Ok((
                AccessRemoved {
                    handle: member.clone(),
                    deleted: false,
                },
                Vec::new(),
            ));
        };
        let before = table::find_member(&txn.tx, org.id, agent).await?;
        check_owner_remains(txn, org.id, before.as_ref()).await?;
        let deleted = table::remove_member(&txn.tx, org.id, agent).await?;
        Ok((
            AccessRemoved {
                handle: member.clone(),
                deleted,
            },
            vec![AddressingChange::Org(org.handle)],
        ))
    })
    .await
}

/// `GET /orgs`: where the caller belongs, and where it is invited.
pub async fn list_own_orgs(principal: &Principal, frames: &Frames) -> OrgResult<OwnMemberships> {
    let agent_id = principal.require_agent()?.id;
    let rows = frames
        .context()
        .store()
        .read(async move |tx| {
            Ok(table::list_memberships(tx, agent_id, limits::MEMBERSHIPS_LISTED).await?)
        })
        .await?;
    let orgs = rows.into_iter().map(|row| OwnMembership {
        handle: row.org,
        roles: row.roles,
        status: match row.is_accepted {
            true => MembershipStatus::Accepted,
            false => MembershipStatus::Invited,
        },
    });
    Ok(OwnMemberships {
        orgs: orgs.collect(),
    })
}

/// `GET /orgs/{org}/members`: the accepted members, for members.
pub async fn list_members(
    principal: &Principal,
    frames: &Frames,
    org: &str,
) -> OrgResult<OrganisationMembers> {
    let agent_id = principal.require_agent()?.id;
    let named = parse_org_handle(org)?;
    let (org, rows) = frames
        .context()
        .store()
        .read(async move |tx| {
            let org = find_org(tx, &named).await?;
            let rows = table::list_members(tx, org.id).await?;
            match rows.iter().any(|row| row.id == agent_id) {
                true => Ok((org.handle, rows)),
                false => Err(Error::new(
                    ErrorCode::Forbidden,
                    format!("only members see who else is in {named}"),
                )),
            }
        })
        .await?;
    Ok(OrganisationMembers {
        org,
        members: rows.into_iter().map(render_member).collect(),
    })
}
