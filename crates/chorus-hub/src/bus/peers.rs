//! What this hub knows of the others: who they are and who listens there, as they said it themselves.

use super::words::{Here, HubId, News, Place};
use crate::identity::budget::mix;
use chorus_wire::limits;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio::time::Instant;

/// Streams and frame sessions of one subject.
type Counts = (u32, u32);

/// Who listens at a hub, and a sum over them that does not depend on their order. A change costs what it changes.
#[derive(Default)]
pub(super) struct Book {
    places: BTreeMap<i64, Counts>,
    sum: u64,
    streams: u64,
}

fn mixed(subject: i64, (streams, sessions): Counts) -> u64 {
    let counts = (u64::from(streams) << 32) | u64::from(sessions);
    (subject as u64 ^ counts.rotate_left(17)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Book {
    pub fn put(&mut self, (subject, streams, sessions): Place) {
        let before = match (streams, sessions) {
            (0, 0) => self.places.remove(&subject),
            counts => {
                self.sum = self.sum.wrapping_add(mixed(subject, counts));
                self.streams += u64::from(streams);
                self.places.insert(subject, counts)
            }
        };
        if let Some(before) = before {
            self.sum = self.sum.wrapping_sub(mixed(subject, before));
            self.streams -= u64::from(before.0);
        }
    }

    /// The next places after this subject.
    pub fn after(&self, subject: i64, most: usize) -> Vec<Place> {
        let range = self
            .places
            .range((Bound::Excluded(subject), Bound::Unbounded));
        range
            .take(most)
            .map(|(subject, counts)| (*subject, counts.0, counts.1))
            .collect()
    }

    fn of(&self, subject: i64) -> Counts {
        self.places.get(&subject).copied().unwrap_or_default()
    }

    pub fn here(&self, hub: HubId, news: u64) -> Here {
        Here {
            hub,
            subjects: self.places.len(),
            sum: self.sum,
            news,
        }
    }
}

struct Peer {
    seen: Instant,
    book: Book,
    /// The number of the last news that is in the book.
    news: u64,
    /// The number that it had said of itself a beat ago, and that was not here then.
    owed: Option<u64>,
    /// Some of its news were never heard.
    torn: bool,
    /// It did not answer in time: nobody waits for it to know something until it answers again.
    late: bool,
}

/// What is said of a hub while it is being asked for everything.
#[derive(Default)]
struct Meanwhile {
    news: u64,
    places: HashMap<i64, (u64, Counts)>,
}

#[derive(Default)]
struct State {
    known: HashMap<HubId, Peer>,
    learning: HashMap<HubId, Meanwhile>,
}

#[derive(Default)]
pub(super) struct Peers(RwLock<State>);

impl Peers {
    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// A hub says that it is there; true when it should be asked who listens there.
    pub fn here(&self, here: Here) -> bool {
        let mut state = self.write();
        let Some(peer) = state.known.get_mut(&here.hub) else {
            return true;
        };
        peer.seen = Instant::now();
        // News that it has said a beat ago are not on the way any more.
        let missed = peer.owed.is_some_and(|owed| peer.news < owed);
        peer.owed = (peer.news < here.news).then_some(here.news);
        let other = peer.news == here.news && peer.book.here(here.hub, here.news) != here;
        missed || other || peer.torn
    }

    /// It is going to be asked for everything; false when it already is.
    pub fn learn(&self, hub: HubId) -> bool {
        self.write()
            .learning
            .insert(hub, Meanwhile::default())
            .is_none()
    }

    pub fn is_learning(&self, hub: HubId) -> bool {
        self.read().learning.contains_key(&hub)
    }

    pub fn is_learning_any(&self) -> bool {
        !self.read().learning.is_empty()
    }

    pub fn unlearned(&self, hub: HubId) {
        self.write().learning.remove(&hub);
    }

    /// All that is to be known of a hub, as it was with these news or later. What it said meanwhile holds.
    pub fn learned(&self, hub: HubId, news: u64, places: Vec<Place>) {
        let mut state = self.write();
        // It has left while it was asked.
        let Some(meanwhile) = state.learning.remove(&hub) else {
            return;
        };
        let mut book = Book::default();
        places.into_iter().for_each(|place| book.put(place));
        for (subject, (number, counts)) in meanwhile.places {
            if number > news {
                book.put((subject, counts.0, counts.1));
            }
        }
        let (seen, news) = (Instant::now(), news.max(meanwhile.news));
        state.known.insert(
            hub,
            Peer {
                seen,
                book,
                news,
                owed: None,
                torn: false,
                late: false,
            },
        );
    }

    /// What changed there. A hub that is not known is asked for all of it soon.
    pub fn change(&self, news: &News) {
        if news.number == 0 {
            return;
        }
        let state = &mut *self.write();
        if let Some(meanwhile) = state.learning.get_mut(&news.hub) {
            meanwhile.news = news.number;
            let put = |place: &Place| (place.0, (news.number, (place.1, place.2)));
            meanwhile.places.extend(news.places.iter().map(put));
        }
        let Some(peer) = state.known.get_mut(&news.hub) else {
            return;
        };
        peer.seen = Instant::now();
        // What was in the answer to a question may come again.
        if news.number > peer.news {
            peer.torn |= news.number != peer.news + 1;
            peer.news = news.number;
            news.places.iter().for_each(|place| peer.book.put(*place));
        }
    }

    pub fn gone(&self, hub: HubId) {
        let mut state = self.write();
        state.known.remove(&hub);
        state.learning.remove(&hub);
    }

    /// Forgets who has not been heard for too long.
    pub fn expire(&self) {
        self.write()
            .known
            .retain(|_, peer| peer.seen.elapsed() < limits::PEER_SILENT);
    }

    /// This hub was not listening: that nobody was heard says nothing of the others.
    pub fn forgive(&self) {
        self.write()
            .known
            .values_mut()
            .for_each(|peer| peer.seen = Instant::now());
    }

    pub fn set_late(&self, hub: HubId, late: bool) {
        if let Some(peer) = self.write().known.get_mut(&hub) {
            peer.late = late;
        }
    }

    /// All of them, and who is late.
    pub fn punctual(&self) -> Vec<(HubId, bool)> {
        self.read()
            .known
            .iter()
            .map(|(hub, peer)| (*hub, !peer.late))
            .collect()
    }

    pub fn all(&self) -> Vec<HubId> {
        self.read().known.keys().copied().collect()
    }

    pub fn knows(&self, hub: HubId) -> bool {
        self.read().known.contains_key(&hub)
    }

    /// The hub that a mark falls to, of all known ones and this one, and how many others there are. Every hub comes to the same
    /// by itself, and when one comes or goes only its own marks move.
    pub fn owner(&self, me: HubId, mark: u64) -> Option<(HubId, usize)> {
        let peers = &self.read().known;
        let owner = peers
            .keys()
            .copied()
            .chain([me])
            .max_by_key(|hub| (mix(mark ^ hub), *hub))?;
        (!peers.is_empty()).then_some((owner, peers.len()))
    }

    pub fn is_empty(&self) -> bool {
        self.read().known.is_empty()
    }

    /// The hubs where the subject has a stream.
    pub fn listening(&self, subject: i64) -> Vec<HubId> {
        let there = |peer: &Peer| peer.book.of(subject).0 > 0;
        self.read()
            .known
            .iter()
            .filter(|(_, peer)| there(peer))
            .map(|(hub, _)| *hub)
            .collect()
    }

    pub fn online(&self, subject: i64) -> bool {
        self.read()
            .known
            .values()
            .any(|peer| peer.book.of(subject).0 > 0)
    }

    /// Streams of a subject at other hubs.
    pub fn streams_of(&self, subject: i64) -> usize {
        self.read()
            .known
            .values()
            .map(|peer| peer.book.of(subject).0 as usize)
            .sum()
    }

    pub fn streams(&self) -> u64 {
        self.read()
            .known
            .values()
            .map(|peer| peer.book.streams)
            .sum()
    }

    /// Frame sessions of a principal at other hubs.
    pub fn sessions(&self, principal: i64) -> usize {
        self.read()
            .known
            .values()
            .map(|peer| peer.book.of(principal).1 as usize)
            .sum()
    }
}

#[cfg(test)]
mod tests;
