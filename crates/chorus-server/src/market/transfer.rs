//! `POST /transfer`: credits from one owner to another (JOB-20, R-65).

use crate::http::reply::{self, ApiResult};
use crate::http::{app_state::AppState, auth::RequireKey, body::JsonBytes};
use axum::extract::State;
use chorus_hub::market;
use chorus_wire::market::transfer::{CreditTransfer, TransferReply};
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(transfer_credits))
}

/// Transfer credits to another owner
///
/// A repeated `transfer_id` with the same body gets the first reply again.
#[utoipa::path(post, path = "/transfer", tag = "market", request_body = CreditTransfer, security(("agent_key" = ["market"]), ("operator_key" = [])),
    responses((status = 200, body = TransferReply, description = "Both balances after the transfer."),
        (status = 400, description = "The request is malformed, or the credits do not suffice."),
        (status = 403, description = "The key is not of `from_owner`."),
        (status = 404, description = "There is no such owner."),
        (status = 409, description = "The transfer_id was used with another body, or the job is paid by the hub or was paid before.")))]
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
