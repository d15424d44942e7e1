//! The writer: runs all queued write requests in one transaction, syncs once, publishes the entries in order, then replies.

use super::entry_publisher::EntryPublisher;
use super::erased_work::ErasedWrite;
use super::file_upkeep::FileUpkeep;
use super::group_commit::{begin_group, send_commit};
use super::log::{self, LogEntry, LogHead, NewLogEntry};
use super::log_throttle::LogThrottle;
use super::sync_clock::sync_clock;
use super::write_group::{CommitFailure, GroupError, WriteGroup};
use super::write_request::{WriteReply, WriteRequest, WriteTask};
use super::write_txn::{HubSettings, WriteTxn};
use super::writer_connection::WriterConnection;
use super::writer_thread::spawn_writer_thread;
use super::{DatabaseUrl, DbError, LogSeq, migrations, postgres};
use crate::limits;
use crate::{Clock, Result};
use chorus_wire::Error;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Sends write requests to the writer thread.
pub(super) struct WriterHandle {
    requests: std::sync::Mutex<Option<mpsc::Sender<WriteRequest>>>,
    stopped: tokio::sync::Mutex<Option<oneshot::Receiver<()>>>,
    /// The last sequence in the participant index, as far as this hub knows.
    pub indexed_seq: Arc<AtomicI64>,
    pub settings: Arc<OnceLock<HubSettings>>,
}

impl WriterHandle {
    fn enqueue_request(&self, request: WriteRequest) -> Result<()> {
        let requests = self
            .requests
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .clone();
        let requests = requests.ok_or_else(|| Error::unavailable("the store is closed"))?;
        requests
            .try_send(request)
            .map_err(|_| Error::unavailable("the write queue is full or the writer has ended"))
    }

    pub async fn write(&self, work: Box<dyn ErasedWrite>) -> WriteReply {
        let (reply_to, reply) = oneshot::channel();
        self.enqueue_request(WriteRequest::Work(WriteTask::new(work, reply_to)))?;
        reply
            .await
            .unwrap_or_else(|_| Err(Error::unavailable("the writer ended before it answered")))
    }

    pub async fn append_entry(&self, entry: NewLogEntry) -> Result<LogEntry> {
        let (reply_to, reply) = oneshot::channel();
        self.enqueue_request(WriteRequest::Append(entry, reply_to))?;
        reply
            .await
            .unwrap_or_else(|_| Err(Error::unavailable("the writer ended before it answered")))
    }

    pub fn is_closed(&self) -> bool {
        self.requests
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .is_none()
    }

    pub async fn close(&self) {
        drop(
            self.requests
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .take(),
        );
        if let Some(stopped) = self.stopped.lock().await.take() {
            let _ = stopped.await;
        }
    }
}

/// Starts the writer thread, which opens and migrates the database. Returns when it is open.
pub(super) async fn start_writer(
    database_url: DatabaseUrl,
    lost_entries: bool,
    clock: Clock,
    publisher: Arc<dyn EntryPublisher>,
) -> std::result::Result<(WriterHandle, u32), DbError> {
    let (requests, queue) = mpsc::channel(limits::WRITE_QUEUE_REQUESTS);
    let (opened, ready) = oneshot::channel();
    let (stop, stopped) = oneshot::channel();
    let handle_indexed_seq = Arc::<AtomicI64>::default();
    let indexed_seq = handle_indexed_seq.clone();
    let handle_settings = Arc::<OnceLock<HubSettings>>::default();
    let settings = handle_settings.clone();
    let needs_reactor = matches!(database_url, DatabaseUrl::Postgres(_));
    let is_simulated = matches!(database_url, DatabaseUrl::Simulated(_));
    let open_and_run = move || async move {
        let exclusive = publisher.cluster_peers().is_none();
        match open_database(&database_url, lost_entries, &clock, exclusive).await {
            Ok((connection, head, salt)) => {
                indexed_seq.store(head.indexed_seq.0, Ordering::Release);
                let file_upkeep = match &database_url {
                    DatabaseUrl::Sqlite(file) => {
                        Some(FileUpkeep::start(file, clock.monotonic_now()))
                    }
                    DatabaseUrl::Postgres(_) | DatabaseUrl::Simulated(_) => None,
                };
                let _ = opened.send(Ok(salt));
                let writer = StoreWriter {
                    connection,
                    head,
                    published_seq: head.seq,
                    last_log_read: clock.monotonic_now(),
                    commit_sent: false,
                    indexed_seq,
                    settings,
                    clock,
                    publisher,
                    file_upkeep,
                    failure_log: LogThrottle::default(),
                    pending_replies: tokio::task::JoinSet::new(),
                };
                writer.run_writer(queue).await;
            }
            Err(error) => drop(opened.send(Err(error))),
        }
        let _ = stop.send(());
    };
    if is_simulated {
        tokio::task::spawn_local(open_and_run());
    } else {
        spawn_writer_thread(needs_reactor, open_and_run)?;
    }
    let salt = ready.await.unwrap_or_else(|_| {
        Err(DbError::Unavailable(
            "the writer thread ended at once".into(),
        ))
    })?;
    Ok((
        WriterHandle {
            requests: Some(requests).into(),
            stopped: Some(stopped).into(),
            indexed_seq: handle_indexed_seq,
            settings: handle_settings,
        },
        salt,
    ))
}

async fn open_database(
    database_url: &DatabaseUrl,
    lost_entries: bool,
    clock: &Clock,
    exclusive: bool,
) -> std::result::Result<(WriterConnection, LogHead, u32), DbError> {
    let mut connection = WriterConnection::open(database_url, exclusive).await?;
    let _turn = match connection.simulated() {
        Some(database) => Some(database.group_lock().lock_owned().await),
        None => None,
    };
    let tx = connection.ensure_connected().await?;
    sync_clock(clock, &tx).await?;
    migrations::run_migrations(&tx, clock.now().0).await?;
    if super::stopped_database::advance_shortened_log(&tx, lost_entries).await? {
        tracing::info!("new ids continue after all that clients may have seen");
    }
    let salt = super::counters::load_trace_salt(&tx).await?;
    let head = log::read_head(&tx).await?;
    Ok((connection, head, salt))
}

/// The one writer of a store, on a thread of its own.
pub(super) struct StoreWriter {
    pub(super) connection: WriterConnection,
    head: LogHead,
    /// The last sequence that was published to the streams of this hub.
    published_seq: LogSeq,
    /// When the log was last read for entries of peers.
    last_log_read: Duration,
    /// Whether the commit of the last group was sent.
    pub(super) commit_sent: bool,
    indexed_seq: Arc<AtomicI64>,
    settings: Arc<OnceLock<HubSettings>>,
    clock: Clock,
    publisher: Arc<dyn EntryPublisher>,
    file_upkeep: Option<FileUpkeep>,
    failure_log: LogThrottle,
    /// Replies that wait until peers have said which entries their streams took.
    pending_replies: tokio::task::JoinSet<()>,
}

/// The outcome of a committed group.
pub(super) struct CommittedGroup {
    /// Entries that peers wrote before the group and that are not yet published to the streams of this hub.
    peer_entries: Vec<LogEntry>,
    entries: Vec<LogEntry>,
    /// False when the entries before the group could not be read: then the next read of the log publishes the group.
    in_order: bool,
}

impl StoreWriter {
    async fn run_writer(mut self, mut queue: mpsc::Receiver<WriteRequest>) {
        let mut group = WriteGroup::default();
        while self.wait_for_requests(&mut queue, &mut group).await {
            if group.is_empty() {
                self.publish_peer_entries().await;
                continue;
            }
            let committed = match &self.connection {
                WriterConnection::Sqlite(_) => match self.check_file() {
                    Ok(()) => self.commit_with_retry(&mut group).await,
                    Err(cause) => Err(GroupError::rejected_with(cause)),
                },
                WriterConnection::Postgres { .. } | WriterConnection::Simulated(_) => {
                    self.commit_with_timeout(&mut group).await
                }
            };
            match committed {
                Ok(committed) => {
                    self.publish_and_answer(committed, &mut group);
                    self.maintain_file();
                }
                Err(error) => self.refuse_group(error, &mut group),
            }
            // Also under load, because only this read synchronises the clock.
            if self.publisher.cluster_peers().is_some()
                && self.clock.monotonic_now() >= self.last_log_read + limits::CLOCK_SYNC_INTERVAL
            {
                self.publish_peer_entries().await;
            }
        }
        // Every committed request gets its reply before the writer ends.
        while self.pending_replies.join_next().await.is_some() {}
    }

    /// Whether the database file may take more.
    fn check_file(&self) -> std::result::Result<(), DbError> {
        self.file_upkeep
            .as_ref()
            .map_or(Ok(()), FileUpkeep::check_space)
    }

    /// After the answers, which do not depend on it: a checkpoint may take a while.
    fn maintain_file(&mut self) {
        if let (WriterConnection::Sqlite(connection), Some(upkeep)) =
            (&self.connection, &mut self.file_upkeep)
        {
            upkeep.on_group_committed(connection, self.clock.monotonic_now());
        }
    }

    /// Answers the requests of a group that was not committed.
    fn refuse_group(&mut self, error: GroupError, group: &mut WriteGroup) {
        let GroupError { failure, cause } = error;
        let now = self.clock.monotonic_now();
        if let Some(refused) = self.failure_log.admit(&cause.to_string(), now) {
            tracing::error!(%cause, ?failure, refused, "a write group was not committed");
        }
        // A hub with peers reads the log on from its last published sequence, so it needs no resync.
        if failure == CommitFailure::OutcomeUnknown && self.publisher.cluster_peers().is_none() {
            self.publisher.resync_streams();
        }
        if let (WriterConnection::Sqlite(connection), Some(upkeep)) =
            (&self.connection, &mut self.file_upkeep)
        {
            upkeep.on_group_failed(connection, &cause, now);
        }
        group.send_replies(&[], Some(&Error::unavailable(cause)));
    }

    /// Waits for requests. Returns with an empty group when the log should be read for entries of peers, and false when the queue
    /// is closed.
    async fn wait_for_requests(
        &self,
        queue: &mut mpsc::Receiver<WriteRequest>,
        group: &mut WriteGroup,
    ) -> bool {
        let Some(peers) = self.publisher.cluster_peers() else {
            return group.receive_requests(queue).await > 0;
        };
        tokio::select! {
            biased;
            count = group.receive_requests(queue) => count > 0,
            () = peers.peer_commit_notify().notified() => true,
            // Invariant 4: a lost notification delays the entries of peers and loses none.
            () = tokio::time::sleep(limits::LOG_POLL_INTERVAL) => true,
        }
    }

    /// Publishes the committed entries to the streams in log order, then replies to the requests.
    fn publish_and_answer(&mut self, committed: CommittedGroup, group: &mut WriteGroup) {
        let CommittedGroup {
            mut peer_entries,
            mut entries,
            in_order,
        } = committed;
        if !in_order {
            return group.send_replies(&entries, None);
        }
        for entry in peer_entries.iter_mut().chain(&mut entries) {
            entry.accepted = self.publisher.publish_entry(entry);
            self.published_seq = entry.seq;
        }
        let Some(peers) = self.publisher.cluster_peers() else {
            return group.send_replies(&entries, None);
        };
        peers.on_log_published(self.published_seq, &peer_entries);
        if entries.is_empty() {
            return group.send_replies(&entries, None);
        }
        let peer_acceptance = peers.announce_commit(self.head.seq, &entries);
        let mut group = std::mem::take(group);
        // The next group does not wait for the answers of peers to this one.
        while self.pending_replies.try_join_next().is_some() {}
        self.pending_replies.spawn(async move {
            let accepted_seqs = peer_acceptance.await;
            entries
                .iter_mut()
                .for_each(|entry| entry.accepted |= accepted_seqs.contains(&entry.seq));
            group.send_replies(&entries, None);
        });
    }

    /// Publishes the entries that peers wrote to the streams of this hub.
    async fn publish_peer_entries(&mut self) {
        self.last_log_read = self.clock.monotonic_now();
        let reading = async {
            loop {
                let tx = self.connection.ensure_connected().await?;
                let mut page =
                    log::list_all_after(&tx, self.published_seq, limits::WRITE_GROUP_REQUESTS)
                        .await?;
                for entry in &mut page {
                    entry.accepted = self.publisher.publish_entry(entry);
                    self.published_seq = entry.seq;
                }
                if let Some(peers) = self.publisher.cluster_peers() {
                    peers.on_log_published(self.published_seq, &page);
                }
                if page.len() < limits::WRITE_GROUP_REQUESTS {
                    let head = log::read_head(&tx).await?;
                    self.indexed_seq
                        .store(head.indexed_seq.0, Ordering::Release);
                    return sync_clock(&self.clock, &tx).await;
                }
            }
        };
        match tokio::time::timeout(postgres::RESPONSE_TIMEOUT, reading).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, "reading the log for entries of peers failed; it will be retried");
                tokio::time::sleep(limits::LOG_POLL_INTERVAL).await;
            }
            Err(_) => self.connection.disconnect(),
        }
    }

    /// Runs a group once, in one transaction, and commits it.
    pub(super) async fn commit_group(
        &mut self,
        group: &mut WriteGroup,
        is_last_attempt: bool,
    ) -> std::result::Result<CommittedGroup, GroupError> {
        self.commit_sent = false;
        let has_peers = self.publisher.cluster_peers().is_some();
        let simulated = self.connection.simulated();
        let _turn = match &simulated {
            Some(database) => Some(database.group_lock().lock_owned().await),
            None => None,
        };
        let tx = self
            .connection
            .ensure_connected()
            .await
            .map_err(GroupError::rejected_with)?;
        // A fault of an earlier read of the log does not count for this group.
        let _ = tx.take_fault();
        let head = match begin_group(&tx, self.head, simulated.as_deref()).await {
            Ok(head) => head,
            Err(error) => {
                let failed = GroupError::classify_failure(&tx, false, error);
                // The transaction may be open; without a rollback the connection refuses all further statements.
                let _ = tx.control_transaction("rollback").await;
                return Err(failed);
            }
        };
        if head.seq != self.head.seq && !has_peers {
            self.publisher.resync_streams();
        }
        let previous_seq = head.seq;
        let now = self.clock.now();
        let settings = self.settings.get();
        let mut txn = WriteTxn::new(tx, head, now, &*self.publisher, settings);
        let result = match group.run_requests(&mut txn, is_last_attempt).await {
            Ok(()) => {
                self.commit_sent = true;
                send_commit(&txn.tx, &txn.counter_deltas, simulated.as_deref()).await
            }
            Err(error) => Err(GroupError::classify_failure(&txn.tx, false, error)),
        };
        let WriteTxn {
            tx, head, entries, ..
        } = txn;
        if let Err(failed) = result {
            // The error of the group is the one to report; a lost connection has rolled back by itself.
            let _ = tx.control_transaction("rollback").await;
            return Err(failed);
        }
        self.head = head;
        self.indexed_seq
            .store(head.indexed_seq.0, Ordering::Release);
        if !has_peers {
            return Ok(CommittedGroup {
                peer_entries: Vec::new(),
                entries,
                in_order: true,
            });
        }
        let peer_entries = log::list_entries_between(&tx, self.published_seq, previous_seq).await;
        if let Err(error) = &peer_entries {
            tracing::warn!(%error, "reading the entries that peers wrote before the group failed");
            self.publisher.resync_streams();
        }
        Ok(CommittedGroup {
            in_order: peer_entries.is_ok(),
            peer_entries: peer_entries.unwrap_or_default(),
            entries,
        })
    }
}
