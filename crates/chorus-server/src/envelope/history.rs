//! `GET /agent/messages`: the history of an agent's messages (TRN-56…58, R-15).

use crate::http::reply::{self, ApiResult};
use crate::http::{app_state::AppState, auth::RequireKey, query::QueryParams, resume};
use axum::extract::State;
use chorus_hub::envelope;
use chorus_wire::limits;
use chorus_wire::message::HistoryRow;
use chorus_wire::reply::SuccessReply;
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(list_messages))
}

/// List my messages
///
/// The messages that the agent sent and received, oldest first. A page may be shorter than `limit`; continue after its last id.
#[utoipa::path(get, path = "/agent/messages", tag = "envelope", security(("agent_key" = ["read"])),
    params(("since" = Option<String>, Query, pattern = "^([0-9]+|[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ].+)$", example = "42",
            description = "An id: the messages after it. An RFC 3339 instant: the messages from it on"),
        ("limit" = Option<u64>, Query, minimum = 1, description = "How many at most. A number above 1000 counts as 1000, which is also the default")),
    responses((status = 200, body = SuccessReply<Vec<HistoryRow>>, description = "The messages.")))]
async fn list_messages(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    query: QueryParams,
) -> ApiResult {
    let limit = query.page_limit(limits::HISTORY_PAGE)?;
    reply::wrapped_json(
        &state,
        StatusCode::OK,
        envelope::list_message_history(
            &principal,
            &state.hub,
            resume::history_start(&query)?,
            limit,
        )
        .await?,
    )
}
