//! Limits the requests in flight, in total and to one host, so that a slow receiver does not delay
//! the others.

use super::PostError;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Hands out slots. When all are taken, the next request waits within its own deadline; when too
/// many are waiting, it is refused at once.
pub struct RequestSlots {
    all_requests: Arc<Semaphore>,
    waiting: Semaphore,
    max_per_host: usize,
    hosts: Mutex<HashMap<String, Weak<Semaphore>>>,
}

/// The right to make one request, given back when it is dropped.
#[derive(Debug)]
pub struct RequestSlot {
    _host_permit: OwnedSemaphorePermit,
    _global_permit: OwnedSemaphorePermit,
}

/// Max hosts in the map; at this number the idle ones are removed.
const MAX_KNOWN_HOSTS: usize = 1_024;

impl RequestSlots {
    pub fn new(max_in_flight: usize, max_per_host: usize, max_waiting: usize) -> Self {
        Self {
            all_requests: Arc::new(Semaphore::new(max_in_flight)),
            waiting: Semaphore::new(max_waiting),
            max_per_host,
            hosts: Mutex::default(),
        }
    }

    pub async fn acquire_slot(&self, host: &str) -> Result<RequestSlot, PostError> {
        let _waiting_permit = self.waiting.try_acquire().map_err(|_| PostError::Busy)?;
        // The host's permit first: a request that waits for a slow host must not hold a global
        // permit.
        let host_permit = self
            .host_semaphore(host)
            .acquire_owned()
            .await
            .map_err(|_| PostError::Busy)?;
        let global_permit = self
            .all_requests
            .clone()
            .acquire_owned()
            .await
            .map_err(|_| PostError::Busy)?;
        Ok(RequestSlot {
            _host_permit: host_permit,
            _global_permit: global_permit,
        })
    }

    fn host_semaphore(&self, host: &str) -> Arc<Semaphore> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known_host) = hosts.get(host).and_then(Weak::upgrade) {
            return known_host;
        }
        if hosts.len() >= MAX_KNOWN_HOSTS {
            hosts.retain(|_, permits| permits.strong_count() > 0);
        }
        let permits = Arc::new(Semaphore::new(self.max_per_host));
        hosts.insert(host.to_owned(), Arc::downgrade(&permits));
        permits
    }
}
