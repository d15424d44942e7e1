//! `GET /audit`: the postings of the ledger, newest first (lesson 14).

use crate::http::reply::{self, ApiResult};
use crate::http::{app_state::AppState, auth::RequireKey, query::QueryParams};
use axum::extract::State;
use chorus_hub::market;
use chorus_wire::market::transfer::AuditReply;
use chorus_wire::{Error, limits};
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(list_postings))
}

/// List the postings of the ledger
///
/// Newest first. An agent sees those of its owner, an operator those of all owners.
#[utoipa::path(get, path = "/audit", tag = "market", security(("agent_key" = ["market"]), ("operator_key" = [])),
    params(("job_id" = Option<String>, Query, description = "Only the postings of this job"),
        ("owner_id" = Option<String>, Query, description = "Only the postings of this owner"),
        ("before" = Option<i64>, Query, description = "Continue here: the `before` of the `Link` header of the page before, or the id of a posting"),
        ("limit" = Option<u64>, Query, minimum = 1, description = "How many at most. A number above 1000 counts as 1000, which is also the default")),
    responses((status = 200, body = AuditReply, description = "The postings. When there are more, a `Link` header with `rel=\"next\"` leads to them."),
        (status = 403, description = "The key is not of that owner."),
        (status = 404, description = "There is no such owner.")))]
async fn list_postings(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    query: QueryParams,
) -> ApiResult {
    let text = |name: &str| query.get_single(name).map(|value| value.map(str::to_owned));
    let before = query.get_single("before")?.map(|id| id.parse::<i64>());
    let before = before
        .transpose()
        .map_err(|_| Error::validation("before must be the id of a posting"))?;
    let limit = query.page_limit(limits::AUDIT_PAGE)?;
    let page = market::list_postings(
        &principal,
        &state.hub,
        text("owner_id")?,
        text("job_id")?,
        before,
        limit,
    )
    .await?;
    let postings = AuditReply {
        postings: page.rows,
    };
    reply::bare_page_by(&postings, &query, "before", page.next.as_deref())
}
