//! The minimum rate at which a client must take an answer.

use chorus_wire::limits;
use std::time::Duration;
use tokio::time::Instant;

/// Watches one answer from its first write that had to wait until all of it is written.
#[derive(Debug, Default)]
pub struct DrainRate {
    waiting_since: Option<Instant>,
    /// Bytes written since then.
    written: u64,
}

impl DrainRate {
    /// When the client counts as too slow, unless it takes more until then. Starts to watch if nothing had to wait before.
    pub fn deadline(&mut self, now: Instant) -> Instant {
        let since = *self.waiting_since.get_or_insert(now);
        let earned = Duration::from_millis(self.written * 1_000 / limits::ANSWER_DRAIN_RATE);
        since + limits::ANSWER_DRAIN_GRACE + earned
    }

    pub fn add_written(&mut self, bytes: usize) {
        if self.waiting_since.is_some() {
            self.written = self.written.saturating_add(bytes as u64);
        }
    }

    /// Everything is written.
    pub fn finish(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //
    #[test]
    fn a_client_earns_time_with_what_it_takes() {
        let start = Instant::now();
        let mut rate = DrainRate::default();
        rate.add_written(1 << 20);
        assert_eq!(
            rate.deadline(start),
            start + limits::ANSWER_DRAIN_GRACE,
            "what the network took at once earns nothing"
        );
        rate.add_written(limits::ANSWER_DRAIN_RATE as usize * 3);
        let later = start + Duration::from_secs(9);
        let earned = limits::ANSWER_DRAIN_GRACE + Duration::from_secs(3);
        assert_eq!(rate.deadline(later), start + earned);
        rate.finish();
        assert_eq!(rate.deadline(later), later + limits::ANSWER_DRAIN_GRACE);
    }
}
