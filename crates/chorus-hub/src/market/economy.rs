//! The whole market in a few sums, for everybody to see (lesson 14).

use super::jobs::State;
use crate::store::ledger::{self, Account};
use crate::store::market;
use crate::{Hub, Result};
use chorus_wire::market::credits::{CURRENCY, Credits};
use chorus_wire::market::job::Status;
use chorus_wire::market::transfer::Economy;
use std::collections::BTreeMap;

/// `GET /economy`
pub async fn economy(hub: &Hub) -> Result<Economy> {
    let (issued, mut sums) = hub
        .store()
        .read(async |tx| {
            Ok((
                ledger::balance(tx, Account::Issue).await?,
                market::read(tx).await?,
            ))
        })
        .await?;
    let mut jobs: BTreeMap<String, u64> = Status::ALL
        .iter()
        .map(|status| (status.as_str().into(), 0))
        .collect();
    let mut job_states = BTreeMap::new();
    for state in State::KEPT {
        let count = (*sums.jobs.of(state)).max(0) as u64;
        job_states.insert(state.as_str().to_owned(), count);
        *jobs.entry(state.status().as_str().into()).or_default() += count;
    }
    Ok(Economy {
        currency: CURRENCY.into(),
        issued: Credits::ZERO.less(issued),
        held: Credits::hundredths(sums.held),
        volume: Credits::hundredths(sums.volume),
        jobs,
        job_states,
    })
}
