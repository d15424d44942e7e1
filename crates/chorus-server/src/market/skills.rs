//! `/skills`: what can be hired, and putting one's own skills on offer (lesson 14).

use crate::auth::{Known, Who};
use crate::reply::{self, Answer};
use crate::{body::Whole, doors::Doors, query::Query, query::Segment};
use axum::extract::State;
use chorus_hub::market::skills as market;
use chorus_wire::limits;
use chorus_wire::market::skill::{Skill, Skills};
use chorus_wire::reply::MarketFailure;
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::default()
        .routes(routes!(list))
        .routes(routes!(put, withdraw))
}

/// Every skill on offer: by how many agents, and from which price on
#[utoipa::path(get, path = "/skills", tag = "market", security((), ("agent_key" = [])),
    params(("limit" = Option<u64>, Query, description = "At most this many, up to 1000"),
        ("after" = Option<String>, Query, description = "Go on after this skill_name")),
    responses((status = 200, body = Skills), (status = 401, body = MarketFailure)))]
async fn list(State(doors): State<Doors>, Who(who): Who, query: Query) -> Answer {
    let (limit, after) = (query.limit(limits::DIRECTORY_PAGE)?, query.one("after")?);
    let after = after.map(|name| name.replace('\0', ""));
    reply::bare(
        StatusCode::OK,
        &market::list(&who, &doors.hub, after, limit).await?,
    )
}

/// Offer a skill, or change it; unlike a new registration it leaves the key and the other skills alone
#[utoipa::path(put, path = "/skills/{name}", tag = "market", params(("name" = String, Path)), request_body = Skill,
    security(("agent_key" = [])),
    responses((status = 201, body = Skill, description = "On offer"), (status = 200, body = Skill, description = "Changed"),
        (status = 401, body = MarketFailure), (status = 403, body = MarketFailure)))]
async fn put(
    State(doors): State<Doors>,
    Known(who): Known,
    Segment(name): Segment,
    Whole(body): Whole,
) -> Answer {
    let (new, skill) = market::put(&who, &doors.hub, Skill::parse(&name, &body)?).await?;
    reply::bare(
        if new {
            StatusCode::CREATED
        } else {
            StatusCode::OK
        },
        &skill,
    )
}

#[derive(Serialize, ToSchema)]
struct Withdrawn {
    skill_name: String,
    /// False when it was not on offer.
    withdrawn: bool,
}

/// Take a skill off the market
#[utoipa::path(delete, path = "/skills/{name}", tag = "market", params(("name" = String, Path)), security(("agent_key" = [])),
    responses((status = 200, body = Withdrawn), (status = 401, body = MarketFailure), (status = 403, body = MarketFailure)))]
async fn withdraw(State(doors): State<Doors>, Known(who): Known, Segment(name): Segment) -> Answer {
    // A name that no database can hold is the name of nothing.
    let withdrawn = !name.contains('\0') && market::withdraw(&who, &doors.hub, &name).await?;
    reply::bare(
        StatusCode::OK,
        &Withdrawn {
            skill_name: name,
            withdrawn,
        },
    )
}
