//! Ring memory: the bytes of all rings of a hub, and their limit (invariant 6). Memory is reserved before a frame is published,
//! so that the limit holds at every moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(super) struct RingMemory {
    used_bytes: AtomicUsize,
    max_bytes: usize,
}

impl RingMemory {
    pub fn new(max_bytes: usize) -> Self {
        Self {
            used_bytes: AtomicUsize::new(0),
            max_bytes,
        }
    }

    pub fn used_bytes(&self) -> usize {
        self.used_bytes.load(Ordering::Relaxed)
    }

    pub fn max_bytes(&self) -> usize {
        self.max_bytes
    }

    /// `None` when the limit would be exceeded.
    pub fn try_reserve(self: &Arc<Self>, bytes: usize) -> Option<RingReservation> {
        let add = |used: usize| {
            used.checked_add(bytes)
                .filter(|total| *total <= self.max_bytes)
        };
        self.used_bytes
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add)
            .ok()?;
        Some(RingReservation {
            memory: self.clone(),
            bytes,
        })
    }

    pub fn release(&self, bytes: usize) {
        self.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Memory that was reserved for one publication. What is not claimed is released.
pub(super) struct RingReservation {
    memory: Arc<RingMemory>,
    bytes: usize,
}

impl RingReservation {
    /// Moves bytes to an owner that releases them when it is dropped.
    pub fn claim(&mut self, bytes: usize) -> ClaimedMemory {
        self.bytes -= bytes;
        ClaimedMemory {
            memory: self.memory.clone(),
            bytes,
        }
    }

    /// The bytes are added to what another owner releases.
    pub fn claim_into(&mut self, claimed: &ClaimedMemory, bytes: usize) {
        debug_assert!(Arc::ptr_eq(&self.memory, &claimed.memory));
        self.bytes -= bytes;
    }
}

impl Drop for RingReservation {
    fn drop(&mut self) {
        self.memory.release(self.bytes);
    }
}

/// Memory of one owner, released when it is dropped.
pub(super) struct ClaimedMemory {
    memory: Arc<RingMemory>,
    bytes: usize,
}

impl ClaimedMemory {
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Releases bytes that came by [`RingReservation::claim_into`].
    pub fn release_part(&self, bytes: usize) {
        self.memory.release(bytes);
    }
}

impl Drop for ClaimedMemory {
    fn drop(&mut self) {
        self.memory.release(self.bytes);
    }
}
