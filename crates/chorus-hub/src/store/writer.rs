//! The one writer: drains what is queued, runs it in one transaction, syncs once, publishes in order, and only then answers.

use super::checkpoint::Checkpoint;
use super::counters::Deltas;
use super::engine::Engine;
use super::job::{Answer, Job, Task};
use super::log::{self, Entry, Head, Kind, Mark, NewEntry};
use super::notice::Notice;
use super::publish::Publish;
use super::{DbError, Place, Tx, dialect, migrations, parts, postgres};
use crate::{Clock, Result};
use chorus_wire::{Error, limits, time::Micros};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::sync::{mpsc, oneshot};

/// What the hub goes by, at hand wherever something is written.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    /// What the hub calls itself to the outside, without a slash at its end.
    pub public_url: String,
    /// steps from agent to agent that may follow a person's word.
    pub agent_turns: u32,
}

/// What a piece of work may do inside its group's transaction.
pub(crate) struct Txn<'t> {
    pub tx: Tx<'t>,
    pub counts: Deltas,
    now: Micros,
    head: Head,
    entries: Vec<Entry>,
    /// How many of them are in the table.
    inserted: usize,
    publish: &'t dyn Publish,
    terms: &'t Terms,
}

impl Txn<'_> {
    pub fn terms(&self) -> &Terms {
        self.terms
    }

    /// The time of this group.
    pub fn now(&self) -> Micros {
        self.now
    }

    /// Inserts the entries that are not in the table yet: together, since on PostgreSQL each by itself is a round trip.
    async fn insert_new(&mut self) -> std::result::Result<(), DbError> {
        log::insert(&self.tx, &self.entries[self.inserted..]).await?;
        self.inserted = self.entries.len();
        Ok(())
    }

    /// Up to which place the parts are kept.
    pub fn indexed(&self) -> i64 {
        self.head.indexed
    }

    /// Says what this write makes untrue, to hubs that remember it; a hub that has the database alone needs no telling.
    pub fn notice(&mut self, notice: &Notice) {
        if self.publish.others().is_some() && !notice.is_empty() {
            self.append(NewEntry {
                subject: log::HUB,
                subject_name: "".into(),
                kind: Kind::Notice,
                actor: log::HUB,
                actor_name: "".into(),
                body: notice.to_json(),
                otherwise: None,
            });
        }
    }

    /// Appends an entry at the next place; it is inserted with the others of its group, and published after the commit.
    pub fn append(&mut self, new: NewEntry) -> (i64, Micros) {
        let via = new.otherwise.map(|mark| if self.publish.listening(new.subject) { Mark::Sse } else { mark });
        if let Some(mark) = via {
            self.counts.message(mark);
        }
        let (seq, at) = self.head.next(self.now);
        self.entries.push(Entry {
            seq,
            subject: new.subject,
            subject_name: new.subject_name,
            kind: new.kind,
            actor: new.actor,
            actor_name: new.actor_name,
            at,
            body: new.body.into(),
            via,
            delivered_at: None,
            accepted: false,
        });
        (seq, at)
    }
}

/// Until the hub has said its own.
static UNSAID: Terms = Terms { public_url: String::new(), agent_turns: 0 };

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
        let jobs = self.jobs.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        let jobs = jobs.ok_or_else(|| Error::unavailable("the store is closed"))?;
        jobs.try_send(job).map_err(|_| Error::unavailable("the write queue is full or the writer has ended"))
    }

    pub async fn write<T, F>(&self, work: F) -> Result<(T, Vec<Entry>)>
    where
        T: Send + 'static,
        F: AsyncFnOnce(&mut Txn<'_>) -> Result<T> + Send + 'static,
    {
        let (to, answer) = oneshot::channel();
        self.queue(Job::Work(Box::new(Task { work, to })))?;
        answer.await.unwrap_or_else(|_| Err(Error::unavailable("the writer ended before it answered")))
    }

    pub async fn append(&self, entry: NewEntry) -> Result<Entry> {
        let (to, answer) = oneshot::channel();
        self.queue(Job::Append(entry, to))?;
        answer.await.unwrap_or_else(|_| Err(Error::unavailable("the writer ended before it answered")))
    }

    pub async fn close(&self) {
        drop(self.jobs.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take());
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
                    let answering = tokio::task::JoinSet::new();
                    Writer { engine, head, told, indexed, terms, clock, publish, checkpoint, answering }
                        .run(queue)
                        .await;
                }
                Err(error) => drop(opened.send(Err(error))),
            }
        });
        let _ = end.send(());
    });
    spawned.map_err(|e| DbError::Unavailable(e.to_string()))?;
    let salt = ready.await.unwrap_or_else(|_| Err(DbError::Unavailable("the writer thread ended at once".into())))?;
    Ok((Handle { jobs: Some(jobs).into(), ended: Some(ended).into(), indexed: known, terms: said }, salt))
}

async fn prepare(place: &Place, clock: &Clock, alone: bool) -> std::result::Result<(Engine, Head, u32), DbError> {
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
    indexed: Arc<AtomicI64>,
    terms: Arc<OnceLock<Terms>>,
    clock: Clock,
    publish: Arc<dyn Publish>,
    checkpoint: Option<Checkpoint>,
    /// Answers that wait for what other hubs say.
    answering: tokio::task::JoinSet<()>,
}

/// Who waits for which of the group's entries.
enum Waiting {
    Entry(usize, oneshot::Sender<Result<Entry>>),
    Answer(std::ops::Range<usize>, Box<dyn Answer>),
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
        let mut group = Vec::with_capacity(limits::WRITE_GROUP);
        while self.gather(&mut queue, &mut group).await {
            if group.is_empty() {
                self.tail().await;
                continue;
            }
            let mut waiting = Vec::with_capacity(group.len());
            let committed = match self.engine {
                Engine::Sqlite(_) => self.commit(&mut group, &mut waiting).await,
                Engine::Postgres { .. } => self.commit_in_time(&mut group, &mut waiting).await,
            };
            match committed {
                Ok(committed) => self.speak(committed, waiting),
                Err(error) => {
                    tracing::error!(%error, "a group of writes was not committed");
                    self.publish.unsure();
                    answer(&[], Some(&Error::unavailable(error)), waiting);
                }
            }
            if let (Engine::Sqlite(connection), Some(checkpoint)) = (&self.engine, &self.checkpoint) {
                checkpoint.finish(connection);
            }
            // Jobs that never ran because the database was gone: their requesters learn it by the dropped channel.
            group.clear();
        }
        // What was committed is answered before the end.
        while self.answering.join_next().await.is_some() {}
    }

    /// Waits for work; with an empty group, for a look at what others wrote. False when there will be no more.
    async fn gather(&self, queue: &mut mpsc::Receiver<Job>, group: &mut Vec<Job>) -> bool {
        let Some(others) = self.publish.others() else {
            return queue.recv_many(group, limits::WRITE_GROUP).await > 0;
        };
        tokio::select! {
            biased;
            count = queue.recv_many(group, limits::WRITE_GROUP) => count > 0,
            () = others.grew().notified() => true,
            // Law 4: who is not rung looks all the same.
            () = tokio::time::sleep(limits::TAIL_EVERY) => true,
        }
    }

    /// Tells the streams what was committed, in the order of the log, and then those who wait for it.
    fn speak(&mut self, committed: Committed, waiting: Vec<Waiting>) {
        let Committed { mut foreign, mut entries, in_order } = committed;
        if !in_order {
            return answer(&entries, None, waiting);
        }
        for entry in foreign.iter_mut().chain(&mut entries) {
            entry.accepted = self.publish.publish(entry);
            self.told = entry.seq;
        }
        let Some(others) = self.publish.others() else {
            return answer(&entries, None, waiting);
        };
        others.tailed(self.told, &foreign);
        if entries.is_empty() {
            return answer(&entries, None, waiting);
        }
        let elsewhere = others.tell(self.head.seq, &entries);
        // The next group does not wait for what other hubs say of this one.
        while self.answering.try_join_next().is_some() {}
        self.answering.spawn(async move {
            let taken = elsewhere.await;
            entries.iter_mut().for_each(|entry| entry.accepted |= taken.contains(&entry.seq));
            answer(&entries, None, waiting);
        });
    }

    /// Tells the streams what other hubs wrote.
    async fn tail(&mut self) {
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
        group: &mut Vec<Job>,
        waiting: &mut Vec<Waiting>,
    ) -> std::result::Result<Committed, DbError> {
        match tokio::time::timeout(postgres::UNANSWERED, self.commit(group, waiting)).await {
            Ok(committed) => committed,
            Err(_) => {
                self.engine.hang_up();
                Err(DbError::Unavailable("the database did not answer".into()))
            }
        }
    }

    async fn commit(
        &mut self,
        group: &mut Vec<Job>,
        waiting: &mut Vec<Waiting>,
    ) -> std::result::Result<Committed, DbError> {
        let shared = self.publish.others().is_some();
        let tx = self.engine.tx().await?;
        let head = match begun(&tx, self.head).await {
            Ok(head) => head,
            Err(error) => {
                // It may have begun before it failed, and a connection that is left so refuses everything that follows.
                let _ = tx.control("rollback").await;
                return Err(error);
            }
        };
        if head.seq != self.head.seq && !shared {
            self.publish.unsure();
        }
        let (before, now, publish) = (head.seq, self.clock.now(), &*self.publish);
        let terms = self.terms.get().unwrap_or(&UNSAID);
        let mut txn =
            Txn { tx, counts: Deltas::default(), now, head, entries: Vec::new(), inserted: 0, publish, terms };
        let done = perform(&mut txn, group, waiting).await;
        let Txn { tx, head, entries, .. } = txn;
        let done = match done {
            Ok(()) => tx.control("commit").await,
            Err(error) => Err(error),
        };
        if let Err(error) = done {
            // The first error is the one to report; a broken connection has rolled back by itself.
            let _ = tx.control("rollback").await;
            return Err(error);
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
                    return Ok(Committed { foreign: Vec::new(), entries, in_order: false });
                }
            }
        }
        Ok(Committed { foreign, entries, in_order: true })
    }
}

/// Hubs that share a database go by its clock.
async fn set_right(clock: &Clock, tx: &Tx<'_>) -> std::result::Result<(), DbError> {
    if let Some(sql) = dialect::now(tx)
        && let Some(row) = tx.one(sql, &[]).await?
    {
        clock.follow(Micros(row.int(0)?));
    }
    Ok(())
}

/// Begins a group, and says where the log stands: on PostgreSQL a commit that failed may have taken effect after all; alone on a
/// file, nobody writes but this.
async fn begun(tx: &Tx<'_>, known: Head) -> std::result::Result<Head, DbError> {
    tx.control(dialect::begin(tx)).await?;
    match tx {
        Tx::Sqlite(_) => Ok(known),
        Tx::Postgres(_) => Ok(Head { indexed_at: known.indexed_at, ..log::head(tx).await? }),
    }
}

/// Everything between `begin` and `commit`.
async fn perform(
    txn: &mut Txn<'_>,
    group: &mut Vec<Job>,
    waiting: &mut Vec<Waiting>,
) -> std::result::Result<(), DbError> {
    for job in group.drain(..) {
        match job {
            Job::Append(entry, to) => {
                waiting.push(Waiting::Entry(txn.entries.len(), to));
                txn.append(entry);
            }
            Job::Work(work) => {
                let (first, head, counts) = (txn.entries.len(), txn.head, txn.counts.clone());
                // Before the savepoint: the work sees what came before it, and undoes only what is its own.
                txn.insert_new().await?;
                txn.tx.control("savepoint work").await?;
                let answer = work.run(txn).await;
                if answer.is_error() {
                    txn.tx.control("rollback to savepoint work").await?;
                    txn.entries.truncate(first);
                    (txn.head, txn.counts) = (head, counts);
                }
                txn.tx.control("release savepoint work").await?;
                waiting.push(Waiting::Answer(first..txn.entries.len(), answer));
            }
        }
    }
    txn.insert_new().await?;
    parts::keep(&txn.tx, &mut txn.head, txn.now).await?;
    txn.counts.store(&txn.tx).await
}

fn answer(entries: &[Entry], failed: Option<&Error>, waiting: Vec<Waiting>) {
    for one in waiting {
        match one {
            Waiting::Entry(place, to) => {
                let entry = match (failed, entries.get(place)) {
                    (None, Some(entry)) => Ok(entry.clone()),
                    (Some(failed), Some(_) | None) => Err(failed.clone()),
                    (None, None) => Err(Error::internal("an entry was lost between commit and answer")),
                };
                let _ = to.send(entry);
            }
            Waiting::Answer(range, answer) => answer.send(entries.get(range).unwrap_or_default(), failed),
        }
    }
}
