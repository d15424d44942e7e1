//! Where time and new ids come from, so that tests hold them still (law 10).

use chorus_wire::time::Micros;
use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicI64, Ordering},
};
use std::time::{Duration, Instant};

/// The machine's clock, or one that only a test moves.
#[derive(Clone, Debug)]
pub struct Clock(Kind);

#[derive(Clone, Debug)]
enum Kind {
    System,
    Held(Arc<AtomicI64>),
    /// What the time was when the process began, as far as is known by now. It goes on by itself: a machine's clock that is
    /// set while a hub runs must not end a lease (D-83).
    Led(Arc<AtomicI64>),
}

impl Clock {
    pub const fn system() -> Self {
        Self(Kind::System)
    }

    /// Stands at `at` until it is moved with [`Clock::advance`].
    pub fn held(at: Micros) -> Self {
        Self(Kind::Held(Arc::new(AtomicI64::new(at.0))))
    }

    /// The machine's clock as if it went this much ahead, or behind.
    pub fn off_by(micros: i64) -> Self {
        Self(Kind::Led(Arc::new(AtomicI64::new(
            machine().0 + micros - since_start(),
        ))))
    }

    /// The same clock, which may be set right: hubs that share a database go by its clock, so that one that is a minute ahead
    /// takes nobody's lease away.
    pub(crate) fn led(self) -> Self {
        match self.0 {
            Kind::System => Self::off_by(0),
            Kind::Held(_) | Kind::Led(_) => self,
        }
    }

    /// It is now this late. A held clock is the test's alone.
    pub(crate) fn follow(&self, now: Micros) {
        match &self.0 {
            Kind::System | Kind::Held(_) => {}
            Kind::Led(start) => start.store(now.0 - since_start(), Ordering::SeqCst),
        }
    }

    /// Moves a held clock, and every clone of it; the machine's clock is nobody's to move.
    pub fn advance(&self, by: Duration) {
        match &self.0 {
            Kind::System | Kind::Led(_) => {}
            Kind::Held(at) => {
                at.fetch_add(by.as_micros() as i64, Ordering::SeqCst);
            }
        }
    }

    pub fn now(&self) -> Micros {
        match &self.0 {
            Kind::System => machine(),
            Kind::Led(start) => Micros(start.load(Ordering::SeqCst) + since_start()),
            Kind::Held(at) => Micros(at.load(Ordering::SeqCst)),
        }
    }

    /// Time that never runs backwards, to measure waits with; a held clock shows its own.
    pub fn steady(&self) -> Duration {
        match &self.0 {
            Kind::System | Kind::Led(_) => elapsed(),
            Kind::Held(at) => Duration::from_micros(at.load(Ordering::SeqCst).unsigned_abs()),
        }
    }

    /// A name for one request in replies and logs. It proves nothing, so eight random bytes will do.
    pub fn request_id(&self) -> String {
        format!("{:016x}", rand::random::<u64>())
    }
}

/// Since the process first looked at a clock.
fn elapsed() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

fn since_start() -> i64 {
    elapsed().as_micros() as i64
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the one place that reads the machine's clock"
)]
fn machine() -> Micros {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Micros(since.map_or(0, |d| d.as_micros() as i64))
}

/// A new secret: `prefix` and 32 hex digits, 128 bits of the system's randomness.
pub(crate) fn new_secret(prefix: &str) -> chorus_wire::secret::Secret {
    chorus_wire::secret::Secret::new(format!("{prefix}{:032x}", rand::random::<u128>()))
}

/// A new id that is no secret.
pub fn new_id() -> uuid::Uuid {
    uuid::Builder::from_random_bytes(rand::random()).into_uuid()
}

/// A number that tells one life of a ring from every other; 48 bits keep the ids of events short.
pub(crate) fn new_epoch() -> u64 {
    (rand::random::<u64>() >> 16).max(1)
}
