//! `GET /handles/{handle}/roster`: who is there (FRM-109, R-50).

use crate::query::Segment;
use crate::reply::{self, Answer};
use crate::{auth::Known, doors::Doors};
use axum::extract::State;
use chorus_hub::frame;
use chorus_wire::frame::{FrameFailure, Roster};
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::default().routes(routes!(roster))
}

/// The live sessions of a handle, for itself and those it lets address it
#[utoipa::path(get, path = "/handles/{handle}/roster", tag = "frame", security(("agent_key" = [])),
    params(("handle" = String, Path, description = "My own, or one that granted me")),
    responses((status = 200, body = Roster), (status = 401, body = FrameFailure), (status = 403, body = FrameFailure)))]
async fn roster(State(doors): State<Doors>, Known(who): Known, Segment(handle): Segment) -> Answer {
    reply::bare(
        StatusCode::OK,
        &frame::roster(&who, &doors.hub, &handle).await?,
    )
}
