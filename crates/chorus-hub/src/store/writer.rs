//! The one writer: drains what is queued, runs it in one transaction, syncs once, publishes in order, and only then answers.

use super::checkpoint::Checkpoint;
use super::engine::Engine;
use super::group::{self, Failed, Fate, Group};
use super::job::{Job, Task};
use super::log::{self, Entry, Head, NewEntry};
use super::publish::Publish;
use super::txn::{Terms, Txn};
use super::{DbError, Place, Tx, dialect, migrations, postgres};
use crate::{Clock, Result};
use chorus_wire::{Error, limits, time::Micros};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// The other end of the writer's queue.
pub(super) struct Handle {
    jobs: std::sync::Mutex<Option<mpsc::Sender<Job>>>,
    ended: tokio::sync::Mutex<Option<oneshot::Receiver<()>>>,
    /// Up to where the parts are kept, as far as this hub knows.
    pub indexed: Arc<AtomicI64>,
    /// Said once, when the hub is open.
    pub terms: Arc<OnceLock<Terms>>,
}

impl Handle {
    fn queue(&self, job: Job) -> Result<()> {
        let jobs = self
            .jobs
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .clone();
        let jobs = jobs.ok_or_else(|| Error::unavailable("the store is closed"))?;
        jobs.try_send(job)
            .map_err(|_| Error::unavailable("the write queue is full or the writer has ended"))
    }

    pub async fn write<T, F>(&self, work: F) -> Result<(T, Vec<Entry>)>
    where
        T: Send + 'static,
        F: AsyncFn(&mut Txn<'_>) -> Result<T> + Send + 'static,
    {
        let (to, answer) = oneshot::channel();
        self.queue(Job::Work(Box::new(Task::new(work, to))))?;
        answer
            .await
            .unwrap_or_else(|_| Err(Error::unavailable("the writer ended before it answered")))
    }

    pub async fn append(&self, entry: NewEntry) -> Result<Entry> {
        let (to, answer) = oneshot::channel();
        self.queue(Job::Append(entry, to))?;
        answer
            .await
            .unwrap_or_else(|_| Err(Error::unavailable("the writer ended before it answered")))
    }

    pub async fn close(&self) {
        drop(
            self.jobs
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .take(),
        );
        if let Some(ended) = self.ended.lock().await.take() {
            let _ = ended.await;
        }
    }
}

/// Opens and migrates the database on a thread of its own and goes on writing there.
pub(super) async fn start(
    place: Place,
    clock: Clock,
    publish: Arc<dyn Publish>,
) -> std::result::Result<(Handle, u32), DbError> {
    let (jobs, queue) = mpsc::channel(limits::WRITE_QUEUE);
    let (opened, ready) = oneshot::channel();
    let (end, ended) = oneshot::channel();
    let known = Arc::<AtomicI64>::default();
    let indexed = known.clone();
    let said = Arc::<OnceLock<Terms>>::default();
    let terms = said.clone();
    let thread = std::thread::Builder::new().name("chorus-writer".into());
    let spawned = thread.spawn(move || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        if matches!(place, Place::Postgres(_)) {
            runtime.enable_all();
        }
        let runtime = match runtime.build() {
            Ok(runtime) => runtime,
            Err(error) => return drop(opened.send(Err(DbError::Unavailable(error.to_string())))),
        };
        runtime.block_on(async move {
            match prepare(&place, &clock, publish.others().is_none()).await {
                Ok((engine, head, salt)) => {
                    indexed.store(head.indexed, Ordering::Release);
                    let checkpoint = match &place {
                        Place::Sqlite(path) => Checkpoint::start(path),
                        Place::Postgres(_) => None,
                    };
                    let _ = opened.send(Ok(salt));
                    let told = head.seq;
                    let (answering, sent, looked) =
                        (tokio::task::JoinSet::new(), false, clock.steady());
                    let writer = Writer {
                        engine,
                        head,
                        told,
                        looked,
                        sent,
                        indexed,
                        terms,
                        clock,
                        publish,
                        checkpoint,
                        answering,
                    };
                    writer.run(queue).await;
                }
                Err(error) => drop(opened.send(Err(error))),
            }
        });
        let _ = end.send(());
    });
    spawned.map_err(|e| DbError::Unavailable(e.to_string()))?;
    let salt = ready.await.unwrap_or_else(|_| {
        Err(DbError::Unavailable(
            "the writer thread ended at once".into(),
        ))
    })?;
    Ok((
        Handle {
            jobs: Some(jobs).into(),
            ended: Some(ended).into(),
            indexed: known,
            terms: said,
        },
        salt,
    ))
}

async fn prepare(
    place: &Place,
    clock: &Clock,
    alone: bool,
) -> std::result::Result<(Engine, Head, u32), DbError> {
    let mut engine = Engine::open(place, alone).await?;
    let tx = engine.tx().await?;
    set_right(clock, &tx).await?;
    migrations::run(&tx, clock.now().0).await?;
    let salt = super::counters::salt(&tx).await?;
    let head = log::head(&tx).await?;
    Ok((engine, head, salt))
}

struct Writer {
    engine: Engine,
    head: Head,
    /// Up to where the streams of this hub have been told, in order.
    told: i64,
    /// When the log was last looked at for its own sake.
    looked: Duration,
    /// The commit of the last group was on its way.
    sent: bool,
    indexed: Arc<AtomicI64>,
    terms: Arc<OnceLock<Terms>>,
    clock: Clock,
    publish: Arc<dyn Publish>,
    checkpoint: Option<Checkpoint>,
    /// Answers that wait for what other hubs say.
    answering: tokio::task::JoinSet<()>,
}

/// What a group came to.
struct Committed {
    /// What other hubs wrote before it and this one has not told its streams yet.
    foreign: Vec<Entry>,
    entries: Vec<Entry>,
    /// False when what comes before could not be read: then the streams are told by the next look at the log.
    in_order: bool,
}

impl Writer {
    async fn run(mut self, mut queue: mpsc::Receiver<Job>) {
        let mut group = Group::default();
        while self.gather(&mut queue, &mut group).await {
            if group.is_empty() {
                self.tail().await;
                continue;
            }
            let committed = match self.engine {
                Engine::Sqlite(_) => self.commit_again(&mut group).await,
                Engine::Postgres { .. } => self.commit_in_time(&mut group).await,
            };
            match committed {
                Ok(committed) => self.speak(committed, &mut group),
                Err(Failed { fate, cause }) => {
                    tracing::error!(%cause, ?fate, "a group of writes was not committed");
                    // Hubs that share the log read on from where they have told it, whoever wrote it.
                    if fate == Fate::Unknown && self.publish.others().is_none() {
                        self.publish.unsure();
                    }
                    group.answer(&[], Some(&Error::unavailable(cause)));
                }
            }
            // Also under load: nothing else sets the clock right then.
            if self.publish.others().is_some()
                && self.clock.steady() >= self.looked + limits::CLOCK_EVERY
            {
                self.tail().await;
            }
            if let (Engine::Sqlite(connection), Some(checkpoint)) = (&self.engine, &self.checkpoint)
            {
                checkpoint.finish(connection);
            }
        }
        // What was committed is answered before the end.
        while self.answering.join_next().await.is_some() {}
    }

    /// Waits for work; with an empty group, for a look at what others wrote. False when there will be no more.
    async fn gather(&self, queue: &mut mpsc::Receiver<Job>, group: &mut Group) -> bool {
        let Some(others) = self.publish.others() else {
            return group.gather(queue).await > 0;
        };
        tokio::select! {
            biased;
            count = group.gather(queue) => count > 0,
            () = others.grew().notified() => true,
            // Law 4: who is not rung looks all the same.
            () = tokio::time::sleep(limits::TAIL_EVERY) => true,
        }
    }

    /// Tells the streams what was committed, in the order of the log, and then those who wait for it.
    fn speak(&mut self, committed: Committed, group: &mut Group) {
        let Committed {
            mut foreign,
            mut entries,
            in_order,
        } = committed;
        if !in_order {
            return group.answer(&entries, None);
        }
        for entry in foreign.iter_mut().chain(&mut entries) {
            entry.accepted = self.publish.publish(entry);
            self.told = entry.seq;
        }
        let Some(others) = self.publish.others() else {
            return group.answer(&entries, None);
        };
        others.tailed(self.told, &foreign);
        if entries.is_empty() {
            return group.answer(&entries, None);
        }
        let (elsewhere, mut group) = (others.tell(self.head.seq, &entries), std::mem::take(group));
        // The next group does not wait for what other hubs say of this one.
        while self.answering.try_join_next().is_some() {}
        self.answering.spawn(async move {
            let taken = elsewhere.await;
            entries
                .iter_mut()
                .for_each(|entry| entry.accepted |= taken.contains(&entry.seq));
            group.answer(&entries, None);
        });
    }

    /// Tells the streams what other hubs wrote.
    async fn tail(&mut self) {
        self.looked = self.clock.steady();
        let looking = async {
            loop {
                let tx = self.engine.tx().await?;
                let mut page = log::tail(&tx, self.told, limits::WRITE_GROUP).await?;
                for entry in &mut page {
                    entry.accepted = self.publish.publish(entry);
                    self.told = entry.seq;
                }
                if let Some(others) = self.publish.others() {
                    others.tailed(self.told, &page);
                }
                if page.len() < limits::WRITE_GROUP {
                    let head = log::head(&tx).await?;
                    self.indexed.store(head.indexed, Ordering::Release);
                    return set_right(&self.clock, &tx).await;
                }
            }
        };
        match tokio::time::timeout(postgres::UNANSWERED, looking).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, "the log could not be read; it will be tried again");
                tokio::time::sleep(limits::TAIL_EVERY).await;
            }
            Err(_) => self.engine.hang_up(),
        }
    }

    /// A database that does not answer is given up on, with its connection: whether it commits after all is seen with the
    /// next group, which the old connection's lock lets begin only when that is settled.
    async fn commit_in_time(
        &mut self,
        group: &mut Group,
    ) -> std::result::Result<Committed, Failed> {
        match tokio::time::timeout(postgres::UNANSWERED, self.commit_again(group)).await {
            Ok(committed) => committed,
            Err(_) => {
                self.engine.hang_up();
                let fate = if self.sent {
                    Fate::Unknown
                } else {
                    Fate::Refused
                };
                Err(Failed {
                    fate,
                    cause: DbError::Unavailable("the database did not answer".into()),
                })
            }
        }
    }

    /// D-88: a group that the database undid, or whose connection broke before its commit, is run again.
    async fn commit_again(&mut self, group: &mut Group) -> std::result::Result<Committed, Failed> {
        let (mut runs, mut cut) = (0, false);
        loop {
            let last = runs == limits::WRITE_AGAIN;
            let failed = match self.commit(group, last).await {
                Ok(committed) => return Ok(committed),
                Err(failed) => failed,
            };
            match failed.fate {
                Fate::Undone if !last => {
                    tracing::warn!(cause = %failed.cause, "the database undid a group of writes; it runs again");
                    tokio::time::sleep(group::pause(runs)).await;
                    runs += 1;
                }
                // Once: a connection that breaks every time is the database's trouble, and those who wait are told.
                Fate::Cut if !cut => {
                    tracing::warn!(cause = %failed.cause, "the connection broke before the commit; the group runs again");
                    self.engine.hang_up();
                    cut = true;
                }
                Fate::Undone | Fate::Cut | Fate::Refused | Fate::Unknown => return Err(failed),
            }
        }
    }

    async fn commit(
        &mut self,
        group: &mut Group,
        last: bool,
    ) -> std::result::Result<Committed, Failed> {
        self.sent = false;
        let shared = self.publish.others().is_some();
        let tx = self.engine.tx().await.map_err(Failed::refused)?;
        // What a look at the log met before is not this group's.
        let _ = tx.trouble();
        let head = match begun(&tx, self.head).await {
            Ok(head) => head,
            Err(error) => {
                let failed = Failed::on(&tx, false, error);
                // It may have begun before it failed, and a connection that is left so refuses everything that follows.
                let _ = tx.control("rollback").await;
                return Err(failed);
            }
        };
        if head.seq != self.head.seq && !shared {
            self.publish.unsure();
        }
        let (before, now, terms) = (head.seq, self.clock.now(), self.terms.get());
        let mut txn = Txn::new(tx, head, now, &*self.publish, terms);
        let done = group.run(&mut txn, last).await;
        let Txn {
            tx, head, entries, ..
        } = txn;
        let done = match done {
            Ok(()) => {
                self.sent = true;
                tx.control("commit").await
            }
            Err(error) => Err(error),
        };
        if let Err(error) = done {
            let failed = Failed::on(&tx, self.sent, error);
            // The first error is the one to report; a broken connection has rolled back by itself.
            let _ = tx.control("rollback").await;
            return Err(failed);
        }
        self.head = head;
        self.indexed.store(head.indexed, Ordering::Release);
        let mut foreign = Vec::new();
        while shared && foreign.last().map_or(self.told, |entry: &Entry| entry.seq) < before {
            let after = foreign.last().map_or(self.told, |entry: &Entry| entry.seq);
            let most = ((before - after) as usize).min(limits::WRITE_GROUP);
            match log::tail(&tx, after, most).await {
                Ok(page) if page.is_empty() => break,
                Ok(page) => foreign.extend(page),
                Err(error) => {
                    tracing::warn!(%error, "what other hubs wrote could not be read");
                    self.publish.unsure();
                    return Ok(Committed {
                        foreign: Vec::new(),
                        entries,
                        in_order: false,
                    });
                }
            }
        }
        Ok(Committed {
            foreign,
            entries,
            in_order: true,
        })
    }
}

/// Hubs that share a database go by its clock (D-83). What it said while it was on its way is taken as the middle of the way; an
/// answer that was long on it tells too little.
async fn set_right(clock: &Clock, tx: &Tx<'_>) -> std::result::Result<(), DbError> {
    let asked = clock.steady();
    if let Some(sql) = dialect::now(tx)
        && let Some(row) = tx.one(sql, &[]).await?
    {
        let now = believed(Micros(row.int(0)?), clock.steady().saturating_sub(asked));
        now.into_iter().for_each(|now| clock.follow(now));
    }
    Ok(())
}

/// What time it is when an answer has come that took so long, if it tells.
pub(super) fn believed(said: Micros, took: Duration) -> Option<Micros> {
    (took <= limits::CLOCK_TRUSTED).then(|| said.plus(took / 2))
}

/// Begins a group, and says where the log stands: on PostgreSQL a commit that failed may have taken effect after all; alone on a
/// file, nobody writes but this.
async fn begun(tx: &Tx<'_>, known: Head) -> std::result::Result<Head, DbError> {
    tx.control(dialect::begin(tx)).await?;
    match tx {
        Tx::Sqlite(_) => Ok(known),
        Tx::Postgres(_) => Ok(Head {
            indexed_at: known.indexed_at,
            ..log::head(tx).await?
        }),
    }
}
