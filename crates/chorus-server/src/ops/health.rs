//! `GET /health` and `GET /ready`: alive, and able to serve (TRN-37, lesson 6).

use crate::{
    doors::Doors,
    reply::{self, Answer},
};
use axum::extract::State;
use chorus_hub::ops::{self, Reach};
use chorus_wire::reply::{Failure, Health, Success};
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::default()
        .routes(routes!(health))
        .routes(routes!(ready))
}

/// Whether the hub is alive, and its counts
#[utoipa::path(get, path = "/health", tag = "ops", responses((status = 200, body = Success<Health>)))]
async fn health(State(doors): State<Doors>) -> Answer {
    reply::wrapped(&doors, StatusCode::OK, ops::health(&doors.hub).await?)
}

#[derive(Serialize, ToSchema)]
struct Ready {
    #[schema(example = "ready")]
    status: &'static str,
    /// The store takes writes.
    #[schema(example = "ok")]
    store: &'static str,
    /// `local` for a hub alone, `ok` when it reaches the bus that it shares.
    #[schema(example = "local")]
    bus: &'static str,
}

/// Whether the hub can serve: its store and its bus answer
#[utoipa::path(get, path = "/ready", tag = "ops",
    responses((status = 200, body = Success<Ready>), (status = 503, body = Failure, description = "Not now")))]
async fn ready(State(doors): State<Doors>) -> Answer {
    let bus = match ops::ready(&doors.hub).await? {
        Reach::Alone => "local",
        Reach::Shared => "ok",
    };
    reply::wrapped(
        &doors,
        StatusCode::OK,
        Ready {
            status: "ready",
            store: "ok",
            bus,
        },
    )
}
