//! Coming and going: registration in both forms, key rotation, unregistering.

use super::directory::record_of;
use super::{Agent, Principal, find, invites, keyring};
use crate::channel::members::depart;
use crate::delivery::Ending;
use crate::market::{reputation, skills};
use crate::ops::happened;
use crate::store::{Notice, Txn, channels, counters, ledger, messages, orgs, principals, sessions};
use crate::{Hub, Result, clock};
use chorus_wire::market::credits::Credits;
use chorus_wire::register::{MarketFace, Registration};
use chorus_wire::reply::{Deleted, Registered};
use chorus_wire::{Code, Error, identity::Name, secret::Secret};
use serde_json::json;
use std::sync::Arc;

/// What a registration did.
struct Change {
    /// The agent as it was; `None` for a new one.
    before: Option<Agent>,
    after: Agent,
    /// Its reputation, when it came with a market face.
    score: Option<f64>,
    /// Its places in rooms, when its key changed: the streams there end with those of its inbox.
    places: Vec<i64>,
}

impl Change {
    /// What other hubs knew of the agent is no longer so; with its key changed, its streams end there too.
    fn notice(&self, host: &str) -> Notice {
        let Some(before) = &self.before else {
            return Notice::default();
        };
        let rotated = before.key_hash != self.after.key_hash;
        let ended = rotated
            .then_some(before.id)
            .into_iter()
            .chain(self.places.iter().copied());
        Notice {
            ended: Notice::ended(ended, Ending::KeyRotated).ended,
            ..Notice::of(before, host)
        }
    }
}

/// `POST /register`; true when the agent is new (201), false when it was updated and its key rotated (200).
pub async fn register(
    who: &Principal,
    hub: &Hub,
    request: Registration,
) -> Result<(bool, Registered)> {
    admit_endpoints(hub, &request).await?;
    skills::admit(request.market.as_ref().map_or(&[], |market| &market.skills))?;
    let key = clock::new_secret("ca_");
    let (host, most, grant) = (
        hub.options().host_name.clone(),
        hub.options().max_agents,
        hub.options().opening_grant,
    );
    let (asking, hash) = (who.clone(), keyring::hash(key.expose()));
    let change = hub
        .store()
        .write(async move |txn| {
            let mut change =
                match principals::by_name(&txn.tx, &request.name.canonical(&host)).await? {
                    Some(before) => {
                        may_update(&asking, &before)?;
                        update(txn, before, &request, &asking, Some(hash)).await?
                    }
                    None => {
                        // the gate is for those whom no operator lets in.
                        if asking.operator().is_err() {
                            invites::admit(txn, request.invite_code.as_ref()).await?;
                        }
                        create(txn, &request, &asking, hash, &host, most).await?
                    }
                };
            open_account(txn, &change, grant).await?;
            txn.notice(&change.notice(&host));
            if let Some(market) = &request.market {
                skills::replace(txn, change.after.id, &market.skills).await?;
                change.score = Some(reputation::score(&txn.tx, change.after.id).await?.value());
            }
            happened(
                txn,
                "agent_self_registered",
                &json!({"agent_id": &*change.after.agent_id, "updated": change.before.is_some()}),
            );
            Ok(change)
        })
        .await;
    let change = hub.keyring().sure(change)?;
    Ok(finish(hub, change, Some(key)))
}

/// `POST /agents`; true when the agent is new (201), false when it was updated (200). An update leaves the key alone.
pub async fn register_for(
    who: &Principal,
    hub: &Hub,
    request: Registration,
) -> Result<(bool, Registered)> {
    who.operator()?;
    admit_endpoints(hub, &request).await?;
    let key = clock::new_secret("ca_");
    let (host, most, grant) = (
        hub.options().host_name.clone(),
        hub.options().max_agents,
        hub.options().opening_grant,
    );
    let (asking, hash) = (who.clone(), keyring::hash(key.expose()));
    let change = hub
        .store()
        .write(async move |txn| {
            let change = match principals::by_name(&txn.tx, &request.name.canonical(&host)).await? {
                Some(before) => update(txn, before, &request, &asking, None).await?,
                None => create(txn, &request, &asking, hash, &host, most).await?,
            };
            open_account(txn, &change, grant).await?;
            txn.notice(&change.notice(&host));
            happened(
                txn,
                "agent_registered",
                &json!({"agent_id": &*change.after.agent_id, "updated": change.before.is_some()}),
            );
            Ok(change)
        })
        .await;
    let change = hub.keyring().sure(change)?;
    let key = change.before.is_none().then_some(key);
    Ok(finish(hub, change, key))
}

/// Judged before anything is written: where a name leads may take a look-up.
async fn admit_endpoints(hub: &Hub, request: &Registration) -> Result<()> {
    let endpoints = [
        request.endpoint.as_ref(),
        request
            .market
            .as_ref()
            .and_then(|market| market.api_endpoint.as_ref()),
    ];
    for url in endpoints.into_iter().flatten() {
        hub.outgoing().admit(url).await?;
    }
    Ok(())
}

/// Only with the key it has now: of two rotations with one key, the second comes with a key that is dead.
fn may_update(who: &Principal, before: &Agent) -> Result<()> {
    match who {
        Principal::Agent(asking)
            if asking.id == before.id && asking.key_hash == before.key_hash =>
        {
            Ok(())
        }
        Principal::Agent(asking) if asking.id == before.id => Err(Code::Unauthorized.into()),
        Principal::Agent(_) | Principal::Anyone | Principal::Operator(_) => {
            Err(Code::AgentIdTaken.into())
        }
    }
}

/// The owner of this name, if it is the asking agent's own or an operator vouches for it; `None` when it is free (R-05, D-97).
/// A name that only an agent can have is nobody else's to claim, or a stranger could keep an address from registering.
async fn owner(txn: &Txn<'_>, name: &str, agent_id: &str, who: &Principal) -> Result<Option<i64>> {
    match (principals::owner(&txn.tx, name).await?, who) {
        (None, _) if name != agent_id && (name.contains('@') || name.starts_with('~')) => {
            Err(Code::OwnerTaken.into())
        }
        (None, _) => Ok(None),
        (Some(owner), Principal::Agent(asking)) if asking.owner == owner => Ok(Some(owner)),
        (Some(owner), Principal::Operator(_)) => Ok(Some(owner)),
        (Some(_), Principal::Agent(_) | Principal::Anyone) => Err(Code::OwnerTaken.into()),
    }
}

/// The owner that an agent which is here already names instead of its own. One that owned itself alone is the same owner under
/// the new name, and has what it had.
async fn other_owner(txn: &Txn<'_>, agent: &Agent, name: &str, who: &Principal) -> Result<i64> {
    if let Some(owner) = owner(txn, name, &agent.agent_id, who).await? {
        return Ok(owner);
    }
    if *agent.owner_name == *agent.agent_id && principals::beside(&txn.tx, agent).await?.is_none() {
        principals::rename_owner(&txn.tx, agent.owner, name).await?;
        return Ok(agent.owner);
    }
    Ok(principals::claim_owner(&txn.tx, name).await?)
}

/// The owner has an account. Credits are granted to one who comes: whoever is here could otherwise make some by naming another
/// owner, as often as it likes.
async fn open_account(txn: &mut Txn<'_>, change: &Change, grant: Credits) -> Result<()> {
    let grant = if change.before.is_none() {
        grant
    } else {
        Credits::ZERO
    };
    Ok(ledger::grant_opening(txn, change.after.owner, grant).await?)
}

fn card_text(request: &Registration) -> Option<Box<str>> {
    request.card.as_ref().map(|card| card.to_json().into())
}

fn market_json(market: &MarketFace) -> String {
    json!({"agent_name": market.agent_name, "api_endpoint": market.api_endpoint}).to_string()
}

async fn create(
    txn: &mut Txn<'_>,
    request: &Registration,
    who: &Principal,
    hash: [u8; 32],
    host: &str,
    most: Option<u64>,
) -> Result<Change> {
    if let Some(most) = most {
        let there = counters::read(&txn.tx).await?.agents + txn.counts.agents;
        if there >= most as i64 {
            return Err(Code::RegistryFull.into());
        }
    }
    let named = request
        .market
        .as_ref()
        .and_then(|market| market.owner_id.as_deref());
    let owner_name = named.unwrap_or(&request.agent_id).to_owned();
    let owner = match owner(txn, &owner_name, &request.agent_id, who).await? {
        Some(owner) => owner,
        None => principals::claim_owner(&txn.tx, &owner_name).await?,
    };
    let id = principals::new_subject(&txn.tx).await?;
    let mut agent = Agent {
        id,
        agent_id: request.agent_id.as_str().into(),
        handle: None,
        owner,
        owner_name,
        card: card_text(request),
        endpoint: request.endpoint.clone(),
        market: request.market.as_ref().map(market_json),
        key_hash: Some(hash),
        registered_at: txn.now(),
    };
    if !principals::claim_name(&txn.tx, &request.name.canonical(host), id).await? {
        return Err(Code::AgentIdTaken.into());
    }
    // the handle comes with the address, unless somebody has it already.
    if let Name::Address(address) = &request.name
        && let Some(handle) = address.handle(host)
        && principals::claim_name(&txn.tx, handle.as_str(), id).await?
    {
        agent.handle = Some(handle.to_string());
    }
    principals::insert(&txn.tx, &agent).await?;
    txn.counts.agents += 1;
    Ok(Change {
        before: None,
        after: agent,
        score: None,
        places: Vec::new(),
    })
}

/// An update replaces the record: each form replaces what it speaks of and leaves the other form's part alone.
async fn update(
    txn: &Txn<'_>,
    before: Agent,
    request: &Registration,
    who: &Principal,
    hash: Option<[u8; 32]>,
) -> Result<Change> {
    let mut after = before.clone();
    if !request.is_market_form() {
        after.card = card_text(request);
        after.endpoint = request.endpoint.clone();
    }
    if let Some(market) = &request.market {
        after.market = Some(market_json(market));
        if let Some(name) = market
            .owner_id
            .as_deref()
            .filter(|name| *name != before.owner_name)
        {
            after.owner = other_owner(txn, &before, name, who).await?;
            after.owner_name = name.to_owned();
        }
    }
    after.key_hash = hash.or(before.key_hash);
    let mut places = Vec::new();
    // a rotation closes what the old key opened, and so what it could still open.
    if after.key_hash != before.key_hash {
        sessions::revoke(&txn.tx, before.id).await?;
        places = channels::places(&txn.tx, before.id)
            .await?
            .iter()
            .map(|place| place.id)
            .collect();
    }
    principals::update(&txn.tx, &after).await?;
    Ok(Change {
        before: Some(before),
        after,
        score: None,
        places,
    })
}

/// After the commit: forget what was known, close streams that an old key opened, and say what there is now.
fn finish(hub: &Hub, change: Change, key: Option<Secret>) -> (bool, Registered) {
    let created = change.before.is_none();
    if let Some(before) = &change.before {
        hub.keyring().forget(hub, before);
        if before.key_hash != change.after.key_hash {
            hub.end_streams(before.id, Ending::KeyRotated);
            change
                .places
                .iter()
                .for_each(|place| hub.bus().end(*place, Ending::KeyRotated));
        }
    }
    let rotated = change
        .before
        .as_ref()
        .is_some_and(|before| before.key_hash != change.after.key_hash);
    let agent = Arc::new(change.after);
    let mut registration = record_of(&Principal::Agent(agent.clone()), hub, &agent);
    // What was open with the old key is ending, on every hub at its own moment.
    registration.online &= !rotated;
    let registered = Registered {
        agent_id: agent.agent_id.to_string(),
        api_key: key,
        registration,
        status: change.score.map(|_| "registered".to_owned()),
        reputation_score: change.score,
    };
    (created, registered)
}

/// `DELETE /agents/{id}`: absent is a confirmed no-op; otherwise only the agent itself or an operator (R-31, failure 2).
pub async fn unregister(who: &Principal, hub: &Hub, name: &str) -> Result<Deleted> {
    if matches!(who, Principal::Anyone) {
        return Err(Code::Unauthorized.into());
    }
    let absent = Deleted {
        agent_id: name.to_owned(),
        deleted: false,
    };
    let Ok(parsed) = Name::parse("agent_id", name) else {
        return Ok(absent);
    };
    let Some(agent) = find(hub, &parsed).await? else {
        return Ok(absent);
    };
    match who {
        Principal::Agent(asking) if asking.id != agent.id => {
            return Err(Error::new(
                Code::Forbidden,
                "an agent unregisters only itself",
            ));
        }
        Principal::Agent(_) | Principal::Operator(_) | Principal::Anyone => {}
    }
    let (id, host) = (agent.id, hub.options().host_name.clone());
    let gone = hub
        .store()
        .write(async move |txn| {
            let Some(agent) = principals::by_id(&txn.tx, id).await? else {
                return Ok(None);
            };
            messages::abandon(txn, id).await?;
            txn.counts.agents -= 1;
            skills::replace(txn, id, &[]).await?;
            // whoever takes the name next is granted nothing and belongs nowhere.
            let left = orgs::forget(&txn.tx, id).await?;
            // Before anything else is said in its rooms: its streams there hear nothing more.
            let places: Vec<i64> = channels::places(&txn.tx, id)
                .await?
                .iter()
                .map(|place| place.id)
                .collect();
            txn.notice(&Notice {
                orgs: left.iter().map(ToString::to_string).collect(),
                ended: Notice::ended(places.iter().copied().chain([id]), Ending::Unregistered)
                    .ended,
                ..Notice::of(&agent, &host)
            });
            depart(txn, id).await?;
            principals::bury(&txn.tx, &agent, txn.now()).await?;
            happened(txn, "agent_removed", &json!({"agent_id": &*agent.agent_id}));
            Ok(Some((agent, left, places)))
        })
        .await;
    let gone = hub.keyring().sure(gone)?;
    hub.keyring().forget(hub, &agent);
    let Some((gone, left, places)) = gone else {
        return Ok(absent);
    };
    hub.frames().forget_orgs(left);
    hub.keyring().forget(hub, &gone);
    hub.end_streams(gone.id, Ending::Unregistered);
    places
        .iter()
        .for_each(|place| hub.bus().end(*place, Ending::Unregistered));
    Ok(Deleted {
        agent_id: gone.agent_id.to_string(),
        deleted: true,
    })
}
