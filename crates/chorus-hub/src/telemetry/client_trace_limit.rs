//! How many traces are recorded a second because clients ask for it.

use crate::limits;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Counts in whole seconds: what matters is that the work is bounded, not when in a second it is done.
#[derive(Debug, Default)]
pub(super) struct ClientTraceLimit(Mutex<CountedSecond>);

#[derive(Debug, Default)]
struct CountedSecond {
    second: u64,
    count: u32,
}

impl ClientTraceLimit {
    /// Whether one more trace may be recorded at this monotonic time.
    pub fn admit(&self, now: Duration) -> bool {
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if counted.second != now.as_secs() {
            *counted = CountedSecond {
                second: now.as_secs(),
                count: 0,
            };
        }
        counted.count += 1;
        counted.count <= limits::CLIENT_TRACES_PER_SECOND
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // OPS-05
    #[test]
    fn each_second_admits_as_many_as_the_limit() {
        let limit = ClientTraceLimit::default();
        for second in [3, 4] {
            let now = Duration::from_millis(second * 1000 + 500);
            let admitted = (0..3 * limits::CLIENT_TRACES_PER_SECOND)
                .filter(|_| limit.admit(now))
                .count();
            assert_eq!(admitted, limits::CLIENT_TRACES_PER_SECOND as usize);
        }
    }
}
