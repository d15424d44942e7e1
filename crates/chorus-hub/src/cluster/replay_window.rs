//! Which numbered messages of each hub were received: none is accepted twice (D-106).

use super::message_auth::MessageKind;
use super::protocol::HubId;
use std::collections::HashMap;

/// Numbers below the highest one that are told apart. Tasks of a hub that send at the same time send their messages in another
/// order than they were numbered, by a few places; one that is further behind is refused.
const WINDOW_NUMBERS: u64 = 1_024;
const WORD_BITS: u64 = 64;
const WINDOW_WORDS: usize = (WINDOW_NUMBERS / WORD_BITS) as usize;
/// Max windows: one for each run of a hub and kind of message, of about 200 bytes. Beyond it the least recently used is forgotten.
const MAX_WINDOWS: usize = 4_096;

#[derive(Default)]
pub(super) struct ReplayGuard {
    windows: HashMap<(HubId, MessageKind), ReplayWindow>,
    use_count: u64,
}

impl ReplayGuard {
    /// True when the message with this number was not received before.
    pub fn accept_number(&mut self, hub: HubId, kind: MessageKind, number: u64) -> bool {
        let key = (hub, kind);
        self.use_count += 1;
        if self.windows.len() >= MAX_WINDOWS && !self.windows.contains_key(&key) {
            let oldest = self.windows.iter().min_by_key(|(_, window)| window.used_at);
            if let Some(oldest) = oldest.map(|(key, _)| *key) {
                self.windows.remove(&oldest);
            }
        }
        let window = self.windows.entry(key).or_default();
        window.used_at = self.use_count;
        window.accept(number)
    }
}

/// A bitmap over the last numbers; the bit of a number is at its remainder.
#[derive(Default)]
struct ReplayWindow {
    highest: u64,
    seen: [u64; WINDOW_WORDS],
    used_at: u64,
}

impl ReplayWindow {
    fn accept(&mut self, number: u64) -> bool {
        if number > self.highest {
            let skipped = (number - self.highest).min(WINDOW_NUMBERS);
            for passed in 0..skipped {
                self.set_seen(number - passed, false);
            }
            self.highest = number;
        } else if self.highest - number >= WINDOW_NUMBERS || self.is_seen(number) {
            return false;
        }
        self.set_seen(number, true);
        true
    }

    fn is_seen(&self, number: u64) -> bool {
        let index = number % WINDOW_NUMBERS;
        self.seen[(index / WORD_BITS) as usize] >> (index % WORD_BITS) & 1 == 1
    }

    fn set_seen(&mut self, number: u64, seen: bool) {
        let index = number % WINDOW_NUMBERS;
        let word = &mut self.seen[(index / WORD_BITS) as usize];
        let bit = 1 << (index % WORD_BITS);
        *word = if seen { *word | bit } else { *word & !bit };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    proptest! {
        /// Every number is accepted once, unless it comes too late.
        #[test]
        fn no_number_is_accepted_twice(steps in prop::collection::vec(0u64..5_000, 1..400)) {
            let mut window = ReplayWindow::default();
            let mut seen = HashSet::new();
            let mut highest = 0;
            for number in steps {
                let is_late = number + WINDOW_NUMBERS <= highest;
                prop_assert_eq!(window.accept(number + 1), !is_late && seen.insert(number));
                highest = highest.max(number);
            }
        }
    }

    /// Invariant 6
    #[test]
    fn the_windows_of_hubs_that_are_still_heard_stay() {
        let mut guard = ReplayGuard::default();
        for hub in 0..2 * MAX_WINDOWS as u64 {
            assert!(guard.accept_number(1_000_000, MessageKind::Frame, hub + 1));
            assert!(guard.accept_number(hub, MessageKind::Request, 1));
        }
        assert_eq!(guard.windows.len(), MAX_WINDOWS);
        assert!(!guard.accept_number(1_000_000, MessageKind::Frame, 2 * MAX_WINDOWS as u64));
    }
}
