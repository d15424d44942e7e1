//! What agents offer: put on the market, taken off, found by name (JOB-09, JOB-27).

use super::{liveness, reputation, schema};
use crate::identity::Agent;
use crate::store::skills as table;
use crate::store::{Tx, Txn, principals};
use crate::{Hub, Principal, Result};
use chorus_wire::market::credits::Credits;
use chorus_wire::market::discover::Presence;
use chorus_wire::market::skill::{Skill, Skills};
use chorus_wire::{Code, Error, limits};
use serde_json::Value;
use std::sync::Arc;

/// A skill of one agent, as a job needs it.
#[derive(Clone, Debug)]
pub(crate) struct Offer {
    pub agent: Arc<Agent>,
    pub cost: Credits,
    /// The skill as registered.
    pub skill: Value,
    /// Where it takes jobs; without it they go to its inbox.
    pub endpoint: Option<String>,
}

impl Offer {
    fn new(agent: Arc<Agent>, skill: &Skill) -> Result<Self> {
        let endpoint = face(&agent).api_endpoint;
        let value = serde_json::to_value(skill).map_err(Error::internal)?;
        Ok(Self {
            cost: skill.cost_per_call,
            skill: value,
            endpoint,
            agent,
        })
    }
}

/// What an agent says of itself on the market.
#[derive(Debug, Default, serde::Deserialize)]
pub(super) struct Face {
    pub agent_name: Option<String>,
    pub api_endpoint: Option<String>,
}

pub(super) fn face(agent: &Agent) -> Face {
    agent
        .market
        .as_deref()
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default()
}

/// This agent's offer of a skill, if it makes one.
pub(crate) async fn offer(hub: &Hub, agent: &Agent, skill_name: &str) -> Result<Option<Offer>> {
    let (id, name) = (agent.id, skill_name.to_owned());
    let skill = hub
        .store()
        .read(async move |tx| Ok(table::one(tx, id, &name).await?))
        .await?;
    skill
        .map(|skill| Offer::new(Arc::new(agent.clone()), &skill))
        .transpose()
}

/// The best offer within the budget that is not `not`'s own: present ones first, then by reputation, then by cost.
pub(crate) async fn best(
    tx: &Tx<'_>,
    hub: &Hub,
    skill_name: &str,
    budget: Credits,
    not: i64,
) -> Result<Option<Offer>> {
    let wanted = table::Wanted {
        name: Some(skill_name.to_owned()),
        min_score: 0,
        max_cost: budget.in_hundredths(),
    };
    // One is nearly always among the first few; only when all of those are away are the others looked through.
    let mut chosen = None;
    for most in [8, limits::FOUND_LOOKED] {
        let ranked = table::ranked(tx, &wanted, most).await?;
        let full = ranked.len() == most;
        let mut others = ranked
            .into_iter()
            .filter(|ranked| ranked.agent != not)
            .peekable();
        let first = others.peek().cloned();
        chosen = others.find(|ranked| liveness::presence(hub, ranked.agent) == Presence::Online);
        let found = chosen.is_some();
        chosen = chosen.or(first);
        if found || !full {
            break;
        }
    }
    let Some(chosen) = chosen else {
        return Ok(None);
    };
    let agent = principals::by_id(tx, chosen.agent).await?;
    let skill = table::one(tx, chosen.agent, &chosen.name).await?;
    match (agent, skill) {
        (Some(agent), Some(skill)) => Offer::new(Arc::new(agent), &skill).map(Some),
        // Withdrawn this very moment.
        (Some(_) | None, Some(_) | None) => Ok(None),
    }
}

/// The least that anybody but `not` asks for a skill; `None` when nobody offers it.
pub(crate) async fn cheapest(hub: &Hub, skill_name: &str, not: i64) -> Result<Option<Credits>> {
    let name = skill_name.to_owned();
    hub.store()
        .read(async move |tx| Ok(table::cheapest(tx, &name, not).await?))
        .await
}

/// Registration brings skills along: they replace what was there, in the registration's own transaction.
pub(crate) async fn replace(txn: &Txn<'_>, agent: i64, skills: &[Skill]) -> Result<()> {
    let score = reputation::score(&txn.tx, agent).await?;
    Ok(table::replace(&txn.tx, agent, score.bits(), skills).await?)
}

/// Whether these may be offered: what no transaction has to wait for.
pub(crate) fn admit(skills: &[Skill]) -> Result<()> {
    skills.iter().try_for_each(schema::admit)
}

/// `PUT /skills/{name}`: offers a skill, or changes it, without registering again and so without a new key; true when it is new.
pub async fn put(who: &Principal, hub: &Hub, skill: Skill) -> Result<(bool, Skill)> {
    let id = who.agent()?.id;
    schema::admit(&skill)?;
    hub.store()
        .write(async move |txn| {
            principals::by_id(&txn.tx, id)
                .await?
                .ok_or(Code::Unauthorized)?;
            let known = table::one(&txn.tx, id, &skill.skill_name).await?.is_some();
            if !known && table::how_many(&txn.tx, id).await? >= limits::SKILLS {
                return Err(Error::validation(format!(
                    "an agent offers at most {} skills",
                    limits::SKILLS
                )));
            }
            let score = reputation::score(&txn.tx, id).await?;
            let new = table::put(&txn.tx, id, score.bits(), &skill).await?;
            Ok((new, skill.clone()))
        })
        .await
}

/// `DELETE /skills/{name}`: withdraws a skill; false when it was not offered.
pub async fn withdraw(who: &Principal, hub: &Hub, name: &str) -> Result<bool> {
    let (id, name) = (who.agent()?.id, name.to_owned());
    hub.store()
        .write(async move |txn| Ok(table::withdraw(&txn.tx, id, &name).await?))
        .await
}

/// `GET /skills`
pub async fn list(
    _who: &Principal,
    hub: &Hub,
    after: Option<String>,
    limit: usize,
) -> Result<Skills> {
    let limit = limit.clamp(1, limits::DIRECTORY_PAGE);
    hub.store()
        .read(async move |tx| {
            let skills = table::names(tx, after.as_deref().unwrap_or_default(), limit).await?;
            Ok(Skills {
                skills,
                total_agents: table::agents(tx).await?,
            })
        })
        .await
}
