//! The database of a history: a SQLite file with the faults of a file, or with those of a server that two hubs share.

use crate::seeded_random::SeededRandom;
use chorus_hub::Clock;
use chorus_hub::simulation::{IdleConnections, PlannedCommit, SimulatedDatabase};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What all hubs of a history share of their database.
pub struct DatabaseServer {
    pub file: PathBuf,
    idle_connections: Arc<IdleConnections>,
    pub is_shared: bool,
    clock: Clock,
    lock: Arc<tokio::sync::Mutex<()>>,
    faults: Mutex<DatabaseFaults>,
}

struct DatabaseFaults {
    random: SeededRandom,
    /// The probability that a commit meets a fault.
    rate: f64,
    /// On the clock's steady time.
    outage_until: Duration,
    commit_fault_count: usize,
    /// The next commit is lost in silence.
    forgets_next: bool,
}

impl DatabaseServer {
    pub fn new(
        file: PathBuf,
        idle_connections: Arc<IdleConnections>,
        is_shared: bool,
        clock: Clock,
        random: SeededRandom,
        rate: f64,
    ) -> Self {
        Self {
            file,
            idle_connections,
            is_shared,
            clock,
            lock: Arc::default(),
            faults: Mutex::new(DatabaseFaults {
                random,
                rate,
                outage_until: Duration::ZERO,
                commit_fault_count: 0,
                forgets_next: false,
            }),
        }
    }

    pub fn begin_outage(&self, duration: Duration) {
        self.faults.lock().unwrap().outage_until = self.clock.monotonic_now() + duration;
    }

    /// The next commit is confirmed and has no effect.
    pub fn forget_next_commit(&self) {
        self.faults.lock().unwrap().forgets_next = true;
    }

    /// How many commits met a fault.
    pub fn commit_fault_count(&self) -> usize {
        self.faults.lock().unwrap().commit_fault_count
    }

    /// From here on there are no faults.
    pub fn heal(&self) {
        let mut faults = self.faults.lock().unwrap();
        faults.rate = 0.0;
        faults.outage_until = Duration::ZERO;
    }

    fn plan_commit(&self) -> PlannedCommit {
        let mut faults = self.faults.lock().unwrap();
        if std::mem::take(&mut faults.forgets_next) {
            return PlannedCommit::Forget;
        }
        let rate = faults.rate;
        let random = &mut faults.random;
        if !random.happens(rate) {
            return PlannedCommit::Commit;
        }
        let applied = random.happens(0.5);
        faults.commit_fault_count += 1;
        let random = &mut faults.random;
        if !self.is_shared {
            // A file that cannot be written takes nothing.
            return match random.below(3) {
                0 => PlannedCommit::LoseAnswer { applied: false },
                _ => PlannedCommit::Die { applied },
            };
        }
        match random.below(16) {
            0..5 => PlannedCommit::Delay(random.millis(1, 60)),
            // Longer than a hub waits for its database.
            5 => PlannedCommit::Delay(Duration::from_secs(16)),
            6..8 => PlannedCommit::RollBack,
            8..10 => PlannedCommit::LoseConnection,
            10..14 => PlannedCommit::LoseAnswer { applied },
            _ => PlannedCommit::Die { applied },
        }
    }
}

/// The connection of one run of one hub.
pub struct HubDatabase {
    pub server: Arc<DatabaseServer>,
    /// Set when the hub dies at a commit.
    pub is_dying: Arc<AtomicBool>,
}

impl fmt::Debug for HubDatabase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.server.file.fmt(f)
    }
}

impl SimulatedDatabase for HubDatabase {
    fn file(&self) -> &Path {
        &self.server.file
    }

    fn idle_connections(&self) -> &IdleConnections {
        &self.server.idle_connections
    }

    fn is_shared(&self) -> bool {
        self.server.is_shared
    }

    fn group_lock(&self) -> Arc<tokio::sync::Mutex<()>> {
        self.server.lock.clone()
    }

    fn outage(&self) -> Option<String> {
        let until = self.server.faults.lock().unwrap().outage_until;
        (self.server.clock.monotonic_now() < until).then(|| "the database is away".to_owned())
    }

    fn next_commit(&self) -> PlannedCommit {
        let planned = self.server.plan_commit();
        if matches!(planned, PlannedCommit::Die { .. }) {
            self.is_dying.store(true, Ordering::SeqCst);
        }
        planned
    }

    fn late_commit_applies(&self) -> bool {
        self.server.faults.lock().unwrap().random.happens(0.5)
    }
}
