//! A handle says who else may address it.

use super::circles::{Touched, change};
use crate::identity::{Agent, Principal};
use crate::store::{Txn, grants as table, principals};
use crate::{Hub, Result};
use chorus_wire::frame::FrameError;
use chorus_wire::frame::org::{Ended, Grant, Grants};
use chorus_wire::{Code, Error, identity::Handle, limits};
use std::sync::Arc;

type Answer<T> = std::result::Result<T, FrameError>;

/// A handle from a path; `field` is what the error calls it.
pub(super) fn handle(field: &str, text: &str) -> Answer<Handle> {
    Handle::parse(text)
        .ok_or_else(|| FrameError::invalid(field, "a handle such as ~alice, in lower case"))
}

/// The agent that asks, which must be the one with this handle.
pub(super) fn own<'a>(who: &'a Principal, handle: &Handle) -> Result<&'a Arc<Agent>> {
    let agent = who.agent()?;
    match agent.handle.as_deref() == Some(handle.as_str()) {
        true => Ok(agent),
        false => Err(Error::new(
            Code::Forbidden,
            format!("{handle} is not the handle of this key"),
        )),
    }
}

/// The one who asks, as of this transaction: it may have left since its key was looked at.
pub(super) async fn still_here(txn: &Txn<'_>, agent: i64) -> Result<()> {
    principals::by_id(&txn.tx, agent)
        .await?
        .map(drop)
        .ok_or_else(|| Code::Unauthorized.into())
}

/// The agent that has this handle now.
pub(super) async fn agent_of(txn: &Txn<'_>, handle: &Handle) -> Result<Agent> {
    let nobody = || Error::new(Code::NotFound, format!("no agent has the handle {handle}"));
    principals::by_name(&txn.tx, handle.as_str())
        .await?
        .ok_or_else(nobody)
}

/// `PUT /handles/{handle}/grants/{other}`; a grant that is there already stays as it is.
pub async fn grant(who: &Principal, hub: &Hub, mine: &str, other: &str) -> Answer<Grant> {
    let mine = handle("handle", mine)?;
    let grantor = own(who, &mine)?.id;
    let other = handle("grantee", other)?;
    if mine == other {
        return Err(Error::new(Code::Conflict, "a handle may always address itself").into());
    }
    change(hub, async move |txn| {
        still_here(txn, grantor).await?;
        let grantee = agent_of(txn, &other).await?.id;
        if !table::is(&txn.tx, grantor, grantee).await?
            && table::count(&txn.tx, grantor).await? >= limits::GRANTS
        {
            let message = format!(
                "a handle grants at most {} others; an organisation takes more",
                limits::GRANTS
            );
            return Err(Error::new(Code::Conflict, message));
        }
        let granted_at = table::insert(&txn.tx, grantor, grantee, txn.now()).await?;
        Ok((
            Grant {
                grantee: other.clone(),
                granted_at,
            },
            vec![Touched::Grant { grantor, grantee }],
        ))
    })
    .await
}

/// `DELETE /handles/{handle}/grants/{other}`: none there is a confirmed no-op.
pub async fn withdraw(who: &Principal, hub: &Hub, mine: &str, other: &str) -> Answer<Ended> {
    let grantor = own(who, &handle("handle", mine)?)?.id;
    let handle = handle("grantee", other)?;
    change(hub, async move |txn| {
        let Some(grantee) = principals::by_name(&txn.tx, handle.as_str())
            .await?
            .map(|agent| agent.id)
        else {
            return Ok((
                Ended {
                    handle: handle.clone(),
                    deleted: false,
                },
                Vec::new(),
            ));
        };
        let deleted = table::delete(&txn.tx, grantor, grantee).await?;
        Ok((
            Ended {
                handle: handle.clone(),
                deleted,
            },
            vec![Touched::Grant { grantor, grantee }],
        ))
    })
    .await
}

/// `GET /handles/{handle}/grants`
pub async fn list(who: &Principal, hub: &Hub, mine: &str) -> Answer<Grants> {
    let handle = handle("handle", mine)?;
    let grantor = own(who, &handle)?.id;
    let grants = hub
        .store()
        .read(async move |tx| Ok(table::list(tx, grantor).await?))
        .await?;
    Ok(Grants { handle, grants })
}
