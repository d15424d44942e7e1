//! The ids of recently received frames, so that a repeated frame is returned once (FRM-106).

use std::collections::{HashSet, VecDeque};
use uuid::Uuid;

#[derive(Debug)]
pub struct SeenIds {
    order: VecDeque<Uuid>,
    known: HashSet<Uuid>,
    capacity: usize,
}

impl SeenIds {
    /// Beyond `capacity` ids the oldest is dropped.
    pub fn new(capacity: usize) -> Self {
        Self {
            order: VecDeque::new(),
            known: HashSet::new(),
            capacity,
        }
    }

    /// Inserts an id; false if it is known.
    pub fn insert_new(&mut self, id: Uuid) -> bool {
        if !self.known.insert(id) {
            return false;
        }
        self.order.push_back(id);
        if self.order.len() > self.capacity
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_new_once_until_it_is_evicted() {
        let mut seen = SeenIds::new(2);
        let [a, b, c] = [1, 2, 3].map(Uuid::from_u128);
        assert!(seen.insert_new(a) && seen.insert_new(b));
        assert!(!seen.insert_new(a) && !seen.insert_new(b));
        assert!(seen.insert_new(c) && !seen.insert_new(b));
        assert!(seen.insert_new(a), "evicted by the third id");
    }
}
