//! What was heard before: the newest ids, so that a frame that comes twice is handed out once (FRM-106).

use std::collections::{HashSet, VecDeque};
use uuid::Uuid;

#[derive(Debug)]
pub struct Seen {
    order: VecDeque<Uuid>,
    known: HashSet<Uuid>,
    most: usize,
}

impl Seen {
    /// Beyond `most` ids the oldest is forgotten.
    pub fn new(most: usize) -> Self {
        Self {
            order: VecDeque::new(),
            known: HashSet::new(),
            most,
        }
    }

    /// Whether it is the first time.
    pub fn first(&mut self, id: Uuid) -> bool {
        if !self.known.insert(id) {
            return false;
        }
        self.order.push_back(id);
        if self.order.len() > self.most
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }

    pub fn has(&self, id: &Uuid) -> bool {
        self.known.contains(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_new_once_until_enough_others_have_come() {
        let mut seen = Seen::new(2);
        let [a, b, c] = [1, 2, 3].map(Uuid::from_u128);
        assert!(seen.first(a) && seen.first(b));
        assert!(!seen.first(a) && !seen.first(b));
        assert!(seen.first(c) && !seen.first(b));
        assert!(seen.first(a), "forgotten when the third came");
    }
}
