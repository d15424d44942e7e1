//! Finds agents for a job: online agents first, then by reputation, then by cost (JOB-11…15, R-12,
//!

use super::{presence, reputation::ReputationScore, skills};
use crate::context::HubContext;
use crate::identity::Agent;
use crate::store::skills::{self as skills_table, OfferFilter, RankedOffer};
use crate::store::{DbConnection, principals, reputation as reputation_table};
use crate::{Principal, Result};
use chorus_wire::limits;
use chorus_wire::list_page::{self, ListPageBuilder};
use chorus_wire::market::discover::{
    FoundAgent, FoundSkill, PresenceStatus, SkillSearch, SkillSearchResults, public_endpoint,
};
use chorus_wire::market::reputation::ReputationStats;
use chorus_wire::market::skill::SkillOffer;
use futures_util::future::try_join_all;

/// Agents read at once for an answer: with the largest cards and schemas one megabyte.
const AGENTS_READ: usize = 16;

/// Some agents of a search, and the cursor after which it continues.
pub struct SearchPage {
    pub results: SkillSearchResults,
    pub next: Option<String>,
}

/// `GET /discover` with a market filter: the agents after the first `skipped` of the ranking.
pub async fn discover_agents(
    _principal: &Principal,
    hub: &HubContext,
    search: SkillSearch,
    skipped: usize,
) -> Result<SearchPage> {
    let limit = search.limit.clamp(1, limits::DIRECTORY_PAGE);
    // No agent is above the highest score. Clamping the filter to it would find agents that do not
    // match.
    if search.min_reputation > ReputationScore::from_clamped(f64::MAX).value() {
        let results = SkillSearchResults {
            agents: Vec::new(),
            total: 0,
        };
        return Ok(SearchPage {
            results,
            next: None,
        });
    }
    let filter = OfferFilter {
        name: search.skill,
        min_score: ReputationScore::from_clamped(search.min_reputation).to_bits(),
        max_cost: search
            .max_cost
            .map_or(i64::MAX, |cost| cost.to_hundredths()),
        min_hirers: i64::try_from(search.min_hirers).unwrap_or(i64::MAX),
        min_earned: search.min_earned.to_hundredths(),
    };
    let hub_handle = hub.clone();
    hub.store()
        .read(async move |tx| {
            let total = skills_table::count_offers(tx, &filter, limits::DISCOVERY_AGENTS_SCANNED)
                .await?
                .max(0) as u64;
            // One more than the page takes shows whether there is a next one.
            let ranked = rank_agents(tx, &hub_handle, &filter, skipped + limit + 1).await?;
            let mut page = ListPageBuilder::new(limit);
            let mut position = skipped;
            let mut is_full = false;
            let chosen = ranked.get(skipped..).unwrap_or_default();
            for chunk in chosen.chunks(AGENTS_READ) {
                let found = chunk
                    .iter()
                    .map(|found| read_found_agent(tx, &hub_handle, found));
                for found in try_join_all(found).await? {
                    // An agent that has unregistered since the ranking was read is left out.
                    if let Some(found) = found
                        && !page.try_push(found)?
                    {
                        is_full = true;
                        break;
                    }
                    position += 1;
                }
                if is_full {
                    break;
                }
            }
            let next = is_full.then(|| list_page::format_cursor(position as i64));
            let page = page.finish(next);
            Ok(SearchPage {
                results: SkillSearchResults {
                    agents: page.rows,
                    total,
                },
                next: page.next,
            })
        })
        .await
}

/// The first `limit` offers in the order of the answer. Presence is in memory and not in an index,
/// so the ranking is read until enough online agents are found: nearly always in the first round,
/// and never past `DISCOVERY_AGENTS_SCANNED`.
async fn rank_agents(
    tx: &DbConnection<'_>,
    hub: &HubContext,
    filter: &OfferFilter,
    limit: usize,
) -> Result<Vec<(RankedOffer, PresenceStatus)>> {
    let mut chosen = Vec::new();
    for max_ranked in [limit + limit / 4, limits::DISCOVERY_AGENTS_SCANNED] {
        let ranked = skills_table::list_ranked_offers(tx, filter, max_ranked).await?;
        let page_full = ranked.len() == max_ranked;
        let with_presence = ranked.into_iter().map(|ranked| {
            let presence = presence::agent_presence(hub, ranked.agent, ranked.at_endpoint);
            (ranked, presence)
        });
        let (mut online, offline): (Vec<_>, Vec<_>) =
            with_presence.partition(|(_, presence)| *presence == PresenceStatus::Online);
        let has_enough = online.len() >= limit;
        online.extend(offline);
        chosen = online;
        if has_enough || !page_full {
            break;
        }
    }
    chosen.truncate(limit);
    Ok(chosen)
}

/// One agent of the ranking, as the answer shows it; `None` when it is gone.
async fn read_found_agent(
    tx: &DbConnection<'_>,
    hub: &HubContext,
    (ranked, presence): &(RankedOffer, PresenceStatus),
) -> Result<Option<FoundAgent>> {
    let agent = principals::find_agent(tx, ranked.agent).await?;
    let skill = skills_table::find_skill(tx, ranked.agent, &ranked.name).await?;
    let (Some(agent), Some(skill)) = (agent, skill) else {
        return Ok(None);
    };
    let stats = reputation_table::read_reputation(tx, ranked.agent)
        .await?
        .map(|(_, stats)| stats)
        .unwrap_or_default();
    Ok(Some(describe_found_agent(
        hub, ranked, *presence, &agent, skill, &stats,
    )))
}

fn describe_found_agent(
    hub: &HubContext,
    ranked: &RankedOffer,
    presence: PresenceStatus,
    agent: &Agent,
    skill: SkillOffer,
    stats: &ReputationStats,
) -> FoundAgent {
    let profile = skills::market_profile(agent);
    FoundAgent {
        agent_id: agent.agent_id.to_string(),
        agent_name: profile
            .agent_name
            .unwrap_or_else(|| agent.agent_id.to_string()),
        api_endpoint: profile.api_endpoint.as_deref().map(public_endpoint),
        skill: FoundSkill {
            skill_name: skill.skill_name,
            cost_per_call: ranked.cost,
            description: skill.description,
            input_schema: skill.input_schema,
            output_schema: skill.output_schema,
        },
        reputation_score: ReputationScore::from_bits(ranked.score).value(),
        success_count: stats.successes,
        failure_count: stats.failures,
        distinct_hirers: stats.distinct_hirers,
        earned: stats.earned,
        status: presence,
        owner_id: agent.owner_name.clone(),
        host_verified: hub.identity().host_verified(&agent.agent_id),
    }
}
