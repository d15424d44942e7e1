//! `GET /agent/inbox`: an agent's message stream, and the receiver's reply to a message (TRN-08…12, R-25, R-34).

use crate::http::path_params::PathParam;
use crate::http::reply::{self, ApiResult};
use crate::http::resume::LogResume;
use crate::http::{
    app_state::AppState, auth::RequireKey, auth::StreamCredential, auth::StreamOpener,
    body::JsonBytes, query::QueryParams, stream,
};
use axum::extract::State;
use chorus_hub::{delivery, envelope};
use chorus_wire::message::{MessageStatus, ReceiverReply};
use chorus_wire::reach::StreamReach;
use chorus_wire::reply::SuccessReply;
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(stream_inbox))
        .routes(routes!(respond_to_message))
        .routes(routes!(mark_message_shown))
}

/// Stream my inbox
///
/// A stream of server-sent events that stays open: messages, receipts, what was shown, channel deliveries and jobs. With `Last-Event-ID` or
/// `since` it first replays what the agent missed. A comment line comes every 15 seconds on a quiet stream.
#[utoipa::path(get, path = "/agent/inbox", tag = "envelope", security(("agent_key" = ["read"])),
    params(("Last-Event-ID" = Option<u64>, Header, description = "Replay everything after this id first"), ("since" = Option<String>, Query, pattern = "^([0-9]+|[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ].+)$", example = "42", description = "First replay everything after this id, or from this RFC 3339 instant on. `Last-Event-ID` takes precedence"), ("session" = Option<String>, Query, min_length = 1, description = "A token of POST /agent/session, in place of the key"), ("reach" = Option<String>, Query, pattern = "^(turns|wakes)$", description = "What the reader does with a message: `wakes` starts a turn of a live session, `turns` (the default) shows it between two turns. Others see it as the `reach` of this agent while the stream is open")),
    responses((status = 200, content_type = "text/event-stream", body = String, description = "The events.")))]
async fn stream_inbox(
    State(state): State<AppState>,
    credential: StreamCredential,
    LogResume(since): LogResume,
    query: QueryParams,
) -> ApiResult {
    // Before the token is redeemed, so that a mistake does not consume it.
    let reach = StreamReach::parse_param(query.get_single("reach")?)?;
    let StreamOpener {
        principal,
        resume_token,
    } = credential.redeem(&state).await?;
    let hub = &state.hub;
    Ok(stream::stream_response(
        delivery::open_inbox(&principal, hub.delivery(), since, resume_token, reach).await?,
    ))
}

/// Respond to a message
///
/// The receiver's answer to a message that came by the inbox. The sender gets it as a `receipt` event.
#[utoipa::path(post, path = "/agent/messages/{trace_id}/response", tag = "envelope", request_body = chorus_wire::message::ReceiverReplyRequest,
    security(("agent_key" = ["send"])), params(("trace_id" = String, Path, description = "The trace_id of the message")),
    responses((status = 200, body = SuccessReply<MessageStatus>, description = "The message with its response."),
        (status = 404, description = "This agent has received no such message."),
        (status = 409, description = "The message already has another response.")))]
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

/// Say that a message was shown
///
/// Its text was part of a model's turn or on a person's screen. The first time stands, and the sender gets it as a `shown` event.
/// It is not a response, and implies none.
#[utoipa::path(post, path = "/agent/messages/{trace_id}/shown", tag = "envelope", security(("agent_key" = ["read"])),
    params(("trace_id" = String, Path, description = "The trace_id of the message")),
    responses((status = 200, body = SuccessReply<MessageStatus>, description = "The message with the time at which it was first shown."),
        (status = 404, description = "This agent has received no such message.")))]
async fn mark_message_shown(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    PathParam(trace_id): PathParam,
) -> ApiResult {
    reply::wrapped_json(
        &state,
        StatusCode::OK,
        envelope::mark_shown(&principal, &state.hub, &trace_id).await?,
    )
}
