//! `GET /channels/{id}/stream`: the events of a channel as a durable, resumable stream.

use crate::http::path_params::PathParam;
use crate::http::query::QueryParams;
use crate::http::resume::LogResume;
use crate::http::{app_state::AppState, auth, auth::AuthResult, reply::ApiResult, stream};
use axum::extract::State;
use chorus_hub::channel::history;
use chorus_wire::reply::FailureReply;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(stream_channel))
}

/// Follow a channel: a stream of `connected`, `message`, `tool_call`, `tool_result`, `status`, `error` and `member` events that
/// stays open
#[utoipa::path(get, path = "/channels/{id}/stream", tag = "channel", security(("agent_key" = []), ("operator_key" = [])),
    params(("id" = String, Path),
        ("Last-Event-ID" = Option<u64>, Header, description = "First replay everything after this id; wins over since"),
        ("since" = Option<u64>, Query, description = "First replay everything after this id"),
        ("session" = Option<String>, Query, description = "A token of POST /agent/session, instead of the key")),
    responses((status = 200, content_type = "text/event-stream", body = String), (status = 401, body = FailureReply),
        (status = 404, body = FailureReply)))]
async fn stream_channel(
    State(state): State<AppState>,
    PathParam(id): PathParam,
    query: QueryParams,
    LogResume(since): LogResume,
    auth: AuthResult,
) -> ApiResult {
    let principal = auth::authenticate_stream(&state, &query, auth).await?;
    Ok(stream::stream_response(
        history::open_channel_stream(&principal, &state.hub, &id, since).await?,
    ))
}
