//! Registration invites (lesson 9): operators create, list and revoke them; each registration uses one up.

use super::{Identity, Principal, key_cache};
use crate::store::{DbConnection, WriteTxn, counters, invites as table};
use crate::{Result, random};
use chorus_wire::invite::NewInvite;
use chorus_wire::{ErrorCode, reply::InviteRecord, secret::Secret, time::UnixMicros};

/// The stored setting: 1 when registration requires an invite.
const INVITE_GATING: &str = "invite_gating";

/// Creates an invite; from then on registration requires one. Only this answer contains the code.
pub async fn create_invite(
    principal: &Principal,
    identity: &Identity,
    new: NewInvite,
) -> Result<InviteRecord> {
    let operator = principal.require_operator()?.clone();
    let code = random::new_secret("ci_");
    let code_hash = key_cache::hash_secret(code.expose());
    identity
        .store
        .write_repeatable(async move |txn| {
            let invite = InviteRecord {
                id: random::new_id().to_string(),
                code: None,
                label: new.label.clone(),
                uses: 0,
                max_uses: new.max_uses,
                expires_at: new.expires_at,
                revoked: false,
                created_at: txn.now(),
            };
            table::insert_invite(&txn.tx, &invite, &code_hash).await?;
            counters::write_setting(&txn.tx, INVITE_GATING, 1).await?;
            operator.record_act(txn, "create_invite", &invite.id);
            Ok(InviteRecord {
                code: Some(code.clone()),
                ..invite
            })
        })
        .await
}

pub async fn list_invites(principal: &Principal, identity: &Identity) -> Result<Vec<InviteRecord>> {
    principal.require_operator()?;
    identity
        .store
        .read(async |tx| Ok(table::list_invites(tx).await?))
        .await
}

/// The revoked invite; an unknown id is `ERR_NOT_FOUND`.
pub async fn revoke_invite(
    principal: &Principal,
    identity: &Identity,
    id: &str,
) -> Result<InviteRecord> {
    let operator = principal.require_operator()?.clone();
    let id = id.to_owned();
    identity
        .store
        .write(async move |txn| {
            let invite = table::revoke_invite(&txn.tx, &id).await?;
            let invite = invite.ok_or(ErrorCode::NotFound)?;
            operator.record_act(txn, "revoke_invite", &invite.id);
            Ok(invite)
        })
        .await
}

/// Registration no longer requires an invite: the one way to undo R-36.
pub async fn disable_invite_gating(principal: &Principal, identity: &Identity) -> Result<()> {
    let operator = principal.require_operator()?.clone();
    identity
        .store
        .write(async move |txn| {
            operator.record_act(txn, "open_registration", "");
            Ok(counters::write_setting(&txn.tx, INVITE_GATING, 0).await?)
        })
        .await
}

/// Whether registration requires an invite.
pub async fn is_invite_gated(identity: &Identity) -> Result<bool> {
    identity
        .store
        .read(async |tx| Ok(counters::read_setting(tx, INVITE_GATING).await? == Some(1)))
        .await
}

/// Uses up one use of the invite, if this hub requires one.
pub(crate) async fn spend_invite(txn: &WriteTxn<'_>, code: Option<&Secret>) -> Result<()> {
    match find_usable_invite(&txn.tx, code, txn.now()).await? {
        Some(invite) => Ok(table::record_invite_use(&txn.tx, &invite.id).await?),
        None => Ok(()),
    }
}

/// The invite of this code, if it can be used now; `None` when this hub requires none.
pub(crate) async fn find_usable_invite(
    tx: &DbConnection<'_>,
    code: Option<&Secret>,
    now: UnixMicros,
) -> Result<Option<InviteRecord>> {
    if counters::read_setting(tx, INVITE_GATING).await? != Some(1) {
        return Ok(None);
    }
    let code = code.ok_or(ErrorCode::InviteRequired)?;
    let invite = table::find_invite_by_code(tx, &key_cache::hash_secret(code.expose()))
        .await?
        .ok_or(ErrorCode::InviteRequired)?;
    if invite.revoked {
        return Err(ErrorCode::InviteRevoked.into());
    }
    if invite.expires_at.is_some_and(|at| at <= now) {
        return Err(ErrorCode::InviteExpired.into());
    }
    if invite
        .max_uses
        .is_some_and(|max_uses| invite.uses >= max_uses)
    {
        return Err(ErrorCode::InviteExhausted.into());
    }
    Ok(Some(invite))
}
