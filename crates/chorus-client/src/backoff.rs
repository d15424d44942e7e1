//! Exponential backoff with jitter, so that many clients do not return at once (TRN-48).

use crate::limits;
use std::time::Duration;

#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    pub first_delay: Duration,
    pub max_delay: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            first_delay: limits::BACKOFF_RANGE.0,
            max_delay: limits::BACKOFF_RANGE.1,
        }
    }
}

impl Backoff {
    /// The delay after `failures` failures in a row: between half and all of `first_delay · 2^(failures-1)`, at most
    /// `max_delay`.
    pub fn delay_after(&self, failures: u32) -> Duration {
        let doubled_delay = self
            .first_delay
            .saturating_mul(1 << failures.saturating_sub(1).min(20));
        add_jitter(doubled_delay.min(self.max_delay))
    }
}

/// A random duration between half and all of `delay`.
pub fn add_jitter(delay: Duration) -> Duration {
    delay.mul_f64(0.5 + rand::random::<f64>() / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    // TRN-48
    #[test]
    fn delays_double_up_to_the_maximum_and_never_fall_under_half() {
        let backoff = Backoff {
            first_delay: Duration::from_millis(100),
            max_delay: Duration::from_secs(1),
        };
        for (failures, whole) in [
            (1, 100),
            (2, 200),
            (3, 400),
            (4, 800),
            (5, 1000),
            (60, 1000),
        ] {
            for _ in 0..50 {
                let delay = backoff.delay_after(failures).as_millis();
                assert!(
                    (whole / 2..=whole).contains(&delay),
                    "{failures} failures waited {delay} ms"
                );
            }
        }
    }
}
