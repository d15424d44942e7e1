//! Limits the requests in flight: in total, to one owner's receivers and to one address, so that a
//! slow receiver does not delay those of others (D-103).

use super::PostError;
use super::capacity_shares::{DeliveryOwner, ReceiverNetwork, SharePermit, ShareTable};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// One in this many places of the waiting line may be taken by one owner or by one address.
const WAITING_SHARES: usize = 8;

/// How many requests may be in flight, and how many may wait.
#[derive(Clone, Copy, Debug)]
pub struct SlotLimits {
    pub max_in_flight: usize,
    pub max_per_owner: usize,
    pub max_per_address: usize,
    pub max_waiting: usize,
}

/// Hands out slots. When all are taken, the next request waits within its own deadline; when too
/// many are waiting, it is refused at once.
pub struct RequestSlots {
    all_requests: Arc<Semaphore>,
    owners: ShareTable<DeliveryOwner>,
    networks: ShareTable<ReceiverNetwork>,
    waiting: Semaphore,
    waiting_owners: ShareTable<DeliveryOwner>,
    waiting_networks: ShareTable<ReceiverNetwork>,
}

/// The right to make one request, given back when it is dropped.
#[derive(Debug)]
pub struct RequestSlot {
    _owner_permit: SharePermit,
    _network_permits: Vec<SharePermit>,
    _global_permit: OwnedSemaphorePermit,
}

/// A request that needs a slot.
#[derive(Clone, Copy)]
pub struct SlotRequest<'a> {
    pub slots: &'a RequestSlots,
    pub owner: DeliveryOwner,
    /// After it the request is refused.
    pub max_wait: Duration,
}

impl SlotRequest<'_> {
    /// Waits for the owner's share, then resolves the receiver's addresses, then waits for the shares
    /// of those and for one of all slots. In this order a request that waits for a slow owner, name
    /// or address holds nothing that others need.
    pub async fn acquire<T: AsRef<[IpAddr]>>(
        self,
        resolve: impl Future<Output = Result<T, PostError>>,
    ) -> Result<(RequestSlot, T), PostError> {
        let slots = self.slots;
        let _waiting_permit = slots.waiting.try_acquire().map_err(|_| PostError::Busy)?;
        let _waiting_owner = slots
            .waiting_owners
            .try_acquire(self.owner)
            .ok_or(PostError::Busy)?;
        let acquire_all = async {
            let owner_permit = slots.owners.acquire(self.owner).await;
            let owner_permit = owner_permit.ok_or(PostError::Busy)?;
            let resolved = resolve.await?;
            let network_permits = slots.acquire_networks(resolved.as_ref()).await?;
            let global_permit = slots.all_requests.clone().acquire_owned().await;
            let slot = RequestSlot {
                _owner_permit: owner_permit,
                _network_permits: network_permits,
                _global_permit: global_permit.map_err(|_| PostError::Busy)?,
            };
            Ok((slot, resolved))
        };
        timeout(self.max_wait, acquire_all)
            .await
            .unwrap_or(Err(PostError::Busy))
    }
}

impl RequestSlots {
    pub fn new(limits: SlotLimits) -> Self {
        let waiting_share = limits.max_waiting / WAITING_SHARES;
        Self {
            all_requests: Arc::new(Semaphore::new(limits.max_in_flight)),
            owners: ShareTable::new(limits.max_per_owner),
            networks: ShareTable::new(limits.max_per_address),
            waiting: Semaphore::new(limits.max_waiting),
            waiting_owners: ShareTable::new(waiting_share),
            waiting_networks: ShareTable::new(waiting_share),
        }
    }

    /// Asks for a slot; without a limit of its own, the request waits within its deadline.
    pub fn request_slot(&self, owner: DeliveryOwner) -> SlotRequest<'_> {
        SlotRequest {
            slots: self,
            owner,
            max_wait: Duration::MAX,
        }
    }

    /// A share of every address that the connection may go to: with the first alone, a receiver
    /// would put an address in front of its own that does not answer. They are taken in order, so
    /// that two requests never wait for each other.
    async fn acquire_networks(&self, addresses: &[IpAddr]) -> Result<Vec<SharePermit>, PostError> {
        let networks: BTreeSet<ReceiverNetwork> = addresses
            .iter()
            .copied()
            .map(ReceiverNetwork::of_address)
            .collect();
        let mut permits = Vec::with_capacity(networks.len());
        for network in networks {
            let _waiting_permit = self
                .waiting_networks
                .try_acquire(network)
                .ok_or(PostError::Busy)?;
            let permit = self.networks.acquire(network).await;
            permits.push(permit.ok_or(PostError::Busy)?);
        }
        Ok(permits)
    }
}
