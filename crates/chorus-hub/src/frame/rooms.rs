//! All rooms of the hub, in shards: a frame costs what its own handles' sessions cost, whoever else is here.

use super::joint::{self, Joint};
use super::label::Label;
use super::room::{Held, Resume, Room, Shut};
use super::session::Session;
use crate::clock;
use crate::delivery::Ending;
use chorus_wire::cursor::Cursor;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};
use std::time::Duration;

const SHARDS: usize = 64;

type Shard = HashMap<i64, Arc<Room>>;

/// A room is made for the first session or frame, and kept until nobody could come back for anything.
pub(crate) struct Rooms {
    shards: [RwLock<Shard>; SHARDS],
    held: Arc<Held>,
    pub(super) joint: Joint,
}

impl Default for Rooms {
    fn default() -> Self {
        Self {
            shards: std::array::from_fn(|_| RwLock::default()),
            held: Arc::default(),
            joint: Joint::default(),
        }
    }
}

/// A session that is in.
pub(super) struct Joined {
    pub room: Arc<Room>,
    pub session: Arc<Session>,
    /// Where it starts.
    pub start: Cursor,
    /// Whether something before that may be missing.
    pub gap: bool,
}

impl Rooms {
    fn shard(&self, principal: i64) -> &RwLock<Shard> {
        &self.shards[principal.unsigned_abs() as usize % SHARDS]
    }

    pub(super) fn get(&self, principal: i64) -> Option<Arc<Room>> {
        let shard = self
            .shard(principal)
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        shard.get(&principal).cloned()
    }

    fn enter(&self, principal: i64, now: Duration) -> Arc<Room> {
        if let Some(room) = self.get(principal) {
            return room;
        }
        let new = || {
            let (epoch, floor) = self
                .joint
                .fresh(principal)
                .unwrap_or_else(|| (clock::new_epoch(), 0));
            Arc::new(Room::new(epoch, floor, now, self.held.clone()))
        };
        locked(self.shard(principal))
            .entry(principal)
            .or_insert_with(new)
            .clone()
    }

    /// `None` when the handle has as many streams as it may have.
    pub(super) fn join(&self, session: Session, since: Resume, now: Duration) -> Option<Joined> {
        let session = Arc::new(session);
        loop {
            let room = self.enter(session.principal, now);
            match room.join(&session, since, self.joint.taken().place, now) {
                Ok((start, gap)) => {
                    return Some(Joined {
                        room,
                        session,
                        start,
                        gap,
                    });
                }
                Err(Shut::Full) => return None,
                // It was swept away between the two looks. The sweep takes it out of the map under the same lock.
                Err(Shut::Closed) => {}
            }
        }
    }

    /// Emits to one handle, also where nobody listens: a session that comes a minute later can still ask what was said.
    pub(super) fn publish(
        &self,
        principal: i64,
        place: Option<u64>,
        text: &str,
        label: &Arc<Label>,
        now: Duration,
    ) -> u64 {
        loop {
            if let Some(count) = self.enter(principal, now).publish(place, text, label, now) {
                return count;
            }
        }
    }

    /// How many sessions a handle has.
    pub(super) fn sessions(&self, principal: i64) -> usize {
        self.get(principal).map_or(0, |room| room.len())
    }

    pub fn end(&self, principal: i64, why: Ending, now: Duration) {
        let gone = why == Ending::Unregistered;
        let mut shard = locked(self.shard(principal));
        let room = if gone {
            shard.remove(&principal)
        } else {
            shard.get(&principal).cloned()
        };
        drop(shard);
        if let Some(room) = room {
            room.end(why, gone, now);
        }
    }

    pub fn drain(&self, now: Duration) {
        for shard in &self.shards {
            let rooms: Vec<Arc<Room>> = locked(shard).values().cloned().collect();
            rooms
                .iter()
                .for_each(|room| room.end(Ending::Shutdown, false, now));
        }
    }

    /// The memory that all hubs share begins here, or was lost and begins anew.
    pub fn begin(&self, epoch: u64, floor: u64) {
        self.joint.begin(epoch, floor);
        for shard in &self.shards {
            let rooms: Vec<(i64, Arc<Room>)> = locked(shard)
                .iter()
                .map(|(id, room)| (*id, room.clone()))
                .collect();
            rooms
                .iter()
                .for_each(|(principal, room)| room.rewind(joint::own(epoch, *principal), floor));
        }
    }

    pub fn sweep(&self, now: Duration) {
        for shard in &self.shards {
            let mut shard = locked(shard);
            shard.retain(|principal, room| {
                let over = room.expire(now);
                if over {
                    self.joint.swept(*principal, room.newest());
                }
                !over
            });
            shard.shrink_to_fit();
        }
    }
}

fn locked(shard: &RwLock<Shard>) -> RwLockWriteGuard<'_, Shard> {
    shard.write().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::super::room::tests::{label, session};
    use super::*;
    use std::sync::atomic::Ordering;

    const NOW: Duration = Duration::from_secs(1_000);

    fn held(rooms: &Rooms) -> usize {
        rooms.held.bytes.load(Ordering::Relaxed)
    }

    /// R-52, law 6
    #[test]
    fn a_room_goes_when_nobody_can_come_back_for_anything() {
        let rooms = Rooms::default();
        rooms.publish(1, None, "{}", &label(), NOW);
        let joined = rooms.join(session("cc-a", ""), Resume::Now, NOW).unwrap();
        assert!(held(&rooms) > 0);
        let later = NOW + Duration::from_secs(301);
        rooms.sweep(later);
        assert!(rooms.get(1).is_some(), "somebody is there");
        assert_eq!(held(&rooms), 0, "what is past its time is gone");
        joined.room.leave(&joined.session, later);
        rooms.sweep(later + Duration::from_secs(300));
        assert!(rooms.get(1).is_some(), "whoever left may come back");
        rooms.sweep(later + Duration::from_secs(301));
        assert!(rooms.get(1).is_none());
    }

    #[test]
    fn what_is_said_to_nobody_is_kept_for_who_comes_in_time() {
        let rooms = Rooms::default();
        assert_eq!(rooms.publish(1, None, "{}", &label(), NOW), 0);
        rooms.sweep(NOW + Duration::from_secs(300));
        let joined = rooms
            .join(
                session("cc-a", ""),
                Resume::Unknown,
                NOW + Duration::from_secs(300),
            )
            .unwrap();
        assert_eq!((joined.start.seq, joined.gap), (0, true));
        rooms.sweep(NOW + Duration::from_secs(301));
        assert!(held(&rooms) > 0, "it is about to be taken");
    }

    /// a name that is taken again starts from nothing.
    #[test]
    fn a_gone_principals_frames_go_with_it_and_a_rotated_keys_stay() {
        let rooms = Rooms::default();
        rooms.publish(1, None, "{}", &label(), NOW);
        let first = rooms.join(session("cc-a", ""), Resume::Now, NOW).unwrap();
        rooms.end(1, Ending::KeyRotated, NOW);
        assert_eq!(rooms.sessions(1), 0);
        let again = rooms
            .join(session("cc-a", ""), Resume::After(first.start), NOW)
            .unwrap();
        assert!(!again.gap);
        rooms.end(1, Ending::Unregistered, NOW);
        assert_eq!(held(&rooms), 0);
        let other = rooms
            .join(session("cc-a", ""), Resume::After(first.start), NOW)
            .unwrap();
        assert_eq!((other.start.seq, other.gap), (0, true));
    }

    /// Law 6
    #[test]
    fn when_all_rings_are_full_the_one_that_grows_gives_up_its_oldest() {
        let held = Arc::new(Held {
            most: 10_000,
            ..Held::default()
        });
        let rooms = Rooms {
            held: held.clone(),
            ..Rooms::default()
        };
        let text = "x".repeat(1_000);
        for n in 0..100 {
            rooms.publish(n % 3, None, &text, &label(), NOW);
            assert!(held.bytes.load(Ordering::Relaxed) <= 10_000);
        }
        drop(rooms);
        assert_eq!(held.bytes.load(Ordering::Relaxed), 0, "the account is even");
    }
}
