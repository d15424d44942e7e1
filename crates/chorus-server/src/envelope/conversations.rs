//! `GET /conversations`: with whom an agent exchanged messages, newest first; for operators who wrote to whom (D-116).

use crate::http::reply::{self, ApiResult};
use crate::http::{app_state::AppState, auth::RequireKey, query::QueryParams, resume};
use axum::extract::State;
use chorus_hub::envelope;
use chorus_wire::message::ConversationRow;
use chorus_wire::reply::SuccessReply;
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(list_conversations))
}

/// List conversations
///
/// For an agent: its conversations, by peer and `conversation_id`. For an operator: the pairs of agents that exchanged messages,
/// without texts. The newest come first. A page covers a bounded number of messages; `metadata.next` is the `before` of the next
/// page, on which a conversation comes again if it has older messages.
#[utoipa::path(get, path = "/conversations", tag = "envelope", security(("agent_key" = ["read"]), ("operator_key" = [])),
    params(("before" = Option<u64>, Query, example = 42, description = "An id: only messages before it")),
    responses((status = 200, body = SuccessReply<Vec<ConversationRow>>, description = "The conversations.")))]
async fn list_conversations(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    query: QueryParams,
) -> ApiResult {
    let before = resume::log_cursor(&query, "before")?.map(|cursor| cursor.seq);
    let page = envelope::list_conversations(&principal, &state.hub, before).await?;
    reply::bare_json(StatusCode::OK, &reply::wrap_page(&state, page))
}
