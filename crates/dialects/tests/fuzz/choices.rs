//! The choices that define a random case.
//!
//! `proptest` makes and shrinks them: fewer and smaller ones give a simpler case.

/// The remaining choices.
pub(crate) struct Choices(std::vec::IntoIter<u32>);

impl Choices {
    pub(crate) fn new(choices: Vec<u32>) -> Self {
        Self(choices.into_iter())
    }

    /// A number below `end`; 0 if no choices are left.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0.next().unwrap_or(0) as usize % end
    }

    /// One of the elements.
    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// True once in `times` times.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == times - 1
    }

    /// A text of some of the parts.
    pub(crate) fn text(&mut self, parts: &[&str], max: usize) -> String {
        let count = self.below(max + 1);
        (0..count).map(|_| *self.pick(parts)).collect()
    }
}
