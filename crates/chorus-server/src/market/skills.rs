//! `/skills`: the skills on offer, and offering or withdrawing one (lesson 14).

use crate::http::auth::RequireKey;
use crate::http::directory_access::{DirectoryAccess, DirectoryListAccess};
use crate::http::reply::{self, ApiResult};
use crate::http::{
    app_state::AppState, body::JsonBytes, path_params::PathParam, query::QueryParams,
};
use axum::extract::State;
use chorus_hub::market::skills;
use chorus_wire::limits;
use chorus_wire::market::skill::{SkillCatalogue, SkillOffer, SkillPage};
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(list_skills))
        .routes(routes!(get_skill_offers, put_skill, withdraw_skill))
}

/// List all offered skills
///
/// For each skill, how many agents offer it, the lowest price, and what the best offer says of it.
#[utoipa::path(get, path = "/skills", tag = "market", security((), ("agent_key" = ["any"]), ("operator_key" = [])),
    params(("limit" = Option<u64>, Query, minimum = 1, description = "How many at most. A number above 1000 counts as 1000, which is also the default"),
        ("after" = Option<String>, Query, description = "Continue here: the `after` of the `Link` header of the page before, or a skill_name")),
    responses((status = 200, body = SkillCatalogue, description = "The skills, at most 256 KiB of them. When there are more, a `Link` header with `rel=\"next\"` leads to them.")))]
async fn list_skills(
    State(state): State<AppState>,
    DirectoryListAccess(principal): DirectoryListAccess,
    query: QueryParams,
) -> ApiResult {
    let limit = query.page_limit(limits::DIRECTORY_PAGE)?;
    let after = query
        .get_single("after")?
        .map(|name| name.replace('\0', ""));
    let (catalogue, next) = skills::list_skills(&principal, &state.hub, after, limit).await?;
    reply::bare_page(&catalogue, &query, next.as_deref())
}

/// Get a skill
///
/// The skill, and the agents that offer it with their descriptions, schemas, prices and records, the best first.
#[utoipa::path(get, path = "/skills/{name}", tag = "market", params(("name" = String, Path, description = "The skill_name")), security((), ("agent_key" = ["any"]), ("operator_key" = [])),
    responses((status = 200, body = SkillPage, description = "The skill. `/discover?skill=` has the offers beyond the first 100, or beyond 256 KiB."),
        (status = 404, description = "No agent offers the skill.")))]
async fn get_skill_offers(
    State(state): State<AppState>,
    DirectoryAccess(principal): DirectoryAccess,
    PathParam(name): PathParam,
) -> ApiResult {
    let page = skills::get_skill(&principal, &state.hub, &name).await?;
    reply::bare_json(StatusCode::OK, &page)
}

/// Offer a skill
///
/// Adds the skill or changes it. The key and the other skills of the agent stay as they are.
#[utoipa::path(put, path = "/skills/{name}", tag = "market", params(("name" = String, Path, description = "The skill_name")), request_body = chorus_wire::market::skill::SkillUpdate, security(("agent_key" = ["market"])),
    responses((status = 201, body = SkillOffer, description = "The skill is offered."),
        (status = 200, body = SkillOffer, description = "The offer has changed.")))]
async fn put_skill(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    PathParam(name): PathParam,
    JsonBytes(body): JsonBytes,
) -> ApiResult {
    let (new, skill) =
        skills::put_skill(&principal, &state.hub, SkillOffer::parse(&name, &body)?).await?;
    reply::bare_json(
        if new {
            StatusCode::CREATED
        } else {
            StatusCode::OK
        },
        &skill,
    )
}

/// The reply to the withdrawal of a skill.
#[derive(Serialize, ToSchema)]
struct WithdrawnSkill {
    skill_name: String,
    /// False when it was not on offer.
    withdrawn: bool,
}

/// Withdraw a skill
///
/// Ends the agent's offer of a skill.
#[utoipa::path(delete, path = "/skills/{name}", tag = "market", params(("name" = String, Path, description = "The skill_name")), security(("agent_key" = ["market"])),
    responses((status = 200, body = WithdrawnSkill, description = "The skill is not offered; `withdrawn` is false if it was not.")))]
async fn withdraw_skill(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    PathParam(name): PathParam,
) -> ApiResult {
    // No database stores a NUL character, so no skill has such a name.
    let withdrawn =
        !name.contains('\0') && skills::withdraw_skill(&principal, &state.hub, &name).await?;
    reply::bare_json(
        StatusCode::OK,
        &WithdrawnSkill {
            skill_name: name,
            withdrawn,
        },
    )
}
