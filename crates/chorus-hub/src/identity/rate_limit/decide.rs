//! Who decides whether a caller may ask once more: this hub while there is plenty, one hub for all near the end (D-85).

use super::{CallerId, RateQuota};
use crate::cluster::{BudgetClaim, BudgetDecision, RequestError};
use crate::{Hub, Result};
use chorus_wire::limits;

/// Hubs that are asked before this one decides by itself: the first may have died just now.
const MAX_OWNERS_ASKED: usize = 2;

/// Takes one request from the caller's budget: how many are left, or when there will be one.
pub async fn spend_request(hub: &Hub, caller: CallerId, quota: RateQuota) -> Result<u32> {
    let BudgetDecision { granted, debt } = decide_request(hub, caller, quota, true).await;
    if granted {
        Ok(quota.remaining_requests(debt))
    } else {
        Err(quota.rate_limited_error(debt))
    }
}

/// Whether there is anything in the caller's budget; takes nothing, so that whoever turns out to have a good key has not spent
/// what belongs to its address.
pub async fn check_remaining(hub: &Hub, caller: CallerId, quota: RateQuota) -> Result<()> {
    let BudgetDecision { debt, .. } = decide_request(hub, caller, quota, false).await;
    if quota.remaining_requests(debt) > 0 {
        Ok(())
    } else {
        Err(quota.rate_limited_error(debt))
    }
}

async fn decide_request(
    hub: &Hub,
    caller: CallerId,
    quota: RateQuota,
    takes_one: bool,
) -> BudgetDecision {
    let (budgets, wanted_quota) = (hub.rate_budgets(), takes_one.then_some(quota));
    let Some(mesh) = hub.cluster() else {
        return budgets.decide_locally(caller, wanted_quota, false);
    };
    for _ in 0..MAX_OWNERS_ASKED {
        let Some(owner) = mesh.budget_owner(caller.stable_hash()) else {
            return budgets.decide_locally(caller, wanted_quota, false);
        };
        let Some(owner_hub) = owner.remote_hub else {
            return budgets.decide_locally(caller, wanted_quota, true);
        };
        if let Some(verdict) = budgets.decide_if_plenty(caller, quota, takes_one, owner.hub_count) {
            return verdict;
        }
        let asked_at = budgets.now_nanos();
        let (owed, debt) = budgets.take_unsynced(caller);
        // What is known here is said for a hub that has just become the one to ask. It is said a little low: a number that went
        // back and forth would grow by the time that it is on its way.
        let known = debt.saturating_sub(limits::BUDGET_SYNC_WAIT.as_nanos() as u64);
        match mesh
            .request_decision(
                owner_hub,
                BudgetClaim {
                    caller,
                    owed,
                    known,
                    quota: wanted_quota.map_or(0, RateQuota::requests_per_minute),
                },
            )
            .await
        {
            Ok(verdict) => {
                budgets.learn_debt(caller, verdict.debt, asked_at);
                return verdict;
            }
            Err(RequestError::NoResponders) => budgets.restore_unsynced(caller, owed),
            // It may have been counted there, so it is not said again.
            Err(RequestError::Timeout) => {
                return budgets.decide_locally(caller, wanted_quota, false);
            }
        }
    }
    budgets.decide_locally(caller, wanted_quota, true)
}
