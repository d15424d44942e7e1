//! What was heard before: the newest ids, so that a frame that comes twice is handed out once (FRM-106).

use std::collections::{HashSet, VecDeque};
use uuid::Uuid;

#[derive(Debug)]
pub struct SeenIds {
    order: VecDeque<Uuid>,
    known: HashSet<Uuid>,
    capacity: usize,
}

impl SeenIds {
    /// Beyond `most` ids the oldest is forgotten.
    pub fn new(capacity: usize) -> Self {
        Self {
            order: VecDeque::new(),
            known: HashSet::new(),
            capacity,
        }
    }

    /// Whether it is the first time.
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

    pub fn contains(&self, id: &Uuid) -> bool {
        self.known.contains(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_new_once_until_enough_others_have_come() {
        let mut seen = SeenIds::new(2);
        let [a, b, c] = [1, 2, 3].map(Uuid::from_u128);
        assert!(seen.insert_new(a) && seen.insert_new(b));
        assert!(!seen.insert_new(a) && !seen.insert_new(b));
        assert!(seen.insert_new(c) && !seen.insert_new(b));
        assert!(seen.insert_new(a), "forgotten when the third came");
    }
}
