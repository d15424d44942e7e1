//! `GET /discover`: the directory, or a search of the market (TRN-59, R-12).

use super::agents;
use crate::reply::{self, Answer};
use crate::{auth::Who, doors::Doors, query::Query};
use axum::extract::State;
use chorus_hub::identity;
use chorus_wire::reply::{DirectoryRow, Failure};
use chorus_wire::{Error, Result};
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::default().routes(routes!(discover))
}

/// What a market search finds.
#[derive(Serialize, ToSchema)]
struct Found {
    #[schema(value_type = Vec<Object>)]
    agents: [(); 0],
    total: u64,
}

/// Who is here, with culture, languages and whether they are online
#[utoipa::path(get, path = "/discover", tag = "identity", security((), ("agent_key" = [])),
    params(("format" = Option<String>, Query, description = "`envelope` wraps the list"),
        ("limit" = Option<u64>, Query, description = "At most this many, up to 1000"),
        ("after" = Option<String>, Query, description = "Go on after this agent_id"),
        ("skill" = Option<String>, Query, description = "Search the market for a skill"),
        ("min_reputation" = Option<f64>, Query), ("max_cost" = Option<f64>, Query)),
    responses((status = 200, body = Vec<DirectoryRow>,
        description = "The bare list; with a market filter an object with `agents` and `total`"), (status = 401, body = Failure)))]
async fn discover(State(doors): State<Doors>, Who(who): Who, query: Query) -> Answer {
    let wrap = is_wrapped(&query)?;
    if is_market(&query)? {
        return reply::bare(StatusCode::OK, &Found { agents: [], total: 0 });
    }
    let rows = identity::directory(&who, &doors.hub, agents::page(&query)?).await?;
    if wrap { reply::wrapped(&doors, StatusCode::OK, rows) } else { reply::bare(StatusCode::OK, &rows) }
}

fn is_wrapped(query: &Query) -> Result<bool> {
    match query.one("format")? {
        None => Ok(false),
        Some("envelope") => Ok(true),
        Some(_) => Err(Error::validation("format must be \"envelope\", or be left out")),
    }
}

/// Whether any market filter is there, each of them checked.
fn is_market(query: &Query) -> Result<bool> {
    let skill = query.one("skill")?;
    if skill.is_some_and(str::is_empty) {
        return Err(Error::validation("skill must not be empty"));
    }
    let reputation = query.number("min_reputation", 0.0)?;
    let cost = query.number("max_cost", 0.0)?;
    Ok(skill.is_some() || reputation.is_some() || cost.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    ///
    #[test]
    fn any_market_filter_makes_it_a_market_search_and_bad_ones_are_named() {
        let market = |raw: &str| is_market(&Query::parse(raw).unwrap());
        assert!(!market("limit=3").unwrap());
        assert!(
            market("skill=translate").unwrap()
                && market("min_reputation=40").unwrap()
                && market("max_cost=0.10").unwrap()
        );
        for (raw, name) in [("max_cost=x", "max_cost"), ("min_reputation=NaN", "min_reputation"), ("skill=", "skill")] {
            assert!(market(raw).unwrap_err().message.contains(name), "{raw}");
        }
    }
}
