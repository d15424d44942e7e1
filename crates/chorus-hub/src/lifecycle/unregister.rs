//! Unregistering an agent: everything that only a registered agent has ends in one transaction.

use super::{end_agent_streams, list_member_ids};
use crate::channel::members::leave_all_channels;
use crate::context::HubContext;
use crate::frame::Frames;
use crate::identity::find_agent;
use crate::market::skills;
use crate::store::{
    Agent, AgentId, CacheInvalidation, MemberId, SubjectId, WriteTxn, agent_keys, messages, orgs,
    principals, record_activity,
};
use crate::stream_end::StreamEnd;
use crate::{Principal, Result};
use chorus_wire::identity::{AgentName, Handle};
use chorus_wire::reply::AgentDeleted;
use chorus_wire::{Error, ErrorCode};
use serde_json::json;

/// `DELETE /agents/{id}`: an unknown agent is a confirmed no-op; otherwise only the agent itself or an operator (R-31, failure
/// 2).
pub async fn unregister_agent(
    principal: &Principal,
    hub: &HubContext,
    frames: &Frames,
    name: &str,
) -> Result<AgentDeleted> {
    if matches!(principal, Principal::Anonymous) {
        return Err(ErrorCode::Unauthorized.into());
    }
    let absent = AgentDeleted {
        agent_id: name.to_owned(),
        deleted: false,
    };
    let Ok(parsed) = AgentName::parse("agent_id", name) else {
        return Ok(absent);
    };
    let Some(agent) = find_agent(hub.identity(), &parsed).await? else {
        return Ok(absent);
    };
    match principal {
        Principal::Agent(caller) if caller.id != agent.id => {
            return Err(Error::new(
                ErrorCode::Forbidden,
                "an agent unregisters only itself",
            ));
        }
        Principal::Agent(_) | Principal::Operator(_) | Principal::Anonymous => {}
    }
    let id = agent.id;
    let caller = principal.clone();
    let host = hub.options().host_name.clone();
    let removed = hub
        .store()
        .write(async move |txn| {
            let removed = remove_agent(txn, id, &host).await?;
            if let Some(removed) = &removed {
                caller.record_operator_act(txn, "unregister", &removed.agent.agent_id);
            }
            Ok(removed)
        })
        .await;
    let removed = hub.identity().key_cache().clear_if_uncertain(removed)?;
    let Some(removed) = removed else {
        return Ok(absent);
    };
    frames.invalidate_orgs(removed.left_orgs);
    hub.identity().key_cache().invalidate(&removed.invalidation);
    end_agent_streams(hub, frames, removed.agent.id, StreamEnd::Unregistered);
    removed.member_ids.into_iter().for_each(|member_id| {
        hub.live_streams()
            .end_streams(member_id.into(), StreamEnd::Unregistered)
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
    member_ids: Vec<MemberId>,
    invalidation: CacheInvalidation,
}

/// Removes the agent and everything that only a registered agent has; `None` when another request was first.
async fn remove_agent(
    txn: &mut WriteTxn<'_>,
    id: AgentId,
    host: &str,
) -> Result<Option<RemovedAgent>> {
    let Some(agent) = principals::find_agent(&txn.tx, id).await? else {
        return Ok(None);
    };
    messages::abandon_queued(txn, id.into()).await?;
    txn.counter_deltas.agents -= 1;
    skills::replace_skills(txn, id, &[]).await?;
    // the next agent with this name is granted nothing and belongs nowhere.
    let left_orgs = orgs::remove_agent_memberships(&txn.tx, id).await?;
    let member_ids = list_member_ids(txn, id).await?;
    // Before the entries that tell its channels that it left: its own streams there do not receive them.
    let further_keys = agent_keys::list_keys(&txn.tx, id).await?;
    let invalidation = CacheInvalidation {
        orgs: left_orgs.iter().map(ToString::to_string).collect(),
        ended: CacheInvalidation::for_ended_streams(
            member_ids
                .iter()
                .map(|member| SubjectId::from(*member))
                .chain([id.into()]),
            StreamEnd::Unregistered,
        )
        .ended,
        ..CacheInvalidation::for_agent(&agent, host, &further_keys)
    };
    txn.invalidate_caches(&invalidation);
    leave_all_channels(txn, id).await?;
    principals::mark_agent_deleted(&txn.tx, &agent, txn.now()).await?;
    record_activity(txn, "agent_removed", &json!({"agent_id": &*agent.agent_id}));
    Ok(Some(RemovedAgent {
        agent,
        left_orgs,
        member_ids,
        invalidation,
    }))
}
