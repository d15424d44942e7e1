//! Resolves the host name of a webhook: one look-up, whose addresses are checked and pinned before
//! the connection uses them (lesson 3).

use super::PostError;
use super::address_guard::AddressGuard;
use super::capacity_shares::DeliveryOwner;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::{future::Future, io, pin::Pin, time::Duration};
use tokio::time::Instant;

pub type LookupFuture = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Resolves host names. Tests answer from a table.
pub trait NameResolver: Send + Sync {
    /// `owner` is the one whose share of the look-ups is used.
    fn look_up_name(&self, name: &str, owner: DeliveryOwner) -> LookupFuture;
}

/// Max addresses of one name that are tried; a name with thousands of addresses is abuse.
pub const MAX_ADDRESSES: usize = 16;
/// Max names in the table; at this number those without a request are removed.
const MAX_PINNED_NAMES: usize = 1_024;
/// How long further requests join the pin of a name. Without an end, a name with constant traffic
/// would keep its first addresses for ever.
const PIN_JOINED_FOR: Duration = Duration::from_secs(30);

/// The name has no address, or the look-up failed.
#[derive(Debug, thiserror::Error)]
#[error("the host name of the endpoint does not resolve")]
pub struct NameUnresolved;

/// The checked addresses of one host. While a request holds them, connections to the name go to them
/// and nowhere else.
#[derive(Debug)]
pub struct PinnedAddresses {
    addresses: Vec<IpAddr>,
    pinned_at: Instant,
}

impl PinnedAddresses {
    fn new(addresses: Vec<IpAddr>) -> Arc<Self> {
        Arc::new(Self {
            addresses,
            pinned_at: Instant::now(),
        })
    }

    fn can_be_joined(&self) -> bool {
        self.pinned_at.elapsed() < PIN_JOINED_FOR
    }
}

/// A shared handle, so that it can be lent as a slice of addresses.
#[derive(Clone, Debug)]
pub struct AddressPin(Arc<PinnedAddresses>);

impl AsRef<[IpAddr]> for AddressPin {
    fn as_ref(&self) -> &[IpAddr] {
        &self.0.addresses
    }
}

/// Resolves and checks names for requests, and answers the HTTP client with what was pinned. The
/// client connects to exactly these addresses, so there is no second look-up with another answer
/// (DNS rebinding). One blocked address blocks the name, because a name with public and private
/// addresses is an attack.
#[derive(Clone)]
pub struct GuardedResolver {
    pub resolver: Arc<dyn NameResolver>,
    pub guard: Arc<AddressGuard>,
    pub pins: Arc<Mutex<HashMap<String, Weak<PinnedAddresses>>>>,
}

impl GuardedResolver {
    /// A literal address was checked with the URL.
    pub fn pin_literal(address: IpAddr) -> AddressPin {
        AddressPin(PinnedAddresses::new(vec![address]))
    }

    /// Requests to one name at the same time share a pin, so that each is counted for the addresses
    /// that its connection goes to.
    pub async fn pin_name(
        &self,
        name: &str,
        owner: DeliveryOwner,
    ) -> Result<AddressPin, PostError> {
        if let Some(pinned) = self.find_pin(name).filter(|pinned| pinned.can_be_joined()) {
            return Ok(AddressPin(pinned));
        }
        let unresolved = PostError::Unreachable("its host name does not resolve");
        let mut found = self
            .resolver
            .look_up_name(name, owner)
            .await
            .map_err(|_| unresolved)?;
        let is_allowed = |address: &IpAddr| self.guard.is_allowed_for(name, *address);
        if !found.iter().all(is_allowed) {
            return Err(PostError::Blocked);
        }
        found.truncate(MAX_ADDRESSES);
        if found.is_empty() {
            return Err(unresolved);
        }
        let pinned = PinnedAddresses::new(found);
        Ok(AddressPin(self.publish_pin(
            name,
            pinned,
            PinnedAddresses::can_be_joined,
        )))
    }

    /// Makes the pin of a request that has waited known again, if no other request has one now.
    pub fn renew_pin(&self, name: &str, pin: &AddressPin) {
        self.publish_pin(name, pin.0.clone(), |_| true);
    }

    fn find_pin(&self, name: &str) -> Option<Arc<PinnedAddresses>> {
        let pins = self.pins.lock().unwrap_or_else(PoisonError::into_inner);
        pins.get(name).and_then(Weak::upgrade)
    }

    /// Returns the pin that counts: the known one if it is `usable`, else the given one. So of two
    /// look-ups at the same time, the first to end decides for both.
    fn publish_pin(
        &self,
        name: &str,
        pinned: Arc<PinnedAddresses>,
        usable: impl Fn(&PinnedAddresses) -> bool,
    ) -> Arc<PinnedAddresses> {
        let mut pins = self.pins.lock().unwrap_or_else(PoisonError::into_inner);
        let known = pins.get(name).and_then(Weak::upgrade);
        if let Some(known) = known.filter(|known| usable(known)) {
            return known;
        }
        if pins.len() >= MAX_PINNED_NAMES {
            pins.retain(|_, pinned| pinned.strong_count() > 0);
        }
        pins.insert(name.to_owned(), Arc::downgrade(&pinned));
        pinned
    }
}

impl reqwest::dns::Resolve for GuardedResolver {
    fn resolve(&self, name: reqwest::dns::Name) -> reqwest::dns::Resolving {
        // Without a pin the request that wanted the connection is over.
        let pinned = self.find_pin(name.as_str());
        Box::pin(async move {
            let pinned = pinned.ok_or(NameUnresolved)?;
            // Port 0 stands for the port of the URL.
            let sockets: Vec<SocketAddr> = pinned
                .addresses
                .iter()
                .map(|address| SocketAddr::new(*address, 0))
                .collect();
            Ok(Box::new(sockets.into_iter()) as reqwest::dns::Addrs)
        })
    }
}
