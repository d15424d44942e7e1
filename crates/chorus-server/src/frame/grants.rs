//! `/handles/{handle}/grants`: who else may address me.

use crate::query::{Pair, Segment};
use crate::reply::{self, Answer};
use crate::{auth::Known, doors::Doors};
use axum::extract::State;
use chorus_hub::frame::grants;
use chorus_wire::frame::FrameFailure;
use chorus_wire::frame::org::{Ended, Grant, Grants};
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::default()
        .routes(routes!(list))
        .routes(routes!(grant, withdraw))
}

/// Whom I let address me
#[utoipa::path(get, path = "/handles/{handle}/grants", tag = "frame", security(("agent_key" = [])),
    params(("handle" = String, Path, description = "My own")),
    responses((status = 200, body = Grants), (status = 401, body = FrameFailure), (status = 403, body = FrameFailure)))]
async fn list(State(doors): State<Doors>, Known(who): Known, Segment(mine): Segment) -> Answer {
    reply::bare(
        StatusCode::OK,
        &grants::list(&who, &doors.hub, &mine).await?,
    )
}

/// Let another handle address me, and see which of my sessions are live
#[utoipa::path(put, path = "/handles/{handle}/grants/{grantee}", tag = "frame", security(("agent_key" = [])),
    params(("handle" = String, Path, description = "My own"), ("grantee" = String, Path, description = "Whom I let")),
    responses((status = 200, body = Grant), (status = 401, body = FrameFailure), (status = 403, body = FrameFailure),
        (status = 404, body = FrameFailure, description = "No agent has that handle"),
        (status = 409, body = FrameFailure, description = "It is my own handle, or I have granted as many as I may")))]
async fn grant(State(doors): State<Doors>, Known(who): Known, Pair(mine, other): Pair) -> Answer {
    reply::bare(
        StatusCode::OK,
        &grants::grant(&who, &doors.hub, &mine, &other).await?,
    )
}

/// Withdraw a grant; from this answer on the other is refused
#[utoipa::path(delete, path = "/handles/{handle}/grants/{grantee}", tag = "frame", security(("agent_key" = [])),
    params(("handle" = String, Path, description = "My own"), ("grantee" = String, Path, description = "Whom I no longer let")),
    responses((status = 200, body = Ended), (status = 401, body = FrameFailure), (status = 403, body = FrameFailure)))]
async fn withdraw(
    State(doors): State<Doors>,
    Known(who): Known,
    Pair(mine, other): Pair,
) -> Answer {
    reply::bare(
        StatusCode::OK,
        &grants::withdraw(&who, &doors.hub, &mine, &other).await?,
    )
}
