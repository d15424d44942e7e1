//! Who is here: records, the directory and invitations to talk, as public as the documents make them.

use super::{Agent, Principal, find_agent};
use crate::store::principals;
use crate::{Hub, Result};
use chorus_wire::reply::{AgentRecord, DirectoryRow, InviteCard};
use chorus_wire::{Code, identity::AgentName, limits};

/// A slice of a listing: at most `limit` rows after `after` (an `agent_id`).
#[derive(Clone, Debug)]
pub struct DirectoryPage {
    pub limit: usize,
    pub after: Option<String>,
}

/// The record as this principal may see it: an endpoint may hold a secret, so only the agent itself and operators do.
pub(super) fn describe_agent(principal: &Principal, hub: &Hub, agent: &Agent) -> AgentRecord {
    let can_see_endpoint = match principal {
        Principal::Anonymous => false,
        Principal::Agent(caller) => caller.id == agent.id,
        Principal::Operator(_) => true,
    };
    AgentRecord {
        agent_id: agent.agent_id.to_string(),
        agent_card: agent.parse_card(),
        registered_at: agent.registered_at,
        online: hub.stream_bus().is_online(agent.id),
        has_endpoint: agent.endpoint.is_some(),
        endpoint: agent.endpoint.clone().filter(|_| can_see_endpoint),
        handle: agent.handle.clone(),
    }
}

/// `GET /agents/{id}`
pub async fn get_agent_record(principal: &Principal, hub: &Hub, name: &str) -> Result<AgentRecord> {
    let agent = match AgentName::parse("agent_id", name) {
        Ok(name) => find_agent(hub, &name).await?,
        // Nobody can have a name that is not one.
        Err(_) => None,
    };
    Ok(describe_agent(
        principal,
        hub,
        &*agent.ok_or(Code::AgentNotFound)?,
    ))
}

async fn load_page(hub: &Hub, page: DirectoryPage) -> Result<Vec<Agent>> {
    let after = match page.after {
        None => 0,
        Some(name) => {
            find_agent(hub, &AgentName::parse("after", &name)?)
                .await?
                .ok_or(Code::AgentNotFound)?
                .id
        }
    };
    let limit = page.limit.clamp(1, limits::DIRECTORY_PAGE);
    hub.store()
        .read(async move |tx| Ok(principals::list_agents(tx, after, limit).await?))
        .await
}

/// `GET /agents`
pub async fn list_agent_records(
    principal: &Principal,
    hub: &Hub,
    page: DirectoryPage,
) -> Result<Vec<AgentRecord>> {
    Ok(load_page(hub, page)
        .await?
        .iter()
        .map(|agent| describe_agent(principal, hub, agent))
        .collect())
}

/// `GET /discover`
pub async fn list_directory(
    _principal: &Principal,
    hub: &Hub,
    page: DirectoryPage,
) -> Result<Vec<DirectoryRow>> {
    let row = |agent: &Agent| {
        let card = agent.parse_card();
        DirectoryRow {
            agent_id: agent.agent_id.to_string(),
            culture: card
                .as_ref()
                .and_then(|card| card.user_culture())
                .map(str::to_owned),
            languages: card
                .iter()
                .flat_map(|card| card.supported_languages())
                .map(str::to_owned)
                .collect(),
            online: hub.stream_bus().is_online(agent.id),
        }
    };
    Ok(load_page(hub, page).await?.iter().map(row).collect())
}

/// `GET /invite/{id}`; `hub_url` is what the instructions print. An unknown id is an answer, not an error.
pub async fn get_invite_card(
    _principal: &Principal,
    hub: &Hub,
    name: &str,
    hub_url: &str,
) -> Result<InviteCard> {
    let found = match AgentName::parse("agent_id", name) {
        Ok(name) => find_agent(hub, &name).await?,
        Err(_) => None,
    };
    let agent_id = found
        .as_ref()
        .map_or(name, |agent| &*agent.agent_id)
        .to_owned();
    let connect_instructions = format!(
        "Tell your agent: read {hub_url}/skill, register at {hub_url}/register, open {hub_url}/agent/inbox, then send to {agent_id} with POST {hub_url}/messages."
    );
    Ok(InviteCard {
        hub: hub_url.to_owned(),
        culture: found
            .as_ref()
            .and_then(|agent| agent.parse_card()?.user_culture().map(str::to_owned)),
        online: found
            .as_ref()
            .is_some_and(|agent| hub.stream_bus().is_online(agent.id)),
        exists: found.is_some(),
        connect_instructions,
        agent_id,
    })
}
