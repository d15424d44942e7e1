//! Who decides whether a caller may ask once more: this hub while there is plenty, one hub for all near the end (D-85).

use super::{Caller, Quota};
use crate::bus::{Silence, Spend, Verdict};
use crate::{Hub, Result};
use chorus_wire::limits;

/// Hubs that are asked before this one decides by itself: the first may have died just now.
const ASKED: usize = 2;

/// Takes one request from the caller's budget: how many are left, or when there will be one.
pub async fn spend(hub: &Hub, caller: Caller, quota: Quota) -> Result<u32> {
    let Verdict { granted, debt } = decide(hub, caller, quota, true).await;
    if granted {
        Ok(quota.left(debt))
    } else {
        Err(quota.later(debt))
    }
}

/// Whether there is anything in the caller's budget; takes nothing, so that whoever turns out to have a good key has not spent
/// what belongs to its address.
pub async fn has_some(hub: &Hub, caller: Caller, quota: Quota) -> Result<()> {
    let Verdict { debt, .. } = decide(hub, caller, quota, false).await;
    if quota.left(debt) > 0 {
        Ok(())
    } else {
        Err(quota.later(debt))
    }
}

async fn decide(hub: &Hub, caller: Caller, quota: Quota, one: bool) -> Verdict {
    let (budgets, wanted) = (hub.budgets(), one.then_some(quota));
    let Some(mesh) = hub.mesh() else {
        return budgets.decide(caller, wanted, false);
    };
    for _ in 0..ASKED {
        let Some(owner) = mesh.owner(caller.mark()) else {
            return budgets.decide(caller, wanted, false);
        };
        let Some(elsewhere) = owner.elsewhere else {
            return budgets.decide(caller, wanted, true);
        };
        if let Some(verdict) = budgets.decide_of_plenty(caller, quota, one, owner.hubs) {
            return verdict;
        }
        let since = budgets.now();
        let (owed, debt) = budgets.say(caller);
        // What is known here is said for a hub that has just become the one to ask. It is said a little low: a number that went
        // back and forth would grow by the time that it is on its way.
        let known = debt.saturating_sub(limits::BUDGET_WAIT.as_nanos() as u64);
        match mesh
            .ask_owner(
                elsewhere,
                Spend {
                    caller,
                    owed,
                    known,
                    quota: wanted.map_or(0, Quota::get),
                },
            )
            .await
        {
            Ok(verdict) => {
                budgets.learn(caller, verdict.debt, since);
                return verdict;
            }
            Err(Silence::Nobody) => budgets.keep(caller, owed),
            // It may have been counted there, so it is not said again.
            Err(Silence::Late) => return budgets.decide(caller, wanted, false),
        }
    }
    budgets.decide(caller, wanted, true)
}
