//! Notices leaps of the machine's clock, so that nothing is deleted or closed that only seems old (D-123).

use crate::clock::Clock;
use chorus_wire::time::UnixMicros;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A difference between two looks at both clocks that is a leap. Time servers correct far smaller differences in between.
const LEAP_MIN: Duration = Duration::from_secs(60);
/// Time between two looks, the hub stopped in between, that may also be a leap: nothing measured it.
const UNWATCHED_MAX: Duration = Duration::from_secs(24 * 3600);
/// How long nothing is deleted after a leap: long enough for an operator to see the warning and correct the clock.
const PROTECTED_TIME: Duration = Duration::from_secs(24 * 3600);

/// Compares the wall clock with the monotonic clock.
#[derive(Debug)]
pub(crate) struct ClockWatch {
    clock: Clock,
    state: Mutex<WatchState>,
}

#[derive(Debug)]
struct WatchState {
    wall: UnixMicros,
    steady: Duration,
    /// The sum of leaps since the protected time began: back at zero, the clock is right again.
    leaped_micros: i64,
    /// The least time that the wall clock can have shown after the last leap.
    leaped_at: UnixMicros,
    protected_until: Option<Duration>,
}

/// Tells whether a period is over whose beginning and end are times of the wall clock. A period that began before a leap forward
/// lasts as long as it would have without the leap, but not beyond the protected time (D-123).
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExpiryClock {
    now: UnixMicros,
    leap: ForwardLeap,
}

/// How far ahead of its periods the wall clock is. Without a leap no period began before `at`.
#[derive(Clone, Copy, Debug)]
struct ForwardLeap {
    at: UnixMicros,
    micros: i64,
}

impl ClockWatch {
    /// `last_pass_at` is the time of the last maintenance pass before this hub started.
    pub fn start(clock: Clock, last_pass_at: Option<UnixMicros>) -> Self {
        let (wall, steady) = clock.read_both();
        let mut state = WatchState {
            wall,
            steady,
            leaped_micros: 0,
            leaped_at: UnixMicros(0),
            protected_until: None,
        };
        if let Some(last_pass_at) = last_pass_at {
            state.note_gap(wall.0 - last_pass_at.0);
        }
        Self {
            clock,
            state: Mutex::new(state),
        }
    }

    /// Whether retention may delete now.
    pub fn may_delete(&self) -> bool {
        self.look_at_clocks().protected_until.is_none()
    }

    pub fn expiry_clock(&self) -> ExpiryClock {
        let state = self.look_at_clocks();
        let is_ahead =
            state.protected_until.is_some() && state.leaped_micros >= micros_of(LEAP_MIN);
        if !is_ahead {
            return ExpiryClock::without_leap(state.wall);
        }
        ExpiryClock {
            now: state.wall,
            leap: ForwardLeap {
                at: state.leaped_at,
                micros: state.leaped_micros,
            },
        }
    }

    fn look_at_clocks(&self) -> MutexGuard<'_, WatchState> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // Under the lock, so that each look is later than the one before.
        let (wall, steady) = self.clock.read_both();
        state.note_look(wall, steady);
        state
    }
}

impl WatchState {
    fn note_look(&mut self, wall: UnixMicros, steady: Duration) {
        let wall_before = std::mem::replace(&mut self.wall, wall);
        let steady_before = std::mem::replace(&mut self.steady, steady);
        let leap = (wall.0 - wall_before.0) - micros_of(steady.saturating_sub(steady_before));
        if leap.abs() >= micros_of(LEAP_MIN) {
            self.note_leap(leap, wall_before);
        }
        if self.protected_until.is_some_and(|until| steady >= until) {
            tracing::info!("retention resumes: the clock has not leaped for a day");
            self.end_protected_time();
        }
    }

    fn note_leap(&mut self, leap_micros: i64, wall_before: UnixMicros) {
        metrics::counter!("chorus_clock_leaps_total").increment(1);
        self.leaped_micros += leap_micros;
        if self.protected_until.is_some() && self.leaped_micros.abs() < micros_of(LEAP_MIN) {
            tracing::warn!("the machine's clock leaped back; retention resumes");
            return self.end_protected_time();
        }
        tracing::warn!(
            seconds = leap_micros / 1_000_000,
            "the machine's clock leaped; nothing is deleted for a day"
        );
        self.leaped_at = UnixMicros(wall_before.0 + leap_micros);
        self.protected_until = Some(self.steady + PROTECTED_TIME);
    }

    /// The time since the last pass of a hub that was stopped: a leap of this length cannot be told from it.
    fn note_gap(&mut self, gap_micros: i64) {
        let is_behind = gap_micros < -micros_of(LEAP_MIN);
        if is_behind || gap_micros > micros_of(UNWATCHED_MAX) {
            tracing::warn!(
                seconds = gap_micros / 1_000_000,
                "long since the hub last ran, or the machine's clock leaped; nothing is deleted for a day"
            );
            self.leaped_micros = gap_micros;
            self.leaped_at = self.wall;
            self.protected_until = Some(self.steady + PROTECTED_TIME);
        }
    }

    fn end_protected_time(&mut self) {
        self.protected_until = None;
        self.leaped_micros = 0;
    }
}

impl ForwardLeap {
    const NONE: Self = Self {
        at: UnixMicros(0),
        micros: 0,
    };
}

impl ExpiryClock {
    /// Trusts the wall clock.
    pub fn without_leap(now: UnixMicros) -> Self {
        Self {
            now,
            leap: ForwardLeap::NONE,
        }
    }

    pub fn is_over(self, began_at: UnixMicros, ends_at: UnixMicros) -> bool {
        self.now_since(began_at) >= ends_at
    }

    /// The present for a period that began at this time.
    pub fn now_since(self, began_at: UnixMicros) -> UnixMicros {
        if began_at < self.leap.at {
            self.now_before_leap()
        } else {
            self.now
        }
    }

    /// The time of the wall clock.
    pub fn now(self) -> UnixMicros {
        self.now
    }

    /// The present for periods that began before [`Self::leaped_at`].
    pub fn now_before_leap(self) -> UnixMicros {
        UnixMicros(self.now.0 - self.leap.micros)
    }

    pub fn leaped_at(self) -> UnixMicros {
        self.leap.at
    }
}

fn micros_of(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}
