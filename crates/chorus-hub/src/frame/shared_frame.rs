//! A frame as the rings of all its targets share it: its payload is stored once, however many rings it enters.

use super::frame_label::FrameLabel;
use super::ring_memory::{ClaimedMemory, RingReservation};
use bytes::Bytes;
use chorus_wire::cursor::Cursor;
use chorus_wire::event_chunk;
use std::sync::Arc;
use std::time::Duration;

/// Memory of a frame beside its event: the label, the reference counts, the allocator's overhead. Without it tiny frames would use
/// several times the limit.
const FRAME_OVERHEAD_BYTES: usize = 384;
/// Max bytes of an event beside the frame: its name, its id, the names of the fields, and the framing of its chunk.
const EVENT_HEAD_BYTES: usize = 128;
/// Memory of a frame in one ring: an entry of 16 bytes in a buffer of at most four times the capacity that is used.
pub(super) const RING_ENTRY_BYTES: usize = 64;

pub(super) struct SharedFrame {
    pub label: Arc<FrameLabel>,
    pub added_at: Duration,
    event: SharedEvent,
    text_bytes: usize,
    /// The part of the payload that each ring is charged for when the largest ring is looked for.
    share_bytes: usize,
    claimed_memory: ClaimedMemory,
}

/// The bytes that every session of every ring gets.
enum SharedEvent {
    /// The whole event, of a frame with one target.
    Complete(Bytes),
    /// The data of the event and the end of its chunk. Each ring has another id, which is rendered when a session reads.
    DataOnly(Bytes),
}

impl SharedFrame {
    /// What a frame takes once. Each ring takes [`RING_ENTRY_BYTES`] more.
    pub fn required_bytes(text: &str) -> usize {
        text.len() + EVENT_HEAD_BYTES + FRAME_OVERHEAD_BYTES
    }

    /// A frame with one target: the event is rendered once and shared by all its sessions.
    pub fn for_one_ring(
        cursor: Cursor,
        text: &str,
        label: Arc<FrameLabel>,
        now: Duration,
        reservation: &mut RingReservation,
    ) -> Self {
        let event = event_chunk::format_event_chunk(label.kind.as_str(), Some(cursor), text);
        Self::new(
            SharedEvent::Complete(event),
            1,
            text,
            label,
            now,
            reservation,
        )
    }

    /// A frame with several targets.
    pub fn for_rings(
        ring_count: usize,
        text: &str,
        label: Arc<FrameLabel>,
        now: Duration,
        reservation: &mut RingReservation,
    ) -> Self {
        let event = SharedEvent::DataOnly(event_chunk::format_chunk_data(text));
        Self::new(event, ring_count, text, label, now, reservation)
    }

    fn new(
        event: SharedEvent,
        ring_count: usize,
        text: &str,
        label: Arc<FrameLabel>,
        added_at: Duration,
        reservation: &mut RingReservation,
    ) -> Self {
        let claimed_memory = reservation.claim(Self::required_bytes(text));
        Self {
            label,
            added_at,
            event,
            text_bytes: text.len(),
            share_bytes: claimed_memory.bytes().div_ceil(ring_count.max(1)),
            claimed_memory,
        }
    }

    pub fn text_bytes(&self) -> usize {
        self.text_bytes
    }

    /// The memory that the frame takes once.
    #[cfg(test)]
    pub fn claimed_bytes(&self) -> usize {
        self.claimed_memory.bytes()
    }

    pub fn share_bytes(&self) -> usize {
        self.share_bytes
    }

    /// The frame enters one more ring.
    pub fn claim_entry(&self, reservation: &mut RingReservation) {
        reservation.claim_into(&self.claimed_memory, RING_ENTRY_BYTES);
    }

    /// A ring drops the frame.
    pub fn release_entry(&self) {
        self.claimed_memory.release_part(RING_ENTRY_BYTES);
    }
}

/// Max bytes that a session reads at once: larger writes save nothing.
pub(super) const CHUNK_BYTES: usize = 64 * 1024;
/// An event of this size is shared and not copied into the chunk of each session: copies for many slow sessions would take
/// memory that no limit counts.
const COPIED_EVENT_BYTES: usize = 16 * 1024;

/// The events that a session reads at once. A single event is shared; small ones are copied into one chunk, so that they are one
/// write and one reference count.
pub(super) struct EventBatch {
    parts: Vec<Bytes>,
    /// A first event that nothing followed yet.
    first_event: Option<Bytes>,
    chunk: Vec<u8>,
    size_bytes: usize,
    max_events: usize,
}

impl EventBatch {
    /// For at most this many events.
    pub fn new(max_events: usize) -> Self {
        Self {
            parts: Vec::new(),
            first_event: None,
            chunk: Vec::new(),
            size_bytes: 0,
            max_events,
        }
    }

    /// Adds an event; false when the batch is full without it.
    pub fn push(&mut self, frame: &SharedFrame, cursor: Cursor) -> bool {
        let is_first = self.size_bytes == 0;
        let event_bytes = match &frame.event {
            SharedEvent::Complete(event) => event.len(),
            SharedEvent::DataOnly(data) => data.len() + EVENT_HEAD_BYTES,
        };
        if !is_first && self.size_bytes + event_bytes > CHUNK_BYTES {
            return false;
        }
        self.size_bytes += event_bytes;
        match &frame.event {
            SharedEvent::Complete(event) if is_first => self.first_event = Some(event.clone()),
            SharedEvent::Complete(event) => self.append(event),
            SharedEvent::DataOnly(data) => {
                self.copy_first_event();
                self.reserve_chunk(event_bytes);
                let kind = frame.label.kind.as_str();
                event_chunk::write_chunk_head(&mut self.chunk, kind, cursor, data);
                self.append(data);
            }
        }
        true
    }

    /// Room for all events if they are of this size, so that the chunk does not grow step by step.
    fn reserve_chunk(&mut self, event_bytes: usize) {
        if self.chunk.is_empty() {
            let expected = match event_bytes < COPIED_EVENT_BYTES {
                true => event_bytes.saturating_mul(self.max_events).min(CHUNK_BYTES),
                false => EVENT_HEAD_BYTES,
            };
            self.chunk.reserve_exact(expected);
        }
    }

    fn copy_first_event(&mut self) {
        if let Some(first) = self.first_event.take() {
            self.append_bytes(&first);
        }
    }

    fn append(&mut self, bytes: &Bytes) {
        self.copy_first_event();
        self.append_bytes(bytes);
    }

    fn append_bytes(&mut self, bytes: &Bytes) {
        if bytes.len() < COPIED_EVENT_BYTES {
            self.reserve_chunk(bytes.len());
            self.chunk.extend_from_slice(bytes);
        } else {
            self.flush_chunk();
            self.parts.push(bytes.clone());
        }
    }

    fn flush_chunk(&mut self) {
        if !self.chunk.is_empty() {
            self.parts.push(std::mem::take(&mut self.chunk).into());
        }
    }

    /// The bytes to write, in order; empty when there are none.
    pub fn into_parts(mut self) -> Vec<Bytes> {
        self.flush_chunk();
        self.parts.extend(self.first_event);
        self.parts
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::handle_sessions::tests::label;
    use super::super::ring_memory::RingMemory;
    use super::*;

    /// Memory for one frame in `ring_count` rings.
    pub fn reserve(text: &str, ring_count: usize) -> RingReservation {
        let bytes = SharedFrame::required_bytes(text) + ring_count * RING_ENTRY_BYTES;
        Arc::new(RingMemory::new(bytes)).try_reserve(bytes).unwrap()
    }

    /// All events of frames with these texts, as one ring gives them out.
    fn read_parts(texts: &[&str], ring_count: usize) -> Vec<Bytes> {
        let mut batch = EventBatch::new(texts.len());
        for (seq, text) in (1..).zip(texts) {
            let cursor = Cursor { epoch: 7, seq };
            let mut reservation = reserve(text, ring_count);
            let frame = match ring_count {
                1 => SharedFrame::for_one_ring(
                    cursor,
                    text,
                    label(),
                    Duration::ZERO,
                    &mut reservation,
                ),
                _ => SharedFrame::for_rings(
                    ring_count,
                    text,
                    label(),
                    Duration::ZERO,
                    &mut reservation,
                ),
            };
            assert!(batch.push(&frame, cursor));
        }
        batch.into_parts()
    }

    /// each event is one chunk, and a session cannot tell from the bytes how many handles a frame was for.
    #[test]
    fn an_event_has_the_same_bytes_however_many_rings_share_it() {
        let large = "x".repeat(COPIED_EVENT_BYTES);
        let sequences: [&[&str]; 6] = [
            &["1"],
            &[&large],
            &["1", "2", "3"],
            &["1", &large, "3"],
            &[&large, "2"],
            &["1", "2", &large],
        ];
        for texts in sequences {
            let expected: String = (1..)
                .zip(texts)
                .map(|(seq, text): (u64, &&str)| {
                    let event = format!("event: agent_advisory\nid: 7-{seq}\ndata: {text}\n\n");
                    format!("{:x}\r\n{event}\r\n", event.len())
                })
                .collect();
            for ring_count in [1, 2, 500] {
                let parts = read_parts(texts, ring_count);
                assert!(parts.concat() == expected.as_bytes(), "{ring_count} rings");
            }
        }
    }

    /// the data of a large event is not copied for each session.
    #[test]
    fn a_large_event_is_shared_and_a_small_one_is_one_write() {
        let large = "x".repeat(60_000);
        assert_eq!(read_parts(&[&large], 1).len(), 1);
        let parts = read_parts(&[&large], 2);
        assert_eq!(parts.len(), 2);
        assert!(parts[0].len() < EVENT_HEAD_BYTES, "{}", parts[0].len());
        assert_eq!(read_parts(&["1", "2", "3"], 2).len(), 1);
    }
}
