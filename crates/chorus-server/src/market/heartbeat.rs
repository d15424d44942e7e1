//! `POST /heartbeat`: an agent says that it is there (R-66, JOB-29).

use crate::reply::{self, Answer};
use crate::{auth::Known, body::Whole, doors::Doors};
use axum::extract::State;
use chorus_hub::market;
use chorus_wire::market::heartbeat::{self, Heard};
use chorus_wire::reply::MarketFailure;
use http::StatusCode;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::default().routes(routes!(beat))
}

#[derive(ToSchema)]
#[expect(
    dead_code,
    reason = "it describes the body in the contract; wire/market/heartbeat.rs reads it"
)]
struct HeartbeatBody {
    /// The key's own agent; it may be left out.
    agent_id: Option<String>,
}

/// I am here; any other request with the key says the same
#[utoipa::path(post, path = "/heartbeat", tag = "market", request_body = HeartbeatBody, security(("agent_key" = [])),
    responses((status = 200, body = Heard), (status = 401, body = MarketFailure),
        (status = 403, body = MarketFailure, description = "The key is another agent's")))]
async fn beat(State(doors): State<Doors>, Known(who): Known, Whole(body): Whole) -> Answer {
    let named = heartbeat::read(&body)?;
    reply::bare(
        StatusCode::OK,
        &market::heartbeat(&who, &doors.hub, named.as_deref()).await?,
    )
}
