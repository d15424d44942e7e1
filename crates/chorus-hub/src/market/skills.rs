//! Skills: agents offer and withdraw them, and jobs find them by name (JOB-09, JOB-27).

use super::{presence, reputation, schema_checks};
use crate::context::HubContext;
use crate::identity::Agent;
use crate::store::{AgentId, DbConnection, WriteTxn, principals, skills};
use crate::{Principal, Result};
use chorus_wire::credits::Credits;
use chorus_wire::list_page::ListPageBuilder;
use chorus_wire::market::discover::{PresenceStatus, SkillSearch};
use chorus_wire::market::skill::{SkillCatalogue, SkillOffer, SkillPage};
use chorus_wire::{Error, ErrorCode, limits};
use serde_json::Value;
use std::sync::Arc;

/// One agent's offer of a skill, as a job needs it.
#[derive(Clone, Debug)]
pub(crate) struct WorkerOffer {
    pub agent: Arc<Agent>,
    pub cost: Credits,
    /// The skill as registered.
    pub skill: Value,
    /// Where the agent's jobs are posted; without an endpoint they go to its inbox.
    pub endpoint: Option<String>,
}

impl WorkerOffer {
    /// The schema of the output as JSON, which the job keeps: the worker may change its offer meanwhile.
    pub fn output_schema(&self) -> Option<String> {
        let schema = self.skill.get("output_schema");
        schema
            .filter(|schema| !schema.is_null())
            .map(Value::to_string)
    }

    pub fn is_online(&self, hub: &HubContext) -> bool {
        presence::agent_presence(hub, self.agent.id, self.endpoint.is_some())
            == PresenceStatus::Online
    }

    fn new(agent: Arc<Agent>, skill: &SkillOffer) -> Result<Self> {
        let endpoint = jobs_endpoint(&agent);
        let skill_json = serde_json::to_value(skill).map_err(Error::internal)?;
        Ok(Self {
            cost: skill.cost_per_call,
            skill: skill_json,
            endpoint,
            agent,
        })
    }
}

/// The market fields of an agent's registration.
#[derive(Debug, Default, serde::Deserialize)]
pub(super) struct MarketProfile {
    pub agent_name: Option<String>,
    pub api_endpoint: Option<String>,
}

pub(super) fn market_profile(agent: &Agent) -> MarketProfile {
    agent
        .market
        .as_deref()
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default()
}

/// The URL to which an agent's jobs are posted; without one they go to its inbox.
fn jobs_endpoint(agent: &Agent) -> Option<String> {
    let endpoint = market_profile(agent).api_endpoint?;
    super::jobs::jobs_url(&endpoint)
}

/// This agent's offer of a skill; `None` when it does not offer it.
pub(crate) async fn find_offer(
    hub: &HubContext,
    agent: &Agent,
    skill_name: &str,
) -> Result<Option<WorkerOffer>> {
    let id = agent.id;
    let name = skill_name.to_owned();
    let skill = hub
        .store()
        .read(async move |tx| Ok(skills::find_skill(tx, id, &name).await?))
        .await?;
    skill
        .map(|skill| WorkerOffer::new(Arc::new(agent.clone()), &skill))
        .transpose()
}

/// Max offers of agents that take no jobs from the requester, before the search ends without one.
const MAX_REFUSING_WORKERS: usize = 64;

/// The best offer within the budget by another agent than the requester that takes jobs from it
/// online agents first, then by reputation, then by cost. The former workers of the job do not get it again.
pub(crate) async fn find_best_offer(
    tx: &DbConnection<'_>,
    hub: &HubContext,
    skill_name: &str,
    budget: Credits,
    requester: &Agent,
    former_workers: &[AgentId],
) -> Result<Option<WorkerOffer>> {
    let filter = skills::OfferFilter {
        name: Some(skill_name.to_owned()),
        min_score: 0,
        max_cost: budget.to_hundredths(),
        min_hirers: 0,
        min_earned: 0,
    };
    let mut excluded = vec![requester.id];
    excluded.extend_from_slice(former_workers);
    let max_excluded = excluded.len() + MAX_REFUSING_WORKERS;
    while excluded.len() < max_excluded {
        let Some(chosen) = choose_ranked_offer(tx, hub, &filter, &excluded).await? else {
            return Ok(None);
        };
        let agent = principals::find_agent(tx, chosen.agent).await?;
        let skill = skills::find_skill(tx, chosen.agent, &chosen.name).await?;
        // The agent or the skill may be gone since the ranking was read.
        let (Some(agent), Some(skill)) = (agent, skill) else {
            return Ok(None);
        };
        match hub.identity().check_contact_in(tx, &agent, requester).await {
            Ok(()) => return WorkerOffer::new(Arc::new(agent), &skill).map(Some),
            Err(error) if error.code.status() == 403 => excluded.push(agent.id),
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// The best ranked offer of an agent that is not excluded.
async fn choose_ranked_offer(
    tx: &DbConnection<'_>,
    hub: &HubContext,
    filter: &skills::OfferFilter,
    excluded: &[AgentId],
) -> Result<Option<skills::RankedOffer>> {
    // Nearly always one of the first few agents is online. Only when none is does the second round
    // scan the others.
    let mut chosen = None;
    for max_ranked in [8, limits::DISCOVERY_AGENTS_SCANNED] {
        let ranked = skills::list_ranked_offers(tx, filter, max_ranked).await?;
        let page_full = ranked.len() == max_ranked;
        let mut others = ranked
            .into_iter()
            .filter(|ranked| !excluded.contains(&ranked.agent))
            .peekable();
        let first = others.peek().cloned();
        chosen = others.find(|ranked| {
            presence::agent_presence(hub, ranked.agent, ranked.at_endpoint)
                == PresenceStatus::Online
        });
        let found_online = chosen.is_some();
        chosen = chosen.or(first);
        if found_online || !page_full {
            break;
        }
    }
    Ok(chosen)
}

/// The lowest cost of a skill among agents other than `excluded_agent`; `None` when none offers it.
pub(crate) async fn find_lowest_cost(
    hub: &HubContext,
    skill_name: &str,
    excluded_agent: AgentId,
) -> Result<Option<Credits>> {
    let name = skill_name.to_owned();
    hub.store()
        .read(async move |tx| Ok(skills::find_lowest_cost(tx, &name, excluded_agent).await?))
        .await
}

async fn describe_offering_agent(
    txn: &WriteTxn<'_>,
    agent: AgentId,
) -> Result<skills::OfferingAgent> {
    let score = reputation::current_score(&txn.tx, agent).await?;
    let record = principals::find_agent(&txn.tx, agent).await?;
    Ok(skills::OfferingAgent {
        agent,
        score: score.to_bits(),
        at_endpoint: record.is_some_and(|record| jobs_endpoint(&record).is_some()),
    })
}

/// Replaces an agent's skills by those in its registration, in the registration's transaction.
pub(crate) async fn replace_skills(
    txn: &WriteTxn<'_>,
    agent_id: AgentId,
    skills: &[SkillOffer],
) -> Result<()> {
    let offering = describe_offering_agent(txn, agent_id).await?;
    Ok(skills::replace_skills(&txn.tx, offering, skills).await?)
}

/// `PUT /skills/{name}`: offers or changes a skill without a new registration, and so without a new
/// key. True when the skill is new.
pub async fn put_skill(
    principal: &Principal,
    hub: &HubContext,
    skill: SkillOffer,
) -> Result<(bool, SkillOffer)> {
    let id = principal.require_agent()?.id;
    schema_checks::check_skills(std::slice::from_ref(&skill)).await?;
    hub.store()
        .write(async move |txn| {
            principals::find_agent(&txn.tx, id)
                .await?
                .ok_or(ErrorCode::Unauthorized)?;
            let exists = skills::find_skill(&txn.tx, id, &skill.skill_name)
                .await?
                .is_some();
            if !exists && skills::count_skills(&txn.tx, id).await? >= limits::SKILLS_PER_AGENT {
                return Err(Error::validation(format!(
                    "an agent offers at most {} skills",
                    limits::SKILLS_PER_AGENT
                )));
            }
            let offering = describe_offering_agent(txn, id).await?;
            let is_new = skills::upsert_skill(&txn.tx, offering, &skill).await?;
            Ok((is_new, skill.clone()))
        })
        .await
}

/// `DELETE /skills/{name}`: withdraws a skill; false when it was not offered.
pub async fn withdraw_skill(principal: &Principal, hub: &HubContext, name: &str) -> Result<bool> {
    let id = principal.require_agent()?.id;
    let name = name.to_owned();
    hub.store()
        .write(async move |txn| Ok(skills::withdraw_skill(&txn.tx, id, &name).await?))
        .await
}

/// `GET /skills`, and the name after which it continues.
pub async fn list_skills(
    _principal: &Principal,
    hub: &HubContext,
    after: Option<String>,
    limit: usize,
) -> Result<(SkillCatalogue, Option<String>)> {
    let limit = limit.clamp(1, limits::DIRECTORY_PAGE);
    hub.store()
        .read(async move |tx| {
            let after = after.as_deref().unwrap_or_default();
            // One more than the page takes shows whether there is a next one.
            let (found, is_complete) = skills::list_skill_names(tx, after, limit + 1).await?;
            let mut page = ListPageBuilder::new(limit);
            let mut is_full = !is_complete;
            for row in found {
                if !page.try_push(row)? {
                    is_full = true;
                    break;
                }
            }
            let skills = page.finish(None).rows;
            let last_name = skills.last().map(|row| row.skill_name.clone());
            let catalogue = SkillCatalogue {
                skills,
                total_agents: skills::count_offering_agents(tx).await?,
            };
            Ok((catalogue, last_name.filter(|_| is_full)))
        })
        .await
}

/// `GET /skills/{name}`: the skill, and the best agents that offer it.
pub async fn get_skill(principal: &Principal, hub: &HubContext, name: &str) -> Result<SkillPage> {
    // No database stores a NUL character, so no skill has such a name.
    if name.contains('\0') {
        return Err(ErrorCode::NotFound.into());
    }
    let wanted = name.to_owned();
    let row = hub
        .store()
        .read(async move |tx| Ok(skills::find_skill_row(tx, &wanted).await?))
        .await?;
    let search = SkillSearch {
        skill: Some(name.to_owned()),
        min_reputation: 0.0,
        max_cost: None,
        min_hirers: 0,
        min_earned: Credits::ZERO,
        limit: limits::DISCOVERY_PAGE,
    };
    let found = super::discover_agents(principal, hub, search, 0).await?;
    Ok(SkillPage {
        skill: row.ok_or(ErrorCode::NotFound)?,
        offers: found.results.agents,
    })
}
