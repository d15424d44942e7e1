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

/// The owner that a new agent names, which is created if there is none of that name.
pub(super) async fn claim_owner(
    txn: &WriteTxn<'_>,
    name: &str,
    agent_id: &str,
    principal: &Principal,
) -> Result<(OwnerId, String)> {
    let owner = match find_claimable_owner(&txn.tx, name, agent_id, principal).await? {
        Some(owner) => owner,
        None => principals::create_owner(&txn.tx, name).await?,
    };
    Ok((owner, name.to_owned()))
}

/// The owner of a new agent that names none: the agent owns itself. If another agent has named a short `agent_id` as its
/// owner, the owner has the host in its name, which no other agent can claim. Otherwise an `owner_id` would prevent the
/// registration of the agent of that name.
pub(super) async fn create_own_owner(
    txn: &WriteTxn<'_>,
    agent_id: &str,
    host: &str,
    principal: &Principal,
) -> Result<(OwnerId, String)> {
    match claim_owner(txn, agent_id, agent_id, principal).await {
        Err(error) if error.code == ErrorCode::OwnerTaken && !agent_id.contains('@') => {
            let name = format!("{agent_id}@{host}");
            Ok((principals::create_owner(&txn.tx, &name).await?, name))
        }
        claimed => claimed,
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
    if agent.owns_itself()
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
    let names = [&*change.after.agent_id, &*change.after.owner_name];
    Ok(ledger::grant_opening_credits(txn, change.after.owner, names, grant).await?)
}
