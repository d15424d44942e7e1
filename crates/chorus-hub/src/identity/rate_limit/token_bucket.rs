//! One caller's token bucket. Its whole state is the time at which it will be full, so hubs exchange it as one number.

use super::CallerId;
use chorus_wire::{Error, ErrorCode};
use std::num::NonZeroU32;
use std::time::Duration;

const MINUTE_NANOS: u64 = 60_000_000_000;
/// Max debt: an empty bucket, and what several hubs may have granted before they knew of one another. A larger debt would block a
/// caller for requests that the hubs themselves granted.
const MAX_DEBT_NANOS: u64 = MINUTE_NANOS + MINUTE_NANOS / 4;
/// Quotas up to this one are always decided by one hub: of so few requests, none may be granted twice.
const SMALL_QUOTA: u32 = 64;

/// Requests per minute, and how many minutes of them may come at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateQuota {
    requests: NonZeroU32,
    burst_minutes: u32,
}

impl RateQuota {
    /// `None` for 0, which means no limit.
    pub fn per_minute(requests: u32) -> Option<Self> {
        NonZeroU32::new(requests).map(|requests| Self {
            requests,
            burst_minutes: 1,
        })
    }

    /// The same with the burst that this kind of caller may make.
    pub(super) fn with_burst_of(self, caller: CallerId) -> Self {
        Self {
            burst_minutes: caller.burst_minutes(),
            ..self
        }
    }

    pub const fn requests_per_minute(self) -> u32 {
        self.requests.get()
    }

    /// The time after which a spent request is refilled, in nanoseconds.
    pub(super) fn request_nanos(self) -> u64 {
        (MINUTE_NANOS / u64::from(self.requests_per_minute())).max(1)
    }

    /// The time in which an empty bucket fills.
    fn refill_nanos(self) -> u64 {
        self.request_nanos() * u64::from(self.requests_per_minute() * self.burst_minutes)
    }

    /// Whole requests that are left at this debt.
    pub(super) fn remaining_requests(self, debt: u64) -> u32 {
        u32::try_from(self.refill_nanos().saturating_sub(debt) / self.request_nanos())
            .unwrap_or(u32::MAX)
    }

    /// The error for a caller with this debt, with the time until one request is refilled.
    pub(super) fn rate_limited_error(self, debt: u64) -> Error {
        let wait =
            Duration::from_nanos((debt + self.request_nanos()).saturating_sub(self.refill_nanos()));
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        Error {
            retry_after: Some(seconds.max(1)),
            ..ErrorCode::RateLimited.into()
        }
    }

    /// Whether one of several hubs may grant a request by itself: twice as much is left as all of them together may grant before
    /// they know of one another (D-85).
    fn has_plenty(self, debt: u64, unsynced: u64, hubs: usize) -> bool {
        let own_share = u64::from(self.requests_per_minute() / 8) / hubs as u64;
        self.requests_per_minute() > SMALL_QUOTA
            && self.remaining_requests(debt) > self.requests_per_minute() / 4
            && unsynced < own_share.max(1) * self.request_nanos()
    }
}

/// All in nanoseconds of the hub's monotonic clock; a request counts as the time that it takes to refill.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TokenBucket {
    full_at: u64,
    /// Spent here and not reported to another hub.
    unsynced: u64,
    /// Debt beyond that of one minute's burst.
    burst_debt: u64,
    /// It is in its shard's list of unsynced callers.
    pub is_listed: bool,
}

impl TokenBucket {
    pub fn for_caller(caller: CallerId) -> Self {
        Self {
            burst_debt: u64::from(caller.burst_minutes() - 1) * MINUTE_NANOS,
            ..Self::default()
        }
    }

    fn max_debt(&self) -> u64 {
        MAX_DEBT_NANOS + self.burst_debt
    }

    pub fn debt_at(&self, now: u64) -> u64 {
        self.full_at.saturating_sub(now)
    }

    /// Takes one request if one is left.
    pub fn try_take(&mut self, quota: RateQuota, now: u64) -> bool {
        let granted = quota.remaining_requests(self.debt_at(now)) > 0;
        if granted {
            self.add_debt(quota.request_nanos(), now);
        }
        granted
    }

    /// The same when enough is left that no other hub must agree; it becomes unsynced.
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

    /// Adds what was spent here or at another hub, also when nothing is left.
    pub fn add_debt(&mut self, spent: u64, now: u64) {
        self.raise_debt_to(self.debt_at(now).saturating_add(spent), now);
    }

    /// The debt is at least this much.
    pub fn raise_debt_to(&mut self, debt: u64, now: u64) {
        self.full_at = self.full_at.max(now + debt.min(self.max_debt()));
    }

    /// The deciding hub reports this debt, which does not include what is unsynced here. Applying it twice changes nothing.
    pub fn learn_debt(&mut self, debt: u64, now: u64) {
        self.raise_debt_to(debt.saturating_add(self.unsynced), now);
    }

    /// Adds to what other hubs have not been told.
    pub fn add_unsynced(&mut self, spent: u64) {
        self.unsynced = self.unsynced.saturating_add(spent).min(self.max_debt());
    }

    /// What other hubs have not been told; it is being reported now.
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
