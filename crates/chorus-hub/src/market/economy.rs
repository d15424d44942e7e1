//! Public totals of the whole market (lesson 14).

use crate::Result;
use crate::context::HubContext;
use crate::store::ledger::{self, LedgerAccount};
use crate::store::{JobState, market_totals};
use chorus_wire::credits::{CURRENCY, Credits};
use chorus_wire::market::job::JobStatus;
use chorus_wire::market::transfer::EconomyReport;
use std::collections::BTreeMap;

/// `GET /economy`
pub async fn summarize_economy(hub: &HubContext) -> Result<EconomyReport> {
    let (issued, mut totals) = hub
        .store()
        .read(async |tx| {
            Ok((
                ledger::read_balance(tx, LedgerAccount::Issue).await?,
                market_totals::read_totals(tx).await?,
            ))
        })
        .await?;
    let mut jobs: BTreeMap<String, u64> = JobStatus::ALL
        .iter()
        .map(|status| (status.as_str().into(), 0))
        .collect();
    let mut job_states = BTreeMap::new();
    for state in JobState::STORED {
        let count = (*totals.jobs.count_mut(state)).max(0) as u64;
        job_states.insert(state.as_str().to_owned(), count);
        *jobs.entry(state.wire_status().as_str().into()).or_default() += count;
    }
    Ok(EconomyReport {
        currency: CURRENCY.into(),
        issued: Credits::ZERO.saturating_sub(issued),
        held: Credits::from_hundredths(totals.held_credits),
        volume: Credits::from_hundredths(totals.volume),
        jobs,
        job_states,
    })
}
