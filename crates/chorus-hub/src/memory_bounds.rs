//! How much memory each part of a hub may hold: shares of the memory that the hub may use as a whole.

use crate::limits;

const MIB: u64 = 1024 * 1024;

/// Max bytes that the parts of a hub hold. Together the shares are a little over half of the total: the rest is for requests,
/// streams, indexes, and for what an allocator cannot give back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryBounds {
    /// The frames in all rings; beyond it the largest rings drop their oldest frames.
    pub frame_rings: usize,
    /// Compiled schemas of skills; beyond it the least used are compiled again.
    pub compiled_schemas: u64,
    pub page_caches: PageCaches,
    /// Large answers that clients have not taken yet; beyond it another one is 503.
    pub large_answers: u64,
    /// Request bodies whose end has not arrived; beyond it such a request is 503.
    pub arriving_bodies: u64,
}

/// Max bytes of database pages that each connection to SQLite keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageCaches {
    pub writer: u64,
    pub reader: u64,
}

impl PageCaches {
    pub const MAX: Self = Self {
        writer: limits::WRITER_CACHE_BYTES,
        reader: limits::READER_CACHE_BYTES,
    };
}

impl MemoryBounds {
    /// The bounds on a machine with plenty of memory.
    pub const MAX: Self = Self {
        frame_rings: limits::ALL_RINGS_BYTES,
        compiled_schemas: limits::COMPILED_SCHEMAS_BYTES,
        page_caches: PageCaches::MAX,
        large_answers: limits::LARGE_ANSWERS_BYTES,
        arriving_bodies: limits::ARRIVING_BODIES_BYTES,
    };

    /// The least memory that a hub can be given: below it a bound would be smaller than what one request may need.
    pub const MIN_TOTAL: u64 = 64 * MIB;

    /// The bounds of a hub that may use this many bytes as a whole.
    pub fn for_total(total: u64) -> Self {
        let share = |part: u64, max: u64| (total / part).min(max);
        Self {
            frame_rings: share(4, limits::ALL_RINGS_BYTES as u64) as usize,
            // One schema with many patterns weighs a quarter of the largest cache.
            compiled_schemas: share(16, limits::COMPILED_SCHEMAS_BYTES).max(8 * MIB),
            page_caches: PageCaches {
                writer: share(16, limits::WRITER_CACHE_BYTES),
                reader: share(128, limits::READER_CACHE_BYTES),
            },
            large_answers: share(8, limits::LARGE_ANSWERS_BYTES),
            arriving_bodies: share(16, limits::ARRIVING_BODIES_BYTES),
        }
    }
}

impl Default for MemoryBounds {
    fn default() -> Self {
        Self::MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    ///
    #[test]
    fn the_bounds_leave_a_third_of_a_small_machine_and_stop_growing_on_a_large_one() {
        for mib in [64, 128, 256, 512, 1024, 2048, 4096] {
            let bounds = MemoryBounds::for_total(mib * MIB);
            let readers = 4 * bounds.page_caches.reader;
            let sum = bounds.frame_rings as u64
                + bounds.compiled_schemas
                + bounds.page_caches.writer
                + readers
                + bounds.large_answers
                + bounds.arriving_bodies;
            assert!(sum * 3 <= mib * MIB * 2, "{mib} MiB: {bounds:?}");
        }
        assert_eq!(MemoryBounds::for_total(64 * 1024 * MIB), MemoryBounds::MAX);
    }
}
