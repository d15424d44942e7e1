//! One caller's bucket. When it will be full again is all there is to know of it, so hubs tell one another in one number.

use chorus_wire::{Code, Error};
use std::num::NonZeroU32;
use std::time::Duration;

const MINUTE: u64 = 60_000_000_000;
/// The most that is owed: an empty bucket, and what several hubs may have given out before they heard of one another. More would
/// shut a caller out for what they did not know.
const DEBT: u64 = MINUTE + MINUTE / 4;
/// Quotas that are counted one by one from the first request on: of so few, none may be given out twice.
const SMALL: u32 = 64;

/// Requests a minute, all of them at once if need be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota(NonZeroU32);

impl Quota {
    /// 0 is no limit.
    pub fn per_minute(requests: u32) -> Option<Self> {
        NonZeroU32::new(requests).map(Self)
    }

    pub const fn get(self) -> u32 {
        self.0.get()
    }

    /// How long one request takes to come back, in nanoseconds.
    pub(super) fn one(self) -> u64 {
        (MINUTE / u64::from(self.get())).max(1)
    }

    /// How long it takes to fill an empty bucket.
    fn whole(self) -> u64 {
        self.one() * u64::from(self.get())
    }

    /// Whole requests that are left to whoever owes this much.
    pub(super) fn left(self, debt: u64) -> u32 {
        u32::try_from(self.whole().saturating_sub(debt) / self.one()).unwrap_or(u32::MAX)
    }

    /// What whoever owes this much is told when there is nothing left.
    pub(super) fn later(self, debt: u64) -> Error {
        let wait = Duration::from_nanos((debt + self.one()).saturating_sub(self.whole()));
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        Error {
            retry_after: Some(seconds.max(1)),
            ..Code::RateLimited.into()
        }
    }

    /// Whether one of several hubs may give a request out by itself: as much again is left as all of them together may give
    /// out before they hear of one another (D-85).
    fn plenty(self, debt: u64, unsaid: u64, hubs: usize) -> bool {
        let mine = u64::from(self.get() / 8) / hubs as u64;
        self.get() > SMALL && self.left(debt) > self.get() / 4 && unsaid < mine.max(1) * self.one()
    }
}

/// All in nanoseconds of the hub's steady clock; a request is the time that it takes to come back.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bucket {
    full_at: u64,
    /// What was spent here and no other hub has heard of.
    unsaid: u64,
    /// Is among those of which others are to hear.
    pub listed: bool,
}

impl Bucket {
    pub fn debt(&self, now: u64) -> u64 {
        self.full_at.saturating_sub(now)
    }

    /// Takes one if there is one.
    pub fn take(&mut self, quota: Quota, now: u64) -> bool {
        let granted = quota.left(self.debt(now)) > 0;
        if granted {
            self.owe(quota.one(), now);
        }
        granted
    }

    /// The same when that needs nobody else's word, and others will hear of it.
    pub fn take_of_plenty(&mut self, quota: Quota, hubs: usize, now: u64) -> bool {
        let plenty = self.has_plenty(quota, hubs, now) && self.take(quota, now);
        if plenty {
            self.keep(quota.one());
        }
        plenty
    }

    pub fn has_plenty(&self, quota: Quota, hubs: usize, now: u64) -> bool {
        quota.plenty(self.debt(now), self.unsaid, hubs)
    }

    /// Was spent, here or elsewhere; owed also when there is nothing left.
    pub fn owe(&mut self, spent: u64, now: u64) {
        self.owes(self.debt(now).saturating_add(spent), now);
    }

    /// It owes at least this much.
    pub fn owes(&mut self, debt: u64, now: u64) {
        self.full_at = self.full_at.max(now + debt.min(DEBT));
    }

    /// The hub that decides knows of this debt, and of nothing that is unsaid here. Hearing it twice changes nothing.
    pub fn learn(&mut self, debt: u64, now: u64) {
        self.owes(debt.saturating_add(self.unsaid), now);
    }

    /// Others are to hear of this.
    pub fn keep(&mut self, spent: u64) {
        self.unsaid = self.unsaid.saturating_add(spent).min(DEBT);
    }

    /// What others have not heard, which is being said now.
    pub fn say(&mut self) -> u64 {
        std::mem::take(&mut self.unsaid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn quota(requests: u32) -> Quota {
        Quota::per_minute(requests).unwrap()
    }

    #[test]
    fn a_bucket_gives_its_quota_and_then_as_much_as_comes_back() {
        let (mut bucket, quota, now) = (Bucket::default(), quota(3), 100 * SECOND);
        let lefts: Vec<u32> = std::iter::from_fn(|| {
            bucket
                .take(quota, now)
                .then(|| quota.left(bucket.debt(now)))
        })
        .collect();
        assert_eq!(lefts, [2, 1, 0]);
        assert_eq!(quota.later(bucket.debt(now)).retry_after, Some(20));
        assert!(!bucket.take(quota, now + 20 * SECOND - 1));
        assert!(bucket.take(quota, now + 20 * SECOND));
        assert!(!bucket.take(quota, now + 20 * SECOND));
    }

    /// D-85
    #[test]
    fn what_was_spent_elsewhere_is_owed_and_no_more_than_was_given_out_unknown() {
        let (mut bucket, quota, now) = (Bucket::default(), quota(6), 100 * SECOND);
        bucket.owe(7 * quota.one(), now);
        assert!(
            !bucket.take(quota, now + 19 * SECOND),
            "six and one more, and one comes back in ten seconds"
        );
        assert_eq!(quota.later(bucket.debt(now)).retry_after, Some(20));
        bucket.owe(100 * quota.one(), now);
        assert_eq!(
            quota.later(bucket.debt(now)).retry_after,
            Some(25),
            "no hub shuts out for what it did not know"
        );
    }

    #[test]
    fn what_another_hub_says_twice_is_owed_once_and_what_it_cannot_know_is_owed_beside_it() {
        let (mut bucket, quota, now) = (Bucket::default(), quota(600), 100 * SECOND);
        assert!(bucket.take_of_plenty(quota, 2, now));
        for _ in 0..2 {
            bucket.learn(5 * quota.one(), now);
            assert_eq!(bucket.debt(now), 6 * quota.one());
        }
        assert_eq!(bucket.say(), quota.one());
        bucket.learn(6 * quota.one(), now);
        assert_eq!((bucket.debt(now), bucket.say()), (6 * quota.one(), 0));
    }

    /// D-85
    #[test]
    fn all_hubs_together_give_out_unasked_no_more_than_is_sure_to_be_there() {
        for (requests, hubs) in [(600, 2), (600, 3), (65, 2), (100_000, 16), (64, 2), (1, 2)] {
            let (mut bucket, quota, now) = (Bucket::default(), quota(requests), 100 * SECOND);
            let mut unasked = 0;
            while bucket.take_of_plenty(quota, hubs, now) {
                unasked += 1;
            }
            assert!(
                unasked * hubs as u32 <= requests / 4,
                "{unasked} of {requests} at each of {hubs}"
            );
            assert_eq!(unasked > 0, requests > SMALL);
            bucket.say();
            bucket.learn(quota.whole() / 4 * 3 + quota.one(), now);
            assert!(
                !bucket.take_of_plenty(quota, hubs, now),
                "near its end one hub decides for all"
            );
        }
    }
}
