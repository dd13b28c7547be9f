//! `Rewind`: takes back every change since a checkpoint.

use super::take_back::{Conflict, TakenBack, plan};
use crate::journal::{Entry, LoggedEntry, standing};
use crate::limits::MAX_REWOUND_CHANGES;
use crate::{ChangeSet, Error, Operation, View};

/// Takes back every change that was made since a checkpoint, or after a change, as one change: all of it or nothing.
///
/// Files that somebody else has changed since are conflicts, and then nothing is done, unless they are left out. A
/// rewind is a change itself, so it can be undone. Needs a journal, which the settings turn on.
///
/// ```
/// use pinfold::operations::{Move, Rewind, Write};
/// use pinfold::{JournalSetting, Session, Settings};
///
/// # let dir = tempfile::tempdir()?;
/// # let (workspace, journal) = (dir.path().join("workspace"), dir.path().join("journal"));
/// # std::fs::create_dir(&workspace)?;
/// let mut settings = Settings::default();
/// settings.journal = Some(JournalSetting::Directory(journal));
/// let session = Session::with_settings([&workspace], settings)?;
/// session.perform(&Write::new("a.txt", "one\n"))?;
/// let checkpoint = session.checkpoint("before the refactoring")?;
///
/// session.perform(&Write::new("a.txt", "two\n"))?;
/// session.perform(&Move::new("a.txt", "b.txt"))?;
/// session.perform(&Write::new("new/c.txt", "three\n"))?;
///
/// let done = session.perform(&Rewind::to(checkpoint))?;
/// assert!(done.outcome.conflicts.is_empty());
/// assert_eq!(std::fs::read_to_string(workspace.join("a.txt"))?, "one\n");
/// assert!(!workspace.join("b.txt").exists() && !workspace.join("new").exists());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Rewind {
    /// The id or the label of a checkpoint, or the id of a change, which stays.
    pub to: String,
    /// Whose changes are taken back.
    pub whose: Whose,
    /// Whether files that somebody else has changed are left as they are, instead of doing nothing at all.
    pub leave_out_conflicts: bool,
}

/// Whose changes are meant.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Whose {
    /// Those of the session that performs the operation.
    #[default]
    Own,
    /// Those of another session, by its id.
    Session(String),
    /// Those of everybody.
    Everybody,
}

/// A rewind: what was done, or why nothing was.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Rewound {
    /// The paths that were changed back.
    pub files: Vec<TakenBack>,
    /// The files that were not, because somebody else has changed them. If there are any and they were not to be
    /// left out, nothing was changed.
    pub conflicts: Vec<Conflict>,
    /// How many changes were taken back.
    pub changes: usize,
}

impl Rewind {
    /// Takes back the session's own changes since a checkpoint, by its id or label, or after a change, by its id.
    pub fn to(to: impl Into<String>) -> Self {
        Self { to: to.into(), whose: Whose::Own, leave_out_conflicts: false }
    }
}

builder!(Rewind { with_whose(whose: Whose), with_leave_out_conflicts(leave_out_conflicts: bool) });

impl Operation for Rewind {
    type Changes = ChangeSet;
    type Outcome = Rewound;

    fn plan(&self, view: &View<'_>) -> Result<(Rewound, ChangeSet), Error> {
        let is_own = |entry: &Entry| match &self.whose {
            Whose::Own => entry.session == view.session().id(),
            Whose::Session(id) => entry.session == *id,
            Whose::Everybody => true,
        };
        let entries = self.entries(view)?;
        let mut planned = plan(view, &entries, is_own)?;
        if !planned.conflicts.is_empty() && !self.leave_out_conflicts {
            planned.changes.clear();
            planned.files.clear();
        }
        let changes = planned.changes.iter().map(|change| change.undoes().len()).sum();
        let rewound = Rewound { files: planned.files, conflicts: planned.conflicts, changes };
        Ok((rewound, ChangeSet(planned.changes)))
    }
}

impl Rewind {
    /// The changes that stand, from the newest to where the rewind ends.
    fn entries(&self, view: &View<'_>) -> Result<Vec<Entry>, Error> {
        let unknown = || Error::NothingToUndo { id: Some(self.to.clone()) };
        let mut since = Vec::new();
        let mut found = false;
        for logged in view.session().history()? {
            view.check_time()?;
            let logged = logged?;
            let entry = &logged.entry;
            if entry.id == self.to || entry.checkpoint.as_ref() == Some(&self.to) {
                found = true;
                break;
            }
            if since.len() == MAX_REWOUND_CHANGES {
                return Err(Error::InvalidArgument(format!(
                    "more than {MAX_REWOUND_CHANGES} changes were made since `{}`; rewind to a later one",
                    self.to
                )));
            }
            since.push(logged);
        }
        if !found {
            return Err(unknown());
        }
        let standing = standing(since.into_iter().map(Ok::<LoggedEntry, Error>));
        Ok(standing.filter_map(Result::ok).map(|logged| logged.entry).collect())
    }
}
