//! `ReadMany`: reads several text files into one answer.

use pinfold_confine::RawPath;

use crate::operations::{Read, Reading};
use crate::{Error, NoChange, Operation, View, limits};

/// Reads several text files. A file that cannot be read does not keep the others from being read.
///
/// ```
/// use pinfold::operations::{ReadMany, Write};
/// use pinfold::Session;
///
/// # let dir = tempfile::tempdir()?;
/// # let workspace = dir.path();
/// let session = Session::open([workspace])?;
/// session.perform(&Write::new("a.txt", "one\n"))?;
/// let files = session.perform(&ReadMany::new(["a.txt", "b.txt"]))?.outcome;
/// assert_eq!(files[0].as_ref().unwrap().page.content, "one\n");
/// assert_eq!(files[1].as_ref().unwrap_err().to_string(), "`b.txt` does not exist");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReadMany {
    /// The files.
    pub paths: Vec<RawPath>,
    /// The maximum size of all shown lines in bytes. Each file gets an equal share of what is left.
    pub budget: usize,
    /// As [`Read::max_line_chars`].
    pub max_line_chars: Option<usize>,
    /// As [`Read::binary_as_text`].
    pub binary_as_text: bool,
}

impl ReadMany {
    /// Reads files from their beginnings.
    pub fn new<P: Into<RawPath>>(paths: impl IntoIterator<Item = P>) -> Self {
        let paths = paths.into_iter().map(Into::into).collect();
        let budget = limits::DEFAULT_MAX_LIBRARY_OUTPUT_BYTES;
        Self { paths, budget, max_line_chars: None, binary_as_text: false }
    }
}

builder!(ReadMany {
    with_budget(budget: usize),
    with_max_line_chars(max_line_chars: Option<usize>),
    with_binary_as_text(binary_as_text: bool),
});

impl Operation for ReadMany {
    type Changes = NoChange;
    type Outcome = Vec<Result<Reading, Error>>;

    fn plan(&self, view: &View<'_>) -> Result<(Self::Outcome, NoChange), Error> {
        let (mut files, mut left) = (Vec::with_capacity(self.paths.len()), self.budget);
        for (number, path) in self.paths.iter().enumerate() {
            view.check_time()?;
            let share = left / (self.paths.len() - number);
            let read = Read::new(path.clone())
                .with_budget(share)
                .with_max_line_chars(self.max_line_chars)
                .with_binary_as_text(self.binary_as_text);
            let read = match read.plan(view) {
                Err(ended @ (Error::Cancelled | Error::Timeout { .. })) => return Err(ended),
                read => read.map(|(reading, NoChange)| reading),
            };
            left -= read.as_ref().map_or(0, |reading| reading.page.content.len()).min(left);
            files.push(read);
        }
        Ok((files, NoChange))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Session;
    use crate::operations::Write;

    #[test]
    fn small_files_leave_their_share_to_the_others() {
        let dir = tempfile::tempdir().unwrap();
        let session = Session::open([dir.path()]).unwrap();
        for (name, lines) in [("small", 1), ("large", 100), ("other", 100)] {
            session.perform(&Write::new(name, "line\n".repeat(lines))).unwrap();
        }
        let read = ReadMany::new(["small", "missing", "large", "other"]).with_budget(105);
        let files = session.perform(&read).unwrap().outcome;
        let shown: Vec<_> =
            files.iter().map(|file| file.as_ref().map_or(0, |file| file.page.shown)).collect();
        assert_eq!(shown, [1, 0, 10, 10]);
    }
}
