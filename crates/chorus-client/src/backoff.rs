//! How long to wait before trying again: exponential, with jitter so that many clients do not return at once (TRN-48).

use crate::limits;
use std::time::Duration;

#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    pub first: Duration,
    pub most: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            first: limits::BACKOFF.0,
            most: limits::BACKOFF.1,
        }
    }
}

impl Backoff {
    /// The wait after `failures` failures in a row: between half and all of `first · 2^(failures-1)`, at most `most`.
    pub fn wait(&self, failures: u32) -> Duration {
        let doubled = self
            .first
            .saturating_mul(1 << failures.saturating_sub(1).min(20));
        jitter(doubled.min(self.most))
    }
}

/// Between half and all of `wait`.
pub fn jitter(wait: Duration) -> Duration {
    wait.mul_f64(0.5 + rand::random::<f64>() / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    // TRN-48
    #[test]
    fn waits_double_up_to_the_bound_and_never_fall_under_half() {
        let backoff = Backoff {
            first: Duration::from_millis(100),
            most: Duration::from_secs(1),
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
                let wait = backoff.wait(failures).as_millis();
                assert!(
                    (whole / 2..=whole).contains(&wait),
                    "{failures} failures waited {wait} ms"
                );
            }
        }
    }
}
