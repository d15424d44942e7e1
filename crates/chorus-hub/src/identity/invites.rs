//! Registration invite codes (lesson 9): made, listed and revoked by operators, spent by registrations.

use super::{Principal, keyring};
use crate::store::{Txn, counters, invites as table};
use crate::{Hub, Result, clock};
use chorus_wire::{Code, reply::Invite, secret::Secret, time::Micros};

/// The setting that says whether registration asks for a code.
const GATED: &str = "invite_gating";

/// The body of `POST /invites`.
#[derive(Clone, Debug)]
pub struct NewInvite {
    pub label: String,
    pub max_uses: Option<u64>,
    pub expires_at: Option<Micros>,
}

/// Makes a code and closes the hub to those without one. The code is in this answer and nowhere else.
pub async fn create(who: &Principal, hub: &Hub, new: NewInvite) -> Result<Invite> {
    who.operator()?;
    let code = clock::new_secret("ci_");
    let hash = keyring::hash(code.expose());
    hub.store()
        .write(async move |txn| {
            let invite = Invite {
                id: clock::new_id().to_string(),
                code: None,
                label: new.label.clone(),
                uses: 0,
                max_uses: new.max_uses,
                expires_at: new.expires_at,
                revoked: false,
                created_at: txn.now(),
            };
            table::insert(&txn.tx, &invite, &hash).await?;
            counters::set(&txn.tx, GATED, 1).await?;
            Ok(Invite {
                code: Some(code.clone()),
                ..invite
            })
        })
        .await
}

pub async fn list(who: &Principal, hub: &Hub) -> Result<Vec<Invite>> {
    who.operator()?;
    hub.store()
        .read(async |tx| Ok(table::list(tx).await?))
        .await
}

/// The invite as it is now, revoked; unknown ids are `ERR_NOT_FOUND`.
pub async fn revoke(who: &Principal, hub: &Hub, id: &str) -> Result<Invite> {
    who.operator()?;
    let id = id.to_owned();
    hub.store()
        .write(async move |txn| {
            table::revoke(&txn.tx, &id)
                .await?
                .ok_or_else(|| Code::NotFound.into())
        })
        .await
}

/// Opens the hub again to those without a code: the one way out of R-36's gate.
pub async fn open(who: &Principal, hub: &Hub) -> Result<()> {
    who.operator()?;
    hub.store()
        .write(async |txn| Ok(counters::set(&txn.tx, GATED, 0).await?))
        .await
}

/// Whether registration asks for a code.
pub(crate) async fn gated(hub: &Hub) -> Result<bool> {
    hub.store()
        .read(async |tx| Ok(counters::setting(tx, GATED).await? == Some(1)))
        .await
}

/// Spends one use of the code, if this hub asks for one.
pub(super) async fn admit(txn: &Txn<'_>, code: Option<&Secret>) -> Result<()> {
    if counters::setting(&txn.tx, GATED).await? != Some(1) {
        return Ok(());
    }
    let code = code.ok_or(Code::InviteRequired)?;
    let invite = table::by_code(&txn.tx, &keyring::hash(code.expose()))
        .await?
        .ok_or(Code::InviteRequired)?;
    if invite.revoked {
        return Err(Code::InviteRevoked.into());
    }
    if invite.expires_at.is_some_and(|at| at <= txn.now()) {
        return Err(Code::InviteExpired.into());
    }
    if invite.max_uses.is_some_and(|most| invite.uses >= most) {
        return Err(Code::InviteExhausted.into());
    }
    Ok(table::spend(&txn.tx, &invite.id).await?)
}
