//! The frame ring: the last frames of one handle, as events ready to be written, bounded in time, number and bytes.

use super::ring_memory::RingReservation;
use super::shared_frame::{RING_ENTRY_BYTES, SharedFrame};
use chorus_wire::cursor::Cursor;
use chorus_wire::limits;
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// How long and how much a ring keeps for resuming sessions, as the first event of a stream says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RingRetention {
    pub seconds: u64,
    pub frames: usize,
    pub bytes: usize,
}

pub const RING_RETENTION: RingRetention = RingRetention {
    seconds: limits::RING_RETENTION.as_secs(),
    frames: limits::RING_FRAMES,
    bytes: limits::RING_BYTES,
};

/// Bytes of an entry beside the frame's text, for the retention of a ring. Without it a ring of tiny frames would use several times
/// its bound.
const ENTRY_OVERHEAD_BYTES: usize = 300;
/// Smallest capacity to which a ring shrinks when most of its entries are dropped.
const MIN_CAPACITY: usize = 8;

/// A frame in one ring. The frame itself is shared with the rings of its other targets.
pub(super) struct RingEntry {
    pub frame: Arc<SharedFrame>,
    seq: u64,
}

impl RingEntry {
    /// What counts towards the retention of the ring, whether or not other rings have the frame too: a handle keeps the same
    /// frames in both cases.
    fn size_bytes(&self) -> usize {
        self.frame.text_bytes() + ENTRY_OVERHEAD_BYTES
    }

    fn charged_bytes(&self) -> usize {
        self.frame.share_bytes() + RING_ENTRY_BYTES
    }
}

impl Drop for RingEntry {
    fn drop(&mut self) {
        self.frame.release_entry();
    }
}

pub(super) struct FrameRing {
    epoch: u64,
    /// The sequence of the newest frame that was dropped; the first one kept follows it.
    floor_seq: u64,
    entries: VecDeque<RingEntry>,
    size_bytes: usize,
    /// The memory that the ring is charged for: of a shared frame its share.
    charged_bytes: usize,
    retention: RingRetention,
}

impl FrameRing {
    /// `epoch` is unique to the ring, so that a cursor of another ring is recognised. In a cluster all hubs give the ring of a
    /// handle the same epoch, and it begins where the frame stream does.
    pub fn new(epoch: u64, floor_seq: u64, retention: RingRetention) -> Self {
        Self {
            epoch,
            floor_seq,
            entries: VecDeque::new(),
            size_bytes: 0,
            charged_bytes: 0,
            retention,
        }
    }

    /// Drops every frame and begins a new epoch.
    pub fn reset_to(&mut self, epoch: u64, floor_seq: u64) {
        self.clear();
        self.epoch = epoch;
        self.floor_seq = floor_seq;
    }

    pub fn floor_seq(&self) -> u64 {
        self.floor_seq
    }

    pub fn newest_seq(&self) -> u64 {
        self.entries
            .back()
            .map_or(self.floor_seq, |entry| entry.seq)
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn charged_bytes(&self) -> usize {
        self.charged_bytes
    }

    pub fn cursor_at(&self, seq: u64) -> Cursor {
        Cursor {
            epoch: self.epoch,
            seq,
        }
    }

    /// Appends the frame that `build_frame` makes for its cursor, at the next sequence or at its sequence in the frame stream.
    /// Frames that no longer fit are dropped, oldest first.
    pub fn push(
        &mut self,
        shared_seq: Option<u64>,
        reservation: &mut RingReservation,
        build_frame: impl FnOnce(Cursor, &mut RingReservation) -> Arc<SharedFrame>,
    ) {
        let seq = shared_seq
            .unwrap_or(self.newest_seq() + 1)
            .max(self.newest_seq() + 1);
        let frame = build_frame(self.cursor_at(seq), reservation);
        frame.claim_entry(reservation);
        let entry = RingEntry { frame, seq };
        self.size_bytes += entry.size_bytes();
        self.charged_bytes += entry.charged_bytes();
        self.entries.push_back(entry);
        while self.entries.len() > self.retention.frames || self.size_bytes > self.retention.bytes {
            self.drop_oldest();
        }
    }

    /// Drops expired frames, but none after `consumed_seq`: a live session that is about to read it still does.
    pub fn drop_expired(&mut self, now: Duration, consumed_seq: u64) {
        while self.floor_seq < consumed_seq
            && self
                .entries
                .front()
                .is_some_and(|entry| self.is_expired(entry, now))
        {
            self.drop_oldest();
        }
    }

    fn is_expired(&self, entry: &RingEntry, now: Duration) -> bool {
        entry.frame.added_at + Duration::from_secs(self.retention.seconds) < now
    }

    /// The floor for sessions that open now: expired frames are gone for them, dropped or not.
    pub fn floor_seq_at(&self, now: Duration) -> u64 {
        let expired = self
            .entries
            .iter()
            .take_while(|entry| self.is_expired(entry, now));
        expired.last().map_or(self.floor_seq, |entry| entry.seq)
    }

    /// False when the ring is empty.
    pub fn drop_oldest(&mut self) -> bool {
        let Some(entry) = self.entries.pop_front() else {
            return false;
        };
        self.size_bytes -= entry.size_bytes();
        self.charged_bytes -= entry.charged_bytes();
        self.floor_seq = entry.seq;
        // After a burst its memory is freed; [`RING_ENTRY_BYTES`] counts on it.
        if self.entries.is_empty() {
            self.entries = VecDeque::new();
        } else if self.entries.capacity() > MIN_CAPACITY.max(self.entries.len() * 4) {
            self.entries.shrink_to(self.entries.len() * 2);
        }
        true
    }

    pub fn clear(&mut self) {
        while self.drop_oldest() {}
    }

    /// The sequence from which a session with this cursor continues; `None` when it may have missed frames. No frame up to
    /// `complete_seq` is missing here.
    pub fn find_resume_seq(&self, cursor: Cursor, complete_seq: u64, now: Duration) -> Option<u64> {
        let available = self.floor_seq_at(now)..=self.newest_seq().max(complete_seq);
        (cursor.epoch == self.epoch && available.contains(&cursor.seq))
            .then_some(cursor.seq.min(self.newest_seq()))
    }

    /// The frames after a sequence, each with its own.
    pub fn entries_after(&self, seq: u64) -> impl Iterator<Item = (u64, &RingEntry)> {
        let first = self.entries.partition_point(|entry| entry.seq <= seq);
        self.entries.range(first..).map(|entry| (entry.seq, entry))
    }
}

#[cfg(test)]
mod tests;
