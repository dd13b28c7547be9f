//! Random numbers for tests.

/// Random numbers that depend only on the seed.
#[derive(Debug)]
pub struct Random(pub u64);

impl Random {
    /// A number from 0 up to `end`, exclusive.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    /// One of some values.
    pub fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}
