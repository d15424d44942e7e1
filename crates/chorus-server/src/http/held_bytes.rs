//! Counts the bytes that clients make the hub hold, in total and per address, so that they stay within a bound.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The part of the memory that one address may take, so that one client leaves room for others.
const ADDRESS_PART: u64 = 4;

#[derive(Default)]
struct ByteCounts {
    total: u64,
    by_address: HashMap<IpAddr, u64>,
}

/// The bytes that are held now, and how many may be.
#[derive(Clone)]
pub struct HeldBytes {
    counts: Arc<Mutex<ByteCounts>>,
    max: u64,
}

impl HeldBytes {
    pub fn with_max(max: u64) -> Self {
        Self {
            counts: Arc::default(),
            max,
        }
    }

    fn lock_counts(&self) -> MutexGuard<'_, ByteCounts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `None` when there is no room. What comes first always fits, however large it is.
    pub fn reserve(&self, address: IpAddr, bytes: u64) -> Option<ByteReservation> {
        let mut reservation = ByteReservation {
            held: self.clone(),
            address,
            bytes: 0,
        };
        reservation.try_grow(bytes).then_some(reservation)
    }

    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        let counts = self.lock_counts();
        counts.total == 0 && counts.by_address.is_empty()
    }
}

/// Bytes of one address; dropping it gives them back.
pub struct ByteReservation {
    held: HeldBytes,
    address: IpAddr,
    bytes: u64,
}

impl ByteReservation {
    /// Reserves further bytes; false when there is no room.
    pub fn try_grow(&mut self, bytes: u64) -> bool {
        let mut counts = self.held.lock_counts();
        let of_address = counts.by_address.get(&self.address).copied();
        let of_address = of_address.unwrap_or_default();
        let fits = |used: u64, max: u64| used == self.bytes || used + bytes <= max;
        let address_max = self.held.max / ADDRESS_PART;
        if !fits(counts.total, self.held.max) || !fits(of_address, address_max) {
            return false;
        }
        counts.total += bytes;
        counts.by_address.insert(self.address, of_address + bytes);
        drop(counts);
        self.bytes += bytes;
        true
    }
}

impl Drop for ByteReservation {
    fn drop(&mut self) {
        let mut counts = self.held.lock_counts();
        counts.total = counts.total.saturating_sub(self.bytes);
        match counts.by_address.get_mut(&self.address) {
            Some(bytes) if *bytes > self.bytes => *bytes -= self.bytes,
            Some(_) | None => drop(counts.by_address.remove(&self.address)),
        }
    }
}
