//! `GET /channels/{id}/stream`: the events of a channel as a durable, resumable stream.

use crate::http::auth::{StreamCredential, StreamOpener};
use crate::http::path_params::PathParam;
use crate::http::resume::LogResume;
use crate::http::{app_state::AppState, reply::ApiResult, stream};
use axum::extract::State;
use chorus_hub::channel::history;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(stream_channel))
}

/// Stream a channel
///
/// A stream of server-sent events that stays open: the rows of the channel's history as they come. With `Last-Event-ID` or `since`
/// it first replays what the client missed.
#[utoipa::path(get, path = "/channels/{id}/stream", tag = "channel", security(("agent_key" = ["channels"]), ("operator_key" = [])),
    params(("id" = String, Path, description = "The id of the channel"), ("Last-Event-ID" = Option<u64>, Header, description = "Replay everything after this id first"), ("since" = Option<String>, Query, pattern = "^([0-9]+|[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ].+)$", example = "42", description = "First replay everything after this id, or from this RFC 3339 instant on. `Last-Event-ID` takes precedence"), ("session" = Option<String>, Query, min_length = 1, description = "A token of POST /agent/session, in place of the key")),
    responses((status = 200, content_type = "text/event-stream", body = String, description = "The events."),
        (status = 404, description = "There is no such channel, or the key is not of a member.")))]
async fn stream_channel(
    State(state): State<AppState>,
    PathParam(id): PathParam,
    credential: StreamCredential,
    LogResume(since): LogResume,
) -> ApiResult {
    let StreamOpener {
        principal,
        resume_token,
    } = credential.redeem(&state).await?;
    Ok(stream::stream_response(
        history::open_channel_stream(&principal, &state.hub, &id, since, resume_token).await?,
    ))
}
