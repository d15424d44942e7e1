//! What has gathered, run in one transaction, and again from its beginning when the database undid it (D-88).

use super::job::Job;
use super::log::Entry;
use super::txn::Txn;
use super::value::Trouble;
use super::{DbError, Tx, parts};
use chorus_wire::{Error, limits};
use std::ops::Range;
use std::time::Duration;
use tokio::sync::mpsc;

/// Kept as it came until it is committed: whatever runs may have to run again.
#[derive(Default)]
pub(super) struct Group {
    jobs: Vec<Job>,
    /// Which entries are whose, of those that have run.
    spans: Vec<Range<usize>>,
}

/// Why a group was not committed.
pub(super) struct Failed {
    pub fate: Fate,
    pub cause: DbError,
}

/// What became of a group that was not committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// The database undid it for the sake of another.
    Undone,
    /// The connection broke before the commit was on its way: nothing of it can take effect.
    Cut,
    /// Nothing of it was done, and another attempt would meet the same.
    Refused,
    /// The commit was on its way when its answer was lost. It may have taken effect, so it is never run again: whoever wrote
    /// would be heard twice.
    Unknown,
}

impl Failed {
    pub fn refused(cause: DbError) -> Self {
        Self {
            fate: Fate::Refused,
            cause,
        }
    }

    /// `sent`: the commit was on its way.
    pub fn on(tx: &Tx<'_>, sent: bool, cause: DbError) -> Self {
        let fate = match (tx.trouble(), sent) {
            // A server that says so has undone it, also when it says so at the commit.
            (Some(Trouble::Undone), _) => Fate::Undone,
            (Some(Trouble::Gone), false) => Fate::Cut,
            (None, false) => Fate::Refused,
            (Some(Trouble::Gone) | None, true) => Fate::Unknown,
        };
        Self { fate, cause }
    }
}

/// How long to wait before the next run: longer each time, and never as long as whoever else was undone.
pub(super) fn pause(runs: u32) -> Duration {
    limits::WRITE_AGAIN_PAUSE
        .saturating_mul(1 << runs.min(8))
        .mul_f64(0.5 + rand::random::<f64>())
}

impl Group {
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Takes what waits. How much there was; nothing when there will be no more.
    pub async fn gather(&mut self, queue: &mut mpsc::Receiver<Job>) -> usize {
        queue.recv_many(&mut self.jobs, limits::WRITE_GROUP).await
    }

    /// Everything between `begin` and `commit`. On its `last` run, work that the database undoes is undone alone where that is
    /// possible, so that it does not take its neighbours down with it.
    pub async fn run(&mut self, txn: &mut Txn<'_>, last: bool) -> Result<(), DbError> {
        self.spans.clear();
        for job in &mut self.jobs {
            let first = txn.entries.len();
            match job {
                // Only texts that are shared, so a second one costs nothing.
                Job::Append(new, _) => drop(txn.append(new.clone())),
                Job::Work(work) => {
                    // Before the savepoint: the work sees what came before it, and undoes only what is its own.
                    txn.insert_new().await?;
                    let before = txn.before();
                    txn.tx.control("savepoint work").await?;
                    if !work.run(txn).await {
                        if !last && txn.tx.in_trouble() {
                            return Err(DbError::Unavailable("a piece of work was undone".into()));
                        }
                        txn.tx.control("rollback to savepoint work").await?;
                        txn.back_to(before);
                        // It failed alone: whatever comes of the group now is not for that.
                        let _ = txn.tx.trouble();
                    }
                    txn.tx.control("release savepoint work").await?;
                }
            }
            self.spans.push(first..txn.entries.len());
        }
        txn.insert_new().await?;
        let now = txn.now();
        parts::keep(&txn.tx, &mut txn.head, now).await?;
        txn.counts.store(&txn.tx).await
    }

    /// Answers everybody; `failed` is why nothing was committed.
    pub fn answer(&mut self, entries: &[Entry], failed: Option<&Error>) {
        let mut spans = self.spans.drain(..);
        for job in self.jobs.drain(..) {
            let span = spans.next().unwrap_or_default();
            job.answer(entries.get(span).unwrap_or_default(), failed);
        }
    }
}
