//! The limit of open connections: general slots, slots reserved for known keys, and a share per address (D-19,
//! A connection past it gets a 503 in JSON with `Retry-After`, unless it asks for a probe or has a known key.

use super::raw_refusal;
use super::trusted_network::TrustedNetwork;
use super::trusted_proxies::TrustedProxies;
use chorus_hub::Clock;
use chorus_wire::{Error, ErrorCode, limits};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// `Retry-After` of the rejection, in seconds.
const RETRY_AFTER: u64 = 5;
/// Max time to write the rejection and let the client read it.
const REJECTION_TIMEOUT: Duration = Duration::from_secs(1);

/// Why a connection is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionRefusal {
    HubFull,
    AddressFull,
}

impl ConnectionRefusal {
    fn message(self) -> &'static str {
        match self {
            Self::HubFull => {
                "every connection that this hub may have is taken; come back in a moment"
            }
            Self::AddressFull => {
                "this address has as many connections to the hub as it may have; close one first"
            }
        }
    }

    pub fn to_error(self) -> Error {
        Error {
            retry_after: Some(RETRY_AFTER),
            ..Error::new(ErrorCode::Unavailable, self.message())
        }
    }
}

/// How many connections one address may have, and which addresses do not count.
pub struct AddressShare {
    max: usize,
    counts_loopback: bool,
    /// A proxy has the connections of all its clients.
    trusted_proxies: TrustedProxies,
}

impl AddressShare {
    /// The configured number, or a share of all connections. The share does not count for loopback, which is the address of
    /// local tools and of a proxy on the same machine.
    pub fn new(
        max_connections: usize,
        configured: Option<usize>,
        trusted_proxies: &[TrustedNetwork],
    ) -> Self {
        let share = max_connections / limits::CONNECTIONS_SHARE_PER_ADDRESS;
        Self {
            max: configured.unwrap_or(share).max(1),
            counts_loopback: configured.is_some(),
            trusted_proxies: TrustedProxies::new(trusted_proxies),
        }
    }

    /// What is counted for this peer: its address, or its /64 network in IPv6; `None` when it is exempt.
    fn counted_address(&self, peer: IpAddr) -> Option<IpAddr> {
        let peer = peer.to_canonical();
        if self.trusted_proxies.is_trusted(peer) || (peer.is_loopback() && !self.counts_loopback) {
            return None;
        }
        Some(match peer {
            IpAddr::V4(ip) => IpAddr::V4(ip),
            IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & !(u128::MAX >> 64))),
        })
    }
}

#[derive(Default)]
struct AddressCounts(Mutex<HashMap<IpAddr, usize>>);

impl AddressCounts {
    fn lock_counts(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One connection of an address; dropping it frees the slot.
struct AddressSlot {
    counts: Arc<AddressCounts>,
    address: IpAddr,
}

impl Drop for AddressSlot {
    fn drop(&mut self) {
        let mut counts = self.counts.lock_counts();
        match counts.get_mut(&self.address) {
            Some(count) if *count > 1 => *count -= 1,
            Some(_) | None => drop(counts.remove(&self.address)),
        }
    }
}

/// Which slot a connection has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlotKind {
    General,
    /// Reserved for known keys: a request on it had one.
    Reserved,
    /// Beyond the general slots: it may ask for a probe, or show a key.
    Unverified,
}

/// The slots of one hub.
struct ConnectionSlots {
    general: Arc<Semaphore>,
    reserved: Arc<Semaphore>,
    unverified: Arc<Semaphore>,
}

impl ConnectionSlots {
    fn with_total(max_connections: usize) -> Self {
        let total = max_connections.min(Semaphore::MAX_PERMITS);
        let reserved = total / limits::CONNECTIONS_SHARE_OF_KNOWN;
        Self {
            general: Arc::new(Semaphore::new(total - reserved)),
            reserved: Arc::new(Semaphore::new(reserved)),
            unverified: Arc::new(Semaphore::new(limits::UNVERIFIED_CONNECTIONS)),
        }
    }

    fn try_take(&self, kind: SlotKind) -> Option<HeldSlot> {
        let slots = match kind {
            SlotKind::General => &self.general,
            SlotKind::Reserved => &self.reserved,
            SlotKind::Unverified => &self.unverified,
        };
        let permit = slots.clone().try_acquire_owned().ok()?;
        Some(HeldSlot {
            kind,
            _permit: permit,
        })
    }
}

struct HeldSlot {
    kind: SlotKind,
    _permit: OwnedSemaphorePermit,
}

/// The slot of an open connection; it is free again when the last clone is dropped. The front of each request has one.
#[derive(Clone)]
pub struct ConnectionSlot(Arc<SlotInner>);

struct SlotInner {
    held: Mutex<HeldSlot>,
    slots: Arc<ConnectionSlots>,
    _address_slot: Option<AddressSlot>,
}

impl ConnectionSlot {
    fn lock_held(&self) -> MutexGuard<'_, HeldSlot> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn is_unverified(&self) -> bool {
        self.lock_held().kind == SlotKind::Unverified
    }

    /// A request on this connection has a valid key: the connection moves to a reserved slot and frees its
    /// general one.
    pub fn move_to_reserved(&self) {
        let mut held = self.lock_held();
        if held.kind == SlotKind::Reserved {
            return;
        }
        match self.0.slots.try_take(SlotKind::Reserved) {
            Some(slot) => *held = slot,
            None => self.take_free_slot(&mut held),
        }
    }

    /// Refuses an unverified connection for which no slot has become free.
    pub fn require_slot(&self) -> Result<(), Error> {
        let mut held = self.lock_held();
        self.take_free_slot(&mut held);
        match held.kind {
            SlotKind::General | SlotKind::Reserved => Ok(()),
            SlotKind::Unverified => Err(ConnectionRefusal::HubFull.to_error()),
        }
    }

    /// Takes a general slot that has become free meanwhile.
    fn take_free_slot(&self, held: &mut HeldSlot) {
        if held.kind == SlotKind::Unverified
            && let Some(slot) = self.0.slots.try_take(SlotKind::General)
        {
            *held = slot;
        }
    }
}

/// Hands out a slot per open connection.
pub struct ConnectionLimit {
    slots: Arc<ConnectionSlots>,
    address_share: AddressShare,
    address_counts: Arc<AddressCounts>,
    rejection_permits: Arc<Semaphore>,
    /// Whether the current overload has been logged.
    full_logged: bool,
    clock: Clock,
}

impl ConnectionLimit {
    pub fn new(max_connections: usize, address_share: AddressShare, clock: Clock) -> Self {
        Self {
            slots: Arc::new(ConnectionSlots::with_total(max_connections)),
            address_share,
            address_counts: Arc::default(),
            rejection_permits: Arc::new(Semaphore::new(limits::REFUSED_CONNECTIONS_ANSWERED)),
            full_logged: false,
            clock,
        }
    }

    /// The clock that refusals are stamped with.
    pub fn clock(&self) -> Clock {
        self.clock.clone()
    }

    /// A slot, to be held while the connection is open. When all general slots are taken, it is an unverified one.
    pub fn try_acquire(&mut self, peer: IpAddr) -> Result<ConnectionSlot, ConnectionRefusal> {
        let address_slot = match self.address_share.counted_address(peer) {
            Some(address) => Some(self.take_address_slot(address)?),
            None => None,
        };
        let slot = self.slots.try_take(SlotKind::General);
        let is_full = slot.is_none();
        if !std::mem::replace(&mut self.full_logged, is_full) && is_full {
            tracing::warn!(
                "the connection limit is reached; only probes and known keys get a new connection"
            );
        }
        let slot = slot.or_else(|| self.slots.try_take(SlotKind::Unverified));
        Ok(ConnectionSlot(Arc::new(SlotInner {
            held: Mutex::new(slot.ok_or(ConnectionRefusal::HubFull)?),
            slots: self.slots.clone(),
            _address_slot: address_slot,
        })))
    }

    fn take_address_slot(&self, address: IpAddr) -> Result<AddressSlot, ConnectionRefusal> {
        let mut counts = self.address_counts.lock_counts();
        let count = counts.entry(address).or_default();
        if *count >= self.address_share.max {
            return Err(ConnectionRefusal::AddressFull);
        }
        *count += 1;
        Ok(AddressSlot {
            counts: self.address_counts.clone(),
            address,
        })
    }

    /// Answers with 503 and closes. A TLS connection is closed at once, because the handshake is the expensive part.
    pub fn reject_connection(&self, socket: TcpStream, refusal: ConnectionRefusal, secure: bool) {
        if let (false, Ok(permit)) = (secure, self.rejection_permits.clone().try_acquire_owned()) {
            let response = raw_refusal::encode_refusal(&refusal.to_error(), self.clock.now());
            tokio::spawn(async move {
                let _rejection_permit = permit;
                let _ = tokio::time::timeout(REJECTION_TIMEOUT, write_rejection(socket, response))
                    .await;
            });
        }
    }
}

async fn write_rejection(mut socket: TcpStream, response: Vec<u8>) -> std::io::Result<()> {
    // Waits for the request: clients treat a response that precedes it as a broken connection.
    socket.peek(&mut [0]).await?;
    raw_refusal::write_refusal(&mut socket, &response).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_wire::time::UnixMicros;

    fn limit(max: usize, configured: Option<usize>, trusted: &[&str]) -> ConnectionLimit {
        let trusted: Vec<TrustedNetwork> =
            trusted.iter().map(|text| text.parse().unwrap()).collect();
        let share = AddressShare::new(max, configured, &trusted);
        ConnectionLimit::new(max, share, Clock::manual_at(UnixMicros(0)))
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    //
    #[test]
    fn one_address_has_a_share_of_the_places_and_gets_back_what_it_leaves() {
        let mut limit = limit(8, None, &["10.0.0.0/8"]);
        let first = limit.try_acquire(ip("192.0.2.1")).unwrap();
        let second = limit.try_acquire(ip("::ffff:192.0.2.1")).unwrap();
        assert_eq!(
            limit.try_acquire(ip("192.0.2.1")).err(),
            Some(ConnectionRefusal::AddressFull)
        );
        let other = limit.try_acquire(ip("192.0.2.2")).unwrap();
        drop(first);
        let third = limit.try_acquire(ip("192.0.2.1")).unwrap();
        drop((second, third, other));
        assert!(limit.address_counts.lock_counts().is_empty());
        // All addresses of one IPv6 customer are one.
        let _six = [1, 2].map(|n| limit.try_acquire(ip(&format!("2001:db8::{n}"))).unwrap());
        assert!(limit.try_acquire(ip("2001:db8::3")).is_err());
        assert!(limit.try_acquire(ip("2001:db8:0:1::3")).is_ok());
    }

    //
    #[test]
    fn a_trusted_proxy_and_loopback_have_no_share_unless_one_is_set() {
        let mut by_share = limit(8, None, &["10.0.0.0/8"]);
        for exempt in ["10.0.0.1", "127.0.0.1", "::1"] {
            let all: Vec<_> = (0..6 + limits::UNVERIFIED_CONNECTIONS)
                .map(|_| by_share.try_acquire(ip(exempt)).unwrap())
                .collect();
            assert_eq!(
                by_share.try_acquire(ip(exempt)).err(),
                Some(ConnectionRefusal::HubFull)
            );
            drop(all);
        }
        let mut by_number = limit(8, Some(1), &[]);
        let _held = by_number.try_acquire(ip("127.0.0.1")).unwrap();
        assert!(by_number.try_acquire(ip("127.0.0.1")).is_err());
    }

    //
    #[test]
    fn strangers_have_three_fourths_of_the_places_and_known_keys_the_rest() {
        let mut limit = limit(8, None, &[]);
        let mut strangers: Vec<_> = (0..6)
            .map(|_| limit.try_acquire(ip("127.0.0.1")).unwrap())
            .collect();
        assert!(strangers.iter().all(|slot| !slot.is_unverified()));
        let known = limit.try_acquire(ip("127.0.0.1")).unwrap();
        assert!(known.is_unverified() && known.require_slot().is_err());
        known.move_to_reserved();
        assert!(!known.is_unverified() && known.require_slot().is_ok());
        // A connection that turns out to be a known one frees its general slot.
        strangers[0].move_to_reserved();
        let stranger = limit.try_acquire(ip("127.0.0.1")).unwrap();
        assert!(!stranger.is_unverified());
        // Known connections beyond their own slots take general slots.
        let waiting = limit.try_acquire(ip("127.0.0.1")).unwrap();
        waiting.move_to_reserved();
        assert!(waiting.is_unverified());
        drop(strangers.pop());
        waiting.move_to_reserved();
        assert!(!waiting.is_unverified());
        drop((strangers, known, stranger, waiting));
        assert_eq!(limit.slots.general.available_permits(), 6);
        assert_eq!(limit.slots.reserved.available_permits(), 2);
    }
}
