//! Who is where, as hubs tell one another: each says that it is there, what changes at it, and all of it to who asks.

use super::super::HubCallbacks;
use super::super::membership::PresenceTable;
use super::super::protocol::{
    AgentSeen, Heartbeat, HubId, PeerAnnouncement, PeerRequest, PresenceDelta, PresencePage,
    SubjectPresence, decode_message, encode_message,
};
use super::{ClusterNode, RequestError, hub_subject, lock_mutex};
use crate::delivery::LiveStreams;
use crate::identity::PresenceAnnouncer;
use bytes::Bytes;
use chorus_wire::limits;
use futures_util::future::{BoxFuture, join_all};
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hash};
use std::sync::Weak;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// How often a hub says that it is there.
const HEARTBEAT_INTERVAL: Duration = Duration::from_millis(500);
/// How long a hub that starts waits for the others to say that they are there, once the first one has.
const DISCOVERY_WAIT: Duration = Duration::from_millis(100);

/// What the others do not know yet.
#[derive(Default)]
pub(super) struct PendingChanges {
    pub subjects: HashSet<i64>,
    pub agents_seen: HashMap<i64, Option<Duration>>,
    /// How many changes there were.
    pub change_count: u64,
}

/// What this hub has said of itself, and in how many pieces of news.
#[derive(Default)]
pub(super) struct OwnPresence {
    table: PresenceTable,
    delta_number: u64,
}

impl OwnPresence {
    pub fn build_page(&self, after: i64) -> PresencePage {
        PresencePage {
            news: self.delta_number,
            places: self.table.list_after(after, limits::PEER_MESSAGE_ITEMS),
        }
    }

    fn record_changes(&mut self, presences: &[SubjectPresence]) -> u64 {
        presences
            .iter()
            .for_each(|presence| self.table.set_presence(*presence));
        self.delta_number += 1;
        self.delta_number
    }
}

/// Takes some of it out, whichever.
fn drain_some<K: Copy + Eq + Hash, V, S: BuildHasher>(
    map: &mut HashMap<K, V, S>,
    limit: usize,
) -> Vec<(K, V)> {
    let keys: Vec<K> = map.keys().take(limit).copied().collect();
    keys.into_iter()
        .filter_map(|key| map.remove_entry(&key))
        .collect()
}

impl PresenceAnnouncer for ClusterNode {
    fn announce_agent_seen(&self, agent: i64, seen_at: Option<Duration>) {
        let mut changes = lock_mutex(&self.pending_changes);
        changes.agents_seen.insert(agent, seen_at);
        changes.change_count += 1;
        drop(changes);
        self.change_wakeup.notify_one();
    }

    fn wait_announced(&self) -> BoxFuture<'_, ()> {
        self.wait_presence_synced()
    }
}

impl ClusterNode {
    pub(super) fn inbox_count(&self, subject: i64) -> u32 {
        lock_mutex(&self.inbox_counts)
            .get(&subject)
            .copied()
            .unwrap_or_default()
    }

    fn own_heartbeat(&self) -> Heartbeat {
        let own = lock_mutex(&self.own_presence);
        own.table.build_heartbeat(self.hub_id, own.delta_number)
    }

    /// Says that this hub is there, and waits a moment for the others to say the same.
    pub(super) async fn discover_peers(&self) {
        self.announce(&PeerAnnouncement::Here(self.own_heartbeat()))
            .await;
        let (deadline, mut quiet_rounds) = (Instant::now() + DISCOVERY_WAIT, 0);
        while Instant::now() < deadline && quiet_rounds < 3 {
            tokio::time::sleep(DISCOVERY_WAIT / 10).await;
            // Who answers is asked who listens there, and others may answer a little later.
            quiet_rounds = if self.peers.is_empty() || self.peers.is_syncing_any() {
                0
            } else {
                quiet_rounds + 1
            };
        }
    }

    pub(super) async fn run_heartbeat(
        weak_node: Weak<ClusterNode>,
        mut connects: watch::Receiver<u64>,
    ) {
        loop {
            let started_at = Instant::now();
            // A connection that was made anew has missed what was said meanwhile.
            let reconnected = tokio::time::timeout(HEARTBEAT_INTERVAL, connects.changed())
                .await
                .is_ok_and(|changed| changed.is_ok());
            let Some(node) = weak_node.upgrade() else {
                return;
            };
            if reconnected {
                node.log_wakeup.notify_one();
            }
            if started_at.elapsed() > HEARTBEAT_INTERVAL * 2 {
                node.peers.refresh_last_seen();
            }
            // Noticed here, whoever else asks.
            node.is_settled();
            node.peers.remove_silent_peers();
            metrics::gauge!("chorus_bus_up").set(f64::from(u8::from(node.is_connected())));
            metrics::gauge!("chorus_hubs_known").set(node.peer_count() as f64);
            node.announce(&PeerAnnouncement::Here(node.own_heartbeat()))
                .await;
            for (hub, _) in node
                .peers
                .peer_punctuality()
                .into_iter()
                .filter(|(_, punctual)| !punctual)
            {
                node.spawn_detached(Self::probe_late_peer(weak_node.clone(), hub));
            }
        }
    }

    /// A hub that was late is asked nothing, until it answers that.
    async fn probe_late_peer(weak_node: Weak<ClusterNode>, hub: HubId) {
        let Some(node) = weak_node.upgrade() else {
            return;
        };
        let empty_delta = PeerRequest::News(PresenceDelta {
            hub: node.hub_id,
            ..PresenceDelta::default()
        });
        if node
            .request_peer(hub, encode_message(&empty_delta))
            .await
            .is_ok()
        {
            node.peers.set_late(hub, false);
        }
    }

    /// Asks a hub whom it heard and who listens there; one that was not known is greeted then, so that it asks back.
    pub(super) async fn sync_peer(weak_node: Weak<ClusterNode>, hub: HubId, is_known: bool) {
        let Some(node) = weak_node.upgrade() else {
            return;
        };
        if !is_known {
            node.fetch_agents_seen(hub).await;
        }
        match node.fetch_presence(hub).await {
            Some((delta_number, presences)) => node.peers.finish_sync(hub, delta_number, presences),
            None => return node.peers.cancel_sync(hub),
        }
        if !is_known {
            node.announce(&PeerAnnouncement::Here(node.own_heartbeat()))
                .await;
        }
    }

    pub(super) fn apply_delta(&self, delta: PresenceDelta) {
        self.peers.apply_delta(&delta);
        for (agent, ago) in delta.heard {
            if let Some(callbacks) = self.hub_callbacks() {
                callbacks
                    .record_agent_seen(agent, u64::try_from(ago).ok().map(Duration::from_micros));
            }
        }
    }

    /// News of a hub that this one does not know yet.
    pub(super) async fn sync_then_apply(
        weak_node: Weak<ClusterNode>,
        delta: PresenceDelta,
    ) -> Bytes {
        let Some(node) = weak_node.upgrade() else {
            return Bytes::new();
        };
        if node.peers.begin_sync(delta.hub) {
            Self::sync_peer(weak_node, delta.hub, false).await;
        }
        while node.peers.is_syncing(delta.hub) {
            tokio::time::sleep(DISCOVERY_WAIT / 10).await;
        }
        node.apply_delta(delta);
        Bytes::new()
    }

    async fn fetch_presence(&self, hub: HubId) -> Option<(u64, Vec<SubjectPresence>)> {
        let (mut first_delta, mut presences) = (None, Vec::<SubjectPresence>::new());
        loop {
            let after = presences.last().map_or(i64::MIN, |presence| presence.0);
            let answer = self
                .request_peer(
                    hub,
                    encode_message(&PeerRequest::Places(self.hub_id, after)),
                )
                .await
                .ok()?;
            let page = decode_message::<PresencePage>(&answer)?;
            let delta_number = *first_delta.get_or_insert(page.news);
            let is_last = page.places.len() < limits::PEER_MESSAGE_ITEMS;
            presences.extend(page.places);
            if is_last {
                return Some((delta_number, presences));
            }
        }
    }

    /// who fell silent before this hub knew anybody is not there for it either.
    async fn fetch_agents_seen(&self, hub: HubId) {
        let Some(callbacks) = self.hub_callbacks() else {
            return;
        };
        let mut after = i64::MIN;
        loop {
            let Ok(answer) = self
                .request_peer(hub, encode_message(&PeerRequest::Heard(after)))
                .await
            else {
                return;
            };
            let Some(page) = decode_message::<Vec<AgentSeen>>(&answer) else {
                return;
            };
            for (agent, ago) in &page {
                callbacks.restore_agent_seen(
                    *agent,
                    u64::try_from(*ago).ok().map(Duration::from_micros),
                );
            }
            match page.last() {
                Some((agent, _)) if page.len() >= limits::PEER_MESSAGE_ITEMS => after = *agent,
                Some(_) | None => return,
            }
        }
    }

    /// One after the other, so that what is said last is also heard last; what gathers meanwhile goes out together.
    pub(super) async fn send_deltas(weak_node: Weak<ClusterNode>, (): ()) {
        loop {
            let Some(node) = weak_node.upgrade() else {
                return;
            };
            let (delta, change_count) = node.collect_delta();
            if let Some(delta) = delta {
                node.send_to_peers(encode_message(&PeerRequest::News(delta)))
                    .await;
            }
            if let Some(change_count) = change_count {
                node.synced_changes.send_replace(change_count);
                if lock_mutex(&node.pending_changes).change_count == change_count {
                    tokio::select! {
                        () = node.change_wakeup.notified() => {}
                        // So that a hub that is gone is not kept by its own news.
                        () = tokio::time::sleep(HEARTBEAT_INTERVAL) => {}
                    }
                }
            }
        }
    }

    /// The next news, if there are any; and up to which change everything is in them.
    fn collect_delta(&self) -> (Option<PresenceDelta>, Option<u64>) {
        let mut changes = lock_mutex(&self.pending_changes);
        let subjects: Vec<i64> = changes
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
        let session_count = |subject| {
            self.hub_callbacks()
                .map_or(0, |callbacks| callbacks.session_count(subject))
        };
        let presences: Vec<SubjectPresence> = subjects
            .into_iter()
            .map(|subject| (subject, self.inbox_count(subject), session_count(subject)))
            .collect();
        let now = self
            .hub_callbacks()
            .map(HubCallbacks::monotonic_now)
            .unwrap_or_default();
        let micros_ago =
            |at: Option<Duration>| at.map_or(-1, |at| now.saturating_sub(at).as_micros() as i64);
        let agents_seen = agents_seen
            .into_iter()
            .map(|(agent, at)| (agent, micros_ago(at)))
            .collect();
        let number = lock_mutex(&self.own_presence).record_changes(&presences);
        (
            Some(PresenceDelta {
                hub: self.hub_id,
                number,
                places: presences,
                heard: agents_seen,
            }),
            change_count,
        )
    }

    /// Tells all, and waits until they know: but for none twice that did not answer in time.
    async fn send_to_peers(&self, payload: Bytes) {
        let send = |(hub, punctual): (HubId, bool)| {
            let payload = payload.clone();
            async move {
                if !punctual {
                    self.publish_to(hub, payload).await;
                } else if self.request_peer(hub, payload).await == Err(RequestError::Timeout) {
                    self.peers.set_late(hub, true);
                }
            }
        };
        join_all(self.peers.peer_punctuality().into_iter().map(send)).await;
    }

    async fn publish_to(&self, hub: HubId, payload: Bytes) {
        if let Some(nats) = self.nats() {
            nats.publish(&hub_subject(hub), payload).await;
        }
    }
}
