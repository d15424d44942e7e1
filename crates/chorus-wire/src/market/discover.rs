//! Searching agents by skill: the query and its results (JOB-11…15, lesson 14).

use crate::credits::Credits;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// A search; an absent criterion matches every agent.
#[derive(Clone, Debug, PartialEq)]
pub struct SkillSearch {
    pub skill: Option<String>,
    /// Only agents with at least this score.
    pub min_reputation: f64,
    /// Only skills that cost at most this much.
    pub max_cost: Option<Credits>,
    /// Only agents that at least this many owners have hired.
    pub min_hirers: u64,
    /// Only agents that have earned at least this much.
    pub min_earned: Credits,
    pub limit: usize,
}

/// Whether an agent is online.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum PresenceStatus {
    Online,
    Offline,
}

/// `{"agents":[…],"total":…}`, the best agent first. `total` includes agents beyond the page; under a filter it counts up
/// to 10 000.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SkillSearchResults {
    pub agents: Vec<FoundAgent>,
    pub total: u64,
}

/// An agent and the skill for which it was found.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct FoundAgent {
    pub agent_id: String,
    /// The agent's own name, or its id if it has none.
    pub agent_name: String,
    /// The agent's endpoint without its query, which may contain a secret.
    #[schema(required = true)]
    pub api_endpoint: Option<String>,
    pub skill: FoundSkill,
    #[schema(example = 92.3)]
    pub reputation_score: f64,
    /// Jobs that raised the score.
    pub success_count: u64,
    /// Jobs that lowered the score.
    pub failure_count: u64,
    /// Owners that have hired the agent.
    pub distinct_hirers: u64,
    /// What the agent was paid for its jobs.
    pub earned: Credits,
    pub status: PresenceStatus,
    pub owner_id: String,
    /// false: the name is under another host than the hub's own, and the hub has not verified it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub host_verified: Option<bool>,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct FoundSkill {
    #[schema(example = "analyze_text")]
    pub skill_name: String,
    pub cost_per_call: Credits,
    /// What it does.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub description: Option<String>,
    /// The input that it takes; any if absent.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub input_schema: Option<Value>,
    /// The output that it gives; any if absent.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub output_schema: Option<Value>,
}

/// The public part of an endpoint: scheme, host and path.
pub fn public_endpoint(url: &str) -> String {
    let without_query = url.split(['?', '#']).next().unwrap_or_default();
    // Registration refuses user information, but this function does not rely on it.
    match (without_query.split_once("://"), without_query.contains('@')) {
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
        (Some(_) | None, true | false) => without_query.to_owned(),
    }
}
