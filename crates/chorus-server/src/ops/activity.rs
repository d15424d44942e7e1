//! `GET /activity` and `GET /events`: what happened, and what happens now, for operators (lesson 10).

use crate::auth::Who;
use crate::query::{Query, Resume};
use crate::{
    doors::Doors,
    reply::{self, Answer},
    stream,
};
use axum::extract::State;
use chorus_hub::ops;
use chorus_wire::reply::{Activity, Failure, Success};
use chorus_wire::{cursor::Cursor, limits};
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::default()
        .routes(routes!(activity))
        .routes(routes!(events))
}

/// What happened on this hub, oldest first
#[utoipa::path(get, path = "/activity", tag = "ops", security(("operator_key" = [])),
    params(("since" = Option<u64>, Query, description = "Only entries after this id"),
        ("limit" = Option<u64>, Query, description = "At most this many, up to 1000")),
    responses((status = 200, body = Success<Vec<Activity>>), (status = 401, body = Failure), (status = 403, body = Failure)))]
async fn activity(State(doors): State<Doors>, Who(who): Who, query: Query) -> Answer {
    let since = query.cursor()?.unwrap_or(Cursor::START);
    let limit = query.limit(limits::ACTIVITY_PAGE)?;
    reply::wrapped(
        &doors,
        StatusCode::OK,
        ops::activity(&who, &doors.hub, since.seq, limit).await?,
    )
}

/// The same, live, as server-sent events
#[utoipa::path(get, path = "/events", tag = "ops", security(("operator_key" = [])),
    params(("since" = Option<u64>, Query, description = "First replay everything after this id"),
        ("Last-Event-ID" = Option<u64>, Header, description = "The same; wins over since")),
    responses((status = 200, content_type = "text/event-stream", body = String),
        (status = 401, body = Failure), (status = 403, body = Failure)))]
async fn events(State(doors): State<Doors>, Who(who): Who, Resume(since): Resume) -> Answer {
    Ok(stream::reply(
        ops::events(&who, &doors.hub, since.map(|cursor| cursor.seq)).await?,
    ))
}
