//! `Show`: shows one change of the journal.

use pinfold_confine::RawPath;

use super::compare::compare;
use super::undo::find;
use crate::journal::Entry;
use crate::{Error, NoChange, Operation, View};

/// Shows one change of the journal, if the file may be read. Needs a journal, which the settings turn on.
///
/// ```
/// use pinfold::operations::{Show, Write};
/// use pinfold::{JournalSetting, Session, Settings};
///
/// # let dir = tempfile::tempdir()?;
/// # let (workspace, journal) = (dir.path().join("workspace"), dir.path().join("journal"));
/// # std::fs::create_dir(&workspace)?;
/// let mut settings = Settings::default();
/// settings.journal = Some(JournalSetting::Directory(journal));
/// let session = Session::with_settings([&workspace], settings)?;
/// session.perform(&Write::new("a.txt", "one\n"))?;
/// let id = session.perform(&Write::new("a.txt", "two\n"))?.receipt.id.expect("there is a journal");
/// let diff = session.perform(&Show::new(id))?.outcome.diff.expect("both versions are text");
/// assert!(diff.ends_with("-one\n+two\n"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
    /// The diff, if both versions are text and still exist.
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
        // The backup of a file may be read if the file may be read.
        view.check_backup_readable(&RawPath::from(entry.path.as_str()))?;
        let diff = if entry.moved_to.is_some() {
            None
        } else {
            compare(view, &entry.path, [&entry.before, &entry.after])?
        };
        Ok((Shown { entry, diff }, NoChange))
    }
}
