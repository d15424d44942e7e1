//! Updating a registered agent, which rotates its key when the agent itself asks.

use super::keys::{self, ReplacedKey};
use super::owner::change_owner;
use super::register::{NewKey, RegistrationChange, card_json, market_json};
use crate::store::{Agent, WriteTxn, principals};
use crate::{Principal, Result};
use chorus_wire::ErrorCode;
use chorus_wire::registration::RegistrationRequest;
use std::time::Duration;

/// Only with a valid key of the agent: of two concurrent rotations with one key, the second has a key that is no longer valid.
/// A request whose answer was lost may come again with its old key.
pub(super) async fn check_can_update(
    txn: &WriteTxn<'_>,
    principal: &Principal,
    before: &Agent,
    new_key: &NewKey,
) -> Result<()> {
    match principal {
        Principal::Agent(caller) if caller.id == before.id => {
            keys::check_rotation(txn, caller, new_key.request.as_ref()).await?;
            keys::record_attempt(txn, caller, new_key.hash, new_key.request.as_ref()).await
        }
        Principal::Agent(_) | Principal::Anonymous | Principal::Operator(_) => {
            Err(ErrorCode::AgentIdTaken.into())
        }
    }
}

/// Whether the caller is the agent of that name. The transaction checks its key.
pub(super) fn check_is_own(principal: &Principal, before: &Agent) -> Result<()> {
    match principal {
        Principal::Agent(caller) if caller.id == before.id => Ok(()),
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
    sealed_secret: Option<Box<[u8]>>,
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
    // an update that names no endpoint secret keeps the one there is. Posts never become unsigned unnoticed.
    if sealed_secret.is_some() {
        after.sealed_endpoint_secret = sealed_secret;
    }
    after.key_hash = key_hash.or(before.key_hash);
    // a rotation closes the streams that the old key opened, and revokes what it made. A thief of the key keeps
    // nothing.
    let replaced = match after.key_hash == before.key_hash {
        true => ReplacedKey::default(),
        false => keys::replace_registration_key(txn, &before, Duration::ZERO).await?,
    };
    principals::update_agent(&txn.tx, &after).await?;
    Ok(RegistrationChange {
        before: Some(before),
        after,
        score: None,
        ended_key: replaced.ended,
    })
}
