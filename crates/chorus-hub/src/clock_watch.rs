//! Notices leaps of the machine's clock, so that retention does not delete what only seems old.

use crate::clock::Clock;
use chorus_wire::time::UnixMicros;
use std::time::Duration;

/// A difference between two looks at both clocks that is a leap. Time servers correct far smaller differences in between.
const LEAP_MIN: Duration = Duration::from_secs(60);
/// Time between two looks, the hub stopped in between, that may also be a leap: nothing measured it.
const UNWATCHED_MAX: Duration = Duration::from_secs(24 * 3600);
/// How long nothing is deleted after a leap: long enough for an operator to see the warning and correct the clock.
pub(crate) const RETENTION_PAUSE: Duration = Duration::from_secs(24 * 3600);

/// Compares the wall clock with the monotonic clock.
#[derive(Debug)]
pub(crate) struct ClockWatch {
    wall: UnixMicros,
    steady: Duration,
    /// The sum of leaps since the pause began: back at zero, the clock is right again.
    leaped_micros: i64,
    paused_until: Option<Duration>,
    was_started_checked: bool,
}

impl ClockWatch {
    pub fn start_at(clock: &Clock) -> Self {
        Self {
            wall: clock.now(),
            steady: clock.monotonic_now(),
            leaped_micros: 0,
            paused_until: None,
            was_started_checked: false,
        }
    }

    /// Whether retention may delete now. `last_pass_at` is the time of the last maintenance pass before this hub started.
    pub fn check_retention(&mut self, clock: &Clock, last_pass_at: Option<UnixMicros>) -> bool {
        let wall = clock.now();
        let steady = clock.monotonic_now();
        let wall_passed = wall.0 - self.wall.0;
        let steady_passed = steady.saturating_sub(self.steady).as_micros() as i64;
        self.wall = wall;
        self.steady = steady;
        self.note_leap(wall_passed - steady_passed, steady);
        if !std::mem::replace(&mut self.was_started_checked, true)
            && let Some(last_pass_at) = last_pass_at
        {
            self.note_gap(wall.0 - last_pass_at.0, steady);
        }
        if self.paused_until.is_some_and(|until| steady >= until) {
            tracing::info!("retention resumes: the clock has not leaped for a day");
            self.end_pause();
        }
        self.paused_until.is_none()
    }

    fn note_leap(&mut self, leap_micros: i64, steady: Duration) {
        if leap_micros.unsigned_abs() < LEAP_MIN.as_micros() as u64 {
            return;
        }
        metrics::counter!("chorus_clock_leaps_total").increment(1);
        self.leaped_micros += leap_micros;
        if self.paused_until.is_some()
            && self.leaped_micros.unsigned_abs() < LEAP_MIN.as_micros() as u64
        {
            tracing::warn!("the machine's clock leaped back; retention resumes");
            return self.end_pause();
        }
        tracing::warn!(
            seconds = leap_micros / 1_000_000,
            "the machine's clock leaped; nothing is deleted for a day"
        );
        self.paused_until = Some(steady + RETENTION_PAUSE);
    }

    fn note_gap(&mut self, gap_micros: i64, steady: Duration) {
        let is_behind = gap_micros < -(LEAP_MIN.as_micros() as i64);
        if is_behind || gap_micros > UNWATCHED_MAX.as_micros() as i64 {
            tracing::warn!(
                seconds = gap_micros / 1_000_000,
                "long since the hub last ran, or the machine's clock leaped; nothing is deleted for a day"
            );
            self.paused_until = Some(steady + RETENTION_PAUSE);
        }
    }

    fn end_pause(&mut self) {
        self.paused_until = None;
        self.leaped_micros = 0;
    }
}
