//! Owners: which owner an agent may name, and the owner's account.

use super::register::RegistrationChange;
use crate::store::{Agent, DbConnection, OwnerId, WriteTxn, ledger, principals};
use crate::{Principal, Result};
use chorus_wire::ErrorCode;
use chorus_wire::credits::Credits;

/// The owner of this name, if it is the caller's own or the caller is an operator; `None` when the name is free (R-05, D-97).
/// A name in the form of an address or handle can only be claimed by the agent of that name; otherwise a stranger could prevent
/// its registration.
pub(super) async fn find_claimable_owner(
    tx: &DbConnection<'_>,
    name: &str,
    agent_id: &str,
    principal: &Principal,
) -> Result<Option<OwnerId>> {
    match (principals::find_owner_id(tx, name).await?, principal) {
        (None, _) if name != agent_id && (name.contains('@') || name.starts_with('~')) => {
            Err(ErrorCode::OwnerTaken.into())
        }
        (None, _) => Ok(None),
        (Some(owner), Principal::Agent(caller)) if caller.owner == owner => Ok(Some(owner)),
        (Some(owner), Principal::Operator(_)) => Ok(Some(owner)),
        (Some(_), Principal::Agent(_) | Principal::Anonymous) => Err(ErrorCode::OwnerTaken.into()),
    }
}

/// The owner that a registered agent names instead of its own. An owner with the agent's own name and no other agent is renamed,
/// and keeps its credits.
pub(super) async fn change_owner(
    txn: &WriteTxn<'_>,
    agent: &Agent,
    name: &str,
    principal: &Principal,
) -> Result<OwnerId> {
    if let Some(owner) = find_claimable_owner(&txn.tx, name, &agent.agent_id, principal).await? {
        return Ok(owner);
    }
    if *agent.owner_name == *agent.agent_id
        && principals::find_oldest_sibling(&txn.tx, agent)
            .await?
            .is_none()
    {
        principals::rename_owner(&txn.tx, agent.owner, name).await?;
        return Ok(agent.owner);
    }
    Ok(principals::create_owner(&txn.tx, name).await?)
}

/// Opens the owner's account. Only a new agent brings the opening grant: a registered one could otherwise create credits by
/// naming another owner again and again.
pub(super) async fn open_account(
    txn: &mut WriteTxn<'_>,
    change: &RegistrationChange,
    grant: Credits,
) -> Result<()> {
    let grant = if change.before.is_none() {
        grant
    } else {
        Credits::ZERO
    };
    Ok(ledger::grant_opening_credits(txn, change.after.owner, grant).await?)
}
