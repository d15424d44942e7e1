//! The ledger against a model: no sequence of steps creates, loses or double-spends credits.

use super::{JobRef, hold_credits, pay_from_hold, release_hold};
use crate::store::ledger::{self, LedgerAccount, NewPosting, PostingFilter, PostingRow};
use crate::store::{
    AccountId, DatabaseUrl, EntryPublisher, JobId, LogEntry, OwnerId, Store, SubjectId,
    market_totals, retention,
};
use crate::{Clock, PageCaches, Result};
use chorus_wire::credits::Credits;
use chorus_wire::{Error, ErrorCode, time::UnixMicros};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const OWNERS: i64 = 4;
const JOBS: i64 = 5;
const DAY: Duration = Duration::from_secs(24 * 3600);

struct NoStreams;

impl EntryPublisher for NoStreams {
    fn has_draining_stream(&self, _: SubjectId) -> bool {
        false
    }

    fn publish_entry(&self, _: &LogEntry) -> bool {
        false
    }

    fn resync_streams(&self) {}
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Grant {
        owner: OwnerId,
        amount: i64,
    },
    Transfer {
        from: OwnerId,
        to: OwnerId,
        amount: i64,
    },
    Hold {
        owner: OwnerId,
        job: JobId,
        amount: i64,
    },
    Settle {
        job: JobId,
        payee: OwnerId,
        paid: i64,
    },
    Release {
        job: JobId,
    },
    /// Time passes, and retention deletes what is older than two days.
    Trim {
        days: u64,
    },
    /// A transfer in a transaction that fails afterwards.
    Undone {
        from: OwnerId,
        to: OwnerId,
        amount: i64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let owner = (1..=OWNERS).prop_map(OwnerId);
    let job = (1..=JOBS).prop_map(JobId);
    let amount = 1..=60i64;
    prop_oneof![
        (owner.clone(), amount.clone()).prop_map(|(owner, amount)| Step::Grant { owner, amount }),
        (owner.clone(), owner.clone(), amount.clone())
            .prop_map(|(from, to, amount)| Step::Transfer { from, to, amount }),
        (owner.clone(), job.clone(), amount.clone()).prop_map(|(owner, job, amount)| Step::Hold {
            owner,
            job,
            amount
        }),
        (job.clone(), owner.clone(), 0..=60i64).prop_map(|(job, payee, paid)| Step::Settle {
            job,
            payee,
            paid
        }),
        job.prop_map(|job| Step::Release { job }),
        (0..5u64).prop_map(|days| Step::Trim { days }),
        (owner.clone(), owner, amount).prop_map(|(from, to, amount)| Step::Undone {
            from,
            to,
            amount
        }),
    ]
}

/// The expected state of the ledger, in the simplest form.
#[derive(Debug, Default)]
struct Model {
    /// Balances by owner. An owner with an account has received its opening grant.
    balances: BTreeMap<OwnerId, i64>,
    holds: BTreeMap<JobId, (OwnerId, i64)>,
    issued: i64,
    volume: i64,
}

impl Model {
    fn balance(&self, owner: OwnerId) -> i64 {
        self.balances.get(&owner).copied().unwrap_or_default()
    }

    fn give(&mut self, owner: OwnerId, amount: i64) {
        *self.balances.entry(owner).or_default() += amount;
    }

    /// Applies a step; false when it is not possible, and then nothing changes.
    fn tries(&mut self, step: Step) -> bool {
        match step {
            Step::Grant { owner, amount } => {
                if !self.balances.contains_key(&owner) {
                    self.give(owner, amount);
                    self.issued += amount;
                }
                true
            }
            Step::Transfer { from, to, amount } => {
                let can = self.balance(from) >= amount;
                if can {
                    self.give(from, -amount);
                    self.give(to, amount);
                    self.volume += amount;
                }
                can
            }
            Step::Hold { owner, job, amount } => {
                let can = self.balance(owner) >= amount && !self.holds.contains_key(&job);
                if can {
                    self.give(owner, -amount);
                    self.holds.insert(job, (owner, amount));
                }
                can
            }
            Step::Settle { job, payee, paid } => {
                let Some((payer, held)) = self
                    .holds
                    .get(&job)
                    .copied()
                    .filter(|(_, held)| *held >= paid)
                else {
                    return false;
                };
                self.holds.remove(&job);
                if paid > 0 {
                    self.give(payee, paid);
                }
                if payer != payee {
                    self.volume += paid;
                }
                self.give(payer, held - paid);
                true
            }
            Step::Release { job } => {
                let Some((payer, held)) = self.holds.remove(&job) else {
                    return false;
                };
                self.give(payer, held);
                true
            }
            Step::Trim { .. } => true,
            Step::Undone { .. } => false,
        }
    }
}

/// Whose hold a step settles, owner 0 for one that settles none. As the rules of jobs do: a job has one hold, and only a hold that is
/// there is settled.
fn check_hold(model: &Model, step: Step) -> Result<OwnerId> {
    let payer = |job: JobId| model.holds.get(&job).map(|(payer, _)| *payer);
    match step {
        Step::Hold { job, .. } if payer(job).is_some() => Err(ErrorCode::JobConflict.into()),
        Step::Settle { job, .. } | Step::Release { job } => {
            payer(job).ok_or_else(|| ErrorCode::JobClosed.into())
        }
        Step::Grant { .. }
        | Step::Transfer { .. }
        | Step::Hold { .. }
        | Step::Trim { .. }
        | Step::Undone { .. } => Ok(OwnerId(0)),
    }
}

async fn performed(store: &Store, model: &Model, step: Step) -> Result<()> {
    let held_by = check_hold(model, step)?;
    let named = |id: JobId| JobRef { id, job_id: "job" };
    store
        .write(async move |txn| match step {
            Step::Grant { owner, amount } => Ok(ledger::grant_opening_credits(
                txn,
                owner,
                [&owner.to_string(); 2],
                Credits::from_hundredths(amount),
            )
            .await?),
            Step::Transfer { from, to, amount } | Step::Undone { from, to, amount } => {
                let posting = NewPosting {
                    kind: "transfer",
                    from: LedgerAccount::Owner(from),
                    to: LedgerAccount::Owner(to),
                    amount: Credits::from_hundredths(amount),
                    job_id: None,
                    note: None,
                };
                ledger::apply_posting(&txn.tx, &posting, txn.now())
                    .await?
                    .ok_or(ErrorCode::TransferFailed)?;
                txn.counter_deltas.market.volume += amount;
                if matches!(step, Step::Undone { .. }) {
                    Err(Error::validation("undone"))
                } else {
                    Ok(())
                }
            }
            Step::Hold { owner, job, amount } => {
                hold_credits(txn, owner, named(job), Credits::from_hundredths(amount)).await
            }
            Step::Settle { job, payee, paid } => {
                pay_from_hold(
                    txn,
                    named(job),
                    held_by,
                    payee,
                    Credits::from_hundredths(paid),
                )
                .await
            }
            Step::Release { job } => release_hold(txn, named(job), held_by).await,
            Step::Trim { .. } => {
                let keep = Some(txn.now().saturating_sub(2 * DAY));
                while retention::run_retention_step(txn, keep).await? {}
                Ok(())
            }
        })
        .await
}

/// Asserts that balances, holds, totals and postings are those of the model.
async fn agrees(store: &Store, model: &Model) {
    let (balances, holds, issued, sums, postings) = store
        .read(async |tx| {
            let mut balances = BTreeMap::new();
            for owner in (1..=OWNERS).map(OwnerId) {
                balances.insert(
                    owner,
                    ledger::read_balance(tx, LedgerAccount::Owner(owner))
                        .await?
                        .to_hundredths(),
                );
            }
            let mut holds = BTreeMap::new();
            for job in (1..=JOBS).map(JobId) {
                let payer = OwnerId(0);
                let held = ledger::read_balance(tx, LedgerAccount::Hold { job, payer })
                    .await?
                    .to_hundredths();
                holds.insert(job, held);
            }
            let issued = -ledger::read_balance(tx, LedgerAccount::Issue)
                .await?
                .to_hundredths();
            let postings = ledger::list_postings(tx, &PostingFilter::default(), 10_000).await?;
            Ok((
                balances,
                holds,
                issued,
                market_totals::read_totals(tx).await?,
                postings,
            ))
        })
        .await
        .unwrap();
    for (owner, balance) in &balances {
        assert_eq!(*balance, model.balance(*owner), "owner {owner}: {model:?}");
    }
    for (job, held) in &holds {
        assert_eq!(
            *held,
            model.holds.get(job).map_or(0, |(_, held)| *held),
            "job {job}: {model:?}"
        );
    }
    let (owned, held) = (balances.values().sum::<i64>(), holds.values().sum::<i64>());
    assert_eq!(
        (owned + held, issued),
        (model.issued, model.issued),
        "what was issued is what there is"
    );
    assert_eq!((sums.held_credits, sums.volume), (held, model.volume));
    rebuilds(postings, balances, holds);
}

/// The postings alone rebuild every balance, and every one of them is a pair.
fn rebuilds(
    postings: Vec<PostingRow>,
    balances: BTreeMap<OwnerId, i64>,
    holds: BTreeMap<JobId, i64>,
) {
    let mut rebuilt: BTreeMap<AccountId, i64> = BTreeMap::new();
    for posting in postings {
        assert_ne!(
            posting.debit.0,
            posting.credit.0 * i64::from(posting.kind != "transfer")
        );
        *rebuilt.entry(posting.debit).or_default() -= posting.amount.to_hundredths();
        *rebuilt.entry(posting.credit).or_default() += posting.amount.to_hundredths();
    }
    assert_eq!(rebuilt.values().sum::<i64>(), 0);
    for (owner, balance) in balances {
        assert_eq!(
            rebuilt
                .get(&AccountId(owner.0 * 2))
                .copied()
                .unwrap_or_default(),
            balance,
            "owner {owner}"
        );
    }
    for (job, held) in holds {
        assert_eq!(
            rebuilt
                .get(&AccountId(job.0 * 2 + 1))
                .copied()
                .unwrap_or_default(),
            held,
            "job {job}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// Invariant 7
    #[test]
    fn nothing_is_made_lost_or_spent_twice(steps in prop::collection::vec(step(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let dir = tempfile::tempdir().unwrap();
            let clock = Clock::manual_at(UnixMicros(1_774_000_000_000_000));
            let database = DatabaseUrl::in_data_dir(dir.path(), PageCaches::MAX);
            let store = Store::open(dir.path(), database, false, clock.clone(), Arc::new(NoStreams)).await.unwrap();
            let mut model = Model::default();
            for step in steps {
                if let Step::Trim { days } = step {
                    clock.advance(DAY * days as u32);
                }
                let done = performed(&store, &model, step).await;
                assert_eq!(model.tries(step), done.is_ok(), "{step:?}: {done:?}");
                agrees(&store, &model).await;
            }
            store.close().await;
        });
    }
}
