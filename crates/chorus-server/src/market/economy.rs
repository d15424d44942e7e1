//! `GET /economy`: totals of the market (lesson 14).

use crate::http::app_state::AppState;
use crate::http::reply::{self, ApiResult};
use axum::extract::State;
use chorus_hub::market;
use chorus_wire::market::transfer::EconomyReport;
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(get_economy))
}

/// What was issued, is held and was paid, and how jobs went
#[utoipa::path(get, path = "/economy", tag = "market", responses((status = 200, body = EconomyReport)))]
async fn get_economy(State(state): State<AppState>) -> ApiResult {
    reply::bare_json(
        StatusCode::OK,
        &market::summarize_economy(&state.hub).await?,
    )
}
