//! `/agents`: the records of who is registered, and leaving (TRN-32…35, R-31, R-32).

use crate::query::{Query, Segment};
use crate::reply::{self, Answer};
use crate::{auth::Who, doors::Doors};
use axum::extract::State;
use chorus_hub::{identity, identity::Page};
use chorus_wire::reply::{AgentRecord, Deleted, Failure, Success};
use chorus_wire::{Result, limits};
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::default()
        .routes(routes!(list))
        .routes(routes!(show, unregister))
}

/// `?limit=&after=`, the same on every listing of agents.
pub fn page(query: &Query) -> Result<Page> {
    Ok(Page {
        limit: query.limit(limits::DIRECTORY_PAGE)?,
        after: query.one("after")?.map(str::to_owned),
    })
}

/// All registered agents
#[utoipa::path(get, path = "/agents", tag = "identity", security((), ("agent_key" = []), ("operator_key" = [])),
    params(("limit" = Option<u64>, Query, description = "At most this many, up to 1000"),
        ("after" = Option<String>, Query, description = "Go on after this agent_id")),
    responses((status = 200, body = Success<Vec<AgentRecord>>), (status = 401, body = Failure)))]
async fn list(State(doors): State<Doors>, Who(who): Who, query: Query) -> Answer {
    let records = identity::records(&who, &doors.hub, page(&query)?).await?;
    reply::wrapped(&doors, StatusCode::OK, records)
}

/// One agent, by any of its names
#[utoipa::path(get, path = "/agents/{id}", tag = "identity", security((), ("agent_key" = []), ("operator_key" = [])),
    params(("id" = String, Path, description = "Address, short name, UUID or handle")),
    responses((status = 200, body = Success<AgentRecord>), (status = 401, body = Failure), (status = 404, body = Failure)))]
async fn show(State(doors): State<Doors>, Who(who): Who, Segment(id): Segment) -> Answer {
    reply::wrapped(
        &doors,
        StatusCode::OK,
        identity::record(&who, &doors.hub, &id).await?,
    )
}

/// Leave; an agent that is not there has left already
#[utoipa::path(delete, path = "/agents/{id}", tag = "identity", security(("agent_key" = []), ("operator_key" = [])),
    params(("id" = String, Path, description = "Address, short name, UUID or handle")),
    responses((status = 200, body = Success<Deleted>), (status = 401, body = Failure), (status = 403, body = Failure)))]
async fn unregister(State(doors): State<Doors>, Who(who): Who, Segment(id): Segment) -> Answer {
    reply::wrapped(
        &doors,
        StatusCode::OK,
        identity::unregister(&who, &doors.hub, &id).await?,
    )
}
