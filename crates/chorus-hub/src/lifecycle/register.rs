//! Registration in both forms: by the agent itself and by an operator.

use super::admission::{check_endpoints, check_registration, check_registry_space};
use super::directory::describe_agent;
use super::keys::apply_ended_keys;
use super::owner::{claim_owner, create_own_owner, open_account};
use super::rotate::{check_can_update, update_agent};
use crate::context::HubContext;
use crate::delivery::outgoing::webhook_signature::check_signing_secret;
use crate::frame::Frames;
use crate::identity::{AgentCaller, CallerKey, IdempotencyKey, hash_secret, invites};
use crate::market::{reputation, skills};
use crate::store::{
    Agent, CacheInvalidation, ContactLimits, EndedKey, WriteTxn, agent_keys, name_skeletons,
    principals, record_activity, request_scope::RequestScope,
};
use crate::{Principal, Result, random};
use chorus_wire::reach::AgentReach;
use chorus_wire::registration::{MarketProfile, RegistrationRequest};
use chorus_wire::reply::RegistrationReply;
use chorus_wire::{ErrorCode, identity::AgentName, secret::Secret};
use serde_json::json;
use std::sync::Arc;

/// What a registration changed.
#[derive(Clone)]
pub(super) struct RegistrationChange {
    /// The agent before; `None` for a new one.
    pub before: Option<Agent>,
    pub after: Agent,
    /// Its reputation, when it registered with a market profile.
    pub score: Option<f64>,
    /// The key that was rotated: the streams that it opened end.
    pub ended_key: Option<EndedKey>,
}

/// The key that a registration makes, and the `Idempotency-Key` of the request.
pub(super) struct NewKey {
    pub hash: [u8; 32],
    pub request: Option<IdempotencyKey>,
}

impl RegistrationChange {
    /// What hubs have cached of the agent is no longer valid; when its key changed, its streams end at all of them.
    async fn cache_invalidation(
        &self,
        txn: &WriteTxn<'_>,
        host: &str,
    ) -> Result<CacheInvalidation> {
        let Some(before) = &self.before else {
            return Ok(CacheInvalidation::default());
        };
        let further_keys = agent_keys::list_keys(&txn.tx, before.id).await?;
        let mut invalidation = CacheInvalidation::for_agent(before, host, &further_keys);
        invalidation.ended_keys.extend(self.ended_key.clone());
        Ok(invalidation)
    }
}

/// `POST /register`; true when the agent is new (201), false when it was updated and its key rotated (200).
pub async fn register_agent(
    principal: &Principal,
    hub: &HubContext,
    frames: &Frames,
    request: RegistrationRequest,
    idempotency_key: Option<IdempotencyKey>,
) -> Result<(bool, RegistrationReply)> {
    if let Some(registered) = RequestScope::take_kept()? {
        return Ok((true, registered));
    }
    check_registration(principal, hub, &request).await?;
    let key = random::new_secret("ca_");
    let made_key = key.clone();
    let new_key = NewKey {
        hash: hash_secret(key.expose()),
        request: idempotency_key,
    };
    let host = hub.options().host_name.clone();
    let context = hub.clone();
    let opening_grant = hub.options().opening_grant;
    let sealed_secret = seal_endpoint_secret(hub, &request)?;
    let caller = principal.clone();
    let change = hub
        .store()
        .write(async move |txn| {
            let mut change =
                match principals::find_agent_by_name(&txn.tx, &request.name.canonical_text(&host))
                    .await?
                {
                    Some(before) => {
                        check_can_update(txn, &caller, &before, &new_key).await?;
                        let key_hash = Some(new_key.hash);
                        let sealed = sealed_secret.clone();
                        update_agent(txn, before, &request, &caller, key_hash, sealed).await?
                    }
                    None => {
                        // an operator registers agents without an invite.
                        if caller.require_operator().is_err() {
                            invites::spend_invite(txn, request.invite_code.as_ref()).await?;
                        }
                        let sealed = sealed_secret.clone();
                        create_agent(txn, &context, &request, &caller, new_key.hash, sealed).await?
                    }
                };
            open_account(txn, &change, opening_grant).await?;
            let invalidation = change.cache_invalidation(txn, &host).await?;
            txn.invalidate_caches(&invalidation);
            if let Some(market) = &request.market {
                skills::replace_skills(txn, change.after.id, &market.skills).await?;
                change.score = Some(
                    reputation::current_score(&txn.tx, change.after.id)
                        .await?
                        .value(),
                );
            }
            keep_new_registration(txn, &context, &change, &made_key)?;
            record_activity(
                txn,
                "agent_self_registered",
                &json!({"agent_id": &*change.after.agent_id, "updated": change.before.is_some()}),
            );
            caller.record_operator_act(txn, "register", &change.after.agent_id);
            Ok((change, invalidation))
        })
        .await;
    let (change, invalidation) = hub.identity().key_cache().clear_if_uncertain(change)?;
    hub.identity().key_cache().invalidate(&invalidation);
    Ok(finish_registration(hub, frames, change, Some(key)))
}

/// `POST /agents`; true when the agent is new (201), false when it was updated (200). An update leaves the key alone.
pub async fn register_on_behalf(
    principal: &Principal,
    hub: &HubContext,
    frames: &Frames,
    request: RegistrationRequest,
) -> Result<(bool, RegistrationReply)> {
    principal.require_operator()?;
    if let Some(registered) = RequestScope::take_kept()? {
        return Ok((true, registered));
    }
    check_endpoints(hub, &request)?;
    let key = random::new_secret("ca_");
    let made_key = key.clone();
    let key_hash = hash_secret(key.expose());
    let host = hub.options().host_name.clone();
    let context = hub.clone();
    let opening_grant = hub.options().opening_grant;
    let sealed_secret = seal_endpoint_secret(hub, &request)?;
    let caller = principal.clone();
    let change = hub
        .store()
        .write(async move |txn| {
            let change =
                match principals::find_agent_by_name(&txn.tx, &request.name.canonical_text(&host))
                    .await?
                {
                    Some(before) => {
                        let sealed = sealed_secret.clone();
                        update_agent(txn, before, &request, &caller, None, sealed).await?
                    }
                    None => {
                        let sealed = sealed_secret.clone();
                        create_agent(txn, &context, &request, &caller, key_hash, sealed).await?
                    }
                };
            open_account(txn, &change, opening_grant).await?;
            let invalidation = change.cache_invalidation(txn, &host).await?;
            txn.invalidate_caches(&invalidation);
            keep_new_registration(txn, &context, &change, &made_key)?;
            record_activity(
                txn,
                "agent_registered",
                &json!({"agent_id": &*change.after.agent_id, "updated": change.before.is_some()}),
            );
            caller.record_operator_act(txn, "register", &change.after.agent_id);
            Ok((change, invalidation))
        })
        .await;
    let (change, invalidation) = hub.identity().key_cache().clear_if_uncertain(change)?;
    hub.identity().key_cache().invalidate(&invalidation);
    let key = change.before.is_none().then_some(key);
    Ok(finish_registration(hub, frames, change, key))
}

/// The endpoint secret of the request, as the store keeps it.
fn seal_endpoint_secret(
    hub: &HubContext,
    request: &RegistrationRequest,
) -> Result<Option<Box<[u8]>>> {
    let Some(secret) = &request.endpoint_secret else {
        return Ok(None);
    };
    check_signing_secret("endpoint_secret", secret)?;
    Ok(Some(hub.seal_key().seal_secret(secret)?.into()))
}

pub(super) fn card_json(request: &RegistrationRequest) -> Option<Box<str>> {
    request.card.as_ref().map(|card| card.to_json().into())
}

pub(super) fn market_json(market: &MarketProfile) -> String {
    json!({"agent_name": market.agent_name, "api_endpoint": market.api_endpoint}).to_string()
}

async fn create_agent(
    txn: &mut WriteTxn<'_>,
    hub: &HubContext,
    request: &RegistrationRequest,
    principal: &Principal,
    key_hash: [u8; 32],
    sealed_secret: Option<Box<[u8]>>,
) -> Result<RegistrationChange> {
    let host = &*hub.options().host_name;
    let max_agents = hub.options().max_agents;
    check_registry_space(&txn.tx, max_agents, txn.counter_deltas.agents).await?;
    let skeleton = hub
        .identity()
        .check_new_name(&txn.tx, principal, &request.name)
        .await?;
    let named_owner = request
        .market
        .as_ref()
        .and_then(|market| market.owner_id.as_deref());
    let (owner, owner_name) = match named_owner {
        Some(name) => claim_owner(txn, name, &request.agent_id, principal).await?,
        None => create_own_owner(txn, &request.agent_id, host, principal).await?,
    };
    let id = principals::allocate_subject_id(&txn.tx).await?;
    let mut agent = Agent {
        id,
        agent_id: request.agent_id.as_str().into(),
        handle: None,
        owner,
        owner_name,
        card: card_json(request),
        endpoint: request.endpoint.clone(),
        sealed_endpoint_secret: sealed_secret,
        market: request.market.as_ref().map(market_json),
        key_hash: Some(key_hash),
        registered_at: txn.now(),
        contact_limits: ContactLimits::default(),
    };
    if !principals::claim_name(&txn.tx, &request.name.canonical_text(host), id.into()).await? {
        return Err(ErrorCode::AgentIdTaken.into());
    }
    // the handle comes with the address. An organisation that has it has the name.
    if let AgentName::Address(address) = &request.name
        && let Some(handle) = address.local_handle(host)
    {
        if !principals::claim_name(&txn.tx, handle.as_str(), id.into()).await? {
            return Err(ErrorCode::AgentIdTaken.into());
        }
        agent.handle = Some(handle.to_string());
    }
    principals::insert_agent(&txn.tx, &agent).await?;
    if let Some(skeleton) = skeleton {
        name_skeletons::set_skeleton(&txn.tx, id, &skeleton).await?;
    }
    txn.counter_deltas.agents += 1;
    Ok(RegistrationChange {
        before: None,
        after: agent,
        score: None,
        ended_key: None,
    })
}

/// After the commit: ends the streams that an old key opened, and builds the reply.
fn finish_registration(
    hub: &HubContext,
    frames: &Frames,
    change: RegistrationChange,
    key: Option<Secret>,
) -> (bool, RegistrationReply) {
    let created = change.before.is_none();
    apply_ended_keys(hub, frames, change.ended_key.as_slice());
    (created, describe_registration(hub, change, key))
}

/// Keeps the reply to a new registration, which alone contains its key: the client may have to ask for it again.
fn keep_new_registration(
    txn: &mut WriteTxn<'_>,
    hub: &HubContext,
    change: &RegistrationChange,
    key: &Secret,
) -> Result<()> {
    match change.before {
        Some(_) => Ok(()),
        None => {
            let reply = describe_registration(hub, change.clone(), Some(key.clone()));
            txn.keep_result(&reply)
        }
    }
}

fn describe_registration(
    hub: &HubContext,
    change: RegistrationChange,
    key: Option<Secret>,
) -> RegistrationReply {
    let is_rotated = change.ended_key.is_some();
    let agent = Arc::new(change.after);
    let owner = Principal::Agent(AgentCaller {
        key: CallerKey::of_registration(agent.key_hash.unwrap_or_default()),
        agent: agent.clone(),
    });
    let mut registration = describe_agent(&owner, hub, &agent);
    // The streams of the old key are ending at every hub, so they do not count.
    if is_rotated {
        registration.online = false;
        registration.reach = Some(AgentReach::of_agent(None, agent.endpoint.is_some()));
    }
    RegistrationReply {
        agent_id: agent.agent_id.to_string(),
        api_key: key,
        registration,
        status: change.score.map(|_| "registered".to_owned()),
        reputation_score: change.score,
    }
}
