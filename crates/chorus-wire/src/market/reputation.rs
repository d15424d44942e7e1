//! An agent's reputation: its score, statistics and latest changes (lesson 14, R-63).

use crate::time::UnixMicros;
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

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReputationStats {
    pub total: u64,
    pub successes: u64,
    pub failures: u64,
}

/// The change of a score by one job.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ReputationChange {
    pub success: bool,
    pub score_before: f64,
    pub score_after: f64,
    #[schema(value_type = String, format = DateTime)]
    pub timestamp_utc: UnixMicros,
}
