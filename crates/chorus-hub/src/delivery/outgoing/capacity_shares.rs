//! Shares of a capacity: each owner or network may use a part of it, so that none uses up the
//! capacity of others.

use crate::store::OwnerId;
use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Whose capacity a post uses: the owner of the receiver. A channel member with a connection string
/// counts for the owner of its channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeliveryOwner(OwnerId);

impl DeliveryOwner {
    /// For callers that have no owner of a database, such as tests of the client alone.
    pub const fn numbered(number: i64) -> Self {
        Self(OwnerId(number))
    }
}

impl From<OwnerId> for DeliveryOwner {
    fn from(owner: OwnerId) -> Self {
        Self(owner)
    }
}

/// Which addresses share a capacity: one IPv4 address, or the /64 of IPv6 addresses that a single
/// host commonly has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReceiverNetwork(IpAddr);

impl ReceiverNetwork {
    pub fn of_address(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V4(address) => IpAddr::V4(address),
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        })
    }
}

/// Max keys in a table; at this number the idle ones are removed.
const MAX_KNOWN_KEYS: usize = 1_024;

/// One semaphore for each key that is in use.
pub struct ShareTable<K> {
    permits_per_key: usize,
    shares: Mutex<HashMap<K, Weak<Semaphore>>>,
}

/// A permit of a share, given back when it is dropped.
pub type SharePermit = OwnedSemaphorePermit;

impl<K: Eq + Hash + Copy> ShareTable<K> {
    pub fn new(permits_per_key: usize) -> Self {
        Self {
            permits_per_key: permits_per_key.max(1),
            shares: Mutex::default(),
        }
    }

    /// Waits for a permit of the key's share; `None` only when the table is going away.
    pub async fn acquire(&self, key: K) -> Option<SharePermit> {
        self.share(key).acquire_owned().await.ok()
    }

    /// `None` when the key's share is used up.
    pub fn try_acquire(&self, key: K) -> Option<SharePermit> {
        self.share(key).try_acquire_owned().ok()
    }

    fn share(&self, key: K) -> Arc<Semaphore> {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = shares.get(&key).and_then(Weak::upgrade) {
            return share;
        }
        if shares.len() >= MAX_KNOWN_KEYS {
            shares.retain(|_, share| share.strong_count() > 0);
        }
        let share = Arc::new(Semaphore::new(self.permits_per_key));
        shares.insert(key, Arc::downgrade(&share));
        share
    }
}
