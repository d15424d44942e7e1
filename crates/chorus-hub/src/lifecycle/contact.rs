//! Blocks, contacts and settings of an agent: changes that the caches of every protocol must see.

use crate::context::HubContext;
use crate::frame::Frames;
use crate::identity::find_agent;
use crate::store::{
    Agent, AgentId, CacheInvalidation, WriteTxn, agent_keys, contacts, orgs, principals,
};
use crate::{Principal, Result};
use chorus_wire::contact::{
    AcceptFrom, AgentContact, AgentSettings, BlockTarget, BlockedName, NameRemoved, SettingsChange,
};
use chorus_wire::identity::{AgentName, Handle};
use chorus_wire::{Error, ErrorCode, limits};
use std::sync::Arc;

/// Max agents that one write records as correspondents, so that other writes do not wait long.
const CORRESPONDENTS_PER_WRITE: usize = 1_000;

/// `GET /agent/blocks`
pub async fn list_blocks(principal: &Principal, hub: &HubContext) -> Result<Vec<BlockedName>> {
    let id = principal.require_agent()?.id;
    let rows = hub
        .store()
        .read(async move |tx| Ok(contacts::list_blocks(tx, id).await?))
        .await?;
    let describe = |row: contacts::ListedName| BlockedName {
        name: row.name,
        blocked_at: row.at,
    };
    Ok(rows.into_iter().map(describe).collect())
}

/// The name under which a block is stored. A blocked agent is stored by its canonical name, so that it stays blocked when it
/// registers again.
async fn stored_block_name(hub: &HubContext, target: &BlockTarget) -> Result<String> {
    let host_name = &hub.options().host_name;
    match target {
        BlockTarget::Host(host) => Ok(format!("@{host}")),
        BlockTarget::Agent(name) => {
            let found = find_agent(hub.identity(), name).await?;
            let name = match &found {
                Some(agent) => AgentName::parse("name", &agent.agent_id)?,
                None => name.clone(),
            };
            Ok(match name {
                AgentName::Handle(handle) => {
                    format!("{}@{host_name}", handle.as_str().trim_start_matches('~'))
                }
                AgentName::Address(_) | AgentName::Uuid(_) | AgentName::Short(_) => {
                    name.canonical_text(host_name)
                }
            })
        }
    }
}

/// `PUT /agent/blocks/{name}`: the agent need not be registered, or registered yet. A repetition changes nothing.
pub async fn put_block(
    principal: &Principal,
    hub: &HubContext,
    frames: &Frames,
    name: &str,
) -> Result<BlockedName> {
    let agent = principal.require_agent()?;
    let name = stored_block_name(hub, &BlockTarget::parse(name)?).await?;
    let own_name = AgentName::parse("name", &agent.agent_id)?;
    if name == own_name.canonical_text(&hub.options().host_name) {
        return Err(Error::invalid_field("name", "an agent cannot block itself"));
    }
    let id = agent.id;
    change_limits(hub, frames, agent, async move |txn| {
        let blocked_at = contacts::insert_block(&txn.tx, id, &name, txn.now()).await?;
        if contacts::count_blocks(&txn.tx, id).await? > limits::BLOCKS_PER_AGENT as i64 {
            let message = format!("an agent blocks at most {} names", limits::BLOCKS_PER_AGENT);
            return Err(Error::new(ErrorCode::Quota, message));
        }
        Ok(BlockedName {
            name: name.clone(),
            blocked_at,
        })
    })
    .await
}

/// `DELETE /agent/blocks/{name}`: without a block it is a confirmed no-op.
pub async fn delete_block(
    principal: &Principal,
    hub: &HubContext,
    frames: &Frames,
    name: &str,
) -> Result<NameRemoved> {
    let agent = principal.require_agent()?;
    let name = stored_block_name(hub, &BlockTarget::parse(name)?).await?;
    let id = agent.id;
    change_limits(hub, frames, agent, async move |txn| {
        Ok(NameRemoved {
            removed: contacts::delete_block(&txn.tx, id, &name).await?,
            name: name.clone(),
        })
    })
    .await
}

/// `GET /agent/contacts`: those that the agent has added. Others follow from messages, owners, organisations and channels.
pub async fn list_contacts(principal: &Principal, hub: &HubContext) -> Result<Vec<AgentContact>> {
    let id = principal.require_agent()?.id;
    let rows = hub
        .store()
        .read(async move |tx| Ok(contacts::list_contacts(tx, id).await?))
        .await?;
    let describe = |row: contacts::ListedName| AgentContact {
        name: row.name,
        added_at: row.at,
    };
    Ok(rows.into_iter().map(describe).collect())
}

async fn find_contact(hub: &HubContext, name: &str) -> Result<Arc<Agent>> {
    let name = AgentName::parse("name", name)?;
    let found = find_agent(hub.identity(), &name).await?;
    found.ok_or_else(|| ErrorCode::AgentNotFound.into())
}

/// `PUT /agent/contacts/{name}`: a repetition changes nothing.
pub async fn put_contact(
    principal: &Principal,
    hub: &HubContext,
    name: &str,
) -> Result<AgentContact> {
    let id = principal.require_agent()?.id;
    let contact = find_contact(hub, name).await?;
    hub.store()
        .write(async move |txn| {
            check_registered(txn, id).await?;
            check_registered(txn, contact.id)
                .await
                .map_err(|_| ErrorCode::AgentNotFound)?;
            let added_at = contacts::insert_contact(&txn.tx, id, contact.id, txn.now()).await?;
            if contacts::count_contacts(&txn.tx, id).await? > limits::CONTACTS_PER_AGENT as i64 {
                let message = format!(
                    "an agent adds at most {} contacts",
                    limits::CONTACTS_PER_AGENT
                );
                return Err(Error::new(ErrorCode::Quota, message));
            }
            Ok(AgentContact {
                name: contact.agent_id.to_string(),
                added_at,
            })
        })
        .await
}

/// `DELETE /agent/contacts/{name}`: without such a contact it is a confirmed no-op.
pub async fn delete_contact(
    principal: &Principal,
    hub: &HubContext,
    name: &str,
) -> Result<NameRemoved> {
    let id = principal.require_agent()?.id;
    let Some(contact) = find_agent(hub.identity(), &AgentName::parse("name", name)?).await? else {
        return Ok(NameRemoved {
            name: name.to_owned(),
            removed: false,
        });
    };
    let contact_id = contact.id;
    let removed = hub
        .store()
        .write(async move |txn| Ok(contacts::delete_contact(&txn.tx, id, contact_id).await?))
        .await?;
    Ok(NameRemoved {
        name: contact.agent_id.to_string(),
        removed,
    })
}

/// `GET /agent/settings`
pub async fn get_settings(principal: &Principal, hub: &HubContext) -> Result<AgentSettings> {
    let id = principal.require_agent()?.id;
    // From the store: the record of the key may be a moment old.
    let agent = hub
        .store()
        .read(async move |tx| Ok(principals::find_agent(tx, id).await?))
        .await?
        .ok_or(ErrorCode::Unauthorized)?;
    Ok(describe_settings(agent.contact_limits.contacts_only))
}

fn describe_settings(contacts_only: bool) -> AgentSettings {
    let accept_from = if contacts_only {
        AcceptFrom::Contacts
    } else {
        AcceptFrom::Anyone
    };
    AgentSettings { accept_from }
}

/// `PATCH /agent/settings`
pub async fn update_settings(
    principal: &Principal,
    hub: &HubContext,
    frames: &Frames,
    change: SettingsChange,
) -> Result<AgentSettings> {
    let agent = principal.require_agent()?;
    let id = agent.id;
    let contacts_only = change.accept_from == AcceptFrom::Contacts;
    change_limits(hub, frames, agent, async move |txn| {
        Ok(contacts::set_contacts_only(&txn.tx, id, contacts_only).await?)
    })
    .await?;
    // From here on every message that the agent sends is recorded; those before it are read from the log.
    if contacts_only {
        record_past_correspondents(hub, id).await?;
    }
    Ok(describe_settings(contacts_only))
}

async fn record_past_correspondents(hub: &HubContext, id: AgentId) -> Result<()> {
    let indexed = hub.store().indexed_seq();
    let written_to = hub
        .store()
        .read(async move |tx| Ok(contacts::list_correspondents(tx, id, indexed).await?))
        .await?;
    for batch in written_to.chunks(CORRESPONDENTS_PER_WRITE) {
        let batch = batch.to_vec();
        hub.store()
            .write(async move |txn| {
                for contact in &batch {
                    contacts::insert_correspondent(&txn.tx, id, *contact).await?;
                }
                Ok(())
            })
            .await?;
    }
    Ok(())
}

async fn check_registered(txn: &WriteTxn<'_>, id: AgentId) -> Result<()> {
    principals::find_agent(&txn.tx, id)
        .await?
        .map(drop)
        .ok_or_else(|| ErrorCode::Unauthorized.into())
}

/// Changes what limits the agent, gives its limits another version, and invalidates its record and its organisations at every
/// hub.
async fn change_limits<T, F>(
    hub: &HubContext,
    frames: &Frames,
    agent: &Arc<Agent>,
    work: F,
) -> Result<T>
where
    T: Send + 'static,
    F: AsyncFn(&mut WriteTxn<'_>) -> Result<T> + Send + 'static,
{
    let id = agent.id;
    let changed_agent = agent.clone();
    let host = hub.options().host_name.clone();
    let written = hub
        .store()
        .write(async move |txn| {
            check_registered(txn, id).await?;
            let answer = work(txn).await?;
            contacts::renew_contact_limits(&txn.tx, id).await?;
            let joined: Vec<Handle> = orgs::list_joined_orgs(&txn.tx, id).await?;
            let further_keys = agent_keys::list_keys(&txn.tx, id).await?;
            let invalidation = CacheInvalidation {
                orgs: joined.iter().map(ToString::to_string).collect(),
                ..CacheInvalidation::for_agent(&changed_agent, &host, &further_keys)
            };
            txn.invalidate_caches(&invalidation);
            Ok((answer, joined, invalidation))
        })
        .await;
    let (answer, joined, invalidation) = hub.identity().key_cache().clear_if_uncertain(written)?;
    hub.identity().key_cache().invalidate(&invalidation);
    frames.invalidate_orgs(joined);
    Ok(answer)
}
