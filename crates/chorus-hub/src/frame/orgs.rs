//! Organisations: founded by one handle, joined only by those who say yes, and never without an owner.

use super::circles::{Touched, change};
use super::grants::{agent_of, handle, own, still_here};
use crate::identity::Principal;
use crate::store::orgs::{self as table, Member as Row};
use crate::store::{Tx, Txn, principals};
use crate::{Hub, Result};
use chorus_wire::frame::org::{Ended, Member, Members, NewMember, NewOrg, OWNER, Org, Standing};
use chorus_wire::frame::{FrameError, Role, org_handle};
use chorus_wire::{Code, Error, identity::Handle, limits};

type Answer<T> = std::result::Result<T, FrameError>;

/// An organisation's handle from a path, with or without `~`.
pub(super) fn org_named(text: &str) -> Answer<Handle> {
    org_handle(text)
        .ok_or_else(|| FrameError::invalid("org", "the handle of an organisation, such as ~acme"))
}

pub(super) async fn org_of(tx: &Tx<'_>, handle: &Handle) -> Result<table::Org> {
    let nothing = || {
        Error::new(
            Code::NotFound,
            format!("no organisation has the handle {handle}"),
        )
    };
    table::by_handle(tx, handle).await?.ok_or_else(nothing)
}

/// The organisation, if the agent owns it.
pub(super) async fn owned_by(tx: &Tx<'_>, handle: &Handle, agent: i64) -> Result<table::Org> {
    let org = org_of(tx, handle).await?;
    match table::member(tx, org.id, agent)
        .await?
        .is_some_and(|member| member.owns())
    {
        true => Ok(org),
        false => Err(Error::new(
            Code::Forbidden,
            format!("only an owner of {handle} may do that"),
        )),
    }
}

fn conflict(message: impl Into<String>) -> Error {
    Error::new(Code::Conflict, message)
}

/// The organisation keeps an owner even without this member.
async fn keep_an_owner(txn: &Txn<'_>, org: i64, member: Option<&Row>) -> Result<()> {
    let Some(member) = member.filter(|member| member.owns()) else {
        return Ok(());
    };
    match table::other_owner(&txn.tx, org, member.id).await? {
        true => Ok(()),
        false => Err(conflict(
            "an organisation keeps at least one owner; make another one first",
        )),
    }
}

async fn may_join(txn: &Txn<'_>, agent: i64) -> Result<()> {
    match table::joined(&txn.tx, agent).await? < limits::ORGS_JOINED {
        true => Ok(()),
        false => Err(conflict(format!(
            "a handle joins at most {} organisations",
            limits::ORGS_JOINED
        ))),
    }
}

fn shown(row: Row) -> Member {
    let status = if row.accepted_at.is_some() {
        Standing::Accepted
    } else {
        Standing::Invited
    };
    Member {
        handle: row.handle,
        roles: row.roles,
        status,
    }
}

/// What the transaction made of a member.
async fn as_it_is(txn: &Txn<'_>, org: &table::Org, agent: i64) -> Result<(Member, Vec<Touched>)> {
    let row = table::member(&txn.tx, org.id, agent).await?;
    let row = row.ok_or_else(|| Error::internal("a member that was just written is gone"))?;
    Ok((shown(row), vec![Touched::Org(org.handle.clone())]))
}

/// `POST /orgs`: the one who asks is its first member and owner.
pub async fn create(who: &Principal, hub: &Hub, new: NewOrg) -> Answer<Org> {
    let agent = who.agent()?.clone();
    if agent.handle.is_none() {
        return Err(Error::new(
            Code::Forbidden,
            "an agent without a handle has no place in an organisation",
        )
        .into());
    }
    let owner = Role::parse(OWNER).ok_or_else(|| Error::internal("owner is no role"))?;
    change(hub, async move |txn| {
        still_here(txn, agent.id).await?;
        may_join(txn, agent.id).await?;
        let now = txn.now();
        let org = table::Org {
            id: principals::new_subject(&txn.tx).await?,
            handle: new.handle.clone(),
            created_at: now,
        };
        if !principals::claim_name(&txn.tx, org.handle.as_str(), org.id).await? {
            return Err(conflict(format!("the handle {} is taken", org.handle)));
        }
        table::insert(&txn.tx, &org).await?;
        table::put_member(&txn.tx, org.id, agent.id, std::slice::from_ref(&owner), now).await?;
        table::accept(&txn.tx, org.id, agent.id, now).await?;
        let touched = vec![Touched::Org(org.handle.clone())];
        Ok((
            Org {
                handle: org.handle,
                created_at: now,
            },
            touched,
        ))
    })
    .await
}

/// `PUT /orgs/{org}/members/{handle}`: an owner invites, or changes the roles of whoever is there.
pub async fn invite(
    who: &Principal,
    hub: &Hub,
    org: &str,
    member: &str,
    new: NewMember,
) -> Answer<Member> {
    let asking = who.agent()?.id;
    let (org, member) = (org_named(org)?, handle("member", member)?);
    change(hub, async move |txn| {
        let org = owned_by(&txn.tx, &org, asking).await?;
        let agent = agent_of(txn, &member).await?.id;
        let before = table::member(&txn.tx, org.id, agent).await?;
        if !new.roles.iter().any(|role| role.as_str() == OWNER) {
            keep_an_owner(txn, org.id, before.as_ref()).await?;
        }
        if before.is_none() && table::count(&txn.tx, org.id).await? >= limits::ORG_MEMBERS {
            return Err(conflict(format!(
                "an organisation has at most {} members",
                limits::ORG_MEMBERS
            )));
        }
        table::put_member(&txn.tx, org.id, agent, &new.roles, txn.now()).await?;
        as_it_is(txn, &org, agent).await
    })
    .await
}

/// `POST /orgs/{org}/members/{handle}/accept`: only the invited one says yes, and saying it again changes nothing.
pub async fn accept(who: &Principal, hub: &Hub, org: &str, member: &str) -> Answer<Member> {
    let (org, member) = (org_named(org)?, handle("member", member)?);
    let agent = own(who, &member)?.id;
    change(hub, async move |txn| {
        let org = org_of(&txn.tx, &org).await?;
        let uninvited = || {
            Error::new(
                Code::NotFound,
                format!("{} has not invited {member}", org.handle),
            )
        };
        let before = table::member(&txn.tx, org.id, agent)
            .await?
            .ok_or_else(uninvited)?;
        if before.accepted_at.is_none() {
            may_join(txn, agent).await?;
            table::accept(&txn.tx, org.id, agent, txn.now()).await?;
        }
        as_it_is(txn, &org, agent).await
    })
    .await
}

/// `DELETE /orgs/{org}/members/{handle}`: an owner removes, a member leaves, an invited one declines; the last owner stays.
pub async fn remove(who: &Principal, hub: &Hub, org: &str, member: &str) -> Answer<Ended> {
    let asking = who.agent()?.clone();
    let (org, member) = (org_named(org)?, handle("member", member)?);
    change(hub, async move |txn| {
        let org = match asking.handle.as_deref() == Some(member.as_str()) {
            true => org_of(&txn.tx, &org).await?,
            false => owned_by(&txn.tx, &org, asking.id).await?,
        };
        let Some(agent) = principals::by_name(&txn.tx, member.as_str())
            .await?
            .map(|agent| agent.id)
        else {
            return Ok((
                Ended {
                    handle: member.clone(),
                    deleted: false,
                },
                Vec::new(),
            ));
        };
        let before = table::member(&txn.tx, org.id, agent).await?;
        keep_an_owner(txn, org.id, before.as_ref()).await?;
        let deleted = table::remove(&txn.tx, org.id, agent).await?;
        Ok((
            Ended {
                handle: member.clone(),
                deleted,
            },
            vec![Touched::Org(org.handle)],
        ))
    })
    .await
}

/// `GET /orgs/{org}/members`: the accepted ones, for one another.
pub async fn members(who: &Principal, hub: &Hub, org: &str) -> Answer<Members> {
    let asking = who.agent()?.id;
    let named = org_named(org)?;
    let (org, rows) = hub
        .store()
        .read(async move |tx| {
            let org = org_of(tx, &named).await?;
            let rows = table::members(tx, org.id).await?;
            match rows.iter().any(|row| row.id == asking) {
                true => Ok((org.handle, rows)),
                false => Err(Error::new(
                    Code::Forbidden,
                    format!("only members see who else is in {named}"),
                )),
            }
        })
        .await?;
    Ok(Members {
        org,
        members: rows.into_iter().map(shown).collect(),
    })
}
