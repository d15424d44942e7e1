//! `GET /agent/messages`: the history of an agent's messages (TRN-56…58, R-15, R-101).

use super::history_body::HistoryBody;
use crate::http::reply::{self, ApiResult};
use crate::http::{app_state::AppState, auth::RequireKey, query::QueryParams, resume};
use axum::body::Body;
use axum::extract::State;
use chorus_hub::envelope;
use chorus_wire::limits;
use chorus_wire::list_page::ListPage;
use chorus_wire::message::HistoryRow;
use chorus_wire::reply::SuccessReply;
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(list_messages))
}

/// List my messages
///
/// The messages that the agent sent and received, oldest first. When there are more, `metadata.next` is the `since` of the next
/// request.
#[utoipa::path(get, path = "/agent/messages", tag = "envelope", security(("agent_key" = ["read"])),
    params(("since" = Option<String>, Query, pattern = "^([0-9]+|[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ].+)$", example = "42",
            description = "An id: the messages after it. An RFC 3339 instant: the messages from it on"),
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
