//! Where this hub stands with the frames that all hubs of a database take in one order, from a memory that they share: so a
//! place in it means the same at each of them, and a session goes on wherever it comes back (R-52, D-82).

use chorus_wire::cursor::Cursor;
use chorus_wire::limits;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

#[derive(Default)]
pub(super) struct Joint {
    state: Mutex<State>,
    taken: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    /// Which life of the shared memory; none while this hub is alone, or has not reached the others yet.
    epoch: Option<u64>,
    /// Nothing from before is known here.
    floor: u64,
    /// The newest frame of principals whose room was swept away: a number for each that ever had frames.
    last: HashMap<i64, u64>,
}

/// A principal's own epoch: the same at every hub, and another than everybody else's, so that an id of another handle is known
/// for what it is (FRM-70).
pub(super) fn own(epoch: u64, principal: i64) -> u64 {
    let mixed = (epoch ^ (principal as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    ((mixed ^ (mixed >> 31)) >> 16).max(1)
}

impl Joint {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The shared memory begins here, or begins anew.
    pub fn begin(&self, epoch: u64, floor: u64) {
        *self.state() = State { epoch: Some(epoch), floor, last: HashMap::new() };
        self.taken.send_replace(floor);
    }

    /// Everything up to this place is in the rings.
    pub fn took(&self, place: u64) {
        self.taken.send_replace(place);
    }

    pub fn taken(&self) -> u64 {
        *self.taken.borrow()
    }

    /// The epoch and the floor of a new room of this principal; none when this hub is alone.
    pub fn fresh(&self, principal: i64) -> Option<(u64, u64)> {
        let state = self.state();
        let epoch = own(state.epoch?, principal);
        Some((epoch, state.last.get(&principal).copied().unwrap_or_default().max(state.floor)))
    }

    /// A room goes, and this was its newest frame.
    pub fn swept(&self, principal: i64, newest: u64) {
        let mut state = self.state();
        if state.epoch.is_some() && newest > state.floor {
            state.last.insert(principal, newest);
        }
    }

    /// False when the frames up to this place do not come in time.
    pub async fn reach(&self, place: u64) -> bool {
        let mut taken = self.taken.subscribe();
        tokio::time::timeout(limits::BUS_WAIT, taken.wait_for(|at| *at >= place)).await.is_ok_and(|at| at.is_ok())
    }

    /// Waits for what a session has heard at another hub to be here too.
    pub async fn reach_cursor(&self, principal: i64, cursor: Cursor) {
        let epoch = self.state().epoch.map(|epoch| own(epoch, principal));
        if epoch == Some(cursor.epoch) && cursor.seq > self.taken() {
            self.reach(cursor.seq).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FRM-70
    #[test]
    fn every_principal_has_an_epoch_of_its_own_in_every_life_of_the_memory() {
        let mut seen = std::collections::HashSet::new();
        for epoch in 1..20 {
            for principal in 0..500 {
                assert!(seen.insert(own(epoch, principal)), "{epoch} {principal}");
                assert!(own(epoch, principal) < 1 << 48, "ids stay short");
            }
        }
    }

    #[tokio::test]
    async fn a_new_room_begins_where_the_last_one_of_its_principal_ended() {
        let joint = Joint::default();
        assert_eq!(joint.fresh(7), None, "a hub that is alone has rings of its own");
        joint.begin(5, 100);
        joint.swept(7, 140);
        joint.swept(8, 90);
        let floor = |principal| joint.fresh(principal).map(|(_, floor)| floor);
        assert_eq!([floor(7), floor(8), floor(9)], [Some(140), Some(100), Some(100)]);
        joint.took(120);
        assert!(joint.reach(120).await);
    }
}
