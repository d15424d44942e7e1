//! `GET /agent/messages`: the history of an agent's messages (TRN-56…58, R-15).

use crate::http::reply::{self, ApiResult};
use crate::http::{app_state::AppState, auth::MaybeAuth, query::QueryParams, resume};
use axum::extract::State;
use chorus_hub::envelope;
use chorus_wire::limits;
use chorus_wire::message::HistoryRow;
use chorus_wire::reply::{FailureReply, SuccessReply};
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(list_messages))
}

/// My messages, sent and received, oldest first
#[utoipa::path(get, path = "/agent/messages", tag = "envelope", security(("agent_key" = [])),
    params(("since" = Option<String>, Query, description = "An id: everything after it. An RFC 3339 instant: everything from it on"),
        ("limit" = Option<u64>, Query, description = "At most this many, up to 1000")),
    responses((status = 200, body = SuccessReply<Vec<HistoryRow>>), (status = 401, body = FailureReply), (status = 403, body = FailureReply)))]
async fn list_messages(
    State(state): State<AppState>,
    MaybeAuth(principal): MaybeAuth,
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
