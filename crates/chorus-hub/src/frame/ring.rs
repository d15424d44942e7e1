//! The last frames of one handle, as events ready to be written: bounded in time, number and bytes.

use super::label::Label;
use bytes::Bytes;
use chorus_wire::cursor::Cursor;
use chorus_wire::{limits, sse};
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// How long and how much a hub keeps for those who come back, as it tells them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Retention {
    pub seconds: u64,
    pub frames: usize,
    pub bytes: usize,
}

pub const RETENTION: Retention = Retention {
    seconds: limits::RING_KEPT.as_secs(),
    frames: limits::RING_FRAMES,
    bytes: limits::RING_BYTES,
};

/// What an entry costs beside its event: itself, its share of the label, the allocator's part. Without it a ring of tiny
/// frames would hold several times its bound.
const ENTRY_BYTES: usize = 256;

pub(super) struct Entry {
    pub event: Bytes,
    pub label: Arc<Label>,
    seq: u64,
    at: Duration,
}

impl Entry {
    fn bytes(&self) -> usize {
        self.event.len() + ENTRY_BYTES
    }
}

pub(super) struct Ring {
    epoch: u64,
    /// The place of the newest frame that is no longer here; the first one kept follows it.
    floor: u64,
    entries: VecDeque<Entry>,
    bytes: usize,
    bounds: Retention,
}

impl Ring {
    /// `epoch` is another one for every ring there ever is, so that an id of another life is known for what it is. Rings that
    /// several hubs fill alike share one, and begin where the hubs' memory does.
    pub fn new(epoch: u64, floor: u64, bounds: Retention) -> Self {
        Self {
            epoch,
            floor,
            entries: VecDeque::new(),
            bytes: 0,
            bounds,
        }
    }

    /// Begins anew, with nothing of what was there.
    pub fn rewind(&mut self, epoch: u64, floor: u64) {
        self.clear();
        (self.epoch, self.floor) = (epoch, floor);
    }

    pub fn floor(&self) -> u64 {
        self.floor
    }

    pub fn newest(&self) -> u64 {
        self.entries.back().map_or(self.floor, |entry| entry.seq)
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn cursor(&self, seq: u64) -> Cursor {
        Cursor {
            epoch: self.epoch,
            seq,
        }
    }

    /// Renders the event, once for everybody, and keeps it at the next place, or at the one that all hubs know it by. Whatever
    /// no longer fits is let go, oldest first.
    pub fn push(&mut self, place: Option<u64>, text: &str, label: Arc<Label>, now: Duration) {
        let seq = place.unwrap_or(self.newest() + 1).max(self.newest() + 1);
        let event = sse::event(label.kind.as_str(), Some(self.cursor(seq)), text);
        let entry = Entry {
            event,
            label,
            seq,
            at: now,
        };
        self.bytes += entry.bytes();
        self.entries.push_back(entry);
        while self.entries.len() > self.bounds.frames || self.bytes > self.bounds.bytes {
            self.drop_oldest();
        }
    }

    /// Lets go of what is past its time, but of nothing after `heard`: a live session that is about to take it still does.
    pub fn expire(&mut self, now: Duration, heard: u64) {
        while self.floor < heard
            && self
                .entries
                .front()
                .is_some_and(|entry| self.is_over(entry, now))
        {
            self.drop_oldest();
        }
    }

    fn is_over(&self, entry: &Entry, now: Duration) -> bool {
        entry.at + Duration::from_secs(self.bounds.seconds) < now
    }

    /// The floor for those who come now: what is past its time is gone for them, here or not.
    pub fn floor_at(&self, now: Duration) -> u64 {
        let over = self
            .entries
            .iter()
            .take_while(|entry| self.is_over(entry, now));
        over.last().map_or(self.floor, |entry| entry.seq)
    }

    /// False when there is none.
    pub fn drop_oldest(&mut self) -> bool {
        let Some(entry) = self.entries.pop_front() else {
            return false;
        };
        self.bytes -= entry.bytes();
        self.floor = entry.seq;
        // A burst is over: its room is given back.
        if self.entries.is_empty() {
            self.entries = VecDeque::new();
        }
        true
    }

    pub fn clear(&mut self) {
        while self.drop_oldest() {}
    }

    /// Where a session that has heard up to `since` goes on, or nothing when that is not known to be without a gap. Nothing
    /// up to `known` is missing here.
    pub fn resume(&self, since: Cursor, known: u64, now: Duration) -> Option<u64> {
        let there = self.floor_at(now)..=self.newest().max(known);
        (since.epoch == self.epoch && there.contains(&since.seq))
            .then_some(since.seq.min(self.newest()))
    }

    /// What is kept after a place, each with its own.
    pub fn after(&self, seq: u64) -> impl Iterator<Item = (u64, &Entry)> {
        let first = self.entries.partition_point(|entry| entry.seq <= seq);
        self.entries.range(first..).map(|entry| (entry.seq, entry))
    }
}

#[cfg(test)]
mod tests;
