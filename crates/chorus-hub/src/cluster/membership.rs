//! Membership: which peers are alive and which subjects have streams there. Every hub announces its own presence as heartbeats
//! and numbered deltas, and answers with all of it on request (D-95).

mod peer_sync;
mod peer_table;

use crate::bus::RequestError;
use crate::store::{AgentId, SubjectId};
pub(super) use peer_table::PeerTable;

use super::frame_stream::RegisteredFrames;
use super::lock_mutex;
use super::peer_client::PeerClient;
use super::progress_watch::ProgressWatch;
use super::protocol::{
    AgentSeen, Heartbeat, HubId, PeerRequest, PresenceDelta, PresencePage, SubjectPresence,
    WakerCount, encode_message,
};
use crate::clock::Clock;
use crate::identity::{AgentPresence, PresenceAnnouncer};
use crate::limits;
use bytes::Bytes;
use chorus_wire::reach::StreamReach;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use peer_table::PresenceTable;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hash};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;

/// The presence of this hub, and what it knows of its peers.
pub(super) struct Membership {
    client: Arc<PeerClient>,
    clock: Clock,
    agent_presence: Arc<AgentPresence>,
    registered_frames: RegisteredFrames,
    /// Open inbox streams of this hub, by subject.
    inbox_counts: Mutex<HashMap<SubjectId, InboxCounts>>,
    own_presence: Mutex<OwnPresence>,
    pending_changes: Mutex<PendingChanges>,
    change_wakeup: Notify,
    /// How many changes peers have been told.
    synced_changes: ProgressWatch<u64>,
}

/// The open inbox streams of one subject.
#[derive(Clone, Copy, Default)]
struct InboxCounts {
    streams: u32,
    /// Those whose reader wakes a session.
    wakers: u32,
}

/// Changes that peers have not been told.
#[derive(Default)]
struct PendingChanges {
    subjects: HashSet<SubjectId>,
    agents_seen: HashMap<AgentId, Option<Duration>>,
    /// How many changes there were, told or not.
    change_count: u64,
}

/// The presence of this hub as peers have been told it, and the number of the last delta.
#[derive(Default)]
struct OwnPresence {
    table: PresenceTable,
    delta_number: u64,
}

impl OwnPresence {
    fn record_changes(&mut self, presences: &[SubjectPresence], wakers: &[WakerCount]) -> u64 {
        self.table.set_presences(presences, wakers);
        self.delta_number += 1;
        self.delta_number
    }
}

fn count_waker(reach: StreamReach) -> u32 {
    match reach {
        StreamReach::Wakes => 1,
        StreamReach::Turns => 0,
    }
}

/// Removes up to `limit` entries, in no particular order.
fn drain_some<K: Copy + Eq + Hash, V, S: BuildHasher>(
    map: &mut HashMap<K, V, S>,
    limit: usize,
) -> Vec<(K, V)> {
    let keys: Vec<K> = map.keys().take(limit).copied().collect();
    keys.into_iter()
        .filter_map(|key| map.remove_entry(&key))
        .collect()
}

impl Membership {
    pub fn new(
        client: Arc<PeerClient>,
        clock: Clock,
        agent_presence: Arc<AgentPresence>,
        registered_frames: RegisteredFrames,
    ) -> Self {
        Self {
            client,
            clock,
            agent_presence,
            registered_frames,
            inbox_counts: Mutex::default(),
            own_presence: Mutex::default(),
            pending_changes: Mutex::default(),
            change_wakeup: Notify::new(),
            synced_changes: ProgressWatch::new(0),
        }
    }

    pub fn peers(&self) -> &PeerTable {
        &self.client.peers
    }

    pub fn inbox_count(&self, subject: SubjectId) -> u32 {
        self.inbox_counts(subject).streams
    }

    fn inbox_counts(&self, subject: SubjectId) -> InboxCounts {
        lock_mutex(&self.inbox_counts)
            .get(&subject)
            .copied()
            .unwrap_or_default()
    }

    pub fn add_inbox(&self, subject: SubjectId, reach: StreamReach) {
        let mut inbox_counts = lock_mutex(&self.inbox_counts);
        let counts = inbox_counts.entry(subject).or_default();
        counts.streams += 1;
        counts.wakers += count_waker(reach);
        drop(inbox_counts);
        self.mark_changed(subject);
    }

    pub fn remove_inbox(&self, subject: SubjectId, reach: StreamReach) {
        if let Entry::Occupied(mut entry) = lock_mutex(&self.inbox_counts).entry(subject) {
            let counts = entry.get_mut();
            counts.streams -= 1;
            counts.wakers -= count_waker(reach);
            if counts.streams == 0 {
                entry.remove();
            }
        }
        self.mark_changed(subject);
    }

    /// Streams or frame sessions of the subject were opened or closed here.
    pub fn mark_changed(&self, subject: SubjectId) {
        let mut changes = lock_mutex(&self.pending_changes);
        changes.subjects.insert(subject);
        changes.change_count += 1;
        drop(changes);
        self.change_wakeup.notify_one();
    }

    /// Completes when peers have been told every change so far, or do not answer in time.
    pub fn wait_synced(&self) -> impl Future<Output = ()> + Send + '_ {
        let count = lock_mutex(&self.pending_changes).change_count;
        async move {
            if !self.peers().is_empty() {
                let _ = tokio::time::timeout(
                    limits::PEER_REQUEST_TIMEOUT,
                    self.synced_changes.wait_for(count),
                )
                .await;
            }
        }
    }

    fn own_heartbeat(&self) -> Heartbeat {
        let own = lock_mutex(&self.own_presence);
        own.table
            .build_heartbeat(self.client.hub_id, own.delta_number)
    }

    /// A page of this hub's presence, for a peer that fetches all of it.
    pub fn build_presence_page(&self, after: SubjectId) -> PresencePage {
        let own = lock_mutex(&self.own_presence);
        let presences = own.table.list_after(after, limits::PEER_MESSAGE_ITEMS);
        PresencePage {
            delta_number: own.delta_number,
            wakers: own.table.list_wakers(&presences),
            presences,
        }
    }

    /// A page of the agents that this hub has seen, for a peer that starts.
    pub fn list_agents_seen(&self, after: AgentId) -> Vec<AgentSeen> {
        let now = self.clock.monotonic_now();
        self.agent_presence
            .list_seen(after, limits::PEER_MESSAGE_ITEMS, now)
    }

    /// Sends the pending changes, one delta at a time: peers receive them in order, and changes meanwhile go into the next one.
    pub async fn send_deltas(self: Arc<Self>) {
        loop {
            let (delta, change_count) = self.collect_delta();
            if let Some(delta) = delta {
                self.send_to_peers(encode_message(&PeerRequest::ApplyDelta(delta)))
                    .await;
            }
            if let Some(change_count) = change_count {
                self.synced_changes.advance_to(change_count);
                if lock_mutex(&self.pending_changes).change_count == change_count {
                    self.change_wakeup.notified().await;
                }
            }
        }
    }

    /// The next delta, if there is one; and the number of changes that are told with it, if those are all.
    fn collect_delta(&self) -> (Option<PresenceDelta>, Option<u64>) {
        let mut changes = lock_mutex(&self.pending_changes);
        let subjects: Vec<SubjectId> = changes
            .subjects
            .iter()
            .take(limits::PEER_MESSAGE_ITEMS)
            .copied()
            .collect();
        for subject in &subjects {
            changes.subjects.remove(subject);
        }
        let agents_seen = drain_some(&mut changes.agents_seen, limits::PEER_MESSAGE_ITEMS);
        let change_count = (changes.subjects.is_empty() && changes.agents_seen.is_empty())
            .then_some(changes.change_count);
        drop(changes);
        if subjects.is_empty() && agents_seen.is_empty() {
            return (None, change_count);
        }
        let presences: Vec<SubjectPresence> = subjects
            .into_iter()
            .map(|subject| self.local_presence(subject))
            .collect();
        let wakers: Vec<WakerCount> = presences
            .iter()
            .map(|presence| (presence.0, self.inbox_counts(presence.0).wakers))
            .filter(|(_, wakers)| *wakers > 0)
            .collect();
        let now = self.clock.monotonic_now();
        let micros_ago =
            |at: Option<Duration>| at.map_or(-1, |at| now.saturating_sub(at).as_micros() as i64);
        let agents_seen = agents_seen
            .into_iter()
            .map(|(agent, at)| (agent, micros_ago(at)))
            .collect();
        let number = lock_mutex(&self.own_presence).record_changes(&presences, &wakers);
        let delta = PresenceDelta {
            hub: self.client.hub_id,
            number,
            presences,
            wakers,
            agents_seen,
        };
        (Some(delta), change_count)
    }

    /// The streams and frame sessions of a subject on this hub.
    fn local_presence(&self, subject: SubjectId) -> SubjectPresence {
        let handler = self.registered_frames.handler();
        let session_count = handler.map_or(0, |handler| handler.session_count(subject.as_agent()));
        (subject, self.inbox_count(subject), session_count)
    }

    /// Sends to every peer and waits for each answer. A peer that did not answer in time is late, and not waited for again.
    async fn send_to_peers(&self, payload: Bytes) {
        let send = |(hub, punctual): (HubId, bool)| {
            let payload = payload.clone();
            async move {
                if !punctual {
                    self.client.publish_to(hub, payload).await;
                } else if self.client.request_peer(hub, payload).await == Err(RequestError::Timeout)
                {
                    self.peers().set_late(hub, true);
                }
            }
        };
        join_all(self.peers().peer_punctuality().into_iter().map(send)).await;
    }
}

impl PresenceAnnouncer for Membership {
    fn announce_agent_seen(&self, agent: AgentId, seen_at: Option<Duration>) {
        let mut changes = lock_mutex(&self.pending_changes);
        changes.agents_seen.insert(agent, seen_at);
        changes.change_count += 1;
        drop(changes);
        self.change_wakeup.notify_one();
    }

    fn wait_announced(&self) -> BoxFuture<'_, ()> {
        self.wait_synced().boxed()
    }
}
