//! `GET /economy`: the market in sums (lesson 14).

use crate::doors::Doors;
use crate::reply::{self, Answer};
use axum::extract::State;
use chorus_hub::market;
use chorus_wire::market::transfer::Economy;
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::default().routes(routes!(economy))
}

/// What was issued, is held and was paid, and how jobs went
#[utoipa::path(get, path = "/economy", tag = "market", responses((status = 200, body = Economy)))]
async fn economy(State(doors): State<Doors>) -> Answer {
    reply::bare(StatusCode::OK, &market::economy(&doors.hub).await?)
}
