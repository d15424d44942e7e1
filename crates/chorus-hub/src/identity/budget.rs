//! How often each caller may ask: a bucket of its own for every agent and address, so that nobody blocks another (failure 24).

mod bucket;
mod caller;
mod decide;

pub use bucket::Quota;
pub use caller::Caller;
pub(crate) use caller::mix;
pub use decide::{has_some, spend};

use crate::bus::{Spend, Verdict};
use crate::{Clock, Hub};
use bucket::Bucket;
use chorus_wire::limits;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// How many requests of strangers pass between two looks at how many buckets there are.
const SWEEP_EVERY: usize = 1_024;
/// No lock is everybody's.
const SHARDS: usize = 64;

#[derive(Default)]
struct Shard {
    buckets: HashMap<Caller, Bucket>,
    /// Those of which other hubs are to hear.
    news: Vec<Caller>,
}

pub(crate) struct Budgets {
    shards: [Mutex<Shard>; SHARDS],
    clock: Clock,
    /// The most addresses that are kept; then their networks are counted instead.
    most: usize,
    strangers: AtomicUsize,
    grown: AtomicUsize,
    crowded: AtomicBool,
    /// There is something that other hubs are to hear.
    pub news: Notify,
}

/// The caller of a request that only has an address.
pub fn stranger(hub: &Hub, peer: IpAddr) -> Caller {
    hub.budgets().stranger(peer)
}

/// The same place as one that tries keys: what it asks without a key is no guess.
pub fn guesser(hub: &Hub, peer: IpAddr) -> Caller {
    Caller::Guesses(hub.budgets().place(peer).0)
}

impl Budgets {
    pub fn new(clock: Clock) -> Self {
        Self::bounded(clock, limits::LIMITED_CALLERS)
    }

    fn bounded(clock: Clock, most: usize) -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            clock,
            most,
            strangers: AtomicUsize::new(0),
            grown: AtomicUsize::new(0),
            crowded: AtomicBool::new(false),
            news: Notify::new(),
        }
    }

    pub fn now(&self) -> u64 {
        self.clock.steady().as_nanos() as u64
    }

    fn shard(&self, number: usize) -> MutexGuard<'_, Shard> {
        self.shards[number % SHARDS]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn stranger(&self, peer: IpAddr) -> Caller {
        match self.place(peer) {
            (ip, true) => Caller::Network(ip),
            (ip, false) => Caller::Address(ip),
        }
    }

    /// Where a request comes from, and whether that is a wider network.
    fn place(&self, peer: IpAddr) -> (IpAddr, bool) {
        if self.strangers.fetch_add(1, Ordering::Relaxed) % SWEEP_EVERY == SWEEP_EVERY - 1 {
            self.sweep();
        }
        let crowded = self.crowded.load(Ordering::Relaxed);
        let (wide, bits) = match (peer.to_canonical(), crowded) {
            (IpAddr::V4(ip), false) => return (IpAddr::V4(ip), false),
            (IpAddr::V4(ip), true) => (ip.to_ipv6_mapped(), 96 + 16),
            (IpAddr::V6(ip), false) => (ip, 64),
            (IpAddr::V6(ip), true) => (ip, 32),
        };
        (
            IpAddr::V6(Ipv6Addr::from_bits(wide.to_bits() & !(u128::MAX >> bits))),
            crowded,
        )
    }

    fn len(&self) -> usize {
        (0..SHARDS)
            .map(|number| self.shard(number).buckets.len())
            .sum()
    }

    /// Forgets full buckets: a caller that is owed everything needs none.
    fn sweep(&self) {
        if self.len() > self.most / 2 {
            let now = self.now();
            (0..SHARDS).for_each(|number| {
                self.shard(number)
                    .buckets
                    .retain(|_, bucket| bucket.debt(now) > 0)
            });
        }
        self.crowded
            .store(self.len() >= self.most, Ordering::Relaxed);
    }

    /// Does something with the caller's bucket; others are to hear of it when it says so.
    fn with<T>(&self, caller: Caller, work: impl FnOnce(&mut Bucket, u64) -> (T, bool)) -> T {
        let now = self.now();
        let mut shard = self.shard(caller.mark() as usize);
        let Shard { buckets, news } = &mut *shard;
        let before = buckets.len();
        let bucket = buckets.entry(caller).or_default();
        let (done, tell) = work(bucket, now);
        let tell = tell && !bucket.listed && news.len() < limits::BUDGET_NEWS / SHARDS;
        if tell {
            bucket.listed = true;
            news.push(caller);
        }
        let grew = buckets.len() > before;
        drop(shard);
        if tell {
            self.news.notify_one();
        }
        // Agents are as many as have asked within a minute; it is enough to forget them now and then.
        if grew && self.grown.fetch_add(1, Ordering::Relaxed) % self.most == self.most - 1 {
            self.sweep();
        }
        done
    }

    /// Takes one when a quota is given, if there is one; `tell` when others are to hear of it.
    pub fn decide(&self, caller: Caller, wanted: Option<Quota>, tell: bool) -> Verdict {
        self.with(caller, |bucket, now| {
            let granted = wanted.is_some_and(|quota| bucket.take(quota, now));
            if let (true, true, Some(quota)) = (granted, tell, wanted) {
                bucket.keep(quota.one());
            }
            (
                Verdict {
                    granted,
                    debt: bucket.debt(now),
                },
                granted && tell,
            )
        })
    }

    /// The same where another hub decides, as long as there is enough for all of them.
    pub fn decide_of_plenty(
        &self,
        caller: Caller,
        quota: Quota,
        one: bool,
        hubs: usize,
    ) -> Option<Verdict> {
        self.with(caller, |bucket, now| {
            let granted = if one {
                bucket.take_of_plenty(quota, hubs, now)
            } else {
                bucket.has_plenty(quota, hubs, now)
            };
            (
                granted.then(|| Verdict {
                    granted,
                    debt: bucket.debt(now),
                }),
                granted && one,
            )
        })
    }

    /// Decides for another hub.
    pub fn judge(&self, spend: &Spend) -> Verdict {
        self.with(spend.caller, |bucket, now| {
            bucket.owe(spend.owed, now);
            bucket.owes(spend.known, now);
            let granted =
                Quota::per_minute(spend.quota).is_some_and(|quota| bucket.take(quota, now));
            (
                Verdict {
                    granted,
                    debt: bucket.debt(now),
                },
                granted || spend.owed > 0,
            )
        })
    }

    /// What others have not heard of this caller, and its debt; it is being said now.
    pub fn say(&self, caller: Caller) -> (u64, u64) {
        self.with(caller, |bucket, now| {
            ((bucket.say(), bucket.debt(now)), false)
        })
    }

    /// It was not heard after all.
    pub fn keep(&self, caller: Caller, owed: u64) {
        self.with(caller, |bucket, _| (bucket.keep(owed), owed > 0));
    }

    /// Another hub that decides about this caller says what it owed at this moment, or soon after.
    pub fn learn(&self, caller: Caller, debt: u64, since: u64) {
        // Only to know it sooner: a hub with no room for it asks.
        if !self.crowded.load(Ordering::Relaxed) {
            self.with(caller, |bucket, _| (bucket.learn(debt, since), false));
        }
    }

    /// Everything that others are to hear: what is unsaid of each caller, and its debt.
    pub fn gather(&self) -> Vec<(Caller, u64, u64)> {
        let now = self.now();
        let mut gathered = Vec::new();
        for number in 0..SHARDS {
            let mut shard = self.shard(number);
            let Shard { buckets, news } = &mut *shard;
            for caller in news.drain(..) {
                if let Some(bucket) = buckets.get_mut(&caller) {
                    bucket.listed = false;
                    gathered.push((caller, bucket.say(), bucket.debt(now)));
                }
            }
        }
        gathered
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_wire::time::Micros;
    use chorus_wire::{Code, Error};
    use std::time::Duration;

    fn held(most: usize) -> (Budgets, Clock) {
        let clock = Clock::held(Micros(1_000_000_000_000));
        (Budgets::bounded(clock.clone(), most), clock)
    }

    fn from(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn quota(requests: u32) -> Quota {
        Quota::per_minute(requests).unwrap()
    }

    /// One of three a minute, by one hub alone.
    fn spend(budgets: &Budgets, caller: Caller) -> Result<u32, Error> {
        let Verdict { granted, debt } = budgets.decide(caller, Some(quota(3)), false);
        if granted {
            Ok(quota(3).left(debt))
        } else {
            Err(quota(3).later(debt))
        }
    }

    /// Failure 24
    #[test]
    fn one_caller_that_spent_everything_blocks_nobody_else() {
        let (budgets, _) = held(100);
        for left in [2, 1, 0] {
            assert_eq!(spend(&budgets, Caller::Agent(1)).unwrap(), left);
        }
        let refused = spend(&budgets, Caller::Agent(1)).unwrap_err();
        assert_eq!(
            (refused.code, refused.retry_after),
            (Code::RateLimited, Some(20))
        );
        assert!(spend(&budgets, Caller::Agent(2)).is_ok());
        assert!(spend(&budgets, budgets.stranger(from("192.0.2.1"))).is_ok());
    }

    #[test]
    fn who_waits_as_told_is_served_again() {
        let (budgets, clock) = held(100);
        while spend(&budgets, Caller::Agent(1)).is_ok() {}
        let wait = spend(&budgets, Caller::Agent(1))
            .unwrap_err()
            .retry_after
            .unwrap();
        clock.advance(Duration::from_secs(wait));
        assert!(spend(&budgets, Caller::Agent(1)).is_ok());
        assert!(spend(&budgets, Caller::Agent(1)).is_err());
    }

    #[test]
    fn to_look_takes_nothing() {
        let (budgets, clock) = held(100);
        let left =
            |budgets: &Budgets| quota(3).left(budgets.decide(Caller::Agent(1), None, false).debt);
        assert_eq!((left(&budgets), left(&budgets)), (3, 3));
        while spend(&budgets, Caller::Agent(1)).is_ok() {}
        assert_eq!(left(&budgets), 0);
        clock.advance(Duration::from_secs(20));
        assert_eq!((left(&budgets), left(&budgets)), (1, 1));
    }

    #[test]
    fn all_addresses_of_one_ipv6_customer_share_a_bucket_and_v4_is_v4_in_any_dress() {
        let (budgets, _) = held(100);
        assert_eq!(
            budgets.stranger(from("2001:db8:1:2::1")),
            budgets.stranger(from("2001:db8:1:2:ffff::9"))
        );
        assert_ne!(
            budgets.stranger(from("2001:db8:1:2::1")),
            budgets.stranger(from("2001:db8:1:3::1"))
        );
        assert_eq!(
            budgets.stranger(from("::ffff:192.0.2.1")),
            budgets.stranger(from("192.0.2.1"))
        );
    }

    /// Law 6
    #[test]
    fn the_number_of_buckets_stays_bounded_and_falls_again() {
        let (budgets, clock) = held(64);
        for n in 0..50_000u32 {
            let ip = IpAddr::V4(std::net::Ipv4Addr::from_bits(0x0a00_0000 + n));
            let _ = spend(&budgets, budgets.stranger(ip));
        }
        assert!(budgets.len() <= 64 + SWEEP_EVERY, "{}", budgets.len());
        let before = budgets.len();
        budgets.learn(Caller::Agent(7), 1, budgets.now());
        assert_eq!(
            budgets.len(),
            before,
            "what others say takes no room that is not there"
        );
        clock.advance(Duration::from_secs(120));
        budgets.sweep();
        assert_eq!(budgets.len(), 0);
        assert_eq!(
            budgets.stranger(from("10.0.0.1")),
            Caller::Address(from("10.0.0.1"))
        );
        // Agents come without an address, and are forgotten all the same.
        for agent in 0..1_000 {
            clock.advance(Duration::from_secs(60));
            let _ = spend(&budgets, Caller::Agent(agent));
        }
        assert!(budgets.len() <= 64, "{}", budgets.len());
    }

    /// D-85
    #[test]
    fn what_is_said_to_others_is_said_once_and_of_each_caller_together() {
        let ((here, _), (owner, _)) = (held(100), held(100));
        let (alice, bob) = (Caller::Agent(1), Caller::Agent(2));
        for caller in [alice, bob, alice] {
            assert!(here.decide(caller, Some(quota(600)), true).granted);
        }
        let one = quota(600).one();
        let mut news = here.gather();
        news.sort_by_key(|(_, owed, _)| *owed);
        assert_eq!(news, [(bob, one, one), (alice, 2 * one, 2 * one)]);
        assert!(here.gather().is_empty());
        for (caller, owed, known) in news {
            owner.judge(&Spend {
                caller,
                owed,
                known,
                quota: 0,
            });
        }
        let verdict = owner.judge(&Spend {
            caller: alice,
            owed: 0,
            known: 0,
            quota: 600,
        });
        assert_eq!((verdict.granted, verdict.debt), (true, 3 * one));
        // A hub that took over knows what the one that asks knows.
        let (next, _) = held(100);
        let verdict = next.judge(&Spend {
            caller: alice,
            owed: 0,
            known: verdict.debt,
            quota: 600,
        });
        assert_eq!((verdict.granted, verdict.debt), (true, 4 * one));
    }
}
