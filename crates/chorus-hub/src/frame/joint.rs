//! Where this hub stands with the frames that all hubs of a database take in one order, from a memory that they share: so a
//! place in it means the same at each of them, and a session goes on wherever it comes back (R-52, D-82).

use chorus_wire::cursor::Cursor;
use chorus_wire::limits;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

#[derive(Default)]
pub(super) struct Joint {
    state: Mutex<State>,
    taken: watch::Sender<At>,
}

/// A place in one life of the shared memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct At {
    pub epoch: u64,
    pub place: u64,
}

#[derive(Default)]
struct State {
    /// Which life of the shared memory; none while this hub is alone, or has not reached the others yet.
    epoch: Option<u64>,
    /// Nothing from before is known here.
    floor: u64,
    /// The newest frame of principals whose room was swept away, of as many as are remembered.
    last: HashMap<i64, u64>,
}

/// A principal's own epoch: the same at every hub, and another than everybody else's, so that an id of another handle is known
/// for what it is (FRM-70).
pub(super) fn own(epoch: u64, principal: i64) -> u64 {
    let mixed = (epoch ^ (principal as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .wrapping_mul(0xff51_afd7_ed55_8ccd);
    ((mixed ^ (mixed >> 31)) >> 16).max(1)
}

impl Joint {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The shared memory begins here, or begins anew.
    pub fn begin(&self, epoch: u64, floor: u64) {
        *self.state() = State {
            epoch: Some(epoch),
            floor,
            last: HashMap::new(),
        };
        self.taken.send_replace(At {
            epoch,
            place: floor,
        });
    }

    /// Everything up to this place is in the rings.
    pub fn took(&self, place: u64) {
        self.taken.send_modify(|at| at.place = place);
    }

    pub fn taken(&self) -> At {
        *self.taken.borrow()
    }

    /// The epoch and the floor of a new room of this principal; none when this hub is alone.
    pub fn fresh(&self, principal: i64) -> Option<(u64, u64)> {
        let state = self.state();
        let epoch = own(state.epoch?, principal);
        Some((
            epoch,
            state
                .last
                .get(&principal)
                .copied()
                .unwrap_or_default()
                .max(state.floor),
        ))
    }

    /// A room goes, and this was its newest frame.
    pub fn swept(&self, principal: i64, newest: u64) {
        let mut state = self.state();
        if state.epoch.is_none() || newest <= state.floor {
            return;
        }
        // Law 6: beyond it, whoever comes back to one of them is told of a gap that may not be one.
        if state.last.len() >= limits::ENDS_REMEMBERED {
            state.floor = state
                .last
                .drain()
                .map(|(_, end)| end)
                .max()
                .unwrap_or_default()
                .max(state.floor);
        }
        if newest > state.floor {
            state.last.insert(principal, newest);
        }
    }

    /// What is said of it when the frames up to here are taken, or the memory is another one; asked again with each frame of
    /// that one. Nothing when it does not come to it in time.
    pub async fn when<T>(
        &self,
        here: At,
        within: Duration,
        mut said: impl FnMut(At) -> Option<T>,
    ) -> Option<T> {
        let mut taken = self.taken.subscribe();
        let saying = async {
            loop {
                let at = *taken
                    .wait_for(|at| at.epoch != here.epoch || at.place >= here.place)
                    .await
                    .ok()?;
                if let Some(said) = said(at) {
                    return Some(said);
                }
                taken.changed().await.ok()?;
            }
        };
        tokio::time::timeout(within, saying).await.ok().flatten()
    }

    /// Waits for what a session has heard at another hub to be here too.
    pub async fn reach_cursor(&self, principal: i64, cursor: Cursor) {
        let at = self.taken();
        if own(at.epoch, principal) == cursor.epoch {
            self.when(
                At {
                    place: cursor.seq,
                    ..at
                },
                limits::BUS_WAIT,
                |_| Some(()),
            )
            .await;
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

    #[test]
    fn a_new_room_begins_where_the_last_one_of_its_principal_ended() {
        let joint = Joint::default();
        assert_eq!(
            joint.fresh(7),
            None,
            "a hub that is alone has rings of its own"
        );
        joint.begin(5, 100);
        joint.swept(7, 140);
        joint.swept(8, 90);
        let floor = |principal| joint.fresh(principal).map(|(_, floor)| floor);
        assert_eq!(
            [floor(7), floor(8), floor(9)],
            [Some(140), Some(100), Some(100)]
        );
    }

    /// D-93
    #[tokio::test(start_paused = true)]
    async fn a_place_is_reached_in_its_own_life_of_the_memory_only() {
        let (joint, soon) = (Joint::default(), Duration::from_secs(1));
        joint.begin(5, 100);
        let here = At {
            epoch: 5,
            place: 120,
        };
        assert_eq!(joint.when(here, soon, Some).await, None, "it does not come");
        joint.took(120);
        assert_eq!(joint.when(here, soon, Some).await, Some(here));
        joint.begin(6, 0);
        let at = |at: At| (at.epoch == 5).then_some(at);
        assert_eq!(
            joint.when(here, soon, at).await,
            None,
            "another memory's places say nothing of it"
        );
    }

    /// Law 6: a gap may be told where there is none, and never the other way round.
    #[test]
    fn the_ends_of_as_many_handles_as_are_remembered_are_known_and_those_of_others_are_behind_them()
    {
        let joint = Joint::default();
        joint.begin(5, 0);
        let most = limits::ENDS_REMEMBERED as i64;
        (1..=most + 1).for_each(|principal| joint.swept(principal, principal as u64));
        let floor = |principal| joint.fresh(principal).map(|(_, floor)| floor);
        assert_eq!(
            [floor(1), floor(most), floor(most + 1)],
            [Some(most as u64), Some(most as u64), Some(most as u64 + 1)]
        );
    }
}
