//! How many requests are under way, in all and to one host, so that a slow receiver holds up nobody else.

use super::PostError;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Full: the next request waits its turn inside its own deadline. Too many waiting: it is refused at once.
pub struct Slots {
    all: Arc<Semaphore>,
    waiting: Semaphore,
    per_host: usize,
    hosts: Mutex<HashMap<String, Weak<Semaphore>>>,
}

/// Given back when it is dropped.
#[derive(Debug)]
pub struct Slot {
    _host: OwnedSemaphorePermit,
    _all: OwnedSemaphorePermit,
}

/// Hosts remembered before the idle ones are forgotten.
const HOSTS: usize = 1_024;

impl Slots {
    pub fn new(in_flight: usize, per_host: usize, waiting: usize) -> Self {
        Self {
            all: Arc::new(Semaphore::new(in_flight)),
            waiting: Semaphore::new(waiting),
            per_host,
            hosts: Mutex::default(),
        }
    }

    pub async fn take(&self, host: &str) -> Result<Slot, PostError> {
        let _waiting = self.waiting.try_acquire().map_err(|_| PostError::Busy)?;
        // The host's turn first: whoever waits for a slow host must not hold a place that others could use.
        let host = self
            .host(host)
            .acquire_owned()
            .await
            .map_err(|_| PostError::Busy)?;
        let all = self
            .all
            .clone()
            .acquire_owned()
            .await
            .map_err(|_| PostError::Busy)?;
        Ok(Slot {
            _host: host,
            _all: all,
        })
    }

    fn host(&self, host: &str) -> Arc<Semaphore> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = hosts.get(host).and_then(Weak::upgrade) {
            return known;
        }
        if hosts.len() >= HOSTS {
            hosts.retain(|_, turns| turns.strong_count() > 0);
        }
        let turns = Arc::new(Semaphore::new(self.per_host));
        hosts.insert(host.to_owned(), Arc::downgrade(&turns));
        turns
    }
}
