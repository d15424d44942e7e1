//! `GET /activity` and `GET /events`: the hub's activity for operators, as pages and as a stream (lesson 10).

use crate::http::auth::MaybeAuth;
use crate::http::query::QueryParams;
use crate::http::resume::{self, LogResume};
use crate::http::{
    app_state::AppState,
    reply::{self, ApiResult},
    stream,
};
use axum::extract::State;
use chorus_hub::ops;
use chorus_wire::reply::{ActivityRow, FailureReply, SuccessReply};
use chorus_wire::{cursor::Cursor, limits};
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(list_activity))
        .routes(routes!(stream_activity))
}

/// What happened on this hub, oldest first
#[utoipa::path(get, path = "/activity", tag = "ops", security(("operator_key" = [])),
    params(("since" = Option<u64>, Query, description = "Only entries after this id"),
        ("limit" = Option<u64>, Query, description = "At most this many, up to 1000")),
    responses((status = 200, body = SuccessReply<Vec<ActivityRow>>), (status = 401, body = FailureReply), (status = 403, body = FailureReply)))]
async fn list_activity(
    State(state): State<AppState>,
    MaybeAuth(principal): MaybeAuth,
    query: QueryParams,
) -> ApiResult {
    let since = resume::since_cursor(&query)?.unwrap_or(Cursor::START);
    let limit = query.page_limit(limits::ACTIVITY_PAGE)?;
    reply::wrapped_json(
        &state,
        StatusCode::OK,
        ops::list_activity(&principal, &state.hub, since.seq, limit).await?,
    )
}

/// The same, live, as server-sent events
#[utoipa::path(get, path = "/events", tag = "ops", security(("operator_key" = [])),
    params(("since" = Option<u64>, Query, description = "First replay everything after this id"),
        ("Last-Event-ID" = Option<u64>, Header, description = "The same; wins over since")),
    responses((status = 200, content_type = "text/event-stream", body = String),
        (status = 401, body = FailureReply), (status = 403, body = FailureReply)))]
async fn stream_activity(
    State(state): State<AppState>,
    MaybeAuth(principal): MaybeAuth,
    LogResume(since): LogResume,
) -> ApiResult {
    Ok(stream::stream_response(
        ops::open_activity_stream(&principal, &state.hub, since.map(|cursor| cursor.seq)).await?,
    ))
}
