//! The source of time, so that tests control it (invariant 10).

use chorus_wire::time::UnixMicros;
use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicI64, Ordering},
};
use std::time::{Duration, Instant};

/// The machine's clock, or a manual one for tests.
#[derive(Clone, Debug)]
pub struct Clock(ClockSource);

#[derive(Clone, Debug)]
enum ClockSource {
    System,
    Manual(Arc<ManualTime>),
    /// The time at which the process started, as last synced with the database. It advances with the monotonic clock: a machine's
    /// clock that is stepped must not end a lease (D-83).
    Synced(Arc<AtomicI64>),
}

/// The time of a manual clock. A leap moves the wall clock alone.
#[derive(Debug)]
struct ManualTime {
    steady: AtomicI64,
    leaps: AtomicI64,
}

impl Clock {
    pub const fn system() -> Self {
        Self(ClockSource::System)
    }

    /// Stays at `at` until it is moved with [`Clock::advance`].
    pub fn manual_at(at: UnixMicros) -> Self {
        Self(ClockSource::Manual(Arc::new(ManualTime {
            steady: AtomicI64::new(at.0),
            leaps: AtomicI64::new(0),
        })))
    }

    /// The machine's clock, this many microseconds ahead or behind.
    pub fn with_offset(micros: i64) -> Self {
        Self(ClockSource::Synced(Arc::new(AtomicI64::new(
            system_now().0 + micros - uptime_micros(),
        ))))
    }

    /// The same clock, which can be synced: hubs of a cluster use the database's clock, so that a hub that is a minute ahead
    /// does not take over leases of others.
    pub(crate) fn into_synced(self) -> Self {
        match self.0 {
            ClockSource::System => Self::with_offset(0),
            ClockSource::Manual(_) | ClockSource::Synced(_) => self,
        }
    }

    /// Sets a synced clock; a manual clock is only moved by its test.
    pub(crate) fn sync_to(&self, now: UnixMicros) {
        match &self.0 {
            ClockSource::System | ClockSource::Manual(_) => {}
            ClockSource::Synced(start) => start.store(now.0 - uptime_micros(), Ordering::SeqCst),
        }
    }

    /// Moves a manual clock and all its clones; no effect on others.
    pub fn advance(&self, by: Duration) {
        match &self.0 {
            ClockSource::System | ClockSource::Synced(_) => {}
            ClockSource::Manual(at) => {
                at.steady.fetch_add(by.as_micros() as i64, Ordering::SeqCst);
            }
        }
    }

    /// Sets a manual clock forward or back without time passing, as an operator or a time server does with a machine's clock.
    pub fn leap(&self, micros: i64) {
        match &self.0 {
            ClockSource::System | ClockSource::Synced(_) => {}
            ClockSource::Manual(at) => {
                at.leaps.fetch_add(micros, Ordering::SeqCst);
            }
        }
    }

    pub fn now(&self) -> UnixMicros {
        match &self.0 {
            ClockSource::System => system_now(),
            ClockSource::Synced(start) => {
                UnixMicros(start.load(Ordering::SeqCst) + uptime_micros())
            }
            ClockSource::Manual(at) => {
                UnixMicros(at.steady.load(Ordering::SeqCst) + at.leaps.load(Ordering::SeqCst))
            }
        }
    }

    /// The wall clock and the monotonic clock at one moment: a manual clock may be advanced between two reads.
    pub(crate) fn read_both(&self) -> (UnixMicros, Duration) {
        match &self.0 {
            ClockSource::System | ClockSource::Synced(_) => (self.now(), self.monotonic_now()),
            ClockSource::Manual(at) => {
                let steady = at.steady.load(Ordering::SeqCst);
                let wall = UnixMicros(steady + at.leaps.load(Ordering::SeqCst));
                (wall, Duration::from_micros(steady.unsigned_abs()))
            }
        }
    }

    /// Monotonic time, for measuring waits; a manual clock returns its own time.
    pub fn monotonic_now(&self) -> Duration {
        match &self.0 {
            ClockSource::System | ClockSource::Synced(_) => process_uptime(),
            ClockSource::Manual(at) => {
                Duration::from_micros(at.steady.load(Ordering::SeqCst).unsigned_abs())
            }
        }
    }
}

/// The time since the process first read a clock.
fn process_uptime() -> Duration {
    static PROCESS_START: OnceLock<Instant> = OnceLock::new();
    PROCESS_START.get_or_init(Instant::now).elapsed()
}

fn uptime_micros() -> i64 {
    process_uptime().as_micros() as i64
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the one place that reads the machine's clock"
)]
fn system_now() -> UnixMicros {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    UnixMicros(since.map_or(0, |d| d.as_micros() as i64))
}
