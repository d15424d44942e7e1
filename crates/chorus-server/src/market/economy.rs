//! `GET /economy`: totals of the market (lesson 14).

use crate::http::app_state::AppState;
use crate::http::directory_access::DirectoryAccess;
use crate::http::reply::{self, ApiResult};
use axum::extract::State;
use chorus_hub::market;
use chorus_wire::market::transfer::EconomyReport;
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(get_economy))
}

/// Get the totals of the market
///
/// The credits issued, held and paid, and the number of jobs by state.
#[utoipa::path(get, path = "/economy", tag = "market", security((), ("agent_key" = ["any"]), ("operator_key" = [])), responses((status = 200, body = EconomyReport, description = "The totals.")))]
async fn get_economy(State(state): State<AppState>, _access: DirectoryAccess) -> ApiResult {
    reply::bare_json(
        StatusCode::OK,
        &market::summarize_economy(&state.hub).await?,
    )
}
