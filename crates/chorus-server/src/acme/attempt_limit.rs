//! When the next order may be tried after failures: never so often that an authority would refuse this hub.

use super::order_failure::FailureKind;
use chorus_wire::time::UnixMicros;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Failed orders in an hour after which this hub waits, over restarts too. Let's Encrypt refuses an account after five failed
/// checks of one name in an hour.
const MAX_FAILURES_PER_HOUR: usize = 4;
const HOUR: Duration = Duration::from_secs(60 * 60);
/// Each further failure waits this many times longer.
const BACKOFF_FACTOR: u32 = 3;
/// The first wait after an order that the authority refused or could not check.
const FIRST_REFUSED_DELAY: Duration = Duration::from_secs(60);
/// The longest wait after refused orders: a mended DNS record is noticed on the same day.
const MAX_REFUSED_DELAY: Duration = Duration::from_secs(6 * 60 * 60);
/// The first wait when the authority could not be reached, or a file not be written: it costs the authority nothing.
const FIRST_UNREACHABLE_DELAY: Duration = Duration::from_secs(5);
/// The longest of these waits: an outage of the authority ends without a message to us.
const MAX_UNREACHABLE_DELAY: Duration = Duration::from_secs(15 * 60);
/// The least wait after a rate limit that named no time of its own.
const RATE_LIMIT_DELAY: Duration = Duration::from_secs(60 * 60);
/// The longest refusal that is accepted, so that neither a wrong header nor a clock that was set back ends all renewals.
const MAX_REFUSAL: Duration = Duration::from_secs(24 * 60 * 60);

/// The failures that count at the authority, and how long it asked to wait. Kept in a file, because a hub that restarts in a
/// loop would otherwise order at each start.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct AttemptHistory {
    /// Of the last hour, oldest first.
    failed_at: Vec<i64>,
    /// When the attempt under way began. A hub that ends before the attempt does has maybe made the authority check its names.
    #[serde(default)]
    under_way: Option<i64>,
    /// The authority refuses orders until then.
    refused_until: Option<i64>,
    /// Failures since the last certificate, of this process.
    #[serde(skip)]
    consecutive: u32,
}

impl AttemptHistory {
    /// An attempt begins. The history must be kept before it does.
    pub fn begin_attempt(&mut self, now: UnixMicros) {
        self.under_way = Some(now.0);
    }

    /// Counts an attempt that an earlier process did not end.
    pub fn count_interrupted(&mut self) {
        self.failed_at.extend(self.under_way.take());
    }

    /// The first attempt of a process: at once, unless earlier ones have used up the hour.
    pub fn first_attempt_at(&self, now: UnixMicros) -> UnixMicros {
        UnixMicros(self.earliest_allowed(now).max(now.0))
    }

    /// Counts a failure and says when to try again. `was_checked` is whether the authority had been told to check a name, which then
    /// counts there whatever this hub saw of it.
    pub fn count_failure(
        &mut self,
        kind: FailureKind,
        was_checked: bool,
        retry_after: Option<Duration>,
        now: UnixMicros,
    ) -> UnixMicros {
        self.under_way = None;
        self.consecutive = self.consecutive.saturating_add(1);
        let (first, longest) = match kind {
            FailureKind::Refused | FailureKind::RateLimited => {
                self.failed_at.push(now.0);
                (FIRST_REFUSED_DELAY, MAX_REFUSED_DELAY)
            }
            FailureKind::Unreachable | FailureKind::Local if was_checked => {
                self.failed_at.push(now.0);
                (FIRST_REFUSED_DELAY, MAX_REFUSED_DELAY)
            }
            FailureKind::Unreachable | FailureKind::Local => {
                (FIRST_UNREACHABLE_DELAY, MAX_UNREACHABLE_DELAY)
            }
        };
        let asked = match kind {
            FailureKind::RateLimited => Some(retry_after.unwrap_or(RATE_LIMIT_DELAY)),
            FailureKind::Refused | FailureKind::Unreachable | FailureKind::Local => retry_after,
        };
        if let Some(wait) = asked {
            self.refused_until = Some(now.0 + wait.as_micros() as i64);
        }
        let factor = BACKOFF_FACTOR.saturating_pow(self.consecutive - 1);
        let backoff = first.saturating_mul(factor).min(longest).as_micros() as i64;
        UnixMicros(self.earliest_allowed(now).max(now.0 + backoff))
    }

    pub fn count_success(&mut self) {
        *self = Self::default();
    }

    fn earliest_allowed(&self, now: UnixMicros) -> i64 {
        let hour = HOUR.as_micros() as i64;
        // A clock that was set back would otherwise make failures of the future last for days.
        let recent: Vec<i64> = self
            .failed_at
            .iter()
            .copied()
            .filter(|at| (now.0 - hour..=now.0).contains(at))
            .collect();
        let hour_end = match recent.len().checked_sub(MAX_FAILURES_PER_HOUR) {
            Some(index) => recent[index] + hour,
            None => 0,
        };
        let refused_until = self.refused_until.unwrap_or(0);
        refused_until
            .min(now.0 + MAX_REFUSAL.as_micros() as i64)
            .max(hour_end)
    }

    /// Drops failures that count no longer, so that the file does not grow.
    pub fn forget_old(&mut self, now: UnixMicros) {
        let oldest = now.0 - HOUR.as_micros() as i64;
        self.failed_at.retain(|at| *at >= oldest);
        let kept_from = self.failed_at.len().saturating_sub(MAX_FAILURES_PER_HOUR);
        self.failed_at.drain(..kept_from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(seconds: i64) -> UnixMicros {
        UnixMicros(seconds * 1_000_000)
    }

    // D-117
    #[test]
    fn refused_orders_wait_longer_each_time_and_stay_within_the_authority_s_limit() {
        let mut history = AttemptHistory::default();
        let mut now = after(1_000_000);
        assert_eq!(history.first_attempt_at(now), now);
        let mut attempts = vec![now.0];
        for _ in 0..12 {
            let next = history.count_failure(FailureKind::Refused, true, None, now);
            history.forget_old(now);
            assert!(next > now);
            now = next;
            attempts.push(now.0);
        }
        let hour = HOUR.as_micros() as i64;
        for (index, at) in attempts.iter().enumerate() {
            let within = attempts[..=index]
                .iter()
                .filter(|a| at - **a < hour)
                .count();
            assert!(within <= MAX_FAILURES_PER_HOUR, "{within} in an hour");
        }
        let last = attempts[attempts.len() - 1] - attempts[attempts.len() - 2];
        assert_eq!(last, MAX_REFUSED_DELAY.as_micros() as i64);
    }

    // D-117
    #[test]
    fn restarts_in_a_loop_do_not_order_at_every_start() {
        let mut kept = String::from("{\"failed_at\":[],\"refused_until\":null}");
        let now = after(1_000_000);
        for _ in 0..MAX_FAILURES_PER_HOUR {
            let mut history: AttemptHistory = serde_json::from_str(&kept).unwrap();
            assert_eq!(history.first_attempt_at(now), now);
            history.count_failure(FailureKind::Refused, true, None, now);
            kept = serde_json::to_string(&history).unwrap();
        }
        let history: AttemptHistory = serde_json::from_str(&kept).unwrap();
        assert_eq!(history.first_attempt_at(now), after(1_000_000 + 3600));
    }

    // D-117
    #[test]
    fn a_rate_limit_is_obeyed_over_restarts() {
        let now = after(1_000_000);
        let mut history = AttemptHistory::default();
        let wait = Some(Duration::from_secs(7200));
        let next = history.count_failure(FailureKind::RateLimited, false, wait, now);
        assert_eq!(next, after(1_000_000 + 7200));
        assert_eq!(history.first_attempt_at(after(1_000_010)), next);
        let mut silent = AttemptHistory::default();
        let next = silent.count_failure(FailureKind::RateLimited, false, None, now);
        assert_eq!(next, after(1_000_000 + 3600));
    }

    // D-117
    #[test]
    fn an_authority_that_is_away_is_tried_again_within_seconds() {
        let mut history = AttemptHistory::default();
        let now = after(1_000_000);
        let first = history.count_failure(FailureKind::Unreachable, false, None, now);
        let second = history.count_failure(FailureKind::Unreachable, false, None, now);
        assert_eq!((first, second), (after(1_000_005), after(1_000_015)));
        for _ in 0..40 {
            let next = history.count_failure(FailureKind::Unreachable, false, None, now);
            assert!(next <= after(1_000_000 + 900));
        }
    }

    // D-117
    #[test]
    fn an_attempt_that_a_crash_interrupted_counts() {
        let now = after(1_000_000);
        let mut kept = serde_json::to_string(&AttemptHistory::default()).unwrap();
        for _ in 0..MAX_FAILURES_PER_HOUR {
            let mut history: AttemptHistory = serde_json::from_str(&kept).unwrap();
            history.count_interrupted();
            assert_eq!(history.first_attempt_at(now), now);
            history.begin_attempt(now);
            kept = serde_json::to_string(&history).unwrap();
        }
        let mut history: AttemptHistory = serde_json::from_str(&kept).unwrap();
        history.count_interrupted();
        assert_eq!(history.first_attempt_at(now), after(1_000_000 + 3600));
    }

    // D-117
    #[test]
    fn a_check_whose_outcome_was_not_seen_counts() {
        let now = after(1_000_000);
        let mut history = AttemptHistory::default();
        let next = history.count_failure(FailureKind::Unreachable, true, None, now);
        assert_eq!(next, after(1_000_060));
        assert_eq!(history.failed_at.len(), 1);
    }
}
