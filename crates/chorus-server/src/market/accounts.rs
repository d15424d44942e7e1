//! `/accounts/{owner}`: what an owner has, and what operators add (R-64, lesson 14).

use crate::auth::{Known, Operator};
use crate::reply::{self, Answer};
use crate::{body::Whole, doors::Doors, query::Segment};
use axum::extract::State;
use chorus_hub::market;
use chorus_wire::market::transfer::{Account, Issue};
use chorus_wire::reply::MarketFailure;
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::default()
        .routes(routes!(account))
        .routes(routes!(credit))
}

/// What an owner has, and what is held for its jobs
#[utoipa::path(get, path = "/accounts/{owner}", tag = "market", params(("owner" = String, Path)),
    security(("agent_key" = []), ("operator_key" = [])),
    responses((status = 200, body = Account), (status = 401, body = MarketFailure),
        (status = 403, body = MarketFailure, description = "Not a key of that owner"), (status = 404, body = MarketFailure)))]
async fn account(State(doors): State<Doors>, Known(who): Known, Segment(owner): Segment) -> Answer {
    reply::bare(
        StatusCode::OK,
        &market::account(&who, &doors.hub, Some(&owner)).await?,
    )
}

/// Issue credits to an owner
#[utoipa::path(post, path = "/accounts/{owner}/credit", tag = "market", params(("owner" = String, Path)), request_body = Issue,
    security(("operator_key" = [])),
    responses((status = 200, body = Account), (status = 401, body = MarketFailure), (status = 403, body = MarketFailure),
        (status = 404, body = MarketFailure)))]
async fn credit(
    State(doors): State<Doors>,
    Operator(who): Operator,
    Segment(owner): Segment,
    Whole(body): Whole,
) -> Answer {
    let issue = Issue::parse(&body)?;
    reply::bare(
        StatusCode::OK,
        &market::credit(&who, &doors.hub, &owner, issue).await?,
    )
}
