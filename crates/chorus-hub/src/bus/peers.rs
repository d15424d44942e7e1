//! What this hub knows of the others: who they are and who listens there, as they said it themselves.

use super::words::{Here, HubId, Place};
use chorus_wire::limits;
use std::collections::HashMap;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio::time::Instant;

/// Streams and frame sessions of one subject.
type Counts = (u32, u32);

struct Peer {
    seen: Instant,
    places: HashMap<i64, Counts>,
    streams: u64,
    /// Said something of itself that does not fit what is known of it; twice in a row and it is asked.
    unlike: bool,
}

#[derive(Default)]
pub(super) struct Peers(RwLock<HashMap<HubId, Peer>>);

/// A sum over all places that does not depend on their order.
pub(super) fn sum(places: impl Iterator<Item = Place>) -> u64 {
    places.fold(0, |sum, (subject, streams, sessions)| {
        let counts = (u64::from(streams) << 32) | u64::from(sessions);
        sum.wrapping_add((subject as u64 ^ counts.rotate_left(17)).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    })
}

impl Peers {
    fn read(&self) -> RwLockReadGuard<'_, HashMap<HubId, Peer>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<HubId, Peer>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// A hub says that it is there; true when it should be asked who listens there.
    pub fn here(&self, here: Here) -> bool {
        let mut peers = self.write();
        let Some(peer) = peers.get_mut(&here.hub) else { return true };
        peer.seen = Instant::now();
        let places = peer.places.iter().map(|(subject, counts)| (*subject, counts.0, counts.1));
        let alike = peer.places.len() == here.subjects && sum(places) == here.sum;
        // Once is what news that is under way looks like.
        let again = std::mem::replace(&mut peer.unlike, !alike);
        !alike && again
    }

    /// All that is to be known of a hub.
    pub fn put(&self, hub: HubId, places: Vec<Place>) {
        let places: HashMap<i64, Counts> =
            places.into_iter().map(|(s, streams, sessions)| (s, (streams, sessions))).collect();
        let streams = places.values().map(|counts| u64::from(counts.0)).sum();
        self.write().insert(hub, Peer { seen: Instant::now(), places, streams, unlike: false });
    }

    /// What changed there. A hub that is not known is asked for all of it soon.
    pub fn change(&self, hub: HubId, places: &[Place]) {
        let mut peers = self.write();
        let Some(peer) = peers.get_mut(&hub) else { return };
        peer.seen = Instant::now();
        for (subject, streams, sessions) in places {
            let before = match (streams, sessions) {
                (0, 0) => peer.places.remove(subject),
                counts => peer.places.insert(*subject, (*counts.0, *counts.1)),
            };
            let before = before.map_or(0, |counts| u64::from(counts.0));
            peer.streams = (peer.streams + u64::from(*streams)).saturating_sub(before);
        }
    }

    pub fn gone(&self, hub: HubId) {
        self.write().remove(&hub);
    }

    /// Forgets who has not been heard for too long.
    pub fn expire(&self) {
        self.write().retain(|_, peer| peer.seen.elapsed() < limits::PEER_SILENT);
    }

    pub fn all(&self) -> Vec<HubId> {
        self.read().keys().copied().collect()
    }

    pub fn is_empty(&self) -> bool {
        self.read().is_empty()
    }

    /// The hubs where the subject has a stream.
    pub fn listening(&self, subject: i64) -> Vec<HubId> {
        let there = |peer: &Peer| peer.places.get(&subject).is_some_and(|counts| counts.0 > 0);
        self.read().iter().filter(|(_, peer)| there(peer)).map(|(hub, _)| *hub).collect()
    }

    pub fn online(&self, subject: i64) -> bool {
        self.read().values().any(|peer| peer.places.get(&subject).is_some_and(|counts| counts.0 > 0))
    }

    /// Streams of a subject at other hubs.
    pub fn streams_of(&self, subject: i64) -> usize {
        self.read().values().filter_map(|peer| peer.places.get(&subject)).map(|counts| counts.0 as usize).sum()
    }

    pub fn streams(&self) -> u64 {
        self.read().values().map(|peer| peer.streams).sum()
    }

    /// Frame sessions of a principal at other hubs.
    pub fn sessions(&self, principal: i64) -> usize {
        self.read().values().filter_map(|peer| peer.places.get(&principal)).map(|counts| counts.1 as usize).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here(hub: HubId, places: &[Place]) -> Here {
        Here { hub, subjects: places.len(), sum: sum(places.iter().copied()) }
    }

    #[test]
    fn whoever_listens_elsewhere_is_known_until_it_leaves_or_its_hub_does() {
        let peers = Peers::default();
        assert!(peers.here(here(1, &[])), "a hub that nobody knows is asked");
        peers.put(1, vec![(7, 2, 0), (8, 0, 3)]);
        assert!(peers.online(7) && !peers.online(8));
        assert_eq!((peers.listening(7), peers.streams(), peers.sessions(8)), (vec![1], 2, 3));
        peers.change(1, &[(7, 0, 0), (9, 1, 1)]);
        assert!(!peers.online(7) && peers.online(9));
        assert_eq!(peers.streams(), 1);
        peers.gone(1);
        assert!(!peers.online(9) && peers.is_empty());
    }

    #[test]
    fn a_hub_is_asked_again_when_what_it_says_twice_does_not_fit_what_is_known_of_it() {
        let peers = Peers::default();
        peers.put(1, vec![(7, 2, 0)]);
        assert!(!peers.here(here(1, &[(7, 2, 0)])));
        assert!(!peers.here(here(1, &[(7, 3, 0)])), "its news may be on the way");
        assert!(peers.here(here(1, &[(7, 3, 0)])));
    }
}
