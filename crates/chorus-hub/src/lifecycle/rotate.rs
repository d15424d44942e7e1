//! Updating a registered agent, which rotates its key when the agent itself asks.

use super::list_member_ids;
use super::owner::change_owner;
use super::register::{RegistrationChange, card_json, market_json};
use crate::store::{
    Agent, WriteTxn, channel_deliveries, connection_strings, principals, session_tokens,
};
use crate::{Principal, Result};
use chorus_wire::ErrorCode;
use chorus_wire::registration::RegistrationRequest;

/// Only with its current key: of two concurrent rotations with one key, the second has a key that is no longer valid.
pub(super) fn check_can_update(principal: &Principal, before: &Agent) -> Result<()> {
    match principal {
        Principal::Agent(caller)
            if caller.id == before.id && caller.key_hash == before.key_hash =>
        {
            Ok(())
        }
        Principal::Agent(caller) if caller.id == before.id => Err(ErrorCode::Unauthorized.into()),
        Principal::Agent(_) | Principal::Anonymous | Principal::Operator(_) => {
            Err(ErrorCode::AgentIdTaken.into())
        }
    }
}

/// An update replaces the record: each form of registration replaces its own part and leaves the other.
pub(super) async fn update_agent(
    txn: &WriteTxn<'_>,
    before: Agent,
    request: &RegistrationRequest,
    principal: &Principal,
    key_hash: Option<[u8; 32]>,
) -> Result<RegistrationChange> {
    let mut after = before.clone();
    if !request.is_market_form() {
        after.card = card_json(request);
        after.endpoint = request.endpoint.clone();
    }
    if let Some(market) = &request.market {
        after.market = Some(market_json(market));
        if let Some(name) = market
            .owner_id
            .as_deref()
            .filter(|name| *name != before.owner_name)
        {
            after.owner = change_owner(txn, &before, name, principal).await?;
            after.owner_name = name.to_owned();
        }
    }
    after.key_hash = key_hash.or(before.key_hash);
    let mut member_ids = Vec::new();
    // a rotation closes the streams that the old key opened, and revokes what it made. A thief of the key keeps
    // nothing.
    if after.key_hash != before.key_hash {
        session_tokens::revoke_session_tokens(&txn.tx, before.id).await?;
        channel_deliveries::expire_agent_tokens(&txn.tx, before.id, txn.now()).await?;
        connection_strings::revoke_connection_string(&txn.tx, before.id).await?;
        member_ids = list_member_ids(txn, before.id).await?;
    }
    principals::update_agent(&txn.tx, &after).await?;
    Ok(RegistrationChange {
        before: Some(before),
        after,
        score: None,
        member_ids,
    })
}
