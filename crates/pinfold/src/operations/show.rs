//! `Show`: shows one change of the journal.

use pinfold_confine::RawPath;

use super::compare::compare;
use super::undo::find;
use crate::journal::Entry;
use crate::{Error, NoChange, Operation, View};

/// Shows one change of the journal, if the file may be read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Show {
    /// The id of the change.
    pub id: String,
}

/// A change of the journal.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Shown {
    /// The change's entry in the journal.
    pub entry: Entry,
    /// The diff, where both versions are text and still exist.
    pub diff: Option<String>,
}

impl Show {
    /// Shows the change with an id.
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into() }
    }
}

impl Operation for Show {
    type Changes = NoChange;
    type Outcome = Shown;

    fn plan(&self, view: &View<'_>) -> Result<(Shown, NoChange), Error> {
        let entry = find(view, &self.id)?;
        // The backup of a file may be read if the file may.
        view.check_backup_readable(&RawPath::from(entry.path.as_str()))?;
        let diff = if entry.moved_to.is_some() {
            None
        } else {
            compare(view, &entry.path, [&entry.before, &entry.after])?
        };
        Ok((Shown { entry, diff }, NoChange))
    }
}
