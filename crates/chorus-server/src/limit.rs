//! How often each caller may ask: a bucket of its own for every agent and address, so that nobody blocks another (failure 24).

use chorus_hub::{Clock, Principal};
use chorus_wire::{Code, Error, limits};
use governor::clock::Clock as _;
use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};
use http::{HeaderMap, HeaderName, HeaderValue};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const WINDOW_SECONDS: u64 = 60;
/// How many requests of strangers pass between two looks at how many buckets there are.
const SWEEP_EVERY: u32 = 1_024;

/// Whose bucket a request is taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Caller {
    /// By its row, so that rotating the key buys nothing.
    Agent(i64),
    /// An operator's key, by its fingerprint.
    Operator(u64),
    /// A connection string, by whose it is: a service that serves many agents has a bucket for each.
    Connection(i64),
    /// Requests without a key and with a wrong one. An IPv6 customer has a whole /64, so that is one caller.
    Address(IpAddr),
    /// A wider network, counted as one while there are too many addresses to keep.
    Network(IpAddr),
    /// Wrong keys from an address, or a network: each cost a look-up.
    Guesses(IpAddr),
}

/// The hub's clock as the limiter reads it.
struct Ticks(Clock);

impl governor::clock::Clock for Ticks {
    type Instant = Duration;

    fn now(&self) -> Duration {
        self.0.steady()
    }
}

type Buckets = RateLimiter<Caller, DashMapStateStore<Caller>, Ticks, StateInformationMiddleware>;

pub struct Limiter {
    buckets: Buckets,
    ticks: Ticks,
    quota: u32,
    /// The most addresses that are kept; then their networks are counted instead.
    most: usize,
    strangers: AtomicU32,
    crowded: AtomicU32,
    /// Who was refused, and until when there is nothing in its bucket; asked only about keys that nobody remembers.
    dry: Mutex<HashMap<Caller, Duration>>,
}

/// What is left to a caller after this request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    quota: u32,
    left: u32,
}

impl Limiter {
    /// `quota` requests a minute, all of them at once if need be; 0 is no limit.
    pub fn per_minute(quota: u32, clock: Clock) -> Option<Self> {
        Self::bounded(quota, clock, limits::LIMITED_CALLERS)
    }

    fn bounded(quota: u32, clock: Clock, most: usize) -> Option<Self> {
        let per_minute = Quota::per_minute(NonZeroU32::new(quota)?);
        let buckets = Buckets::new(per_minute, DashMapStateStore::default(), Ticks(clock.clone()));
        let (strangers, crowded) = (AtomicU32::new(0), AtomicU32::new(0));
        Some(Self { buckets, ticks: Ticks(clock), quota, most, strangers, crowded, dry: Mutex::default() })
    }

    /// The caller of an authenticated request; `Anyone` has only an address.
    pub fn caller(&self, who: &Principal, peer: IpAddr) -> Caller {
        match who {
            Principal::Agent(agent) => Caller::Agent(agent.id),
            Principal::Operator(key) => Caller::Operator(*key),
            Principal::Anyone => self.stranger(peer),
        }
    }

    /// The caller of a request that only has an address.
    pub fn stranger(&self, peer: IpAddr) -> Caller {
        match self.place(peer) {
            (ip, true) => Caller::Network(ip),
            (ip, false) => Caller::Address(ip),
        }
    }

    /// The same place as one that tries keys: what it asks without a key is no guess.
    pub fn guesser(&self, peer: IpAddr) -> Caller {
        Caller::Guesses(self.place(peer).0)
    }

    /// Where a request comes from, and whether that is a wider network.
    fn place(&self, peer: IpAddr) -> (IpAddr, bool) {
        if self.strangers.fetch_add(1, Ordering::Relaxed) % SWEEP_EVERY == SWEEP_EVERY - 1 {
            self.sweep();
        }
        let crowded = self.crowded.load(Ordering::Relaxed) > 0;
        let (wide, bits) = match (peer.to_canonical(), crowded) {
            (IpAddr::V4(ip), false) => return (IpAddr::V4(ip), false),
            (IpAddr::V4(ip), true) => (ip.to_ipv6_mapped(), 96 + 16),
            (IpAddr::V6(ip), false) => (ip, 64),
            (IpAddr::V6(ip), true) => (ip, 32),
        };
        (IpAddr::V6(Ipv6Addr::from_bits(wide.to_bits() & !(u128::MAX >> bits))), crowded)
    }

    /// Forgets full buckets: a caller that is owed everything needs none.
    fn sweep(&self) {
        if self.buckets.len() <= self.most / 2 {
            self.crowded.store(0, Ordering::Relaxed);
            return;
        }
        self.buckets.retain_recent();
        self.crowded.store(u32::from(self.buckets.len() >= self.most), Ordering::Relaxed);
    }

    /// Takes one request from the caller's bucket, or says when there will be one.
    pub fn spend(&self, caller: Caller) -> Result<Budget, Error> {
        match self.buckets.check_key(&caller) {
            Ok(state) => Ok(Budget { quota: self.quota, left: state.remaining_burst_capacity() }),
            Err(not_yet) => {
                let wait = not_yet.wait_time_from(self.ticks.now());
                self.is_dry(caller, self.ticks.now() + wait);
                Err(later(wait))
            }
        }
    }

    /// Whether the caller's bucket had anything in it when it was last asked; takes nothing, so that whoever turns out to have a
    /// good key has not spent what belongs to its address.
    pub fn has_some(&self, caller: Caller) -> Result<(), Error> {
        let now = self.ticks.now();
        let until = self.dry.lock().unwrap_or_else(PoisonError::into_inner).get(&caller).copied();
        match until.filter(|until| *until > now) {
            Some(until) => Err(later(until - now)),
            None => Ok(()),
        }
    }

    fn is_dry(&self, caller: Caller, until: Duration) {
        let now = self.ticks.now();
        let mut dry = self.dry.lock().unwrap_or_else(PoisonError::into_inner);
        if dry.len() >= self.most {
            dry.retain(|_, until| *until > now);
        }
        // Full of callers that are all waiting: one more is looked up as before.
        if dry.len() < self.most {
            dry.insert(caller, until);
        }
    }

    pub fn spent(&self) -> Budget {
        Budget { quota: self.quota, left: 0 }
    }
}

fn later(wait: Duration) -> Error {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    Error { retry_after: Some(seconds.max(1)), ..Code::RateLimited.into() }
}

impl Budget {
    /// The two fields of the IETF draft `draft-ietf-httpapi-ratelimit-headers`.
    pub fn write(self, headers: &mut HeaderMap) {
        let Self { quota, left } = self;
        let full_in = (u64::from(quota.saturating_sub(left)) * WINDOW_SECONDS).div_ceil(u64::from(quota.max(1)));
        let fields = [
            ("ratelimit-policy", format!("\"default\";q={quota};w={WINDOW_SECONDS}")),
            ("ratelimit", format!("\"default\";r={left};t={full_in}")),
        ];
        for (name, value) in fields {
            if let Ok(value) = HeaderValue::try_from(value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_wire::time::Micros;

    fn held(quota: u32, most: usize) -> (Limiter, Clock) {
        let clock = Clock::held(Micros(1_000_000_000_000));
        (Limiter::bounded(quota, clock.clone(), most).unwrap(), clock)
    }

    fn from(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// Failure 24
    #[test]
    fn one_caller_that_spent_everything_blocks_nobody_else() {
        let (limiter, _) = held(3, 100);
        for left in [2, 1, 0] {
            assert_eq!(limiter.spend(Caller::Agent(1)).unwrap().left, left);
        }
        let refused = limiter.spend(Caller::Agent(1)).unwrap_err();
        assert_eq!((refused.code, refused.retry_after), (Code::RateLimited, Some(20)));
        assert!(limiter.spend(Caller::Agent(2)).is_ok());
        assert!(limiter.spend(limiter.stranger(from("192.0.2.1"))).is_ok());
    }

    #[test]
    fn who_waits_as_told_is_served_again() {
        let (limiter, clock) = held(3, 100);
        while limiter.spend(Caller::Agent(1)).is_ok() {}
        let wait = limiter.spend(Caller::Agent(1)).unwrap_err().retry_after.unwrap();
        clock.advance(Duration::from_secs(wait));
        assert!(limiter.spend(Caller::Agent(1)).is_ok());
        assert!(limiter.spend(Caller::Agent(1)).is_err());
    }

    /// Law 6
    #[test]
    fn who_has_nothing_left_is_known_without_asking_and_only_for_so_long() {
        let (limiter, clock) = held(3, 2);
        assert!(limiter.has_some(Caller::Agent(1)).is_ok());
        while limiter.spend(Caller::Agent(1)).is_ok() {}
        assert_eq!(limiter.has_some(Caller::Agent(1)).unwrap_err().retry_after, Some(20));
        assert!(limiter.has_some(Caller::Agent(2)).is_ok());
        clock.advance(Duration::from_secs(20));
        assert!(limiter.has_some(Caller::Agent(1)).is_ok());
        for caller in 2..9 {
            while limiter.spend(Caller::Agent(caller)).is_ok() {}
        }
        assert!(limiter.dry.lock().unwrap().len() <= 2);
    }

    #[test]
    fn zero_is_no_limit() {
        assert!(Limiter::per_minute(0, Clock::system()).is_none());
    }

    #[test]
    fn all_addresses_of_one_ipv6_customer_share_a_bucket_and_v4_is_v4_in_any_dress() {
        let (limiter, _) = held(3, 100);
        assert_eq!(limiter.stranger(from("2001:db8:1:2::1")), limiter.stranger(from("2001:db8:1:2:ffff::9")));
        assert_ne!(limiter.stranger(from("2001:db8:1:2::1")), limiter.stranger(from("2001:db8:1:3::1")));
        assert_eq!(limiter.stranger(from("::ffff:192.0.2.1")), limiter.stranger(from("192.0.2.1")));
    }

    /// Law 6
    #[test]
    fn the_number_of_buckets_stays_bounded_and_falls_again() {
        let (limiter, clock) = held(3, 64);
        for n in 0..50_000u32 {
            let ip = IpAddr::V4(std::net::Ipv4Addr::from_bits(0x0a00_0000 + n));
            let _ = limiter.spend(limiter.stranger(ip));
        }
        assert!(limiter.buckets.len() <= 64 + SWEEP_EVERY as usize, "{}", limiter.buckets.len());
        clock.advance(Duration::from_secs(120));
        limiter.sweep();
        assert!(limiter.buckets.is_empty());
        assert_eq!(limiter.stranger(from("10.0.0.1")), Caller::Address(from("10.0.0.1")));
    }

    #[test]
    fn the_headers_have_the_drafts_form() {
        let mut headers = HeaderMap::new();
        Budget { quota: 600, left: 598 }.write(&mut headers);
        assert_eq!(headers["ratelimit-policy"], "\"default\";q=600;w=60");
        assert_eq!(headers["ratelimit"], "\"default\";r=598;t=1");
    }
}
