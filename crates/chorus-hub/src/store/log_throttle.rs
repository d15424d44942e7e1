//! Bounds how often the same failure is logged.

use std::time::Duration;

/// The shortest time between two lines about the same cause.
const LINE_INTERVAL: Duration = Duration::from_secs(1);

/// Lets one line a second through for a repeated cause, and every line with a new one.
#[derive(Default)]
pub(super) struct LogThrottle {
    last: Option<(String, Duration)>,
    suppressed: u64,
}

impl LogThrottle {
    /// How many failures the line stands for; `None` when it is not to be written.
    pub fn admit(&mut self, cause: &str, now: Duration) -> Option<u64> {
        let is_repeated = self
            .last
            .as_ref()
            .is_some_and(|(last, at)| last == cause && now < *at + LINE_INTERVAL);
        if is_repeated {
            self.suppressed += 1;
            return None;
        }
        self.last = Some((cause.to_owned(), now));
        Some(std::mem::take(&mut self.suppressed) + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_cause_is_one_line_a_second_and_counts_the_others() {
        let mut throttle = LogThrottle::default();
        let at = Duration::from_millis;
        assert_eq!(throttle.admit("full", at(0)), Some(1));
        assert_eq!(throttle.admit("full", at(500)), None);
        assert_eq!(throttle.admit("full", at(999)), None);
        assert_eq!(throttle.admit("full", at(1_000)), Some(3));
        assert_eq!(throttle.admit("busy", at(1_001)), Some(1));
    }
}
