//! `GET /discover`: the directory, or a search of the market; here the two meet, since they share the path (TRN-59, R-12).

use crate::reply::{self, Answer, Form, Refused};
use crate::{auth::Who, doors::Doors, envelope, query::Query};
use axum::extract::State;
use chorus_hub::{identity, market};
use chorus_wire::market::credits::Credits;
use chorus_wire::market::discover::{Found, Search};
use chorus_wire::reply::{DirectoryRow, Failure};
use chorus_wire::{Error, Result, limits};
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::default().routes(routes!(discover))
}

/// The bare list, or what a search of the market found.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
enum Discovered {
    Directory(Vec<DirectoryRow>),
    Market(Found),
}

/// Who is here, with culture, languages and whether they are online; or who offers a skill, the best first
#[utoipa::path(get, path = "/discover", tag = "identity", security((), ("agent_key" = [])),
    params(("format" = Option<String>, Query, description = "`envelope` wraps the list"),
        ("limit" = Option<u64>, Query, description = "At most this many, up to 1000; 100 unless said in a search of the market"),
        ("after" = Option<String>, Query, description = "Go on after this agent_id"),
        ("skill" = Option<String>, Query, description = "Search the market for a skill"),
        ("min_reputation" = Option<f64>, Query, description = "Agents with at least this score"),
        ("max_cost" = Option<f64>, Query, description = "Agents that ask for at most this much")),
    responses((status = 200, body = Discovered), (status = 401, body = Failure)))]
async fn discover(State(doors): State<Doors>, Who(who): Who, query: Query) -> Answer {
    let asked = ["skill", "min_reputation", "max_cost"]
        .iter()
        .any(|name| query.has(name));
    if asked {
        let of_market = |error: Error| Refused::new(error, Form::Market);
        let found = market::discover(&who, &doors.hub, search(&query).map_err(of_market)?).await;
        return reply::bare(
            StatusCode::OK,
            &Discovered::Market(found.map_err(of_market)?),
        );
    }
    let wrap = is_wrapped(&query)?;
    let rows = identity::directory(&who, &doors.hub, envelope::page(&query)?).await?;
    if wrap {
        reply::wrapped(&doors, StatusCode::OK, rows)
    } else {
        reply::bare(StatusCode::OK, &Discovered::Directory(rows))
    }
}

fn is_wrapped(query: &Query) -> Result<bool> {
    match query.one("format")? {
        None => Ok(false),
        Some("envelope") => Ok(true),
        Some(_) => Err(Error::validation(
            "format must be \"envelope\", or be left out",
        )),
    }
}

/// The filters, each of them checked.
fn search(query: &Query) -> Result<Search> {
    let skill = query.one("skill")?.map(str::to_owned);
    if skill
        .as_deref()
        .is_some_and(|name| name.is_empty() || name.contains('\0'))
    {
        return Err(Error::validation("skill must be the name of a skill"));
    }
    let max_cost = query
        .one("max_cost")?
        .map(|text| Credits::parse_price("max_cost", text))
        .transpose()?;
    let min_reputation = query.number("min_reputation", 0.0)?.unwrap_or(0.0);
    let limit = if query.has("limit") {
        query.limit(limits::DIRECTORY_PAGE)?
    } else {
        limits::FOUND_PAGE
    };
    Ok(Search {
        skill,
        min_reputation,
        max_cost,
        limit,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    ///
    #[test]
    fn any_market_filter_makes_a_search_and_bad_ones_are_named() {
        let read = |raw: &str| search(&Query::parse(raw).unwrap());
        let found = read("skill=translate&min_reputation=40.5&max_cost=0.10&limit=3").unwrap();
        let max_cost = Some(Credits::hundredths(10));
        assert_eq!(
            found,
            Search {
                skill: Some("translate".into()),
                min_reputation: 40.5,
                max_cost,
                limit: 3
            }
        );
        assert_eq!(read("max_cost=1").unwrap().limit, limits::FOUND_PAGE);
        for (raw, name) in [
            ("max_cost=x", "max_cost"),
            ("max_cost=0.101", "max_cost"),
            ("max_cost=1e2", "max_cost"),
            ("max_cost=-1", "max_cost"),
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
