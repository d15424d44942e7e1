//! `GET /discover`: the directory of agents, or a search of the market; the two share one path (TRN-59, R-12).

use crate::http::api_error::{ApiError, ErrorFormat};
use crate::http::reply::{self, ApiResult};
use crate::http::{app_state::AppState, directory_access::DirectoryListAccess, query::QueryParams};
use axum::extract::State;
use chorus_hub::{lifecycle, market};
use chorus_wire::credits::Credits;
use chorus_wire::list_page;
use chorus_wire::market::discover::{SkillSearch, SkillSearchResults};
use chorus_wire::reply::{DirectoryRow, SuccessReply};
use chorus_wire::{Error, Result, limits};
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(discover_agents))
}

/// The list, bare or wrapped, or what a search of the market found.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
enum DiscoverReply {
    Directory(Vec<DirectoryRow>),
    Wrapped(SuccessReply<Vec<DirectoryRow>>),
    Market(SkillSearchResults),
}

/// Find agents
///
/// Without a filter: all agents with their culture, languages, whether they are online and how a message reaches them. With `skill`, `min_reputation`,
/// `max_cost`, `min_hirers` or `min_earned`: a search of the market, the best agent first. A search answers its errors in the form of the market.
#[utoipa::path(get, path = "/discover", tag = "identity", security((), ("agent_key" = ["any"]), ("operator_key" = [])),
    params(("format" = Option<String>, Query, pattern = "^envelope$", description = "`envelope` wraps the list in a reply with `data`. It has no effect on a search"),
        ("limit" = Option<u64>, Query, minimum = 1, description = "How many at most. A number above 1000 counts as 1000. The default is 1000, and 100 in a search"),
        ("after" = Option<String>, Query, description = "Continue here: the `after` of the `Link` header, or `metadata.next`, of the page before; for the list also an agent_id"),
        ("skill" = Option<String>, Query, min_length = 1, description = "Search for agents that offer this skill"),
        ("min_reputation" = Option<f64>, Query, minimum = 0, description = "Search for agents with at least this score"),
        ("max_cost" = Option<f64>, Query, minimum = 0, maximum = 1000000000, description = "Search for agents that ask for at most this many credits, with at most two decimals"),
        ("min_hirers" = Option<u64>, Query, minimum = 0, description = "Search for agents that at least this many owners have hired"),
        ("min_earned" = Option<f64>, Query, minimum = 0, maximum = 1000000000, description = "Search for agents that have earned at least this many credits, with at most two decimals")),
    responses((status = 200, body = DiscoverReply, description = "The list, wrapped if `format` says so, or the result of a search; at most 256 KiB. When there is more, a `Link` header with `rel=\"next\"` leads to it, or `metadata.next` in a wrapped list."),
        (status = 404, description = "The agent in `after` is not registered.")))]
async fn discover_agents(
    State(state): State<AppState>,
    DirectoryListAccess(principal): DirectoryListAccess,
    query: QueryParams,
) -> ApiResult {
    let is_market_search = MARKET_FILTERS.iter().any(|name| query.has(name));
    if is_market_search {
        let market_error = |error: Error| ApiError::new(error, ErrorFormat::Market);
        let search = parse_market_search(&query).map_err(market_error)?;
        let skipped = parse_skipped(&query).map_err(market_error)?;
        let found = market::discover_agents(&principal, &state.hub, search, skipped)
            .await
            .map_err(market_error)?;
        let answer = DiscoverReply::Market(found.results);
        return reply::bare_page(&answer, &query, found.next.as_deref());
    }
    let is_wrapped = wants_wrapped_list(&query)?;
    let page =
        lifecycle::list_directory(&principal, &state.hub, crate::identity::parse_page(&query)?)
            .await?;
    if is_wrapped {
        let answer = DiscoverReply::Wrapped(reply::wrap_page(&state, page));
        return reply::bare_json(StatusCode::OK, &answer);
    }
    let next = page.next;
    reply::bare_page(
        &DiscoverReply::Directory(page.rows),
        &query,
        next.as_deref(),
    )
}

/// The filters that make the request a search of the market.
const MARKET_FILTERS: [&str; 5] = [
    "skill",
    "min_reputation",
    "max_cost",
    "min_hirers",
    "min_earned",
];

/// How many agents of the ranking earlier pages have shown.
fn parse_skipped(query: &QueryParams) -> Result<usize> {
    let Some(after) = query.get_single("after")? else {
        return Ok(0);
    };
    let position =
        list_page::parse_cursor(after).and_then(|position| usize::try_from(position).ok());
    position
        .map(|position| position.min(limits::DISCOVERY_AGENTS_SCANNED))
        .ok_or_else(|| Error::invalid_field("after", "after must be the cursor of another page"))
}

fn wants_wrapped_list(query: &QueryParams) -> Result<bool> {
    match query.get_single("format")? {
        None => Ok(false),
        Some("envelope") => Ok(true),
        Some(_) => Err(Error::validation(
            "format must be \"envelope\", or be left out",
        )),
    }
}

/// Parses the search filters; an error names the parameter.
fn parse_market_search(query: &QueryParams) -> Result<SkillSearch> {
    let skill = query.get_single("skill")?.map(str::to_owned);
    if skill
        .as_deref()
        .is_some_and(|name| name.is_empty() || name.contains('\0'))
    {
        return Err(Error::validation("skill must be the name of a skill"));
    }
    let max_cost = query
        .get_single("max_cost")?
        .map(|text| Credits::parse_price("max_cost", text))
        .transpose()?;
    let min_earned = query
        .get_single("min_earned")?
        .map(|text| Credits::parse_price("min_earned", text))
        .transpose()?;
    let min_hirers = query
        .get_single("min_hirers")?
        .map(|text| {
            text.parse::<u64>()
                .ok()
                .filter(|count| *count <= i64::MAX as u64)
        })
        .map(|count| {
            count.ok_or_else(|| {
                Error::invalid_field("min_hirers", "min_hirers must be a whole number")
            })
        })
        .transpose()?;
    let min_reputation = query.parse_number("min_reputation", 0.0)?.unwrap_or(0.0);
    let limit = if query.has("limit") {
        query.page_limit(limits::DIRECTORY_PAGE)?
    } else {
        limits::DISCOVERY_PAGE
    };
    Ok(SkillSearch {
        skill,
        min_reputation,
        max_cost,
        min_hirers: min_hirers.unwrap_or(0),
        min_earned: min_earned.unwrap_or(Credits::ZERO),
        limit,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    ///
    #[test]
    fn any_market_filter_makes_a_search_and_bad_ones_are_named() {
        let read = |raw: &str| parse_market_search(&QueryParams::parse(raw).unwrap());
        let found = read(
            "skill=translate&min_reputation=40.5&max_cost=0.10&min_hirers=2&min_earned=0.5&limit=3",
        )
        .unwrap();
        let max_cost = Some(Credits::from_hundredths(10));
        assert_eq!(
            found,
            SkillSearch {
                skill: Some("translate".into()),
                min_reputation: 40.5,
                max_cost,
                min_hirers: 2,
                min_earned: Credits::from_hundredths(50),
                limit: 3
            }
        );
        assert_eq!(read("max_cost=1").unwrap().limit, limits::DISCOVERY_PAGE);
        for (raw, name) in [
            ("max_cost=x", "max_cost"),
            ("max_cost=0.101", "max_cost"),
            ("max_cost=1e2", "max_cost"),
            ("max_cost=-1", "max_cost"),
            ("min_hirers=-1", "min_hirers"),
            ("min_earned=x", "min_earned"),
            ("min_reputation=NaN", "min_reputation"),
            ("min_reputation=-1", "min_reputation"),
            ("skill=", "skill"),
            ("skill=%00", "skill"),
            ("skill=a&skill=b", "skill"),
            ("skill=a&limit=0", "limit"),
        ] {
            assert!(read(raw).unwrap_err().message.contains(name), "{raw}");
        }
    }
}
