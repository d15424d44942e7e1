//! `/agents`: the records of registered agents, and unregistering (TRN-32…35, R-31, R-32).

use crate::http::path_params::PathParam;
use crate::http::query::QueryParams;
use crate::http::reply::{self, ApiResult};
use crate::http::{app_state::AppState, auth::MaybeAuth};
use axum::extract::State;
use chorus_hub::{lifecycle, lifecycle::DirectoryPage};
use chorus_wire::reply::{AgentDeleted, AgentRecord, FailureReply, SuccessReply};
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

/// All registered agents
#[utoipa::path(get, path = "/agents", tag = "identity", security((), ("agent_key" = []), ("operator_key" = [])),
    params(("limit" = Option<u64>, Query, description = "At most this many, up to 1000"),
        ("after" = Option<String>, Query, description = "Go on after this agent_id")),
    responses((status = 200, body = SuccessReply<Vec<AgentRecord>>), (status = 401, body = FailureReply)))]
async fn list_agents(
    State(state): State<AppState>,
    MaybeAuth(principal): MaybeAuth,
    query: QueryParams,
) -> ApiResult {
    let records =
        lifecycle::list_agent_records(&principal, &state.hub, parse_page(&query)?).await?;
    reply::wrapped_json(&state, StatusCode::OK, records)
}

/// One agent, by any of its names
#[utoipa::path(get, path = "/agents/{id}", tag = "identity", security((), ("agent_key" = []), ("operator_key" = [])),
    params(("id" = String, Path, description = "Address, short name, UUID or handle")),
    responses((status = 200, body = SuccessReply<AgentRecord>), (status = 401, body = FailureReply), (status = 404, body = FailureReply)))]
async fn get_agent(
    State(state): State<AppState>,
    MaybeAuth(principal): MaybeAuth,
    PathParam(id): PathParam,
) -> ApiResult {
    reply::wrapped_json(
        &state,
        StatusCode::OK,
        lifecycle::get_agent_record(&principal, &state.hub, &id).await?,
    )
}

/// Leave; an agent that is not there has left already
#[utoipa::path(delete, path = "/agents/{id}", tag = "identity", security(("agent_key" = []), ("operator_key" = [])),
    params(("id" = String, Path, description = "Address, short name, UUID or handle")),
    responses((status = 200, body = SuccessReply<AgentDeleted>), (status = 401, body = FailureReply), (status = 403, body = FailureReply)))]
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
