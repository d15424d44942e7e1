//! A number that only grows, and tasks that wait until it has reached a goal. They are woken in the order in which they began to
//! wait; tokio's `watch` wakes them by chance, and a simulation would not repeat (D-110).

use super::lock_mutex;
use std::sync::Mutex;
use tokio::sync::Notify;

pub(super) struct ProgressWatch<T> {
    reached: Mutex<T>,
    changed: Notify,
}

impl<T: Copy + Ord> ProgressWatch<T> {
    pub fn new(start: T) -> Self {
        Self {
            reached: Mutex::new(start),
            changed: Notify::new(),
        }
    }

    pub fn reached(&self) -> T {
        *lock_mutex(&self.reached)
    }

    /// Without an effect when it is there already.
    pub fn advance_to(&self, goal: T) {
        let mut reached = lock_mutex(&self.reached);
        if goal > *reached {
            *reached = goal;
            drop(reached);
            self.changed.notify_waiters();
        }
    }

    pub async fn wait_for(&self, goal: T) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // From here on no change is missed.
            changed.as_mut().enable();
            if self.reached() >= goal {
                return;
            }
            changed.await;
        }
    }
}
