//! Agent records, the directory and invite cards, as public as the documents make them.

use crate::context::HubContext;
use crate::identity::find_agent;
use crate::store::{Agent, AgentId, RowId, principals};
use crate::{Principal, Result};
use chorus_wire::list_page::{self, ListPage, ListPageBuilder};
use chorus_wire::reach::AgentReach;
use chorus_wire::reply::{AgentRecord, DirectoryRow, InviteCard};
use chorus_wire::{ErrorCode, identity::AgentName, limits};
use serde::Serialize;

/// Agents read at once for a listing: with the largest cards one megabyte, of which a page takes a quarter.
const AGENTS_READ: usize = 128;

/// One page of a listing: at most `limit` rows after `after`, which is an `agent_id` or the cursor of another page.
#[derive(Clone, Debug)]
pub struct DirectoryPage {
    pub limit: usize,
    pub after: Option<String>,
}

/// The record as this principal may see it: an endpoint may contain a secret, so only the agent itself and operators see it.
pub(super) fn describe_agent(
    principal: &Principal,
    hub: &HubContext,
    agent: &Agent,
) -> AgentRecord {
    let can_see_endpoint = match principal {
        Principal::Anonymous => false,
        Principal::Agent(caller) => caller.id == agent.id,
        Principal::Operator(_) => true,
    };
    let stream_reach = hub.live_streams().find_reach(agent.id.into());
    AgentRecord {
        agent_id: agent.agent_id.to_string(),
        agent_card: agent.parse_card(),
        registered_at: agent.registered_at,
        online: stream_reach.is_some(),
        reach: Some(AgentReach::of_agent(stream_reach, agent.endpoint.is_some())),
        has_endpoint: agent.endpoint.is_some(),
        endpoint: agent.endpoint.clone().filter(|_| can_see_endpoint),
        handle: agent.handle.clone(),
        host_verified: hub.identity().host_verified(&agent.agent_id),
    }
}

/// `GET /agents/{id}`
pub async fn get_agent_record(
    principal: &Principal,
    hub: &HubContext,
    name: &str,
) -> Result<AgentRecord> {
    let agent = match AgentName::parse("agent_id", name) {
        Ok(name) => find_agent(hub.identity(), &name).await?,
        // No agent has a name that is not well formed.
        Err(_) => None,
    };
    Ok(describe_agent(
        principal,
        hub,
        &*agent.ok_or(ErrorCode::AgentNotFound)?,
    ))
}

async fn parse_after(hub: &HubContext, after: Option<String>) -> Result<AgentId> {
    let Some(after) = after else {
        return Ok(AgentId::BEFORE_ALL);
    };
    if let Some(position) = list_page::parse_cursor(&after) {
        return Ok(AgentId::from_number(position));
    }
    let agent = find_agent(hub.identity(), &AgentName::parse("after", &after)?).await?;
    Ok(agent.ok_or(ErrorCode::AgentNotFound)?.id)
}

/// Reads agents until the page is full. Few at a time, because a page of large cards ends long before its limit.
async fn load_page<T: Serialize>(
    hub: &HubContext,
    page: DirectoryPage,
    describe: impl Fn(&Agent) -> T,
) -> Result<ListPage<T>> {
    let mut last_id = parse_after(hub, page.after).await?;
    let mut rows = ListPageBuilder::new(page.limit.clamp(1, limits::DIRECTORY_PAGE));
    loop {
        // One more than the page takes shows whether there is a next one.
        let wanted = AGENTS_READ.min(rows.rows_left() + 1);
        let agents = hub
            .store()
            .read(async move |tx| Ok(principals::list_agents(tx, last_id, wanted).await?))
            .await?;
        let is_last = agents.len() < wanted;
        for agent in agents {
            if !rows.try_push(describe(&agent))? {
                return Ok(rows.finish(Some(list_page::format_cursor(last_id.to_number()))));
            }
            last_id = agent.id;
        }
        if is_last {
            return Ok(rows.finish(None));
        }
    }
}

/// `GET /agents`
pub async fn list_agent_records(
    principal: &Principal,
    hub: &HubContext,
    page: DirectoryPage,
) -> Result<ListPage<AgentRecord>> {
    load_page(hub, page, |agent| describe_agent(principal, hub, agent)).await
}

/// `GET /discover`
pub async fn list_directory(
    _principal: &Principal,
    hub: &HubContext,
    page: DirectoryPage,
) -> Result<ListPage<DirectoryRow>> {
    let row = |agent: &Agent| {
        let card = agent.parse_card();
        let stream_reach = hub.live_streams().find_reach(agent.id.into());
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
            online: stream_reach.is_some(),
            reach: Some(AgentReach::of_agent(stream_reach, agent.endpoint.is_some())),
            host_verified: hub.identity().host_verified(&agent.agent_id),
        }
    };
    load_page(hub, page, row).await
}

/// `GET /invite/{id}`; the instructions contain `hub_url`. An unknown name is an answer, not an error. A text that is
/// no name is an error and is not repeated: a link could otherwise put words for an agent on the hub's own page.
pub async fn get_invite_card(
    _principal: &Principal,
    hub: &HubContext,
    name: &str,
    hub_url: &str,
) -> Result<InviteCard> {
    let parsed = AgentName::parse("agent_id", name).map_err(|_| ErrorCode::AgentNotFound)?;
    let found = find_agent(hub.identity(), &parsed).await?;
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
            .is_some_and(|agent| hub.live_streams().is_online(agent.id.into())),
        exists: found.is_some(),
        connect_instructions,
        host_verified: hub.identity().host_verified(&agent_id),
        agent_id,
    })
}
