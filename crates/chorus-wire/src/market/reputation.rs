//! An agent's reputation: its score, statistics and latest changes (lesson 14, R-63).

use crate::{credits::Credits, time::UnixMicros};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `GET /reputation/{agent}`
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ReputationReport {
    pub agent_id: String,
    #[schema(example = 50.0)]
    pub score: f64,
    pub stats: ReputationStats,
    /// The latest changes, newest first.
    pub history: Vec<ReputationChange>,
}

/// How the score came about, over all time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReputationStats {
    pub total: u64,
    pub successes: u64,
    pub failures: u64,
    /// Owners that have hired the agent.
    pub distinct_hirers: u64,
    /// What the agent was paid for these jobs.
    pub earned: Credits,
    /// The same for today and the 30 days before.
    pub last_30_days: RecentStats,
}

/// How the score came about lately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RecentStats {
    pub successes: u64,
    pub failures: u64,
    pub distinct_hirers: u64,
    pub earned: Credits,
}

/// The change of a score by one job.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ReputationChange {
    pub success: bool,
    /// The job; absent when retention has deleted it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub job_id: Option<String>,
    /// The owner of the agent that requested the job; absent when that owner is gone.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub hirer_owner: Option<String>,
    /// What was paid; 0.00 is free work.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cost: Option<Credits>,
    /// `SUCCESS`, `DEADLINE`, or the error code of the failure.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(example = "SUCCESS")]
    pub reason: Option<String>,
    pub score_before: f64,
    pub score_after: f64,
    #[schema(value_type = String, format = DateTime)]
    pub timestamp_utc: UnixMicros,
}
