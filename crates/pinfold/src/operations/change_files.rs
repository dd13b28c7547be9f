//! `ChangeFiles`: makes all of several changes, or none.

use std::collections::HashSet;

use pinfold_confine::RawPath;

use super::{
    AfterUpdate, Delete, Deleted, DirectoryMade, Edit, Edited, Mkdir, Move, Moved, Update, Updated,
    Write, Written,
};
use crate::change::Change;
use crate::limits::MAX_SET_CHANGES;
use crate::{ChangeSet, Error, Operation, View};

/// Makes several changes to different paths: all of them, or none. The user is asked once, and an undo undoes all of
/// them.
///
/// ```
/// use pinfold::Session;
/// use pinfold::operations::{ChangeFiles, Delete, FileChange, Move, Write};
///
/// # let dir = tempfile::tempdir()?;
/// # let workspace = dir.path();
/// let session = Session::open([workspace])?;
/// session.perform(&Write::new("old.txt", "old\n"))?;
/// let changes = ChangeFiles::new([
///     FileChange::Write(Write::new("new.txt", "new\n")),
///     FileChange::Move(Move::new("old.txt", "kept.txt")),
///     FileChange::Delete(Delete::new("missing.txt")),
/// ]);
/// assert!(session.perform(&changes).is_err());
/// assert!(!workspace.join("new.txt").exists() && workspace.join("old.txt").exists());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ChangeFiles {
    /// The changes, in the order in which they are made.
    pub changes: Vec<FileChange>,
}

/// One of several changes.
#[derive(Clone, Debug)]
pub enum FileChange {
    /// Creates a file, or replaces its content.
    Write(Write),
    /// Replaces parts of a file.
    Edit(Edit),
    /// Applies a patch to a file, and may move or delete it.
    Update(Update),
    /// Deletes a file or symlink.
    Delete(Delete),
    /// Moves something.
    Move(Move),
    /// Creates a directory.
    Mkdir(Mkdir),
}

/// The outcome of several changes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FilesChanged {
    /// The changed paths, as they were given.
    pub paths: Vec<RawPath>,
    /// The outcome of each change, in the order of the request.
    pub outcomes: Vec<FileOutcome>,
}

/// The outcome of one of several changes.
#[derive(Clone, Debug)]
pub enum FileOutcome {
    /// Of a [`FileChange::Write`].
    Write(Written),
    /// Of a [`FileChange::Edit`].
    Edit(Edited),
    /// Of a [`FileChange::Update`].
    Update(Updated),
    /// Of a [`FileChange::Delete`].
    Delete(Deleted),
    /// Of a [`FileChange::Move`].
    Move(Moved),
    /// Of a [`FileChange::Mkdir`].
    Mkdir(DirectoryMade),
}

impl ChangeFiles {
    /// Makes all of the changes, or none.
    pub fn new(changes: impl IntoIterator<Item = FileChange>) -> Self {
        Self { changes: changes.into_iter().collect() }
    }
}

impl FileChange {
    /// The path of the change, and the path that it moves the file to.
    fn paths(&self) -> (&RawPath, Option<&RawPath>) {
        match self {
            Self::Write(write) => (&write.path, None),
            Self::Edit(edit) => (&edit.path, None),
            Self::Update(Update { path, after: AfterUpdate::MoveTo(to), .. }) => (path, Some(to)),
            Self::Update(update) => (&update.path, None),
            Self::Delete(delete) => (&delete.path, None),
            Self::Move(moves) => (&moves.from, Some(&moves.to)),
            Self::Mkdir(mkdir) => (&mkdir.path, None),
        }
    }

    fn edited_files(&self) -> Vec<&RawPath> {
        match self {
            Self::Edit(edit) => edit.edited_files(),
            Self::Update(update) => update.edited_files(),
            Self::Write(_) | Self::Delete(_) | Self::Move(_) | Self::Mkdir(_) => Vec::new(),
        }
    }

    fn plan(&self, view: &View<'_>) -> Result<(FileOutcome, ChangeSet), Error> {
        /// Plans one change. `outcome` wraps its outcome.
        fn planned<O: Operation<Changes = ChangeSet>>(
            operation: &O,
            view: &View<'_>,
            outcome: fn(O::Outcome) -> FileOutcome,
        ) -> Result<(FileOutcome, ChangeSet), Error> {
            let (done, changes) = operation.plan(view)?;
            Ok((outcome(done), changes))
        }
        match self {
            Self::Write(write) => planned(write, view, FileOutcome::Write),
            Self::Edit(edit) => planned(edit, view, FileOutcome::Edit),
            Self::Update(update) => planned(update, view, FileOutcome::Update),
            Self::Delete(delete) => planned(delete, view, FileOutcome::Delete),
            Self::Move(moves) => planned(moves, view, FileOutcome::Move),
            Self::Mkdir(mkdir) => planned(mkdir, view, FileOutcome::Mkdir),
        }
    }
}

impl Operation for ChangeFiles {
    type Changes = ChangeSet;
    type Outcome = FilesChanged;

    fn edited_files(&self) -> Vec<&RawPath> {
        self.changes.iter().flat_map(FileChange::edited_files).collect()
    }

    fn plan(&self, view: &View<'_>) -> Result<(FilesChanged, ChangeSet), Error> {
        if self.changes.len() > MAX_SET_CHANGES {
            let problem = format!("at most {MAX_SET_CHANGES} changes can be made at once");
            return Err(Error::InvalidArgument(problem));
        }
        // This comes before any file is locked: a path that occurs twice would wait for its own lock.
        let mut known = HashSet::new();
        for path in self.changes.iter().flat_map(|change| {
            let (path, to) = change.paths();
            [path].into_iter().chain(to)
        }) {
            if !known.insert(super::undo::real_path(view, path)?) {
                return Err(Error::ChangedTwice { path: path.clone() });
            }
        }
        // Files are locked in the order of their paths, so two sets cannot deadlock.
        let mut order: Vec<usize> = (0..self.changes.len()).collect();
        order.sort_by_key(|number| self.changes[*number].paths().0.as_str());
        let mut planned = Vec::new();
        for number in order {
            planned.push((number, self.changes[number].plan(view)?));
        }
        planned.sort_by_key(|(number, _)| *number);
        let (mut outcomes, mut changes) = (Vec::new(), Vec::<Box<dyn Change>>::new());
        for (_, (outcome, planned)) in planned {
            outcomes.push(outcome);
            changes.extend(planned.0);
        }
        let paths = changes.iter().map(|change| change.path().clone()).collect();
        Ok((FilesChanged { paths, outcomes }, ChangeSet(changes)))
    }
}

#[cfg(test)]
mod tests {
    use pinfold_text::patch::Patch;

    use super::*;
    use crate::Session;
    use crate::limits::{DEFAULT_MAX_EDIT_BYTES, MAX_SET_BYTES};

    #[test]
    #[allow(clippy::disallowed_methods, reason = "a test makes its files")]
    fn files_that_are_too_large_together_are_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let count = MAX_SET_BYTES / DEFAULT_MAX_EDIT_BYTES + 1;
        let names: Vec<String> = (0..count).map(|number| format!("{number}.txt")).collect();
        for name in &names {
            // A sparse file: if it was read, there would be no line `one`.
            let file = std::fs::File::create(dir.path().join(name)).unwrap();
            file.set_len(DEFAULT_MAX_EDIT_BYTES).unwrap();
        }
        let session = Session::open([dir.path()]).unwrap();
        let patch = "*** Begin Patch\n*** Update File: a\n@@\n-one\n+two\n*** End Patch";
        let chunks = Patch::parse(patch).unwrap().files[0].chunks().to_vec();
        let updates = names.iter().map(|name| Update::new(name.as_str(), chunks.clone()));
        let set = ChangeFiles::new(updates.map(FileChange::Update));
        let error = session.perform(&set).unwrap_err().to_string();
        assert!(error.contains("can be edited at once"), "{error}");
        // Deleting or moving them takes no memory.
        let deletes = names.iter().map(|name| FileChange::Delete(Delete::new(name.as_str())));
        assert!(session.perform(&ChangeFiles::new(deletes)).is_ok());
    }
}
