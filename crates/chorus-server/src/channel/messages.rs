//! `/channels/{id}/messages`: posting to a channel and reading its history.

use crate::http::path_params::PathParam;
use crate::http::query::QueryParams;
use crate::http::reply::{self, ApiResult};
use crate::http::resume;
use crate::http::{
    app_state::AppState, auth::RequireKey, body::JsonBytes, idempotency::IdempotencyHeader,
};
use axum::extract::State;
use chorus_hub::channel::history::{self, HistoryRange};
use chorus_hub::channel::post_message;
use chorus_wire::channel::channels::NewChannelMessage;
use chorus_wire::channel::history_row::ChannelRow;
use chorus_wire::reply::SuccessReply;
use chorus_wire::{Error, Result, limits};
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(post_channel_message, list_channel_messages))
}

/// Post a message to a channel
///
/// The hub delivers it to the members; `@name` mentions one of them.
#[utoipa::path(post, path = "/channels/{id}/messages", tag = "channel", request_body = chorus_wire::channel::channels::ChannelPost, security(("agent_key" = ["channels"]), ("operator_key" = [])),
    params(("id" = String, Path, description = "The id of the channel"), ("Idempotency-Key" = Option<String>, Header, description = "Makes a repeated request safe")),
    responses((status = 201, body = SuccessReply<ChannelRow>, description = "The row of the channel's history."),
        (status = 403, description = "The quota of the owner does not suffice."),
        (status = 404, description = "There is no such channel, or the key is not of a member."),
        (status = 409, description = "The Idempotency-Key was used with another body.")))]
async fn post_channel_message(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    PathParam(id): PathParam,
    idempotency_key: IdempotencyHeader,
    JsonBytes(body): JsonBytes,
) -> ApiResult {
    let message = NewChannelMessage::parse(&body)?;
    let idempotency = idempotency_key.with_body(&body)?;
    reply::wrapped_json(
        &state,
        StatusCode::CREATED,
        post_message::post_message(&principal, &state.hub, &id, message, idempotency).await?,
    )
}

/// List the history of a channel
///
/// Messages, tool calls and results, statuses, errors and changes of members, oldest first. With `text`: only messages that
/// contain it; such a page reads a bounded number of messages, and `metadata.next` is the `before` of the next one.
#[utoipa::path(get, path = "/channels/{id}/messages", tag = "channel", security(("agent_key" = ["channels"]), ("operator_key" = [])),
    params(("id" = String, Path, description = "The id of the channel"), ("since" = Option<u64>, Query, description = "A cursor: the rows after it. Not together with `before`"),
        ("before" = Option<u64>, Query, description = "A cursor: the last rows before it"),
        ("text" = Option<String>, Query, min_length = 1, max_length = 200, description = "Only messages that contain this text, in upper or lower case: the newest, or those before `before`"),
        ("limit" = Option<u64>, Query, minimum = 1, description = "How many at most. A number above 1000 counts as 1000, which is also the default")),
    responses((status = 200, body = SuccessReply<Vec<ChannelRow>>, description = "The rows."),
        (status = 404, description = "There is no such channel, or the key is not of a member.")))]
async fn list_channel_messages(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    PathParam(id): PathParam,
    query: QueryParams,
) -> ApiResult {
    let limit = query.page_limit(limits::HISTORY_PAGE)?;
    if let Some(text) = query.search_text()? {
        let before = parse_search_start(&query)?;
        let page =
            history::search_channel_messages(&principal, &state.hub, &id, text, before, limit)
                .await?;
        return reply::bare_json(StatusCode::OK, &reply::wrap_page(&state, page));
    }
    let range = parse_history_range(&query)?;
    reply::wrapped_json(
        &state,
        StatusCode::OK,
        history::list_channel_history(&principal, &state.hub, &id, range, limit).await?,
    )
}

/// A search goes back from the newest message, or from `before`.
fn parse_search_start(query: &QueryParams) -> Result<Option<u64>> {
    match parse_history_range(query)? {
        HistoryRange::After(_) if query.has("since") => {
            Err(Error::validation("text and since are two questions"))
        }
        HistoryRange::After(_) => Ok(None),
        HistoryRange::Before(seq) | HistoryRange::MessagesBefore(seq) => Ok(Some(seq)),
    }
}

fn parse_history_range(query: &QueryParams) -> Result<HistoryRange> {
    match (
        resume::since_cursor(query)?,
        resume::log_cursor(query, "before")?,
    ) {
        (Some(_), Some(_)) => Err(Error::validation("since and before are two questions")),
        (since, None) => Ok(HistoryRange::After(since.unwrap_or_default().seq)),
        (None, Some(before)) => Ok(HistoryRange::Before(before.seq)),
    }
}
