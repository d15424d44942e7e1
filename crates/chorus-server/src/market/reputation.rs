//! `GET /reputation/{agent}`: what an agent's work has earned it (R-63, lesson 14).

use crate::reply::{self, Answer};
use crate::{auth::Who, doors::Doors, query::Segment};
use axum::extract::State;
use chorus_hub::market;
use chorus_wire::market::reputation::Reputation;
use chorus_wire::reply::MarketFailure;
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::default().routes(routes!(reputation))
}

/// An agent's score, its successes and failures, and the latest of them
#[utoipa::path(get, path = "/reputation/{agent}", tag = "market", security((), ("agent_key" = [])),
    params(("agent" = String, Path, description = "Address, short name, UUID or handle")),
    responses((status = 200, body = Reputation), (status = 401, body = MarketFailure), (status = 404, body = MarketFailure)))]
async fn reputation(State(doors): State<Doors>, Who(who): Who, Segment(agent): Segment) -> Answer {
    reply::bare(
        StatusCode::OK,
        &market::reputation(&who, &doors.hub, &agent).await?,
    )
}
