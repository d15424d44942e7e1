//! The leaps of a history's clock: small corrections, and wrong dates that are set right.

use crate::seeded_random::SeededRandom;

/// How far the clock is corrected, ahead or back.
const SHORT_LEAP_SECONDS: usize = 3_600;
/// How far ahead it leaps by a wrong date, so that everything stored seems old. A leap that is hardly longer than a day, while no
/// hub runs, cannot be told from a stop, and what begins at a date in the past ends when the clock is set right (D-123).
const LONG_LEAP_SECONDS: std::ops::Range<usize> = 30 * 3_600..72 * 3_600;
/// How many leaps are short for one that is long.
const SHORT_LEAPS: usize = 2;

/// By how much the clock is ahead of the time that passed, in seconds.
#[derive(Clone, Copy, Default)]
pub struct ClockError {
    now: i64,
    most: i64,
    /// The part of it that is a wrong date.
    long: i64,
}

impl ClockError {
    /// The seconds of the next leap, ahead or back.
    pub fn draw_leap(&mut self, random: &mut SeededRandom) -> i64 {
        let seconds = match random.below(SHORT_LEAPS + 1) {
            0 => self.draw_long_leap(random),
            _ => random.below(2 * SHORT_LEAP_SECONDS) as i64 - SHORT_LEAP_SECONDS as i64,
        };
        self.now += seconds;
        self.most = self.most.max(self.now);
        seconds
    }

    /// To a wrong date, and from there back to the right one.
    fn draw_long_leap(&mut self, random: &mut SeededRandom) -> i64 {
        if self.long != 0 {
            return -std::mem::take(&mut self.long);
        }
        let range = LONG_LEAP_SECONDS;
        self.long = (range.start + random.below(range.len())) as i64;
        self.long
    }

    /// How long it takes until the clock shows the latest time that it has ever shown.
    pub fn seconds_behind_most(self) -> u64 {
        (self.most - self.now).unsigned_abs()
    }
}
