//! `GET /agent/inbox`: an agent's message stream, and the receiver's reply to a message (TRN-08…12, R-25, R-34).

use crate::http::path_params::PathParam;
use crate::http::query::QueryParams;
use crate::http::reply::{self, ApiResult};
use crate::http::resume::LogResume;
use crate::http::{
    app_state::AppState, auth, auth::AuthResult, auth::RequireKey, body::JsonBytes, stream,
};
use axum::extract::State;
use chorus_hub::{delivery, envelope};
use chorus_wire::message::{MessageStatus, ReceiverReply};
use chorus_wire::reply::{FailureReply, SuccessReply};
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(stream_inbox))
        .routes(routes!(respond_to_message))
}

/// The inbox: a stream of `connected`, `message` and `receipt` events that stays open
#[utoipa::path(get, path = "/agent/inbox", tag = "envelope", security(("agent_key" = [])),
    params(("Last-Event-ID" = Option<u64>, Header, description = "First replay everything after this id; wins over since"),
        ("since" = Option<u64>, Query, description = "First replay everything after this id"),
        ("session" = Option<String>, Query, description = "A token of POST /agent/session, instead of the key")),
    responses((status = 200, content_type = "text/event-stream", body = String), (status = 401, body = FailureReply),
        (status = 403, body = FailureReply)))]
async fn stream_inbox(
    State(state): State<AppState>,
    query: QueryParams,
    LogResume(since): LogResume,
    auth: AuthResult,
) -> ApiResult {
    let principal = auth::authenticate_stream(&state, &query, auth).await?;
    Ok(stream::stream_response(
        delivery::open_inbox(&principal, state.hub.delivery(), since).await?,
    ))
}

/// Answer a message that came by the inbox; its sender hears a `receipt`
#[utoipa::path(post, path = "/agent/messages/{trace_id}/response", tag = "envelope", request_body = chorus_wire::message::ReceiverReplyRequest,
    security(("agent_key" = [])), params(("trace_id" = String, Path)),
    responses((status = 200, body = SuccessReply<MessageStatus>), (status = 401, body = FailureReply), (status = 403, body = FailureReply),
        (status = 404, body = FailureReply), (status = 409, body = FailureReply, description = "Another response stands")))]
async fn respond_to_message(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    PathParam(trace_id): PathParam,
    JsonBytes(body): JsonBytes,
) -> ApiResult {
    let response = ReceiverReply::parse(&body)?;
    reply::wrapped_json(
        &state,
        StatusCode::OK,
        envelope::respond_to_message(&principal, &state.hub, &trace_id, response).await?,
    )
}
