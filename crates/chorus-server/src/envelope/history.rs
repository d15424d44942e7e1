//! `GET /agent/messages`: what an agent sent and received (TRN-56…58, R-15).

use crate::reply::{self, Answer};
use crate::{auth::Who, doors::Doors, query::Query};
use axum::extract::State;
use chorus_hub::envelope;
use chorus_wire::limits;
use chorus_wire::message::HistoryRow;
use chorus_wire::reply::{Failure, Success};
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::default().routes(routes!(history))
}

/// My messages, sent and received, oldest first
#[utoipa::path(get, path = "/agent/messages", tag = "envelope", security(("agent_key" = [])),
    params(("since" = Option<String>, Query, description = "An id: everything after it. An RFC 3339 instant: everything from it on"),
        ("limit" = Option<u64>, Query, description = "At most this many, up to 1000")),
    responses((status = 200, body = Success<Vec<HistoryRow>>), (status = 401, body = Failure), (status = 403, body = Failure)))]
async fn history(State(doors): State<Doors>, Who(who): Who, query: Query) -> Answer {
    let limit = query.limit(limits::HISTORY_PAGE)?;
    reply::wrapped(
        &doors,
        StatusCode::OK,
        envelope::history(&who, &doors.hub, query.since()?, limit).await?,
    )
}
