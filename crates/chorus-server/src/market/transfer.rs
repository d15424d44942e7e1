//! `POST /transfer`: credits from one owner to another (JOB-20, R-65).

use crate::reply::{self, Answer};
use crate::{auth::Known, body::Whole, doors::Doors};
use axum::extract::State;
use chorus_hub::market;
use chorus_wire::market::transfer::{Transfer, Transferred};
use chorus_wire::reply::MarketFailure;
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::default().routes(routes!(transfer))
}

/// Pay another owner; the same transfer_id again is answered as the first time
#[utoipa::path(post, path = "/transfer", tag = "market", request_body = Transfer,
    security(("agent_key" = []), ("operator_key" = [])),
    responses((status = 200, body = Transferred), (status = 400, body = MarketFailure, description = "Malformed, or not enough credits"),
        (status = 401, body = MarketFailure), (status = 403, body = MarketFailure, description = "Not a key of from_owner"),
        (status = 404, body = MarketFailure, description = "No such owner"),
        (status = 409, body = MarketFailure, description = "The transfer_id was used with another body")))]
async fn transfer(State(doors): State<Doors>, Known(who): Known, Whole(body): Whole) -> Answer {
    let asked = Transfer::parse(&body)?;
    Ok(reply::json(
        StatusCode::OK,
        market::transfer(&who, &doors.hub, asked).await?,
    ))
}
