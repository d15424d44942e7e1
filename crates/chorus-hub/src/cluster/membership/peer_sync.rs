//! Heartbeats, and fetching the whole presence of a peer that is new or whose deltas were lost.

use super::super::protocol::{
    AgentSeen, Heartbeat, HubId, PeerAnnouncement, PeerRequest, PresenceDelta, PresencePage,
    SubjectPresence, decode_message, encode_message,
};
use super::Membership;
use crate::limits;
use crate::store::{AgentId, RowId, SubjectId};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How often a hub sends a heartbeat.
const HEARTBEAT_INTERVAL: Duration = Duration::from_millis(500);
/// How long a starting hub waits for the heartbeats of its peers after its own announcement.
const DISCOVERY_WAIT: Duration = Duration::from_millis(100);

impl Membership {
    /// Announces this hub and waits until the peers that answer are known.
    pub async fn discover_peers(&self) {
        self.announce_heartbeat().await;
        let deadline = Instant::now() + DISCOVERY_WAIT;
        let mut quiet_rounds = 0;
        while Instant::now() < deadline && quiet_rounds < 3 {
            tokio::time::sleep(DISCOVERY_WAIT / 10).await;
            // The presence of a peer that answered is being fetched, and other peers may answer later.
            quiet_rounds = if self.peers().is_empty() || self.peers().is_syncing_any() {
                0
            } else {
                quiet_rounds + 1
            };
        }
    }

    async fn announce_heartbeat(&self) {
        let heartbeat = PeerAnnouncement::Here(self.own_heartbeat());
        self.client.announce(&heartbeat).await;
    }

    /// Sends heartbeats and removes silent peers. Peers are told of a new connection at once.
    pub async fn run_heartbeat(self: Arc<Self>) {
        let Some(mut connects) = self.client.watch_connects() else {
            return;
        };
        loop {
            let started_at = Instant::now();
            let _ = tokio::time::timeout(HEARTBEAT_INTERVAL, connects.changed()).await;
            // This hub was suspended: the silence was its own.
            if started_at.elapsed() > HEARTBEAT_INTERVAL * 2 {
                self.peers().refresh_last_seen();
            }
            // Records a reconnect even when no request asks.
            self.client.is_settled();
            self.peers().remove_silent_peers();
            metrics::gauge!("chorus_bus_up").set(f64::from(u8::from(self.client.is_connected())));
            metrics::gauge!("chorus_hubs_known").set(self.peers().peer_ids().len() as f64);
            self.announce_heartbeat().await;
            for (hub, _) in self
                .peers()
                .peer_punctuality()
                .into_iter()
                .filter(|(_, punctual)| !punctual)
            {
                tokio::spawn(self.clone().probe_late_peer(hub));
            }
        }
    }

    /// Sends an empty delta to a late peer; its answer makes it punctual again.
    async fn probe_late_peer(self: Arc<Self>, hub: HubId) {
        let empty_delta = PeerRequest::ApplyDelta(PresenceDelta {
            hub: self.client.hub_id,
            ..PresenceDelta::default()
        });
        let answer = self.client.request_peer(hub, encode_message(&empty_delta));
        if answer.await.is_ok() {
            self.peers().set_late(hub, false);
        }
    }

    /// A peer is alive. Its presence is fetched when it is new or when deltas were lost.
    pub fn handle_heartbeat(self: &Arc<Self>, heartbeat: Heartbeat) {
        let is_known = self.peers().has_peer(heartbeat.hub);
        if self.peers().apply_heartbeat(heartbeat) && self.peers().begin_sync(heartbeat.hub) {
            let membership = self.clone();
            tokio::spawn(async move { membership.sync_peer(heartbeat.hub, is_known).await });
        }
    }

    /// Fetches the presence of a peer. To a new one this hub then sends its heartbeat, so that the peer fetches in turn.
    async fn sync_peer(&self, hub: HubId, is_known: bool) {
        if !is_known {
            self.fetch_agents_seen(hub).await;
        }
        match self.fetch_presence(hub).await {
            Some(fetched) => self.peers().finish_sync(hub, fetched),
            None => return self.peers().cancel_sync(hub),
        }
        if !is_known {
            self.announce_heartbeat().await;
        }
    }

    pub fn apply_delta(&self, delta: PresenceDelta) {
        self.peers().apply_delta(&delta);
        for (agent, micros_ago) in delta.agents_seen {
            match self.seen_at(micros_ago) {
                Some(seen_at) => self.agent_presence.record_seen_elsewhere(agent, seen_at),
                None => self
                    .agent_presence
                    .record_refusal(agent, self.clock.monotonic_now()),
            }
        }
    }

    /// When an agent was seen on this hub's clock; `None` for a refusal, which peers report as a negative time.
    fn seen_at(&self, micros_ago: i64) -> Option<Duration> {
        let ago = Duration::from_micros(u64::try_from(micros_ago).ok()?);
        Some(self.clock.monotonic_now().saturating_sub(ago))
    }

    /// Applies a delta of a peer that is not known yet, after fetching its presence.
    pub async fn sync_then_apply(self: &Arc<Self>, delta: PresenceDelta) {
        if self.peers().begin_sync(delta.hub) {
            let membership = self.clone();
            let hub = delta.hub;
            // On a task of its own, because the answer to the delta is given up after a while: a fetch that is dropped midway
            // would count as under way for ever, and no other would begin.
            let _ = tokio::spawn(async move { membership.sync_peer(hub, false).await }).await;
        }
        while self.peers().is_syncing(delta.hub) {
            tokio::time::sleep(DISCOVERY_WAIT / 10).await;
        }
        self.apply_delta(delta);
    }

    /// All subjects of a peer, in pages, and the number of the delta that the first page was taken after.
    async fn fetch_presence(&self, hub: HubId) -> Option<PresencePage> {
        let mut first_delta = None;
        let mut presences = Vec::<SubjectPresence>::new();
        let mut wakers = Vec::new();
        loop {
            let after = presences
                .last()
                .map_or(SubjectId::BEFORE_ALL, |presence| presence.0);
            let request = PeerRequest::ListPresence(self.client.hub_id, after);
            let answer = self
                .client
                .request_peer(hub, encode_message(&request))
                .await
                .ok()?;
            let page = decode_message::<PresencePage>(&answer)?;
            let delta_number = *first_delta.get_or_insert(page.delta_number);
            let is_last = page.presences.len() < limits::PEER_MESSAGE_ITEMS;
            presences.extend(page.presences);
            wakers.extend(page.wakers);
            if is_last {
                return Some(PresencePage {
                    delta_number,
                    presences,
                    wakers,
                });
            }
        }
    }

    /// an agent that fell silent before this hub started is offline here too.
    async fn fetch_agents_seen(&self, hub: HubId) {
        let mut after = AgentId::BEFORE_ALL;
        loop {
            let request = encode_message(&PeerRequest::ListAgentsSeen(after));
            let Ok(answer) = self.client.request_peer(hub, request).await else {
                return;
            };
            let Some(page) = decode_message::<Vec<AgentSeen>>(&answer) else {
                return;
            };
            for (agent, micros_ago) in &page {
                match self.seen_at(*micros_ago) {
                    Some(seen_at) => self.agent_presence.record_seen_elsewhere(*agent, seen_at),
                    None => self
                        .agent_presence
                        .record_earlier_refusal(*agent, self.clock.monotonic_now()),
                }
            }
            match page.last() {
                Some((agent, _)) if page.len() >= limits::PEER_MESSAGE_ITEMS => after = *agent,
                Some(_) | None => return,
            }
        }
    }
}
