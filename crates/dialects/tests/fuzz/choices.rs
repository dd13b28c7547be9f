//! The choices that a random case is made of.
//!
//! `proptest` makes them and shrinks them: fewer and smaller ones make a simpler case.

/// The choices that are left.
pub(crate) struct Choices(std::vec::IntoIter<u32>);

impl Choices {
    pub(crate) fn new(choices: Vec<u32>) -> Self {
        Self(choices.into_iter())
    }

    /// A number below another; 0 once there are no choices left.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0.next().unwrap_or(0) as usize % end
    }

    /// One of some.
    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// True once in some times.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == times - 1
    }

    /// Some of the parts, one after the other.
    pub(crate) fn text(&mut self, parts: &[&str], max: usize) -> String {
        let count = self.below(max + 1);
        (0..count).map(|_| *self.pick(parts)).collect()
    }
}
