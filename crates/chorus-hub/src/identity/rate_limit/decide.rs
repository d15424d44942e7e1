//! Whether a caller may make one more request: decided by this hub while plenty is left, by one hub for all near the end (D-85).

use super::budget_authority::{BudgetClaim, BudgetDecision, ClaimError};
use super::{CallerId, RateQuota};
use crate::Result;
use crate::identity::Identity;
use crate::limits;

/// Deciding hubs asked before this one decides by itself: the first may have stopped just now.
const MAX_OWNERS_ASKED: usize = 2;

/// Takes one request from the caller's budget. Returns how many are left; the error says when there will be one.
pub async fn spend_request(identity: &Identity, caller: CallerId, quota: RateQuota) -> Result<u32> {
    let BudgetDecision { granted, debt } = decide_request(identity, caller, quota, true).await;
    let quota = quota.with_burst_of(caller);
    if granted {
        Ok(quota.remaining_requests(debt))
    } else {
        Err(quota.rate_limited_error(debt))
    }
}

/// Whether the caller's budget has a request left. It takes none, so that a client with a valid key does not use up the budget of
/// its address.
pub async fn check_remaining(
    identity: &Identity,
    caller: CallerId,
    quota: RateQuota,
) -> Result<()> {
    let BudgetDecision { debt, .. } = decide_request(identity, caller, quota, false).await;
    if quota.remaining_requests(debt) > 0 {
        Ok(())
    } else {
        Err(quota.rate_limited_error(debt))
    }
}

async fn decide_request(
    identity: &Identity,
    caller: CallerId,
    quota: RateQuota,
    takes_one: bool,
) -> BudgetDecision {
    let quota = quota.with_burst_of(caller);
    let budgets = identity.rate_budgets();
    let wanted_quota = takes_one.then_some(quota);
    let Some(authority) = identity.peers.as_ref().map(|peers| &peers.budgets) else {
        return budgets.decide_locally(caller, wanted_quota, false);
    };
    for _ in 0..MAX_OWNERS_ASKED {
        let Some(owner) = authority.budget_owner(caller.stable_hash()) else {
            return budgets.decide_locally(caller, wanted_quota, false);
        };
        let Some(owner_hub) = owner.remote_hub else {
            return budgets.decide_locally(caller, wanted_quota, true);
        };
        if let Some(decision) = budgets.decide_if_plenty(caller, quota, takes_one, owner.hub_count)
        {
            return decision;
        }
        let asked_at = budgets.now_nanos();
        let (owed, debt) = budgets.take_unsynced(caller);
        // The known debt is for a hub that has just become the deciding one. It is reported a little low: a debt that goes back
        // and forth would otherwise grow by the time that each message takes.
        let known = debt.saturating_sub(limits::BUDGET_SYNC_WAIT.as_nanos() as u64);
        let claim = BudgetClaim {
            caller,
            owed,
            known,
            quota: wanted_quota.map_or(0, RateQuota::requests_per_minute),
        };
        match authority.request_decision(owner_hub, claim).await {
            Ok(decision) => {
                budgets.learn_debt(caller, decision.debt, asked_at);
                return decision;
            }
            Err(ClaimError::NotReceived) => budgets.restore_unsynced(caller, owed),
            // It may have been counted there, so it is not reported again.
            Err(ClaimError::Unknown) => return budgets.decide_locally(caller, wanted_quota, false),
        }
    }
    budgets.decide_locally(caller, wanted_quota, true)
}
