//! The position of this hub in the frame stream. All hubs apply it in one order, so a sequence means the same at each of them,
//! and a session can resume at any hub (R-52, D-82).

use crate::limits;
use crate::store::AgentId;
use chorus_wire::cursor::Cursor;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

#[derive(Default)]
pub(super) struct StreamProgress {
    state: Mutex<ProgressState>,
    position: watch::Sender<StreamPosition>,
}

/// A sequence of the frame stream in one epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StreamPosition {
    pub epoch: u64,
    pub seq: u64,
}

#[derive(Default)]
struct ProgressState {
    /// `None` on a hub without peers, or before it has joined the cluster.
    epoch: Option<u64>,
    /// Frames up to it are not available here.
    floor_seq: u64,
    /// The newest sequence of principals whose ring was dropped; at most [`limits::LAST_FRAME_SEQS_KEPT`].
    last_seqs: HashMap<AgentId, u64>,
}

/// The epoch of a principal's ring: the same at every hub, and different for each principal, so that a cursor of another handle
/// is recognised (FRM-70).
pub(super) fn handle_epoch(epoch: u64, principal: AgentId) -> u64 {
    let mixed = (epoch ^ (principal.0 as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .wrapping_mul(0xff51_afd7_ed55_8ccd);
    ((mixed ^ (mixed >> 31)) >> 16).max(1)
}

impl StreamProgress {
    fn lock_state(&self) -> MutexGuard<'_, ProgressState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The frame stream begins here, or began a new epoch.
    pub fn reset_to(&self, epoch: u64, floor_seq: u64) {
        *self.lock_state() = ProgressState {
            epoch: Some(epoch),
            floor_seq,
            last_seqs: HashMap::new(),
        };
        self.position.send_replace(StreamPosition {
            epoch,
            seq: floor_seq,
        });
    }

    /// All frames up to this sequence are in the rings.
    pub fn advance_to(&self, seq: u64) {
        self.position.send_modify(|position| position.seq = seq);
    }

    pub fn current_position(&self) -> StreamPosition {
        *self.position.borrow()
    }

    /// The epoch and the floor of a new ring of this principal; `None` on a hub without peers.
    pub fn ring_start(&self, principal: AgentId) -> Option<(u64, u64)> {
        let state = self.lock_state();
        let epoch = handle_epoch(state.epoch?, principal);
        Some((
            epoch,
            state
                .last_seqs
                .get(&principal)
                .copied()
                .unwrap_or_default()
                .max(state.floor_seq),
        ))
    }

    /// A ring was dropped, and this was its newest sequence.
    pub fn remember_last_seq(&self, principal: AgentId, newest_seq: u64) {
        let mut state = self.lock_state();
        if state.epoch.is_none() || newest_seq <= state.floor_seq {
            return;
        }
        // Invariant 6: beyond it a resuming session may get a gap event although it missed nothing.
        if state.last_seqs.len() >= limits::LAST_FRAME_SEQS_KEPT {
            state.floor_seq = state
                .last_seqs
                .drain()
                .map(|(_, last_seq)| last_seq)
                .max()
                .unwrap_or_default()
                .max(state.floor_seq);
        }
        if newest_seq > state.floor_seq {
            state.last_seqs.insert(principal, newest_seq);
        }
    }

    /// The result of `check` once the stream is read up to the target or has another epoch; called again with every further frame
    /// until it returns one. `None` on timeout.
    pub async fn wait_until<T>(
        &self,
        target: StreamPosition,
        timeout: Duration,
        mut check: impl FnMut(StreamPosition) -> Option<T>,
    ) -> Option<T> {
        let mut positions = self.position.subscribe();
        let waiting = async {
            loop {
                let position = *positions
                    .wait_for(|position| {
                        position.epoch != target.epoch || position.seq >= target.seq
                    })
                    .await
                    .ok()?;
                if let Some(outcome) = check(position) {
                    return Some(outcome);
                }
                positions.changed().await.ok()?;
            }
        };
        tokio::time::timeout(timeout, waiting).await.ok().flatten()
    }

    /// Waits until this hub has applied what a session has read at another hub.
    pub async fn wait_for_cursor(&self, principal: AgentId, cursor: Cursor) {
        let position = self.current_position();
        if handle_epoch(position.epoch, principal) == cursor.epoch {
            self.wait_until(
                StreamPosition {
                    seq: cursor.seq,
                    ..position
                },
                limits::PEER_REQUEST_TIMEOUT,
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
                assert!(
                    seen.insert(handle_epoch(epoch, AgentId(principal))),
                    "{epoch} {principal}"
                );
                assert!(
                    handle_epoch(epoch, AgentId(principal)) < 1 << 48,
                    "ids stay short"
                );
            }
        }
    }

    #[test]
    fn a_new_room_begins_where_the_last_one_of_its_principal_ended() {
        let progress = StreamProgress::default();
        assert_eq!(
            progress.ring_start(AgentId(7)),
            None,
            "a hub that is alone has rings of its own"
        );
        progress.reset_to(5, 100);
        progress.remember_last_seq(AgentId(7), 140);
        progress.remember_last_seq(AgentId(8), 90);
        let floor = |principal| progress.ring_start(principal).map(|(_, floor)| floor);
        assert_eq!(
            [floor(AgentId(7)), floor(AgentId(8)), floor(AgentId(9))],
            [Some(140), Some(100), Some(100)]
        );
    }

    /// D-93
    #[tokio::test(start_paused = true)]
    async fn a_place_is_reached_in_its_own_life_of_the_memory_only() {
        let (progress, soon) = (StreamProgress::default(), Duration::from_secs(1));
        progress.reset_to(5, 100);
        let here = StreamPosition { epoch: 5, seq: 120 };
        assert_eq!(
            progress.wait_until(here, soon, Some).await,
            None,
            "it does not come"
        );
        progress.advance_to(120);
        assert_eq!(progress.wait_until(here, soon, Some).await, Some(here));
        progress.reset_to(6, 0);
        let at = |at: StreamPosition| (at.epoch == 5).then_some(at);
        assert_eq!(
            progress.wait_until(here, soon, at).await,
            None,
            "another memory's places say nothing of it"
        );
    }

    /// Invariant 6: a gap may be told where there is none, and never the other way round.
    #[test]
    fn the_ends_of_as_many_handles_as_are_remembered_are_known_and_those_of_others_are_behind_them()
    {
        let progress = StreamProgress::default();
        progress.reset_to(5, 0);
        let most = limits::LAST_FRAME_SEQS_KEPT as i64;
        (1..=most + 1)
            .for_each(|principal| progress.remember_last_seq(AgentId(principal), principal as u64));
        let floor = |principal| progress.ring_start(principal).map(|(_, floor)| floor);
        assert_eq!(
            [
                floor(AgentId(1)),
                floor(AgentId(most)),
                floor(AgentId(most + 1))
            ],
            [Some(most as u64), Some(most as u64), Some(most as u64 + 1)]
        );
    }
}
