//! Coming and going: registration in both forms, key rotation, unregistering.

use super::directory::describe_agent;
use super::{Agent, Principal, find_agent, invites, key_cache};
use crate::channel::members::leave_all_channels;
use crate::market::{reputation, skills};
use crate::store::record_activity;
use crate::store::{
    CacheInvalidation, WriteTxn, channels, counters, ledger, messages, orgs, principals,
    session_tokens,
};
use crate::stream_end::StreamEnd;
use crate::{Hub, Result, clock};
use chorus_wire::identity::{AgentName, Handle};
use chorus_wire::market::credits::Credits;
use chorus_wire::registration::{MarketProfile, RegistrationRequest};
use chorus_wire::reply::{AgentDeleted, RegistrationReply};
use chorus_wire::{Code, Error, secret::Secret};
use serde_json::json;
use std::sync::Arc;

/// What a registration did.
struct RegistrationChange {
    /// The agent as it was; `None` for a new one.
    before: Option<Agent>,
    after: Agent,
    /// Its reputation, when it came with a market face.
    score: Option<f64>,
    /// Its places in rooms, when its key changed: the streams there end with those of its inbox.
    member_ids: Vec<i64>,
}

impl RegistrationChange {
    /// What other hubs knew of the agent is no longer so; with its key changed, its streams end there too.
    fn cache_invalidation(&self, host: &str) -> CacheInvalidation {
        let Some(before) = &self.before else {
            return CacheInvalidation::default();
        };
        let rotated = before.key_hash != self.after.key_hash;
        let ended_subjects = rotated
            .then_some(before.id)
            .into_iter()
            .chain(self.member_ids.iter().copied());
        CacheInvalidation {
            ended: CacheInvalidation::for_ended_streams(ended_subjects, StreamEnd::KeyRotated)
                .ended,
            ..CacheInvalidation::for_agent(before, host)
        }
    }
}

/// `POST /register`; true when the agent is new (201), false when it was updated and its key rotated (200).
pub async fn register_agent(
    principal: &Principal,
    hub: &Hub,
    request: RegistrationRequest,
) -> Result<(bool, RegistrationReply)> {
    check_endpoints(hub, &request).await?;
    skills::check_skills(request.market.as_ref().map_or(&[], |market| &market.skills))?;
    let key = clock::new_secret("ca_");
    let (host, max_agents, opening_grant) = (
        hub.options().host_name.clone(),
        hub.options().max_agents,
        hub.options().opening_grant,
    );
    let (caller, key_hash) = (principal.clone(), key_cache::hash_secret(key.expose()));
    let change = hub
        .store()
        .write(async move |txn| {
            let mut change =
                match principals::find_agent_by_name(&txn.tx, &request.name.canonical_text(&host))
                    .await?
                {
                    Some(before) => {
                        check_can_update(&caller, &before)?;
                        update_agent(txn, before, &request, &caller, Some(key_hash)).await?
                    }
                    None => {
                        // the gate is for those whom no operator lets in.
                        if caller.require_operator().is_err() {
                            invites::spend_invite(txn, request.invite_code.as_ref()).await?;
                        }
                        create_agent(txn, &request, &caller, key_hash, &host, max_agents).await?
                    }
                };
            open_account(txn, &change, opening_grant).await?;
            txn.invalidate_caches(&change.cache_invalidation(&host));
            if let Some(market) = &request.market {
                skills::replace_skills(txn, change.after.id, &market.skills).await?;
                change.score = Some(
                    reputation::current_score(&txn.tx, change.after.id)
                        .await?
                        .value(),
                );
            }
            record_activity(
                txn,
                "agent_self_registered",
                &json!({"agent_id": &*change.after.agent_id, "updated": change.before.is_some()}),
            );
            Ok(change)
        })
        .await;
    let change = hub.key_cache().clear_if_uncertain(change)?;
    Ok(finish_registration(hub, change, Some(key)))
}

/// `POST /agents`; true when the agent is new (201), false when it was updated (200). An update leaves the key alone.
pub async fn register_on_behalf(
    principal: &Principal,
    hub: &Hub,
    request: RegistrationRequest,
) -> Result<(bool, RegistrationReply)> {
    principal.require_operator()?;
    check_endpoints(hub, &request).await?;
    let key = clock::new_secret("ca_");
    let (host, max_agents, opening_grant) = (
        hub.options().host_name.clone(),
        hub.options().max_agents,
        hub.options().opening_grant,
    );
    let (caller, key_hash) = (principal.clone(), key_cache::hash_secret(key.expose()));
    let change = hub
        .store()
        .write(async move |txn| {
            let change =
                match principals::find_agent_by_name(&txn.tx, &request.name.canonical_text(&host))
                    .await?
                {
                    Some(before) => update_agent(txn, before, &request, &caller, None).await?,
                    None => {
                        create_agent(txn, &request, &caller, key_hash, &host, max_agents).await?
                    }
                };
            open_account(txn, &change, opening_grant).await?;
            txn.invalidate_caches(&change.cache_invalidation(&host));
            record_activity(
                txn,
                "agent_registered",
                &json!({"agent_id": &*change.after.agent_id, "updated": change.before.is_some()}),
            );
            Ok(change)
        })
        .await;
    let change = hub.key_cache().clear_if_uncertain(change)?;
    let key = change.before.is_none().then_some(key);
    Ok(finish_registration(hub, change, key))
}

/// Judged before anything is written: where a name leads may take a look-up.
async fn check_endpoints(hub: &Hub, request: &RegistrationRequest) -> Result<()> {
    let endpoints = [
        request.endpoint.as_ref(),
        request
            .market
            .as_ref()
            .and_then(|market| market.api_endpoint.as_ref()),
    ];
    for url in endpoints.into_iter().flatten() {
        hub.outgoing_client().check_endpoint(url).await?;
    }
    Ok(())
}

/// Only with the key it has now: of two rotations with one key, the second comes with a key that is dead.
fn check_can_update(principal: &Principal, before: &Agent) -> Result<()> {
    match principal {
        Principal::Agent(caller)
            if caller.id == before.id && caller.key_hash == before.key_hash =>
        {
            Ok(())
        }
        Principal::Agent(caller) if caller.id == before.id => Err(Code::Unauthorized.into()),
        Principal::Agent(_) | Principal::Anonymous | Principal::Operator(_) => {
            Err(Code::AgentIdTaken.into())
        }
    }
}

/// The owner of this name, if it is the asking agent's own or an operator vouches for it; `None` when it is free (R-05, D-97).
/// A name that only an agent can have is nobody else's to claim, or a stranger could keep an address from registering.
async fn find_claimable_owner(
    txn: &WriteTxn<'_>,
    name: &str,
    agent_id: &str,
    principal: &Principal,
) -> Result<Option<i64>> {
    match (principals::find_owner_id(&txn.tx, name).await?, principal) {
        (None, _) if name != agent_id && (name.contains('@') || name.starts_with('~')) => {
            Err(Code::OwnerTaken.into())
        }
        (None, _) => Ok(None),
        (Some(owner), Principal::Agent(caller)) if caller.owner == owner => Ok(Some(owner)),
        (Some(owner), Principal::Operator(_)) => Ok(Some(owner)),
        (Some(_), Principal::Agent(_) | Principal::Anonymous) => Err(Code::OwnerTaken.into()),
    }
}

/// The owner that an agent which is here already names instead of its own. One that owned itself alone is the same owner under
/// the new name, and has what it had.
async fn change_owner(
    txn: &WriteTxn<'_>,
    agent: &Agent,
    name: &str,
    principal: &Principal,
) -> Result<i64> {
    if let Some(owner) = find_claimable_owner(txn, name, &agent.agent_id, principal).await? {
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

/// The owner has an account. Credits are granted to one who comes: whoever is here could otherwise make some by naming another
/// owner, as often as it likes.
async fn open_account(
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

fn card_json(request: &RegistrationRequest) -> Option<Box<str>> {
    request.card.as_ref().map(|card| card.to_json().into())
}

fn market_json(market: &MarketProfile) -> String {
    json!({"agent_name": market.agent_name, "api_endpoint": market.api_endpoint}).to_string()
}

async fn create_agent(
    txn: &mut WriteTxn<'_>,
    request: &RegistrationRequest,
    principal: &Principal,
    key_hash: [u8; 32],
    host: &str,
    max_agents: Option<u64>,
) -> Result<RegistrationChange> {
    if let Some(max_agents) = max_agents {
        let agent_count =
            counters::read_counters(&txn.tx).await?.agents + txn.counter_deltas.agents;
        if agent_count >= max_agents as i64 {
            return Err(Code::RegistryFull.into());
        }
    }
    let named_owner = request
        .market
        .as_ref()
        .and_then(|market| market.owner_id.as_deref());
    let owner_name = named_owner.unwrap_or(&request.agent_id).to_owned();
    let owner = match find_claimable_owner(txn, &owner_name, &request.agent_id, principal).await? {
        Some(owner) => owner,
        None => principals::create_owner(&txn.tx, &owner_name).await?,
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
        market: request.market.as_ref().map(market_json),
        key_hash: Some(key_hash),
        registered_at: txn.now(),
    };
    if !principals::claim_name(&txn.tx, &request.name.canonical_text(host), id).await? {
        return Err(Code::AgentIdTaken.into());
    }
    // the handle comes with the address, unless somebody has it already.
    if let AgentName::Address(address) = &request.name
        && let Some(handle) = address.local_handle(host)
        && principals::claim_name(&txn.tx, handle.as_str(), id).await?
    {
        agent.handle = Some(handle.to_string());
    }
    principals::insert_agent(&txn.tx, &agent).await?;
    txn.counter_deltas.agents += 1;
    Ok(RegistrationChange {
        before: None,
        after: agent,
        score: None,
        member_ids: Vec::new(),
    })
}

/// An update replaces the record: each form replaces what it speaks of and leaves the other form's part alone.
async fn update_agent(
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
    // a rotation closes what the old key opened, and so what it could still open.
    if after.key_hash != before.key_hash {
        session_tokens::revoke_session_tokens(&txn.tx, before.id).await?;
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

/// After the commit: forget what was known, close streams that an old key opened, and say what there is now.
fn finish_registration(
    hub: &Hub,
    change: RegistrationChange,
    key: Option<Secret>,
) -> (bool, RegistrationReply) {
    let created = change.before.is_none();
    if let Some(before) = &change.before {
        hub.key_cache().invalidate_agent(hub, before);
        if before.key_hash != change.after.key_hash {
            hub.end_streams(before.id, StreamEnd::KeyRotated);
            change.member_ids.iter().for_each(|member_id| {
                hub.stream_bus()
                    .end_streams(*member_id, StreamEnd::KeyRotated)
            });
        }
    }
    let rotated = change
        .before
        .as_ref()
        .is_some_and(|before| before.key_hash != change.after.key_hash);
    let agent = Arc::new(change.after);
    let mut registration = describe_agent(&Principal::Agent(agent.clone()), hub, &agent);
    // What was open with the old key is ending, on every hub at its own moment.
    registration.online &= !rotated;
    let registered = RegistrationReply {
        agent_id: agent.agent_id.to_string(),
        api_key: key,
        registration,
        status: change.score.map(|_| "registered".to_owned()),
        reputation_score: change.score,
    };
    (created, registered)
}

/// `DELETE /agents/{id}`: absent is a confirmed no-op; otherwise only the agent itself or an operator (R-31, failure 2).
pub async fn unregister_agent(
    principal: &Principal,
    hub: &Hub,
    name: &str,
) -> Result<AgentDeleted> {
    if matches!(principal, Principal::Anonymous) {
        return Err(Code::Unauthorized.into());
    }
    let absent = AgentDeleted {
        agent_id: name.to_owned(),
        deleted: false,
    };
    let Ok(parsed) = AgentName::parse("agent_id", name) else {
        return Ok(absent);
    };
    let Some(agent) = find_agent(hub, &parsed).await? else {
        return Ok(absent);
    };
    match principal {
        Principal::Agent(caller) if caller.id != agent.id => {
            return Err(Error::new(
                Code::Forbidden,
                "an agent unregisters only itself",
            ));
        }
        Principal::Agent(_) | Principal::Operator(_) | Principal::Anonymous => {}
    }
    let id = agent.id;
    let host = hub.options().host_name.clone();
    let removed = hub
        .store()
        .write(async move |txn| remove_agent(txn, id, &host).await)
        .await;
    let removed = hub.key_cache().clear_if_uncertain(removed)?;
    hub.key_cache().invalidate_agent(hub, &agent);
    let Some(removed) = removed else {
        return Ok(absent);
    };
    hub.frames().invalidate_orgs(removed.left_orgs);
    hub.key_cache().invalidate_agent(hub, &removed.agent);
    hub.end_streams(removed.agent.id, StreamEnd::Unregistered);
    removed.member_ids.iter().for_each(|member_id| {
        hub.stream_bus()
            .end_streams(*member_id, StreamEnd::Unregistered)
    });
    Ok(AgentDeleted {
        agent_id: removed.agent.agent_id.to_string(),
        deleted: true,
    })
}

/// What a removal ended, for the caches and streams of this hub.
struct RemovedAgent {
    agent: Agent,
    left_orgs: Vec<Handle>,
    member_ids: Vec<i64>,
}

/// Removes the agent and everything that only a registered agent has; `None` when another request was first.
async fn remove_agent(txn: &mut WriteTxn<'_>, id: i64, host: &str) -> Result<Option<RemovedAgent>> {
    let Some(agent) = principals::find_agent(&txn.tx, id).await? else {
        return Ok(None);
    };
    messages::abandon_queued(txn, id).await?;
    txn.counter_deltas.agents -= 1;
    skills::replace_skills(txn, id, &[]).await?;
    // the next agent with this name is granted nothing and belongs nowhere.
    let left_orgs = orgs::remove_agent_memberships(&txn.tx, id).await?;
    let member_ids = list_member_ids(txn, id).await?;
    // Before the entries that tell its channels that it left: its own streams there do not receive them.
    txn.invalidate_caches(&CacheInvalidation {
        orgs: left_orgs.iter().map(ToString::to_string).collect(),
        ended: CacheInvalidation::for_ended_streams(
            member_ids.iter().copied().chain([id]),
            StreamEnd::Unregistered,
        )
        .ended,
        ..CacheInvalidation::for_agent(&agent, host)
    });
    leave_all_channels(txn, id).await?;
    principals::mark_agent_deleted(&txn.tx, &agent, txn.now()).await?;
    record_activity(txn, "agent_removed", &json!({"agent_id": &*agent.agent_id}));
    Ok(Some(RemovedAgent {
        agent,
        left_orgs,
        member_ids,
    }))
}

/// The agent's memberships of channels; each is a subject of its own whose streams can be ended.
async fn list_member_ids(txn: &WriteTxn<'_>, agent: i64) -> Result<Vec<i64>> {
    let memberships = channels::list_memberships(&txn.tx, agent).await?;
    Ok(memberships.iter().map(|member| member.id).collect())
}
