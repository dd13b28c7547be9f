//! `Rewind`: undoes every change since a checkpoint.

use std::collections::HashSet;

use super::revert::{Conflict, RevertedPath, plan};
use super::undo::never_made;
use crate::journal::{Entry, LoggedEntry};
use crate::limits::MAX_REWOUND_CHANGES;
use crate::session::TURN;
use crate::{ChangeSet, Error, Operation, View};

/// Undoes every change that was made since a checkpoint, or after a change, all or none.
///
/// A file that somebody else has changed since is a conflict. If there is one, nothing is done, unless conflicts are left
/// out. A rewind is itself a change, so it can be undone. It needs a journal, which the settings turn on.
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
    /// The id or the label of a checkpoint, or the id of a change, which stays. `None` for all changes that the
    /// journal has.
    pub to: Option<String>,
    /// The sessions whose changes are undone.
    pub scope: RewindScope,
    /// Whether conflicts are left out. Otherwise nothing is done if there is one.
    pub leave_out_conflicts: bool,
}

/// The sessions whose changes a rewind undoes.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum RewindScope {
    /// The session that performs the operation.
    #[default]
    OwnSession,
    /// Another session, by its id.
    Session(String),
    /// All sessions.
    AllSessions,
}

/// The outcome of a rewind.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Rewound {
    /// The paths whose changes were undone.
    pub files: Vec<RevertedPath>,
    /// The files whose changes were not undone, because somebody else has changed them. If there are any, nothing was
    /// changed, unless [`Rewind::leave_out_conflicts`] is set.
    pub conflicts: Vec<Conflict>,
    /// How many changes were undone.
    pub changes: usize,
}

impl Rewind {
    /// Undoes the session's own changes since a checkpoint, given by its id or label, or after a change, given by its
    /// id. If several checkpoints have the label, it is the session's own newest one, or else the newest.
    pub fn to(to: impl Into<String>) -> Self {
        Self { to: Some(to.into()), ..Self::all() }
    }

    /// Undoes all of the session's own changes.
    pub fn all() -> Self {
        Self { to: None, scope: RewindScope::OwnSession, leave_out_conflicts: false }
    }
}

builder!(Rewind {
    with_to(to: Option<String>),
    with_scope(scope: RewindScope),
    with_leave_out_conflicts(leave_out_conflicts: bool),
});

impl Operation for Rewind {
    type Changes = ChangeSet;
    type Outcome = Rewound;

    fn plan(&self, view: &View<'_>) -> Result<(Rewound, ChangeSet), Error> {
        view.session().journal_of_checkpoints()?;
        let entries = self.entries(view)?;
        let mut planned = plan(view, &entries, &|entry| self.is_in_scope(view, entry))?;
        if !planned.conflicts.is_empty() && !self.leave_out_conflicts {
            planned.changes.clear();
            planned.files.clear();
        }
        // A move has two paths, but counts once.
        let ids = planned.changes.iter().flat_map(|change| change.undoes());
        let changes = ids.collect::<HashSet<_>>().len();
        let rewound = Rewound { files: planned.files, conflicts: planned.conflicts, changes };
        Ok((rewound, ChangeSet(planned.changes)))
    }
}

impl Rewind {
    /// Whether the rewind undoes a change.
    fn is_in_scope(&self, view: &View<'_>, entry: &Entry) -> bool {
        match &self.scope {
            RewindScope::OwnSession => entry.session == view.session().id(),
            RewindScope::Session(id) => entry.session == *id,
            RewindScope::AllSessions => true,
        }
    }

    /// The changes from the newest to the end of the rewind. Entries that undid others are included, since only the
    /// net effect counts.
    fn entries(&self, view: &View<'_>) -> Result<Vec<Entry>, Error> {
        let end = self.end(view)?;
        let mut since = Vec::new();
        for logged in view.session().history()?.take(end.entries) {
            view.check_time()?;
            let LoggedEntry { entry, confirmed, .. } = logged?;
            let is_end = end.group.is_some() && entry.group == end.group;
            if entry.checkpoint.is_some() || is_end {
                continue;
            }
            // The process was killed before it made this change.
            let is_newest = !since.iter().any(|newer: &Entry| newer.path == entry.path);
            if !confirmed && is_newest && never_made(view, &entry) {
                continue;
            }
            if since.len() == MAX_REWOUND_CHANGES {
                return Err(Error::InvalidArgument(format!(
                    "more than {MAX_REWOUND_CHANGES} changes were made since; rewind to a later checkpoint"
                )));
            }
            since.push(entry);
        }
        Ok(since)
    }

    /// Finds the end of the rewind.
    fn end(&self, view: &View<'_>) -> Result<End, Error> {
        let mut end = None;
        let mut found_turn = false;
        for (number, logged) in view.session().history()?.enumerate() {
            view.check_time()?;
            let entry = logged?.entry;
            let is_in_scope = self.is_in_scope(view, &entry);
            let Some(to) = &self.to else {
                if is_in_scope && entry.checkpoint.is_none() {
                    end = Some(End { entries: number + 1, group: None });
                }
                continue;
            };
            if entry.id == *to {
                return Ok(End { entries: number, group: entry.group });
            }
            let here = End { entries: number, group: None };
            match &entry.checkpoint {
                Some(label) if label == to => match (is_in_scope, entry.tool == TURN) {
                    (true, true) => {
                        // Each process that worked on the turn has marked it.
                        found_turn = true;
                        end = Some(here);
                    }
                    (true, false) if !found_turn => return Ok(here),
                    (false, _) if !found_turn => _ = end.get_or_insert(here),
                    _ => {}
                },
                // This is the turn before.
                Some(_) if is_in_scope && found_turn => break,
                _ => {}
            }
        }
        end.ok_or_else(|| Error::NothingToUndo { id: self.to.clone() })
    }
}

/// The end of a rewind.
struct End {
    /// The number of newer entries in the journal.
    entries: usize,
    /// The set of the change at the end, which is not undone.
    group: Option<String>,
}
