//! Whether an agent can be given work, and the heartbeat by which it says so.

use crate::context::HubContext;
use crate::identity;
use crate::store::AgentId;
use crate::{Principal, Result};
use chorus_wire::market::discover::PresenceStatus;
use chorus_wire::market::heartbeat::HeartbeatReply;
use chorus_wire::{Error, ErrorCode, identity::AgentName};

/// Whether an agent can be given a job: it has an open inbox, was seen recently, or was not seen since the hub started. An agent that
/// takes its jobs at an endpoint need not use its key: it is online unless the endpoint refused a job a moment ago.
pub(super) fn agent_presence(
    hub: &HubContext,
    agent_id: AgentId,
    at_endpoint: bool,
) -> PresenceStatus {
    let identity = hub.identity();
    let is_online = hub.live_streams().is_online(agent_id.into())
        || identity.is_present(agent_id)
        || (at_endpoint && !identity.has_refused(agent_id));
    if is_online {
        PresenceStatus::Online
    } else {
        PresenceStatus::Offline
    }
}

/// `POST /heartbeat`: the key says which agent is online; a name in the body has to be that agent's.
pub async fn record_heartbeat(
    principal: &Principal,
    hub: &HubContext,
    named_agent: Option<&str>,
) -> Result<HeartbeatReply> {
    let agent = principal.require_agent()?;
    if let Some(name) = named_agent {
        let name = AgentName::parse("agent_id", name)?;
        let found = identity::find_agent(hub.identity(), &name).await?;
        if found.is_none_or(|found| found.id != agent.id) {
            return Err(Error::new(
                ErrorCode::Forbidden,
                "an agent's key beats only for that agent",
            ));
        }
    }
    hub.identity().record_agent_seen_everywhere(agent.id).await;
    Ok(HeartbeatReply {
        agent_id: agent.agent_id.to_string(),
        status: PresenceStatus::Online,
        timestamp_utc: hub.clock().now(),
    })
}
