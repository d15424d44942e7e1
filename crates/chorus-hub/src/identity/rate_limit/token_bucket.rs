//! One caller's bucket. When it will be full again is all there is to know of it, so hubs tell one another in one number.

use chorus_wire::{Code, Error};
use std::num::NonZeroU32;
use std::time::Duration;

const MINUTE_NANOS: u64 = 60_000_000_000;
/// The most that is owed: an empty bucket, and what several hubs may have given out before they heard of one another. More would
/// shut a caller out for what they did not know.
const MAX_DEBT_NANOS: u64 = MINUTE_NANOS + MINUTE_NANOS / 4;
/// Quotas that are counted one by one from the first request on: of so few, none may be given out twice.
const SMALL_QUOTA: u32 = 64;

/// Requests a minute, all of them at once if need be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateQuota(NonZeroU32);

impl RateQuota {
    /// 0 is no limit.
    pub fn per_minute(requests: u32) -> Option<Self> {
        NonZeroU32::new(requests).map(Self)
    }

    pub const fn requests_per_minute(self) -> u32 {
        self.0.get()
    }

    /// How long one request takes to come back, in nanoseconds.
    pub(super) fn request_nanos(self) -> u64 {
        (MINUTE_NANOS / u64::from(self.requests_per_minute())).max(1)
    }

    /// How long it takes to fill an empty bucket.
    fn refill_nanos(self) -> u64 {
        self.request_nanos() * u64::from(self.requests_per_minute())
    }

    /// Whole requests that are left to whoever owes this much.
    pub(super) fn remaining_requests(self, debt: u64) -> u32 {
        u32::try_from(self.refill_nanos().saturating_sub(debt) / self.request_nanos())
            .unwrap_or(u32::MAX)
    }

    /// What whoever owes this much is told when there is nothing left.
    pub(super) fn rate_limited_error(self, debt: u64) -> Error {
        let wait =
            Duration::from_nanos((debt + self.request_nanos()).saturating_sub(self.refill_nanos()));
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        Error {
            retry_after: Some(seconds.max(1)),
            ..Code::RateLimited.into()
        }
    }

    /// Whether one of several hubs may give a request out by itself: as much again is left as all of them together may give
    /// out before they hear of one another (D-85).
    fn has_plenty(self, debt: u64, unsynced: u64, hubs: usize) -> bool {
        let own_share = u64::from(self.requests_per_minute() / 8) / hubs as u64;
        self.requests_per_minute() > SMALL_QUOTA
            && self.remaining_requests(debt) > self.requests_per_minute() / 4
            && unsynced < own_share.max(1) * self.request_nanos()
    }
}

/// All in nanoseconds of the hub's steady clock; a request is the time that it takes to come back.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TokenBucket {
    full_at: u64,
    /// What was spent here and no other hub has heard of.
    unsynced: u64,
    /// Is among those of which others are to hear.
    pub is_listed: bool,
}

impl TokenBucket {
    pub fn debt_at(&self, now: u64) -> u64 {
        self.full_at.saturating_sub(now)
    }

    /// Takes one if there is one.
    pub fn try_take(&mut self, quota: RateQuota, now: u64) -> bool {
        let granted = quota.remaining_requests(self.debt_at(now)) > 0;
        if granted {
            self.add_debt(quota.request_nanos(), now);
        }
        granted
    }

    /// The same when that needs nobody else's word, and others will hear of it.
    pub fn try_take_if_plenty(&mut self, quota: RateQuota, hubs: usize, now: u64) -> bool {
        let granted = self.has_plenty(quota, hubs, now) && self.try_take(quota, now);
        if granted {
            self.add_unsynced(quota.request_nanos());
        }
        granted
    }

    pub fn has_plenty(&self, quota: RateQuota, hubs: usize, now: u64) -> bool {
        quota.has_plenty(self.debt_at(now), self.unsynced, hubs)
    }

    /// Was spent, here or elsewhere; owed also when there is nothing left.
    pub fn add_debt(&mut self, spent: u64, now: u64) {
        self.raise_debt_to(self.debt_at(now).saturating_add(spent), now);
    }

    /// It owes at least this much.
    pub fn raise_debt_to(&mut self, debt: u64, now: u64) {
        self.full_at = self.full_at.max(now + debt.min(MAX_DEBT_NANOS));
    }

    /// The hub that decides knows of this debt, and of nothing that is unsaid here. Hearing it twice changes nothing.
    pub fn learn_debt(&mut self, debt: u64, now: u64) {
        self.raise_debt_to(debt.saturating_add(self.unsynced), now);
    }

    /// Others are to hear of this.
    pub fn add_unsynced(&mut self, spent: u64) {
        self.unsynced = self.unsynced.saturating_add(spent).min(MAX_DEBT_NANOS);
    }

    /// What others have not heard, which is being said now.
    pub fn take_unsynced(&mut self) -> u64 {
        std::mem::take(&mut self.unsynced)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn quota(requests: u32) -> RateQuota {
        RateQuota::per_minute(requests).unwrap()
    }

    #[test]
    fn a_bucket_gives_its_quota_and_then_as_much_as_comes_back() {
        let (mut bucket, quota, now) = (TokenBucket::default(), quota(3), 100 * SECOND);
        let lefts: Vec<u32> = std::iter::from_fn(|| {
            bucket
                .try_take(quota, now)
                .then(|| quota.remaining_requests(bucket.debt_at(now)))
        })
        .collect();
        assert_eq!(lefts, [2, 1, 0]);
        assert_eq!(
            quota.rate_limited_error(bucket.debt_at(now)).retry_after,
            Some(20)
        );
        assert!(!bucket.try_take(quota, now + 20 * SECOND - 1));
        assert!(bucket.try_take(quota, now + 20 * SECOND));
        assert!(!bucket.try_take(quota, now + 20 * SECOND));
    }

    /// D-85
    #[test]
    fn what_was_spent_elsewhere_is_owed_and_no_more_than_was_given_out_unknown() {
        let (mut bucket, quota, now) = (TokenBucket::default(), quota(6), 100 * SECOND);
        bucket.add_debt(7 * quota.request_nanos(), now);
        assert!(
            !bucket.try_take(quota, now + 19 * SECOND),
            "six and one more, and one comes back in ten seconds"
        );
        assert_eq!(
            quota.rate_limited_error(bucket.debt_at(now)).retry_after,
            Some(20)
        );
        bucket.add_debt(100 * quota.request_nanos(), now);
        assert_eq!(
            quota.rate_limited_error(bucket.debt_at(now)).retry_after,
            Some(25),
            "no hub shuts out for what it did not know"
        );
    }

    #[test]
    fn what_another_hub_says_twice_is_owed_once_and_what_it_cannot_know_is_owed_beside_it() {
        let (mut bucket, quota, now) = (TokenBucket::default(), quota(600), 100 * SECOND);
        assert!(bucket.try_take_if_plenty(quota, 2, now));
        for _ in 0..2 {
            bucket.learn_debt(5 * quota.request_nanos(), now);
            assert_eq!(bucket.debt_at(now), 6 * quota.request_nanos());
        }
        assert_eq!(bucket.take_unsynced(), quota.request_nanos());
        bucket.learn_debt(6 * quota.request_nanos(), now);
        assert_eq!(
            (bucket.debt_at(now), bucket.take_unsynced()),
            (6 * quota.request_nanos(), 0)
        );
    }

    /// D-85
    #[test]
    fn all_hubs_together_give_out_unasked_no_more_than_is_sure_to_be_there() {
        for (requests, hubs) in [(600, 2), (600, 3), (65, 2), (100_000, 16), (64, 2), (1, 2)] {
            let (mut bucket, quota, now) = (TokenBucket::default(), quota(requests), 100 * SECOND);
            let mut unasked = 0;
            while bucket.try_take_if_plenty(quota, hubs, now) {
                unasked += 1;
            }
            assert!(
                unasked * hubs as u32 <= requests / 4,
                "{unasked} of {requests} at each of {hubs}"
            );
            assert_eq!(unasked > 0, requests > SMALL_QUOTA);
            bucket.take_unsynced();
            bucket.learn_debt(quota.refill_nanos() / 4 * 3 + quota.request_nanos(), now);
            assert!(
                !bucket.try_take_if_plenty(quota, hubs, now),
                "near its end one hub decides for all"
            );
        }
    }
}
