//! Finding somebody for a job: present ones first, then by reputation, then by cost (JOB-11…15, R-12, R-66).

use super::{liveness, reputation::Score, skills};
use crate::identity::Agent;
use crate::store::skills::{self as table, Ranked, Wanted};
use crate::store::{Tx, principals};
use crate::{Hub, Principal, Result};
use chorus_wire::limits;
use chorus_wire::market::discover::{
    Found, FoundAgent, FoundSkill, Presence, Search, shown_endpoint,
};
use futures_util::future::try_join_all;

/// `GET /discover` with a market filter
pub async fn discover(_who: &Principal, hub: &Hub, search: Search) -> Result<Found> {
    let limit = search.limit.clamp(1, limits::DIRECTORY_PAGE);
    // Beyond the best score there is nobody, and nothing that clamping it should find.
    if search.min_reputation > Score::at_least(f64::MAX).value() {
        return Ok(Found {
            agents: Vec::new(),
            total: 0,
        });
    }
    let wanted = Wanted {
        name: search.skill,
        min_score: Score::at_least(search.min_reputation).bits(),
        max_cost: search
            .max_cost
            .map_or(i64::MAX, |cost| cost.in_hundredths()),
    };
    let hub_there = hub.clone();
    hub.store()
        .read(async move |tx| {
            let total = table::total(tx, &wanted, limits::FOUND_LOOKED)
                .await?
                .max(0) as u64;
            let chosen = choose(tx, &hub_there, &wanted, limit).await?;
            let agents = try_join_all(
                chosen
                    .iter()
                    .map(|(ranked, _)| principals::by_id(tx, ranked.agent)),
            )
            .await?;
            let rows = chosen.into_iter().zip(agents);
            // One that left since the ranking was read is no longer found.
            let rows =
                rows.filter_map(|((ranked, presence), agent)| Some(row(ranked, presence, &agent?)));
            Ok(Found {
                agents: rows.collect(),
                total,
            })
        })
        .await
}

/// The first `limit` in the order of the answer. Who is present is known in memory and not in an index, so the ranking is read
/// until enough of them are found: nearly always at once, and never further than the bound.
async fn choose(
    tx: &Tx<'_>,
    hub: &Hub,
    wanted: &Wanted,
    limit: usize,
) -> Result<Vec<(Ranked, Presence)>> {
    let mut chosen = Vec::new();
    for most in [limit + limit / 4, limits::FOUND_LOOKED] {
        let ranked = table::ranked(tx, wanted, most).await?;
        let full = ranked.len() == most;
        let seen = ranked.into_iter().map(|ranked| {
            let presence = liveness::presence(hub, ranked.agent);
            (ranked, presence)
        });
        let (mut online, offline): (Vec<_>, Vec<_>) =
            seen.partition(|(_, presence)| *presence == Presence::Online);
        let enough = online.len() >= limit;
        online.extend(offline);
        chosen = online;
        if enough || !full {
            break;
        }
    }
    chosen.truncate(limit);
    Ok(chosen)
}

fn row(ranked: Ranked, presence: Presence, agent: &Agent) -> FoundAgent {
    let face = skills::face(agent);
    FoundAgent {
        agent_id: agent.agent_id.to_string(),
        agent_name: face
            .agent_name
            .unwrap_or_else(|| agent.agent_id.to_string()),
        api_endpoint: face.api_endpoint.as_deref().map(shown_endpoint),
        skill: FoundSkill {
            skill_name: ranked.name,
            cost_per_call: ranked.cost,
        },
        reputation_score: Score::of_bits(ranked.score).value(),
        status: presence,
        owner_id: agent.owner_name.clone(),
    }
}
