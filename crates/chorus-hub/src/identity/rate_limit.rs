//! Rate limits: one token bucket per agent and per address, so that no caller uses up the budget of another (failure 24).

mod budget_authority;
mod caller_id;
mod decide;
mod token_bucket;

pub(crate) use budget_authority::{
    BudgetAuthority, BudgetClaim, BudgetDecision, BudgetOwner, ClaimError,
};
pub use caller_id::CallerId;
pub(crate) use caller_id::mix_bits;
pub use decide::{check_remaining, spend_request};
pub use token_bucket::RateQuota;

use super::Identity;
use crate::clock::Clock;
use crate::limits;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use token_bucket::TokenBucket;
use tokio::sync::Notify;

/// Anonymous requests between two counts of the buckets.
const SWEEP_EVERY_REQUESTS: usize = 1_024;
const SHARD_COUNT: usize = crate::limits::LOCK_SHARDS;

#[derive(Default)]
struct BudgetShard {
    buckets: HashMap<CallerId, TokenBucket>,
    /// Callers whose spending peers do not know yet.
    unsynced_callers: Vec<CallerId>,
}

pub(crate) struct RateBudgets {
    shards: [Mutex<BudgetShard>; SHARD_COUNT],
    clock: Clock,
    /// Max buckets of addresses; beyond it networks are counted instead.
    max_addresses: usize,
    anonymous_requests: AtomicUsize,
    buckets_added: AtomicUsize,
    is_crowded: AtomicBool,
    /// Notified when a caller becomes unsynced.
    pub sync_wakeup: Notify,
}

/// The caller of a request without a key.
pub fn anonymous_caller(identity: &Identity, peer: IpAddr) -> CallerId {
    identity.rate_budgets().anonymous_caller(peer)
}

/// The same address as the source of wrong keys: requests without a key are no guesses, so they have a bucket of their own.
pub fn guessing_caller(identity: &Identity, peer: IpAddr) -> CallerId {
    CallerId::Guesses(identity.rate_budgets().address_or_network(peer).0)
}

/// All agents' keys that this address uses, as one caller.
pub fn address_keys_caller(identity: &Identity, peer: IpAddr) -> CallerId {
    CallerId::AddressKeys(identity.rate_budgets().address_or_network(peer).0)
}

/// The same address as the source of registrations without a key.
pub fn registration_caller(identity: &Identity, peer: IpAddr) -> CallerId {
    CallerId::Registrations(identity.rate_budgets().address_or_network(peer).0)
}

/// The same address as the source of health checks.
pub fn probe_caller(identity: &Identity, peer: IpAddr) -> CallerId {
    CallerId::Probes(identity.rate_budgets().address_or_network(peer).0)
}

impl RateBudgets {
    pub fn new(clock: Clock) -> Self {
        Self::with_max_addresses(clock, limits::RATE_LIMITED_CALLERS)
    }

    fn with_max_addresses(clock: Clock, max_addresses: usize) -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            clock,
            max_addresses,
            anonymous_requests: AtomicUsize::new(0),
            buckets_added: AtomicUsize::new(0),
            is_crowded: AtomicBool::new(false),
            sync_wakeup: Notify::new(),
        }
    }

    pub fn now_nanos(&self) -> u64 {
        self.clock.monotonic_now().as_nanos() as u64
    }

    fn lock_shard(&self, shard_index: usize) -> MutexGuard<'_, BudgetShard> {
        self.shards[shard_index % SHARD_COUNT]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn anonymous_caller(&self, peer: IpAddr) -> CallerId {
        match self.address_or_network(peer) {
            (ip, true) => CallerId::Network(ip),
            (ip, false) => CallerId::Address(ip),
        }
    }

    /// The address or network that is counted for a request, and whether it is a network.
    fn address_or_network(&self, peer: IpAddr) -> (IpAddr, bool) {
        if self.anonymous_requests.fetch_add(1, Ordering::Relaxed) % SWEEP_EVERY_REQUESTS
            == SWEEP_EVERY_REQUESTS - 1
        {
            self.drop_full_buckets();
        }
        let is_crowded = self.is_crowded.load(Ordering::Relaxed);
        let (address, bits) = match (peer.to_canonical(), is_crowded) {
            (IpAddr::V4(ip), false) => return (IpAddr::V4(ip), false),
            (IpAddr::V4(ip), true) => (ip.to_ipv6_mapped(), 96 + 16),
            (IpAddr::V6(ip), false) => (ip, 64),
            (IpAddr::V6(ip), true) => (ip, 32),
        };
        (
            IpAddr::V6(Ipv6Addr::from_bits(
                address.to_bits() & !(u128::MAX >> bits),
            )),
            is_crowded,
        )
    }

    fn bucket_count(&self) -> usize {
        (0..SHARD_COUNT)
            .map(|number| self.lock_shard(number).buckets.len())
            .sum()
    }

    /// Drops full buckets: a caller without debt needs none.
    fn drop_full_buckets(&self) {
        if self.bucket_count() > self.max_addresses / 2 {
            let now = self.now_nanos();
            (0..SHARD_COUNT).for_each(|number| {
                self.lock_shard(number)
                    .buckets
                    .retain(|_, bucket| bucket.debt_at(now) > 0)
            });
        }
        self.is_crowded
            .store(self.bucket_count() >= self.max_addresses, Ordering::Relaxed);
    }

    /// Changes the caller's bucket. The second part of the outcome says whether the caller becomes unsynced.
    fn with_bucket<T>(
        &self,
        caller: CallerId,
        work: impl FnOnce(&mut TokenBucket, u64) -> (T, bool),
    ) -> T {
        let now = self.now_nanos();
        let mut shard = self.lock_shard(caller.stable_hash() as usize);
        let BudgetShard {
            buckets,
            unsynced_callers,
        } = &mut *shard;
        let before = buckets.len();
        let bucket = buckets
            .entry(caller)
            .or_insert_with(|| TokenBucket::for_caller(caller));
        let (result, announce) = work(bucket, now);
        let announce = announce
            && !bucket.is_listed
            && unsynced_callers.len() < limits::BUDGET_UPDATES_PENDING / SHARD_COUNT;
        if announce {
            bucket.is_listed = true;
            unsynced_callers.push(caller);
        }
        let has_grown = buckets.len() > before;
        drop(shard);
        if announce {
            self.sync_wakeup.notify_one();
        }
        // Agents with a bucket are those with a request in the last minute; dropping full buckets now and then is enough.
        if has_grown
            && self.buckets_added.fetch_add(1, Ordering::Relaxed) % self.max_addresses
                == self.max_addresses - 1
        {
            self.drop_full_buckets();
        }
        result
    }

    /// Takes one request when a quota is given and one is left; `announce` when peers are to be told.
    pub fn decide_locally(
        &self,
        caller: CallerId,
        wanted_quota: Option<RateQuota>,
        announce: bool,
    ) -> BudgetDecision {
        self.with_bucket(caller, |bucket, now| {
            let granted = wanted_quota.is_some_and(|quota| bucket.try_take(quota, now));
            if let (true, true, Some(quota)) = (granted, announce, wanted_quota) {
                bucket.add_unsynced(quota.request_nanos());
            }
            (
                BudgetDecision {
                    granted,
                    debt: bucket.debt_at(now),
                },
                granted && announce,
            )
        })
    }

    /// The same for a caller that another hub decides about, while enough is left for all hubs; `None` when it is not.
    pub fn decide_if_plenty(
        &self,
        caller: CallerId,
        quota: RateQuota,
        takes_one: bool,
        hubs: usize,
    ) -> Option<BudgetDecision> {
        self.with_bucket(caller, |bucket, now| {
            let granted = if takes_one {
                bucket.try_take_if_plenty(quota, hubs, now)
            } else {
                bucket.has_plenty(quota, hubs, now)
            };
            (
                granted.then(|| BudgetDecision {
                    granted,
                    debt: bucket.debt_at(now),
                }),
                granted && takes_one,
            )
        })
    }

    /// Decides about a claim of a peer.
    pub fn decide_for_peer(&self, claim: &BudgetClaim) -> BudgetDecision {
        self.with_bucket(claim.caller, |bucket, now| {
            bucket.add_debt(claim.owed, now);
            bucket.raise_debt_to(claim.known, now);
            let quota = RateQuota::per_minute(claim.quota);
            let granted =
                quota.is_some_and(|quota| bucket.try_take(quota.with_burst_of(claim.caller), now));
            (
                BudgetDecision {
                    granted,
                    debt: bucket.debt_at(now),
                },
                granted || claim.owed > 0,
            )
        })
    }

    /// The unsynced spending of this caller, which is being reported now, and its debt.
    pub fn take_unsynced(&self, caller: CallerId) -> (u64, u64) {
        self.with_bucket(caller, |bucket, now| {
            ((bucket.take_unsynced(), bucket.debt_at(now)), false)
        })
    }

    /// The report did not arrive.
    pub fn restore_unsynced(&self, caller: CallerId, owed: u64) {
        self.with_bucket(caller, |bucket, _| (bucket.add_unsynced(owed), owed > 0));
    }

    /// The deciding hub says what debt this caller had at this time or soon after.
    pub fn learn_debt(&self, caller: CallerId, debt: u64, at: u64) {
        // It saves a request to the deciding hub; a hub that is full of buckets makes that request instead.
        if !self.is_crowded.load(Ordering::Relaxed) {
            self.with_bucket(caller, |bucket, _| (bucket.learn_debt(debt, at), false));
        }
    }

    /// All unsynced callers: what each spent since the last report, and its debt.
    pub fn collect_unsynced(&self) -> Vec<(CallerId, u64, u64)> {
        let now = self.now_nanos();
        let mut gathered = Vec::new();
        for number in 0..SHARD_COUNT {
            let mut shard = self.lock_shard(number);
            let BudgetShard {
                buckets,
                unsynced_callers,
            } = &mut *shard;
            for caller in unsynced_callers.drain(..) {
                if let Some(bucket) = buckets.get_mut(&caller) {
                    bucket.is_listed = false;
                    gathered.push((caller, bucket.take_unsynced(), bucket.debt_at(now)));
                }
            }
        }
        gathered
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::AgentId;
    use chorus_wire::time::UnixMicros;
    use chorus_wire::{Error, ErrorCode};
    use std::time::Duration;

    fn held(most: usize) -> (RateBudgets, Clock) {
        let clock = Clock::manual_at(UnixMicros(1_000_000_000_000));
        (RateBudgets::with_max_addresses(clock.clone(), most), clock)
    }

    fn from(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn quota(requests: u32) -> RateQuota {
        RateQuota::per_minute(requests).unwrap()
    }

    /// One of three a minute, by one hub alone.
    fn spend(budgets: &RateBudgets, caller: CallerId) -> Result<u32, Error> {
        let BudgetDecision { granted, debt } =
            budgets.decide_locally(caller, Some(quota(3)), false);
        if granted {
            Ok(quota(3).remaining_requests(debt))
        } else {
            Err(quota(3).rate_limited_error(debt))
        }
    }

    /// Failure 24
    #[test]
    fn one_caller_that_spent_everything_blocks_nobody_else() {
        let (budgets, _) = held(100);
        for left in [2, 1, 0] {
            assert_eq!(spend(&budgets, CallerId::Agent(AgentId(1))).unwrap(), left);
        }
        let refused = spend(&budgets, CallerId::Agent(AgentId(1))).unwrap_err();
        assert_eq!(
            (refused.code, refused.retry_after),
            (ErrorCode::RateLimited, Some(20))
        );
        assert!(spend(&budgets, CallerId::Agent(AgentId(2))).is_ok());
        assert!(spend(&budgets, budgets.anonymous_caller(from("192.0.2.1"))).is_ok());
    }

    #[test]
    fn who_waits_as_told_is_served_again() {
        let (budgets, clock) = held(100);
        while spend(&budgets, CallerId::Agent(AgentId(1))).is_ok() {}
        let wait = spend(&budgets, CallerId::Agent(AgentId(1)))
            .unwrap_err()
            .retry_after
            .unwrap();
        clock.advance(Duration::from_secs(wait));
        assert!(spend(&budgets, CallerId::Agent(AgentId(1))).is_ok());
        assert!(spend(&budgets, CallerId::Agent(AgentId(1))).is_err());
    }

    #[test]
    fn to_look_takes_nothing() {
        let (budgets, clock) = held(100);
        let left = |budgets: &RateBudgets| {
            quota(3).remaining_requests(
                budgets
                    .decide_locally(CallerId::Agent(AgentId(1)), None, false)
                    .debt,
            )
        };
        assert_eq!((left(&budgets), left(&budgets)), (3, 3));
        while spend(&budgets, CallerId::Agent(AgentId(1))).is_ok() {}
        assert_eq!(left(&budgets), 0);
        clock.advance(Duration::from_secs(20));
        assert_eq!((left(&budgets), left(&budgets)), (1, 1));
    }

    #[test]
    fn all_addresses_of_one_ipv6_customer_share_a_bucket_and_v4_is_v4_in_any_dress() {
        let (budgets, _) = held(100);
        assert_eq!(
            budgets.anonymous_caller(from("2001:db8:1:2::1")),
            budgets.anonymous_caller(from("2001:db8:1:2:ffff::9"))
        );
        assert_ne!(
            budgets.anonymous_caller(from("2001:db8:1:2::1")),
            budgets.anonymous_caller(from("2001:db8:1:3::1"))
        );
        assert_eq!(
            budgets.anonymous_caller(from("::ffff:192.0.2.1")),
            budgets.anonymous_caller(from("192.0.2.1"))
        );
    }

    /// Invariant 6
    #[test]
    fn the_number_of_buckets_stays_bounded_and_falls_again() {
        let (budgets, clock) = held(64);
        for n in 0..50_000u32 {
            let ip = IpAddr::V4(std::net::Ipv4Addr::from_bits(0x0a00_0000 + n));
            let _ = spend(&budgets, budgets.anonymous_caller(ip));
        }
        assert!(
            budgets.bucket_count() <= 64 + SWEEP_EVERY_REQUESTS,
            "{}",
            budgets.bucket_count()
        );
        let before = budgets.bucket_count();
        budgets.learn_debt(CallerId::Agent(AgentId(7)), 1, budgets.now_nanos());
        assert_eq!(
            budgets.bucket_count(),
            before,
            "what others say takes no room that is not there"
        );
        clock.advance(Duration::from_secs(120));
        budgets.drop_full_buckets();
        assert_eq!(budgets.bucket_count(), 0);
        assert_eq!(
            budgets.anonymous_caller(from("10.0.0.1")),
            CallerId::Address(from("10.0.0.1"))
        );
        // Agents come without an address, and are forgotten all the same.
        for agent in 0..1_000 {
            clock.advance(Duration::from_secs(60));
            let _ = spend(&budgets, CallerId::Agent(AgentId(agent)));
        }
        assert!(budgets.bucket_count() <= 64, "{}", budgets.bucket_count());
    }

    //
    #[test]
    fn registrations_come_in_a_burst_of_two_minutes_and_refill_at_their_rate() {
        let (budgets, clock) = held(100);
        let caller = CallerId::Registrations(from("192.0.2.1"));
        let register = || {
            let quota = quota(10).with_burst_of(caller);
            budgets.decide_locally(caller, Some(quota), false).granted
        };
        assert_eq!((0..30).filter(|_| register()).count(), 20);
        clock.advance(Duration::from_secs(60));
        assert_eq!((0..30).filter(|_| register()).count(), 10);
        // A hub that decides for a peer counts the same burst.
        let (owner, _) = held(100);
        let claim = BudgetClaim {
            caller,
            owed: 0,
            known: 0,
            quota: 10,
        };
        let granted = (0..30).filter(|_| owner.decide_for_peer(&claim).granted);
        assert_eq!(granted.count(), 20);
    }

    /// D-85
    #[test]
    fn what_is_said_to_others_is_said_once_and_of_each_caller_together() {
        let ((here, _), (owner, _)) = (held(100), held(100));
        let (alice, bob) = (CallerId::Agent(AgentId(1)), CallerId::Agent(AgentId(2)));
        for caller in [alice, bob, alice] {
            assert!(here.decide_locally(caller, Some(quota(600)), true).granted);
        }
        let one = quota(600).request_nanos();
        let mut news = here.collect_unsynced();
        news.sort_by_key(|(_, owed, _)| *owed);
        assert_eq!(news, [(bob, one, one), (alice, 2 * one, 2 * one)]);
        assert!(here.collect_unsynced().is_empty());
        for (caller, owed, known) in news {
            owner.decide_for_peer(&BudgetClaim {
                caller,
                owed,
                known,
                quota: 0,
            });
        }
        let verdict = owner.decide_for_peer(&BudgetClaim {
            caller: alice,
            owed: 0,
            known: 0,
            quota: 600,
        });
        assert_eq!((verdict.granted, verdict.debt), (true, 3 * one));
        // A hub that took over knows what the one that asks knows.
        let (next, _) = held(100);
        let verdict = next.decide_for_peer(&BudgetClaim {
            caller: alice,
            owed: 0,
            known: verdict.debt,
            quota: 600,
        });
        assert_eq!((verdict.granted, verdict.debt), (true, 4 * one));
    }
}
