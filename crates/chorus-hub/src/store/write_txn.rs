//! The write transaction that a write request works in: SQL, new log entries, counters and cache invalidations.

use super::cache_invalidation::CacheInvalidation;
use super::counters::CounterDeltas;
use super::entry_publisher::EntryPublisher;
use super::log::{self, DeliveryState, EntryKind, LogEntry, LogHead, NewLogEntry, SharedPart};
use super::{DbConnection, DbError, LogSeq, SubjectId};
use crate::Result;
use crate::clock_watch::{ClockWatch, ExpiryClock};
use crate::seal::SealKey;
use crate::telemetry::SpanContext;
use chorus_wire::{Error, secret::Secret, time::UnixMicros, usage::QuotaBounds};
use serde::Serialize;
use std::sync::Arc;

/// Settings of the hub that write requests need.
#[derive(Clone, Debug)]
pub(crate) struct HubSettings {
    /// The public base URL of the hub, without a trailing slash.
    pub public_url: String,
    /// the turn limit, i.e. agent-to-agent steps that may follow a person's message.
    pub agent_turns: u32,
    /// Seals the credentials of channel deliveries (D-105); a store without a hub has none.
    pub seal_key: Option<Arc<SealKey>>,
    /// what each owner may have.
    pub quotas: QuotaBounds,
    /// Notices leaps of the clock (D-123); a store without a hub has none.
    pub clock_watch: Option<Arc<ClockWatch>>,
}

/// The group's transaction, as a write request sees it.
pub(crate) struct WriteTxn<'t> {
    pub tx: DbConnection<'t>,
    pub counter_deltas: CounterDeltas,
    pub(super) head: LogHead,
    pub(super) entries: Vec<LogEntry>,
    now: UnixMicros,
    /// How many of `entries` have been inserted into the table.
    inserted_count: usize,
    publisher: &'t dyn EntryPublisher,
    settings: &'t HubSettings,
    /// What the answer of the running request is made of, as JSON.
    kept_result: Option<Secret>,
    /// The span of the running request, which what it enqueues belongs to.
    span_context: Option<SpanContext>,
}

impl<'t> WriteTxn<'t> {
    pub(super) fn new(
        tx: DbConnection<'t>,
        head: LogHead,
        now: UnixMicros,
        publisher: &'t dyn EntryPublisher,
        settings: Option<&'t HubSettings>,
    ) -> Self {
        let settings = settings.unwrap_or(&EMPTY_SETTINGS);
        Self {
            tx,
            counter_deltas: CounterDeltas::default(),
            head,
            entries: Vec::new(),
            now,
            inserted_count: 0,
            publisher,
            settings,
            kept_result: None,
            span_context: None,
        }
    }

    /// Keeps what the answer of the request is made of until the answer itself is stored.
    pub fn keep_result<T: Serialize>(&mut self, result: &T) -> Result<()> {
        let json = serde_json::to_string(result).map_err(Error::internal)?;
        self.kept_result = Some(Secret::new(json));
        Ok(())
    }

    pub(super) fn take_kept_result(&mut self) -> Option<Secret> {
        self.kept_result.take()
    }

    pub(super) fn set_span_context(&mut self, span_context: Option<SpanContext>) {
        self.span_context = span_context;
    }

    /// The span of the running request; `None` when its hub exports no traces.
    pub fn span_context(&self) -> Option<SpanContext> {
        self.span_context
    }

    /// What the request enqueues from here on has another cause than the request.
    pub fn leave_trace(&mut self) {
        self.span_context = None;
    }

    pub fn hub_settings(&self) -> &HubSettings {
        self.settings
    }

    /// The time of this group, the same for all its requests.
    pub fn now(&self) -> UnixMicros {
        self.now
    }

    /// Tells whether stored periods are over (D-123).
    pub fn expiry_clock(&self) -> ExpiryClock {
        match &self.settings.clock_watch {
            Some(clock_watch) => clock_watch.expiry_clock(),
            None => ExpiryClock::without_leap(self.now),
        }
    }

    /// Inserts the entries that are not in the table yet, together, because on PostgreSQL each single insert is a round trip.
    pub(super) async fn insert_pending_entries(&mut self) -> std::result::Result<(), DbError> {
        log::insert_entries(&self.tx, &self.entries[self.inserted_count..]).await?;
        self.inserted_count = self.entries.len();
        Ok(())
    }

    /// Restores the state of a snapshot; the caller rolls the database back.
    pub(super) fn restore_snapshot(&mut self, snapshot: TxnSnapshot) {
        let TxnSnapshot {
            entry_count,
            head,
            counter_deltas,
        } = snapshot;
        self.entries.truncate(entry_count);
        self.head = head;
        self.counter_deltas = counter_deltas;
    }

    pub(super) fn take_snapshot(&self) -> TxnSnapshot {
        TxnSnapshot {
            entry_count: self.entries.len(),
            head: self.head,
            counter_deltas: self.counter_deltas.clone(),
        }
    }

    /// The last sequence in the participant index.
    pub fn indexed_seq(&self) -> LogSeq {
        self.head.indexed_seq
    }

    /// Appends a cache invalidation for the peers; a hub without peers needs none.
    pub fn invalidate_caches(&mut self, invalidation: &CacheInvalidation) {
        if self.publisher.cluster_peers().is_some() && !invalidation.is_empty() {
            self.append_entry(NewLogEntry {
                subject: SubjectId::HUB,
                subject_name: "".into(),
                kind: EntryKind::CacheInvalidation,
                actor: SubjectId::HUB,
                actor_name: "".into(),
                body: invalidation.to_json().into(),
                fallback: None,
            });
        }
    }

    /// Whether an open stream of the subject takes its entries (D-06).
    pub fn has_draining_stream(&self, subject: SubjectId) -> bool {
        self.publisher.has_draining_stream(subject)
    }

    /// Appends an entry with the next sequence. It is inserted with the other entries of its group, and published after the commit.
    pub fn append_entry(&mut self, new: NewLogEntry) -> (LogSeq, UnixMicros) {
        let delivery = new.fallback.map(|fallback| {
            if self.has_draining_stream(new.subject) {
                DeliveryState::Sse
            } else {
                fallback
            }
        });
        if let Some(state) = delivery {
            self.counter_deltas.count_message(state);
        }
        let (seq, at) = self.head.allocate_seq(self.now);
        self.entries.push(LogEntry {
            seq,
            subject: new.subject,
            subject_name: new.subject_name,
            kind: new.kind,
            actor: new.actor,
            actor_name: new.actor_name,
            at,
            body: new.body,
            delivery,
            delivered_at: None,
            shown_at: None,
            shared: None,
            accepted: false,
        });
        (seq, at)
    }

    /// The same, for an entry whose body has a part that is stored once (D-108).
    pub fn append_sharing_entry(&mut self, new: NewLogEntry, part: SharedPart) {
        self.append_entry(new);
        if let Some(entry) = self.entries.last_mut() {
            entry.shared = Some(part);
        }
    }
}

/// The state of a transaction before a write request, for its rollback.
pub(super) struct TxnSnapshot {
    pub entry_count: usize,
    head: LogHead,
    counter_deltas: CounterDeltas,
}

/// Used until the hub has set its own settings.
static EMPTY_SETTINGS: HubSettings = HubSettings {
    public_url: String::new(),
    agent_turns: 0,
    seal_key: None,
    quotas: QuotaBounds::DEFAULT,
    clock_watch: None,
};
