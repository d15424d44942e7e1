//! Decides whether a registration may proceed, before anything of it is compiled or stored.

use super::owner::find_claimable_owner;
use super::rotate::check_is_own;
use crate::context::HubContext;
use crate::identity::invites;
use crate::market::schema_checks;
use crate::store::{DbConnection, counters, principals};
use crate::{Principal, Result};
use chorus_wire::ErrorCode;
use chorus_wire::registration::RegistrationRequest;

/// Checks the key, the invite, the name and the owner in one read, and only then what costs more: the endpoints and the schemas.
/// The transaction of the registration checks the former again, because they can change meanwhile.
pub(super) async fn check_registration(
    principal: &Principal,
    hub: &HubContext,
    request: &RegistrationRequest,
) -> Result<()> {
    let caller = principal.clone();
    let name = request.name.canonical_text(&hub.options().host_name);
    let agent_id = request.agent_id.clone();
    let named_owner = request
        .market
        .as_ref()
        .and_then(|market| market.owner_id.clone());
    let invite_code = request.invite_code.clone();
    let max_agents = hub.options().max_agents;
    let now = hub.clock().now();
    hub.store()
        .read(async move |tx| {
            if let Some(before) = principals::find_agent_by_name(tx, &name).await? {
                return check_is_own(&caller, &before);
            }
            if caller.require_operator().is_err() {
                invites::find_usable_invite(tx, invite_code.as_ref(), now).await?;
            }
            check_registry_space(tx, max_agents, 0).await?;
            if let Some(owner) = &named_owner {
                find_claimable_owner(tx, owner, &agent_id, &caller).await?;
            }
            Ok(())
        })
        .await?;
    check_endpoints(hub, request)?;
    let skills = request.market.as_ref().map(|market| &market.skills);
    schema_checks::check_skills(skills.map_or(&[], Vec::as_slice)).await
}

/// `added` agents are not counted in the store yet.
pub(super) async fn check_registry_space(
    tx: &DbConnection<'_>,
    max_agents: Option<u64>,
    added: i64,
) -> Result<()> {
    let Some(max_agents) = max_agents else {
        return Ok(());
    };
    let agent_count = counters::read_counters(tx).await?.agents + added;
    if agent_count >= max_agents as i64 {
        return Err(ErrorCode::RegistryFull.into());
    }
    Ok(())
}

pub(super) fn check_endpoints(hub: &HubContext, request: &RegistrationRequest) -> Result<()> {
    let endpoints = [
        request.endpoint.as_ref(),
        request
            .market
            .as_ref()
            .and_then(|market| market.api_endpoint.as_ref()),
    ];
    endpoints
        .into_iter()
        .flatten()
        .try_for_each(|url| hub.outgoing_client().check_endpoint(url))
}
