//! The mesh as the store and the streams see it: entries are told here and asked about elsewhere, streams are counted everywhere.

use super::super::protocol::HubId;
use super::{ClusterNode, MAX_ACCEPTED_SEQS, lock_mutex};
use crate::delivery::{LiveStreams, StreamQueue, StreamTopic};
use crate::store::{ClusterPeers, DeliveryState, EntryKind, EntryPublisher, LogEntry};
use crate::stream_end::StreamEnd;
use chorus_wire::limits;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::collections::HashMap;
use std::collections::hash_map::Entry as Entries;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::time::Instant;

impl EntryPublisher for ClusterNode {
    fn has_draining_stream(&self, subject: i64) -> bool {
        self.live_streams.has_draining_stream(subject) || self.peers.is_online(subject)
    }

    fn publish_entry(&self, entry: &LogEntry) -> bool {
        if entry.kind == EntryKind::CacheInvalidation
            && let Some(callbacks) = self.hub_callbacks()
        {
            callbacks.invalidate_caches(&entry.body);
        }
        self.live_streams.publish_entry(entry)
    }

    fn resync_streams(&self) {
        self.live_streams.resync_streams();
    }

    fn cluster_peers(&self) -> Option<&dyn ClusterPeers> {
        Some(self)
    }
}

impl ClusterPeers for ClusterNode {
    fn is_caught_up(&self) -> bool {
        lock_mutex(&self.followed_at).elapsed() < limits::LOG_POLL_STALE_AFTER
    }

    fn peer_commit_notify(&self) -> &Notify {
        &self.log_wakeup
    }

    fn on_log_published(&self, last_seq: i64, peer_entries: &[LogEntry]) {
        let accepted: Vec<&LogEntry> = peer_entries.iter().filter(|entry| entry.accepted).collect();
        if !accepted.is_empty() {
            let mut accepted_seqs = lock_mutex(&self.accepted_seqs);
            accepted_seqs.extend(accepted.iter().map(|entry| entry.seq));
            let excess = accepted_seqs.len().saturating_sub(MAX_ACCEPTED_SEQS);
            accepted_seqs.drain(..excess);
        }
        // Its sender knew of no stream and calls it queued; it is delivered all the same.
        let queued: Vec<i64> = accepted
            .iter()
            .filter(|entry| entry.delivery == Some(DeliveryState::Queued))
            .map(|entry| entry.seq)
            .collect();
        if let Some(callbacks) = self.hub_callbacks()
            && !queued.is_empty()
        {
            callbacks.mark_delivered(queued);
        }
        *lock_mutex(&self.followed_at) = Instant::now();
        self.followed_seq
            .send_if_modified(|seq| std::mem::replace(seq, last_seq.max(*seq)) < last_seq);
    }

    fn announce_commit(&self, last_seq: i64, entries: &[LogEntry]) -> BoxFuture<'static, Vec<i64>> {
        let mut seqs_by_hub: HashMap<HubId, Vec<i64>> = HashMap::new();
        for entry in entries {
            if entry.kind == EntryKind::CacheInvalidation {
                for hub in self.peers.peer_ids() {
                    seqs_by_hub.entry(hub).or_default();
                }
            } else if entry.delivery.is_some() && !entry.accepted {
                self.peers
                    .hubs_with_stream(entry.subject)
                    .into_iter()
                    .for_each(|hub| seqs_by_hub.entry(hub).or_default().push(entry.seq));
            }
        }
        match self.weak_self.upgrade() {
            Some(node) => {
                async move { node.request_accepted_seqs(last_seq, seqs_by_hub).await }.boxed()
            }
            None => std::future::ready(Vec::new()).boxed(),
        }
    }
}

impl LiveStreams for ClusterNode {
    fn subscribe(&self, topic: StreamTopic, queue: Arc<StreamQueue>) -> Option<i64> {
        match topic {
            StreamTopic::Subject(subject) => {
                let open_streams =
                    self.inbox_count(subject) as usize + self.peers.subject_stream_count(subject);
                if open_streams >= limits::STREAMS_PER_SUBJECT {
                    return None;
                }
                let newest_seq = self.live_streams.subscribe(topic, queue)?;
                *lock_mutex(&self.inbox_counts).entry(subject).or_default() += 1;
                self.mark_presence_changed(subject);
                Some(newest_seq)
            }
            // Nobody asks who else is listening there.
            StreamTopic::Channel(_) | StreamTopic::Activity => {
                self.live_streams.subscribe(topic, queue)
            }
        }
    }

    fn unsubscribe(&self, topic: StreamTopic, queue: &Arc<StreamQueue>) {
        self.live_streams.unsubscribe(topic, queue);
        match topic {
            StreamTopic::Subject(subject) => {
                if let Entries::Occupied(mut count) = lock_mutex(&self.inbox_counts).entry(subject)
                {
                    *count.get_mut() -= 1;
                    if *count.get() == 0 {
                        count.remove();
                    }
                }
                self.mark_presence_changed(subject);
            }
            StreamTopic::Channel(_) | StreamTopic::Activity => {}
        }
    }

    fn is_online(&self, subject: i64) -> bool {
        self.live_streams.is_online(subject) || self.peers.is_online(subject)
    }

    fn stream_count(&self) -> usize {
        self.live_streams.stream_count() + self.peers.total_stream_count() as usize
    }

    fn end_streams(&self, subject: i64, reason: StreamEnd) {
        self.live_streams.end_streams(subject, reason);
    }

    fn drain_streams(&self) {
        self.live_streams.drain_streams();
    }

    fn is_draining(&self) -> bool {
        self.live_streams.is_draining()
    }

    fn mark_presence_changed(&self, subject: i64) {
        let mut changes = lock_mutex(&self.pending_changes);
        changes.subjects.insert(subject);
        changes.change_count += 1;
        drop(changes);
        self.change_wakeup.notify_one();
    }

    fn wait_presence_synced(&self) -> BoxFuture<'_, ()> {
        let count = lock_mutex(&self.pending_changes).change_count;
        async move {
            if !self.peers.is_empty() {
                let mut synced_changes = self.synced_changes.subscribe();
                let _ = tokio::time::timeout(
                    limits::PEER_REQUEST_TIMEOUT,
                    synced_changes.wait_for(|synced| *synced >= count),
                )
                .await;
            }
        }
        .boxed()
    }
}
