//! A search of the market and what it finds (JOB-11…15, lesson 14).

use crate::market::credits::Credits;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What is looked for; whatever is left out does not matter.
#[derive(Clone, Debug, PartialEq)]
pub struct SkillSearch {
    pub skill: Option<String>,
    /// Agents with this score or a better one.
    pub min_reputation: f64,
    /// Agents that ask for this much or less.
    pub max_cost: Option<Credits>,
    pub limit: usize,
}

/// Whether an agent is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum PresenceStatus {
    Online,
    Offline,
}

/// `{"agents":[…],"total":…}`: the best first. `total` counts also those that did not fit, under a filter up to 10 000.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SkillSearchResults {
    pub agents: Vec<FoundAgent>,
    pub total: u64,
}

/// An agent and the skill for which it was found; the printed keys first.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct FoundAgent {
    pub agent_id: String,
    /// The name it gave itself, else its id.
    pub agent_name: String,
    /// Where it takes jobs, without a query: that part may hold a secret.
    pub api_endpoint: Option<String>,
    pub skill: FoundSkill,
    #[schema(example = 92.3)]
    pub reputation_score: f64,
    pub status: PresenceStatus,
    pub owner_id: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct FoundSkill {
    #[schema(example = "analyze_text")]
    pub skill_name: String,
    pub cost_per_call: Credits,
}

/// An endpoint as strangers may see it: scheme, host and path.
pub fn public_endpoint(url: &str) -> String {
    let plain = url.split(['?', '#']).next().unwrap_or_default();
    // User information never passes registration; what is shown does not rely on it.
    match (plain.split_once("://"), plain.contains('@')) {
        (Some((scheme, rest)), true) => {
            let (host, path) = rest
                .split_once('/')
                .map_or((rest, String::new()), |(host, path)| {
                    (host, format!("/{path}"))
                });
            format!(
                "{scheme}://{}{path}",
                host.rsplit('@').next().unwrap_or_default()
            )
        }
        (Some(_) | None, true | false) => plain.to_owned(),
    }
}
