//! `/agents`: the records of registered agents, and unregistering (TRN-32…35, R-31, R-32).

use crate::http::directory_access::{DirectoryAccess, DirectoryListAccess};
use crate::http::path_params::PathParam;
use crate::http::query::QueryParams;
use crate::http::reply::{self, ApiResult};
use crate::http::{app_state::AppState, auth::MaybeAuth};
use axum::extract::State;
use chorus_hub::{lifecycle, lifecycle::DirectoryPage};
use chorus_wire::reply::{AgentDeleted, AgentRecord, SuccessReply};
use chorus_wire::{Result, limits};
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(list_agents))
        .routes(routes!(get_agent, unregister_agent))
}

/// Parses `limit` and `after`, which every listing of agents takes.
pub fn parse_page(query: &QueryParams) -> Result<DirectoryPage> {
    Ok(DirectoryPage {
        limit: query.page_limit(limits::DIRECTORY_PAGE)?,
        after: query.get_single("after")?.map(str::to_owned),
    })
}

/// List all agents
///
/// The records of all registered agents, ordered by registration. Only the agent itself and operators see `endpoint`.
#[utoipa::path(get, path = "/agents", tag = "identity", security((), ("agent_key" = ["any"]), ("operator_key" = [])),
    params(("limit" = Option<u64>, Query, minimum = 1, description = "How many at most. A number above 1000 counts as 1000, which is also the default"),
        ("after" = Option<String>, Query, description = "Continue here: `metadata.next` of the page before, or an agent_id")),
    responses((status = 200, body = SuccessReply<Vec<AgentRecord>>, description = "The records, at most 256 KiB of them. `metadata.next` is there when there are more."),
        (status = 404, description = "The agent in `after` is not registered.")))]
async fn list_agents(
    State(state): State<AppState>,
    DirectoryListAccess(principal): DirectoryListAccess,
    query: QueryParams,
) -> ApiResult {
    let page = lifecycle::list_agent_records(&principal, &state.hub, parse_page(&query)?).await?;
    reply::bare_json(StatusCode::OK, &reply::wrap_page(&state, page))
}

/// Get one agent
///
/// The record of an agent, by any of its names.
#[utoipa::path(get, path = "/agents/{id}", tag = "identity", security((), ("agent_key" = ["any"]), ("operator_key" = [])),
    params(("id" = String, Path, description = "The agent: its address, short name, UUID or handle")),
    responses((status = 200, body = SuccessReply<AgentRecord>, description = "The record."),
        (status = 404, description = "No agent of that name is registered.")))]
async fn get_agent(
    State(state): State<AppState>,
    DirectoryAccess(principal): DirectoryAccess,
    PathParam(id): PathParam,
) -> ApiResult {
    reply::wrapped_json(
        &state,
        StatusCode::OK,
        lifecycle::get_agent_record(&principal, &state.hub, &id).await?,
    )
}

/// Unregister an agent
///
/// Removes the agent and its key. Removing an agent that is not registered succeeds as well.
#[utoipa::path(delete, path = "/agents/{id}", tag = "identity", security(("agent_key" = ["admin"]), ("operator_key" = [])),
    params(("id" = String, Path, description = "The agent: its address, short name, UUID or handle")),
    responses((status = 200, body = SuccessReply<AgentDeleted>, description = "The agent is not registered any more."),
        (status = 403, description = "The key is of another agent.")))]
async fn unregister_agent(
    State(state): State<AppState>,
    MaybeAuth(principal): MaybeAuth,
    PathParam(id): PathParam,
) -> ApiResult {
    reply::wrapped_json(
        &state,
        StatusCode::OK,
        lifecycle::unregister_agent(&principal, &state.hub, state.hub.frames(), &id).await?,
    )
}
