//! `GET /activity` and `GET /events`: the hub's activity for operators, as pages and as a stream (lesson 10).

use crate::http::auth::RequireOperator;
use crate::http::query::QueryParams;
use crate::http::resume::{self, LogResume};
use crate::http::{
    app_state::AppState,
    reply::{self, ApiResult},
    stream,
};
use axum::extract::State;
use chorus_hub::ops;
use chorus_wire::reply::{ActivityRow, SuccessReply};
use chorus_wire::{cursor::Cursor, limits};
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(list_activity))
        .routes(routes!(stream_activity))
}

/// List the activity of the hub
///
/// Registrations, messages without their text, and other events, oldest first.
#[utoipa::path(get, path = "/activity", tag = "ops", security(("operator_key" = [])),
    params(("since" = Option<u64>, Query, description = "Only rows after this id"),
        ("limit" = Option<u64>, Query, minimum = 1, description = "How many at most. A number above 1000 counts as 1000, which is also the default")),
    responses((status = 200, body = SuccessReply<Vec<ActivityRow>>, description = "The activity.")))]
async fn list_activity(
    State(state): State<AppState>,
    RequireOperator(principal): RequireOperator,
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

/// Stream the activity of the hub
///
/// The rows of `GET /activity` as server-sent events, as they come.
#[utoipa::path(get, path = "/events", tag = "ops", security(("operator_key" = [])),
    params(("Last-Event-ID" = Option<u64>, Header, description = "Replay everything after this id first"), ("since" = Option<String>, Query, pattern = "^([0-9]+|[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ].+)$", example = "42", description = "First replay everything after this id, or from this RFC 3339 instant on. `Last-Event-ID` takes precedence")),
    responses((status = 200, content_type = "text/event-stream", body = String, description = "The events.")))]
async fn stream_activity(
    State(state): State<AppState>,
    RequireOperator(principal): RequireOperator,
    LogResume(since): LogResume,
) -> ApiResult {
    Ok(stream::stream_response(
        ops::open_activity_stream(&principal, &state.hub, since).await?,
    ))
}
