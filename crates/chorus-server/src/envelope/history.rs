//! `GET /agent/messages`: the history of an agent's messages (TRN-56…58, R-15, R-101).

use super::history_body::HistoryBody;
use crate::http::reply::{self, ApiResult};
use crate::http::{app_state::AppState, auth::RequireKey, query::QueryParams, resume};
use axum::body::Body;
use axum::extract::State;
use chorus_hub::envelope::{self, MessageFilter};
use chorus_wire::list_page::ListPage;
use chorus_wire::message::HistoryRow;
use chorus_wire::reply::SuccessReply;
use chorus_wire::{Error, Result, limits};
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(list_messages))
}

/// List my messages
///
/// The messages that the agent sent and received, oldest first. When there are more, `metadata.next` is the `since` of the next
/// request. With `before` or a filter: the newest that match, and `metadata.next` is the `before` of the next request. Such a page
/// reads a bounded number of messages, so it may be short or empty and still have a `next`.
#[utoipa::path(get, path = "/agent/messages", tag = "envelope", security(("agent_key" = ["read"])),
    params(("since" = Option<String>, Query, pattern = "^([0-9]+|[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ].+)$", example = "42",
            description = "An id: the messages after it. An RFC 3339 instant: the messages from it on"),
        ("before" = Option<u64>, Query, description = "An id: the newest messages before it. Not together with `since`"),
        ("peer" = Option<String>, Query, example = "bob@chorus", description = "Only messages exchanged with this agent. Not together with `since`"),
        ("conversation_id" = Option<String>, Query, max_length = 64, description = "Only messages of this conversation; empty: those without one. Not together with `since`"),
        ("text" = Option<String>, Query, min_length = 1, max_length = 200, description = "Only messages that contain this text, in upper or lower case. Not together with `since`"),
        ("limit" = Option<u64>, Query, minimum = 1, description = "How many at most. A number above 1000 counts as 1000. Without it, up to 10000 messages or 8 MiB")),
    responses((status = 200, body = SuccessReply<Vec<HistoryRow>>, description = "The messages.")))]
async fn list_messages(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    query: QueryParams,
) -> ApiResult {
    let is_limited = query.has("limit");
    let limit = query.page_limit(limits::HISTORY_PAGE)?;
    let since = resume::history_start(&query)?;
    if let Some(filter) = parse_filter(&query)? {
        if since.is_some() {
            return Err(Error::validation("since takes no filter and no before").into());
        }
        let page = envelope::find_messages(&principal, &state.hub, filter, limit).await?;
        return reply::bare_json(StatusCode::OK, &reply::wrap_page(&state, page));
    }
    let page = envelope::list_message_history(&principal, &state.hub, since, limit).await?;
    if page.has_more && !is_limited {
        let body = HistoryBody::new(state, principal, page);
        return Ok(reply::json_response(StatusCode::OK, Body::new(body)));
    }
    let next = page.next_cursor();
    let page = ListPage {
        rows: page.rows,
        next,
    };
    reply::bare_json(StatusCode::OK, &reply::wrap_page(&state, page))
}

/// `None` when neither `before` nor a filter is given.
fn parse_filter(query: &QueryParams) -> Result<Option<MessageFilter>> {
    let filter = MessageFilter {
        peer: query.get_single("peer")?.map(str::to_owned),
        conversation_id: query.get_single("conversation_id")?.map(str::to_owned),
        text: query.search_text()?.map(str::to_owned),
        before: resume::log_cursor(query, "before")?.map(|cursor| cursor.seq),
    };
    let conversation_chars = filter
        .conversation_id
        .as_ref()
        .map_or(0, |id| id.chars().count());
    if conversation_chars > limits::CONVERSATION_ID_CHARS {
        return Err(Error::invalid_field(
            "conversation_id",
            format!(
                "conversation_id must be at most {} characters long",
                limits::CONVERSATION_ID_CHARS
            ),
        ));
    }
    let is_empty = filter.peer.is_none()
        && filter.conversation_id.is_none()
        && filter.text.is_none()
        && filter.before.is_none();
    Ok((!is_empty).then_some(filter))
}
