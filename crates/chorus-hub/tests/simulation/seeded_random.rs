//! The random choices of a history; all of them follow from its seed.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::time::Duration;

pub struct SeededRandom(StdRng);

impl SeededRandom {
    /// Several generators of one history must not repeat one another, so each has a stream number.
    pub fn new(seed: u64, stream: u64) -> Self {
        Self(StdRng::seed_from_u64(
            seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .wrapping_add(stream),
        ))
    }

    pub fn happens(&mut self, probability: f64) -> bool {
        self.0.random_bool(probability.clamp(0.0, 1.0))
    }

    pub fn below(&mut self, bound: usize) -> usize {
        self.0.random_range(0..bound.max(1))
    }

    pub fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(self.0.random_range(from..=to))
    }

    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}
