//! Grants: which other handles may address a handle.

use super::Frames;
use super::addressing_cache::{AddressingChange, write_and_invalidate};
use crate::Result;
use crate::identity::{Agent, Principal};
use crate::store::{AgentId, WriteTxn, grants as table, principals};
use chorus_wire::frame::FrameError;
use chorus_wire::frame::organisation::{AccessRemoved, HandleGrant, HandleGrants};
use chorus_wire::{Error, ErrorCode, identity::Handle, limits};
use std::sync::Arc;

type GrantResult<T> = std::result::Result<T, FrameError>;

/// A handle from a path; `field` is what the error calls it.
pub(super) fn parse_path_handle(field: &str, text: &str) -> GrantResult<Handle> {
    Handle::parse(text)
        .ok_or_else(|| FrameError::invalid_field(field, "a handle such as ~alice, in lower case"))
}

/// The calling agent, which must be the one with this handle.
pub(super) fn require_own_agent<'a>(
    principal: &'a Principal,
    handle: &Handle,
) -> Result<&'a Arc<Agent>> {
    let agent = principal.require_agent()?;
    match agent.handle.as_deref() == Some(handle.as_str()) {
        true => Ok(agent),
        false => Err(Error::new(
            ErrorCode::Forbidden,
            format!("{handle} is not the handle of this key"),
        )),
    }
}

/// The caller is still registered in this transaction: it may have been unregistered since it authenticated.
pub(super) async fn check_registered(txn: &WriteTxn<'_>, agent: AgentId) -> Result<()> {
    principals::find_agent(&txn.tx, agent)
        .await?
        .map(drop)
        .ok_or_else(|| ErrorCode::Unauthorized.into())
}

/// The agent that has this handle now.
pub(super) async fn find_agent(txn: &WriteTxn<'_>, handle: &Handle) -> Result<Agent> {
    let not_found = || {
        Error::new(
            ErrorCode::NotFound,
            format!("no agent has the handle {handle}"),
        )
    };
    principals::find_agent_by_name(&txn.tx, handle.as_str())
        .await?
        .ok_or_else(not_found)
}

/// `PUT /handles/{handle}/grants/{other}`; an existing grant stays as it is.
pub async fn put_grant(
    principal: &Principal,
    frames: &Frames,
    grantor_handle: &str,
    grantee_handle: &str,
) -> GrantResult<HandleGrant> {
    let grantor_handle = parse_path_handle("handle", grantor_handle)?;
    let grantor = require_own_agent(principal, &grantor_handle)?.id;
    let grantee_handle = parse_path_handle("grantee", grantee_handle)?;
    if grantor_handle == grantee_handle {
        return Err(Error::new(ErrorCode::Conflict, "a handle may always address itself").into());
    }
    write_and_invalidate(frames, async move |txn| {
        check_registered(txn, grantor).await?;
        let grantee = find_agent(txn, &grantee_handle).await?.id;
        if !table::has_grant(&txn.tx, grantor, grantee).await?
            && table::count_grants(&txn.tx, grantor).await? >= limits::GRANTS_PER_HANDLE
        {
            let message = format!(
                "a handle grants at most {} others; an organisation takes more",
                limits::GRANTS_PER_HANDLE
            );
            return Err(Error::new(ErrorCode::Conflict, message));
        }
        let granted_at = table::insert_grant(&txn.tx, grantor, grantee, txn.now()).await?;
        Ok((
            HandleGrant {
                grantee: grantee_handle.clone(),
                granted_at,
            },
            vec![AddressingChange::Grant { grantor, grantee }],
        ))
    })
    .await
}

/// `DELETE /handles/{handle}/grants/{other}`: without a grant it is a confirmed no-op.
pub async fn withdraw_grant(
    principal: &Principal,
    frames: &Frames,
    grantor_handle: &str,
    grantee_handle: &str,
) -> GrantResult<AccessRemoved> {
    let grantor = require_own_agent(principal, &parse_path_handle("handle", grantor_handle)?)?.id;
    let handle = parse_path_handle("grantee", grantee_handle)?;
    write_and_invalidate(frames, async move |txn| {
        let Some(grantee) = principals::find_agent_by_name(&txn.tx, handle.as_str())
            .await?
            .map(|agent| agent.id)
        else {
            return Ok((
                AccessRemoved {
                    handle: handle.clone(),
                    deleted: false,
                },
                Vec::new(),
            ));
        };
        let deleted = table::delete_grant(&txn.tx, grantor, grantee).await?;
        Ok((
            AccessRemoved {
                handle: handle.clone(),
                deleted,
            },
            vec![AddressingChange::Grant { grantor, grantee }],
        ))
    })
    .await
}

/// `GET /handles/{handle}/grants`
pub async fn list_grants(
    principal: &Principal,
    frames: &Frames,
    grantor_handle: &str,
) -> GrantResult<HandleGrants> {
    let handle = parse_path_handle("handle", grantor_handle)?;
    let grantor = require_own_agent(principal, &handle)?.id;
    let grants = frames
        .context()
        .store()
        .read(async move |tx| Ok(table::list_grants(tx, grantor).await?))
        .await?;
    Ok(HandleGrants { handle, grants })
}
