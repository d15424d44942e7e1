//! `POST /transfer`: credits from one owner to another (JOB-20, R-65).

use crate::http::reply::{self, ApiResult};
use crate::http::{app_state::AppState, auth::RequireKey, body::JsonBytes};
use axum::extract::State;
use chorus_hub::market;
use chorus_wire::market::transfer::{CreditTransfer, TransferReply};
use chorus_wire::reply::MarketFailure;
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(transfer_credits))
}

/// Pay another owner; the same transfer_id again is answered as the first time
#[utoipa::path(post, path = "/transfer", tag = "market", request_body = CreditTransfer,
    security(("agent_key" = []), ("operator_key" = [])),
    responses((status = 200, body = TransferReply), (status = 400, body = MarketFailure, description = "Malformed, or not enough credits"),
        (status = 401, body = MarketFailure), (status = 403, body = MarketFailure, description = "Not a key of from_owner"),
        (status = 404, body = MarketFailure, description = "No such owner"),
        (status = 409, body = MarketFailure, description = "The transfer_id was used with another body")))]
async fn transfer_credits(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    JsonBytes(body): JsonBytes,
) -> ApiResult {
    let request = CreditTransfer::parse(&body)?;
    Ok(reply::json_response(
        StatusCode::OK,
        market::transfer_credits(&principal, &state.hub, request).await?,
    ))
}
