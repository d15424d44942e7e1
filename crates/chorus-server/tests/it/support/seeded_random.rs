//! A small random number generator with a fixed seed, so that a failure repeats.

pub struct SeededRandom(pub u64);

impl SeededRandom {
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}
