//! All rooms of the hub, in shards: a frame costs what its own handles' sessions cost, whoever else is here.

use super::label::Label;
use super::room::{Resume, Room, Shut};
use super::session::Session;
use crate::clock;
use crate::delivery::Ending;
use chorus_wire::cursor::Cursor;
use std::collections::HashMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};
use std::time::Duration;

const SHARDS: usize = 64;

type Shard = HashMap<i64, Arc<Room>>;

/// A room is made for the first session or frame, and kept until nobody could come back for anything.
pub(crate) struct Rooms {
    shards: [RwLock<Shard>; SHARDS],
    held: Arc<AtomicUsize>,
}

impl Default for Rooms {
    fn default() -> Self {
        Self { shards: std::array::from_fn(|_| RwLock::default()), held: Arc::default() }
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
        let shard = self.shard(principal).read().unwrap_or_else(PoisonError::into_inner);
        shard.get(&principal).cloned()
    }

    fn enter(&self, principal: i64, now: Duration) -> Arc<Room> {
        if let Some(room) = self.get(principal) {
            return room;
        }
        let new = || Arc::new(Room::new(clock::new_epoch(), now, self.held.clone()));
        locked(self.shard(principal)).entry(principal).or_insert_with(new).clone()
    }

    /// `None` when the handle has as many streams as it may have.
    pub(super) fn join(&self, session: Session, since: Resume, now: Duration) -> Option<Joined> {
        let session = Arc::new(session);
        loop {
            let room = self.enter(session.principal, now);
            match room.join(&session, since, now) {
                Ok((start, gap)) => return Some(Joined { room, session, start, gap }),
                Err(Shut::Full) => return None,
                // It was swept away between the two looks. The sweep takes it out of the map under the same lock.
                Err(Shut::Closed) => {}
            }
        }
    }

    /// Emits to one handle, also where nobody listens: a session that comes a minute later can still ask what was said.
    pub(super) fn publish(&self, principal: i64, text: &str, label: &Arc<Label>, now: Duration) -> u64 {
        loop {
            if let Some(count) = self.enter(principal, now).publish(text, label, now) {
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
        let room = if gone { shard.remove(&principal) } else { shard.get(&principal).cloned() };
        drop(shard);
        if let Some(room) = room {
            room.end(why, gone, now);
        }
    }

    pub fn drain(&self, now: Duration) {
        for shard in &self.shards {
            let rooms: Vec<Arc<Room>> = locked(shard).values().cloned().collect();
            rooms.iter().for_each(|room| room.end(Ending::Shutdown, false, now));
        }
    }

    pub fn sweep(&self, now: Duration) {
        for shard in &self.shards {
            let mut shard = locked(shard);
            shard.retain(|_, room| !room.expire(now));
            shard.shrink_to_fit();
        }
    }
}

fn locked(shard: &RwLock<Shard>) -> RwLockWriteGuard<'_, Shard> {
    shard.write().unwrap_or_else(PoisonError::into_inner)
}
