//! The peers that this hub knows, and which subjects have streams and frame sessions there.

use super::super::protocol::{
    Heartbeat, HubId, PresenceDelta, PresencePage, SubjectPresence, WakerCount,
};
use crate::identity::rate_limit::mix_bits;
use crate::limits;
use crate::store::{AgentId, SubjectId};
use chorus_wire::reach::StreamReach;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio::time::Instant;

/// Open streams and frame sessions of one subject.
type ListenerCounts = (u32, u32);

/// The subjects with streams at one hub, and a checksum that does not depend on their order. A change costs what it changes.
#[derive(Default)]
pub(super) struct PresenceTable {
    subjects: BTreeMap<SubjectId, ListenerCounts>,
    /// The subjects with wakers. They are not in the checksum, which hubs of an older version compute too.
    waker_counts: BTreeMap<SubjectId, u32>,
    checksum: u64,
    stream_count: u64,
}

fn hash_presence(subject: SubjectId, (streams, sessions): ListenerCounts) -> u64 {
    let counts = (u64::from(streams) << 32) | u64::from(sessions);
    (subject.0 as u64 ^ counts.rotate_left(17)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl PresenceTable {
    /// The presence of these subjects, and which of them have wakers.
    pub fn set_presences(&mut self, presences: &[SubjectPresence], wakers: &[WakerCount]) {
        for presence in presences {
            self.set_presence(*presence);
            self.waker_counts.remove(&presence.0);
        }
        self.waker_counts.extend(wakers.iter().copied());
    }

    fn set_presence(&mut self, (subject, streams, sessions): SubjectPresence) {
        let before = match (streams, sessions) {
            (0, 0) => self.subjects.remove(&subject),
            counts => {
                self.checksum = self.checksum.wrapping_add(hash_presence(subject, counts));
                self.stream_count += u64::from(streams);
                self.subjects.insert(subject, counts)
            }
        };
        if let Some(before) = before {
            self.checksum = self.checksum.wrapping_sub(hash_presence(subject, before));
            self.stream_count -= u64::from(before.0);
        }
    }

    /// The next subjects after this one.
    pub fn list_after(&self, subject: SubjectId, limit: usize) -> Vec<SubjectPresence> {
        let range = self
            .subjects
            .range((Bound::Excluded(subject), Bound::Unbounded));
        range
            .take(limit)
            .map(|(subject, counts)| (*subject, counts.0, counts.1))
            .collect()
    }

    /// Those of the presences that have wakers.
    pub fn list_wakers(&self, presences: &[SubjectPresence]) -> Vec<WakerCount> {
        presences
            .iter()
            .filter_map(|(subject, ..)| Some((*subject, *self.waker_counts.get(subject)?)))
            .collect()
    }

    fn find_reach(&self, subject: SubjectId) -> Option<StreamReach> {
        match self.get_counts(subject) {
            (0, _) => None,
            (_, _) if self.waker_counts.contains_key(&subject) => Some(StreamReach::Wakes),
            (_, _) => Some(StreamReach::Turns),
        }
    }

    fn get_counts(&self, subject: SubjectId) -> ListenerCounts {
        self.subjects.get(&subject).copied().unwrap_or_default()
    }

    pub fn build_heartbeat(&self, hub: HubId, delta_number: u64) -> Heartbeat {
        Heartbeat {
            hub,
            subjects: self.subjects.len(),
            sum: self.checksum,
            delta_number,
        }
    }
}

struct PeerHub {
    last_seen: Instant,
    presence: PresenceTable,
    /// The number of the last delta that is in the table.
    delta_number: u64,
    /// The delta number of its last heartbeat, if that delta had not arrived then.
    announced_delta: Option<u64>,
    /// A delta was lost.
    missed_delta: bool,
    /// It did not answer in time: deltas do not wait for it until it answers again.
    is_late: bool,
}

/// The deltas of a hub that arrive while its presence is being fetched.
#[derive(Default)]
struct BufferedDeltas {
    delta_number: u64,
    /// The newest presence of each subject, the number of its delta, and its wakers.
    subjects: HashMap<SubjectId, (u64, SubjectPresence, Option<WakerCount>)>,
}

#[derive(Default)]
struct PeerTableState {
    /// In an order that repeats in a simulation (D-110).
    peers: BTreeMap<HubId, PeerHub>,
    syncing: BTreeMap<HubId, BufferedDeltas>,
}

#[derive(Default)]
pub(in crate::cluster) struct PeerTable(RwLock<PeerTableState>);

impl PeerTable {
    fn read_state(&self) -> RwLockReadGuard<'_, PeerTableState> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_state(&self) -> RwLockWriteGuard<'_, PeerTableState> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies a heartbeat; true when the presence of the peer should be fetched.
    pub fn apply_heartbeat(&self, here: Heartbeat) -> bool {
        let mut state = self.write_state();
        let Some(peer) = state.peers.get_mut(&here.hub) else {
            return true;
        };
        peer.last_seen = Instant::now();
        // A delta that was announced one heartbeat ago is no longer on its way.
        let is_behind = peer
            .announced_delta
            .is_some_and(|announced| peer.delta_number < announced);
        peer.announced_delta = (peer.delta_number < here.delta_number).then_some(here.delta_number);
        let differs = peer.delta_number == here.delta_number
            && peer.presence.build_heartbeat(here.hub, here.delta_number) != here;
        is_behind || differs || peer.missed_delta
    }

    /// The presence of the peer is going to be fetched; false when it already is.
    pub fn begin_sync(&self, hub: HubId) -> bool {
        self.write_state()
            .syncing
            .insert(hub, BufferedDeltas::default())
            .is_none()
    }

    pub fn is_syncing(&self, hub: HubId) -> bool {
        self.read_state().syncing.contains_key(&hub)
    }

    pub fn is_syncing_any(&self) -> bool {
        !self.read_state().syncing.is_empty()
    }

    pub fn cancel_sync(&self, hub: HubId) {
        self.write_state().syncing.remove(&hub);
    }

    /// The fetched presence of a peer, as it was after this delta or later. Deltas that arrived meanwhile take precedence.
    pub fn finish_sync(&self, hub: HubId, fetched: PresencePage) {
        let delta_number = fetched.delta_number;
        let mut state = self.write_state();
        // It left while it was being fetched.
        let Some(buffered) = state.syncing.remove(&hub) else {
            return;
        };
        let mut table = PresenceTable::default();
        table.set_presences(&fetched.presences, &fetched.wakers);
        for (number, presence, waker) in buffered.subjects.into_values() {
            if number > delta_number {
                table.set_presences(&[presence], waker.as_slice());
            }
        }
        state.peers.insert(
            hub,
            PeerHub {
                last_seen: Instant::now(),
                presence: table,
                delta_number: delta_number.max(buffered.delta_number),
                announced_delta: None,
                missed_delta: false,
                is_late: false,
            },
        );
    }

    /// Applies a delta. A peer that is not known is fetched soon.
    pub fn apply_delta(&self, delta: &PresenceDelta) {
        if delta.number == 0 {
            return;
        }
        let state = &mut *self.write_state();
        if let Some(buffered) = state.syncing.get_mut(&delta.hub) {
            buffered.delta_number = delta.number;
            let wakers: HashMap<SubjectId, u32> = delta.wakers.iter().copied().collect();
            for presence in &delta.presences {
                let waker = wakers.get(&presence.0).map(|count| (presence.0, *count));
                let entry = (delta.number, *presence, waker);
                buffered.subjects.insert(presence.0, entry);
            }
        }
        let Some(peer) = state.peers.get_mut(&delta.hub) else {
            return;
        };
        peer.last_seen = Instant::now();
        // A delta that the fetched presence already contained may arrive after it.
        if delta.number > peer.delta_number {
            peer.missed_delta |= delta.number != peer.delta_number + 1;
            peer.delta_number = delta.number;
            peer.presence.set_presences(&delta.presences, &delta.wakers);
        }
    }

    pub fn remove_peer(&self, hub: HubId) {
        let mut state = self.write_state();
        state.peers.remove(&hub);
        state.syncing.remove(&hub);
    }

    /// Removes peers without a recent heartbeat.
    pub fn remove_silent_peers(&self) {
        self.write_state()
            .peers
            .retain(|_, peer| peer.last_seen.elapsed() < limits::PEER_SILENT_AFTER);
    }

    /// This hub was suspended: the missing heartbeats say nothing about its peers.
    pub fn refresh_last_seen(&self) {
        self.write_state()
            .peers
            .values_mut()
            .for_each(|peer| peer.last_seen = Instant::now());
    }

    pub fn set_late(&self, hub: HubId, is_late: bool) {
        if let Some(peer) = self.write_state().peers.get_mut(&hub) {
            peer.is_late = is_late;
        }
    }

    /// All peers, and whether each is punctual.
    pub fn peer_punctuality(&self) -> Vec<(HubId, bool)> {
        self.read_state()
            .peers
            .iter()
            .map(|(hub, peer)| (*hub, !peer.is_late))
            .collect()
    }

    pub fn peer_ids(&self) -> Vec<HubId> {
        self.read_state().peers.keys().copied().collect()
    }

    pub fn has_peer(&self, hub: HubId) -> bool {
        self.read_state().peers.contains_key(&hub)
    }

    /// The hub that decides about callers with this hash, and how many peers there are. Rendezvous hashing: every hub computes
    /// the same, and when a hub joins or leaves only its own callers move.
    pub fn select_owner(&self, own_id: HubId, caller_hash: u64) -> Option<(HubId, usize)> {
        let peers = &self.read_state().peers;
        let owner = peers
            .keys()
            .copied()
            .chain([own_id])
            .max_by_key(|hub| (mix_bits(caller_hash ^ hub), *hub))?;
        (!peers.is_empty()).then_some((owner, peers.len()))
    }

    pub fn is_empty(&self) -> bool {
        self.read_state().peers.is_empty()
    }

    /// The peers where the subject has a stream.
    pub fn hubs_with_stream(&self, subject: SubjectId) -> Vec<HubId> {
        let has_stream = |peer: &PeerHub| peer.presence.get_counts(subject).0 > 0;
        self.read_state()
            .peers
            .iter()
            .filter(|(_, peer)| has_stream(peer))
            .map(|(hub, _)| *hub)
            .collect()
    }

    pub fn is_online(&self, subject: SubjectId) -> bool {
        self.read_state()
            .peers
            .values()
            .any(|peer| peer.presence.get_counts(subject).0 > 0)
    }

    /// What the readers of the subject's streams at peers do with a message.
    pub fn find_reach(&self, subject: SubjectId) -> Option<StreamReach> {
        let state = self.read_state();
        let reaches = state.peers.values();
        reaches
            .map(|peer| peer.presence.find_reach(subject))
            .max()?
    }

    /// Open streams of a subject at all peers.
    pub fn subject_stream_count(&self, subject: SubjectId) -> usize {
        self.read_state()
            .peers
            .values()
            .map(|peer| peer.presence.get_counts(subject).0 as usize)
            .sum()
    }

    pub fn total_stream_count(&self) -> u64 {
        self.read_state()
            .peers
            .values()
            .map(|peer| peer.presence.stream_count)
            .sum()
    }

    /// Frame sessions of a principal at all peers.
    pub fn session_count(&self, principal: AgentId) -> usize {
        self.read_state()
            .peers
            .values()
            .map(|peer| peer.presence.get_counts(principal.into()).1 as usize)
            .sum()
    }
}

#[cfg(test)]
mod tests;
