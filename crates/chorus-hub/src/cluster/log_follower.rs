//! The log follower: reads entries that peers committed, and answers which of them a local stream accepted (D-80).

use super::lock_mutex;
use super::peer_client::PeerClient;
use super::progress_watch::ProgressWatch;
use super::protocol::{HubId, PeerAnnouncement, PeerRequest, decode_message, encode_message};
use crate::limits;
use crate::store::{ClusterPeers, DeliveryState, EntryKind, LogEntry, LogSeq, Store};
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// Max sequences of peers' entries that are remembered as accepted by a local stream: many write groups of all peers.
const MAX_ACCEPTED_SEQS: usize = 16_384;

/// How far this hub has read the log. The store's writer does the reading; this type wakes it and records the result.
pub(super) struct LogFollower {
    client: Arc<PeerClient>,
    /// Weak, because the store's writer holds the follower.
    store: OnceLock<Weak<Store>>,
    /// Notified when a peer has committed.
    wakeup: Notify,
    followed_seq: ProgressWatch<LogSeq>,
    followed_at: Mutex<Instant>,
    /// Sorted: entries are published in sequence order.
    accepted_seqs: Mutex<VecDeque<LogSeq>>,
}

impl LogFollower {
    pub fn new(client: Arc<PeerClient>) -> Self {
        Self {
            client,
            store: OnceLock::new(),
            wakeup: Notify::new(),
            followed_seq: ProgressWatch::new(LogSeq::START),
            followed_at: Mutex::new(Instant::now()),
            accepted_seqs: Mutex::default(),
        }
    }

    pub fn init_from_store(&self, store: &Arc<Store>, newest_seq: LogSeq) {
        let _ = self.store.set(Arc::downgrade(store));
        self.followed_seq.advance_to(newest_seq);
    }

    /// A peer announced that the log has grown up to this sequence.
    pub fn handle_growth(&self, log_seq: LogSeq) {
        if log_seq > self.followed_seq.reached() {
            self.wakeup.notify_one();
        }
    }

    /// A new connection may have missed announcements, so that the log is read at once.
    pub async fn wake_on_connect(self: Arc<Self>, mut connects: watch::Receiver<u64>) {
        while connects.changed().await.is_ok() {
            self.wakeup.notify_one();
        }
    }

    /// Which of these entries a local stream accepted; known once the log is read up to `log_seq`.
    pub async fn answer_accepted_seqs(&self, log_seq: LogSeq, seqs: Vec<LogSeq>) -> Bytes {
        if self.followed_seq.reached() < log_seq {
            self.wakeup.notify_one();
            self.followed_seq.wait_for(log_seq).await;
        }
        let accepted_seqs = lock_mutex(&self.accepted_seqs);
        let is_accepted = |seq: &LogSeq| accepted_seqs.binary_search(seq).is_ok();
        encode_message(
            &seqs
                .into_iter()
                .filter(is_accepted)
                .collect::<Vec<LogSeq>>(),
        )
    }

    /// Marks messages as delivered that a local stream accepted, although their sender recorded them as queued.
    fn mark_delivered(&self, seqs: Vec<LogSeq>) {
        if let Some(store) = self.store.get().and_then(Weak::upgrade) {
            store.mark_delivered(seqs);
        }
    }
}

impl ClusterPeers for LogFollower {
    fn peer_commit_notify(&self) -> &Notify {
        &self.wakeup
    }

    fn is_caught_up(&self) -> bool {
        lock_mutex(&self.followed_at).elapsed() < limits::LOG_POLL_STALE_AFTER
    }

    fn on_log_published(&self, last_seq: LogSeq, peer_entries: &[LogEntry]) {
        let accepted: Vec<&LogEntry> = peer_entries.iter().filter(|entry| entry.accepted).collect();
        if !accepted.is_empty() {
            let mut accepted_seqs = lock_mutex(&self.accepted_seqs);
            accepted_seqs.extend(accepted.iter().map(|entry| entry.seq));
            let excess = accepted_seqs.len().saturating_sub(MAX_ACCEPTED_SEQS);
            accepted_seqs.drain(..excess);
        }
        let queued: Vec<LogSeq> = accepted
            .iter()
            .filter(|entry| entry.delivery == Some(DeliveryState::Queued))
            .map(|entry| entry.seq)
            .collect();
        if !queued.is_empty() {
            self.mark_delivered(queued);
        }
        *lock_mutex(&self.followed_at) = Instant::now();
        self.followed_seq.advance_to(last_seq);
    }

    fn announce_commit(
        &self,
        last_seq: LogSeq,
        entries: &[LogEntry],
    ) -> BoxFuture<'static, Vec<LogSeq>> {
        let peers = &self.client.peers;
        let mut seqs_by_hub: BTreeMap<HubId, Vec<LogSeq>> = BTreeMap::new();
        for entry in entries {
            if entry.kind == EntryKind::CacheInvalidation {
                for hub in peers.peer_ids() {
                    seqs_by_hub.entry(hub).or_default();
                }
            } else if entry.delivery.is_some() && !entry.accepted {
                for hub in peers.hubs_with_stream(entry.subject) {
                    seqs_by_hub.entry(hub).or_default().push(entry.seq);
                }
            }
        }
        request_accepted_seqs(self.client.clone(), last_seq, seqs_by_hub).boxed()
    }
}

/// Which of these entries streams of peers accepted. A peer that answers has also applied the cache invalidations among them.
async fn request_accepted_seqs(
    client: Arc<PeerClient>,
    log_seq: LogSeq,
    seqs_by_hub: BTreeMap<HubId, Vec<LogSeq>>,
) -> Vec<LogSeq> {
    client
        .announce(&PeerAnnouncement::Grew(client.hub_id, log_seq))
        .await;
    let requests = seqs_by_hub.into_iter().map(|(hub, seqs)| {
        let request = PeerRequest::AcceptedEntries {
            upto: log_seq,
            seqs,
        };
        client.request_peer(hub, encode_message(&request))
    });
    let answers = join_all(requests).await;
    answers
        .into_iter()
        .flatten()
        .filter_map(|answer| decode_message::<Vec<LogSeq>>(&answer))
        .flatten()
        .collect()
}
