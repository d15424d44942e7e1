//! The hub that decides about a caller's budget, as seen by the other hubs of a cluster (D-85).

use super::CallerId;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};

/// Which hub decides about each caller, and how to ask it.
pub(crate) trait BudgetAuthority: Send + Sync {
    /// The hub that decides about callers with this hash; `None` when this hub has no peers.
    fn budget_owner(&self, caller_hash: u64) -> Option<BudgetOwner>;
    /// Asks the deciding hub.
    fn request_decision(
        &self,
        hub: u64,
        claim: BudgetClaim,
    ) -> BoxFuture<'_, Result<BudgetDecision, ClaimError>>;
}

/// The hub that decides about a caller.
pub(crate) struct BudgetOwner {
    /// `None` when it is this hub.
    pub remote_hub: Option<u64>,
    /// How many hubs the cluster has.
    pub hub_count: usize,
}

/// Why a claim got no decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClaimError {
    /// It certainly did not reach the deciding hub: what it reports is still unsynced.
    NotReceived,
    /// It may have been counted.
    Unknown,
}

/// What a hub tells the deciding hub about a caller. Durations are in nanoseconds: the time that spent requests take to refill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BudgetClaim {
    pub caller: CallerId,
    /// Spent at the claiming hub and not reported before.
    pub owed: u64,
    /// The caller's debt, as far as the claiming hub knows.
    pub known: u64,
    /// The quota from which one more request is to be taken; 0 when none is.
    pub quota: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BudgetDecision {
    pub granted: bool,
    /// The caller's debt after the decision.
    pub debt: u64,
}
