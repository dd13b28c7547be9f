//! A session's changes in the journal: its history, its checkpoints, and sets of changes that were interrupted.

use std::path::Path;
use std::sync::PoisonError;

use pinfold_confine::{Deadline, Durability, Error as ConfineError, Kind, Place, RawPath};

use super::Session;
use crate::journal::{Displaces, Entry, Journal, LoggedEntry, MustSurvive, State, fresh_id, now};
use crate::limits::{MAX_LABEL_BYTES, MAX_SET_CHANGES};
use crate::operations::{Undo, current_state, state_matches};
use crate::{CallOptions, Error, Mode, View};

/// The tool name of a checkpoint that begins a turn.
pub(crate) const TURN: &str = "turn";

impl Session {
    /// Rolls back sets of changes that a killed process left half made. If a file was changed since, the set is left
    /// alone, and the log shows that it was not confirmed.
    pub(super) fn restore_interrupted_sets(&self) {
        let changes_nothing = self.settings.dry_run || self.settings.permissions.mode == Mode::Plan;
        let Some(journal) = self.journal.as_deref().filter(|_| !changes_nothing) else { return };
        // The lock is released at once, since the following steps take it, too.
        if journal.lock_if_idle().is_none() {
            return;
        }
        let Ok(history) = self.history() else { return };
        let mut groups: Vec<(String, Vec<Entry>)> = Vec::new();
        for (number, logged) in history.map_while(Result::ok).enumerate() {
            let LoggedEntry { entry, confirmed, undone } = logged;
            let Some(group) = entry.group.clone().filter(|_| !confirmed && !undone) else {
                // The entries of a set are adjacent, so no more can belong to it.
                if number >= 2 * MAX_SET_CHANGES {
                    break;
                }
                continue;
            };
            match groups.iter_mut().find(|(known, _)| *known == group) {
                Some((_, entries)) => entries.push(entry),
                None => groups.push((group, vec![entry])),
            }
        }
        for (_, entries) in groups {
            // On a file system without exchange, the process may have been killed while a file had no name.
            for path in entries.iter().flat_map(|it| [Some(&it.path), it.moved_to.as_ref()]) {
                let Some(path) = path else { continue };
                _ = self.workspace().sweep_parent(&path.as_str().into(), &Deadline::default());
            }
            for entry in &entries {
                _ = self.withdraw_move(entry);
            }
            // Changes that the process did not make before it was killed.
            let not_made: Vec<_> = entries
                .iter()
                .filter(|entry| self.found_state(entry) == FoundState::Before)
                .map(|entry| entry.id.clone())
                .collect();
            let undo = Undo::change(entries[0].id.clone());
            let call = CallOptions::default().with_tool("restore");
            match self.perform_with(&undo, &call) {
                Ok(_) | Err(Error::NothingToUndo { .. }) => {
                    journal.void(&not_made, &Deadline::default());
                }
                Err(_) => continue,
            }
            entries.iter().for_each(|entry| self.remove_made_parents(entry));
        }
    }

    /// Removes the directories that were made for a file which was not created, if they are empty.
    fn remove_made_parents(&self, entry: &Entry) {
        let path = entry.moved_to.as_ref().unwrap_or(&entry.path);
        let found = self.workspace().deepest_existing(&path.as_str().into());
        let Ok((Place { root, path }, missing)) = found else { return };
        let Some((first, others)) = missing.split_first() else { return };
        let made = entry.made_parents.saturating_sub(others.len());
        self.workspace().remove_empty_parents(&Place { root, path: path.join(first) }, made);
    }

    /// Removes what a move left at the new path if its process was killed in between, on a file system that cannot rename
    /// without replacing: a second name of the file, or an empty directory.
    fn withdraw_move(&self, entry: &Entry) -> Result<(), ConfineError> {
        let (workspace, deadline) = (self.workspace(), Deadline::default());
        let Some(to) = entry.moved_to.as_deref().map(RawPath::from) else { return Ok(()) };
        let old = workspace.lstat(&entry.path.as_str().into())?.meta;
        if old.kind == Kind::Directory {
            return workspace.directory_removal(&to, &deadline)?.remove(Durability::None);
        }
        let left = workspace.removal(&to, &deadline)?;
        if left.meta().identity == old.identity {
            left.remove(Durability::None)?;
        }
        Ok(())
    }

    /// The journal's changes of files in this workspace, newest first. Reads only as much of the journal as the
    /// iterator needs.
    pub fn history(&self) -> Result<impl Iterator<Item = Result<LoggedEntry, Error>>, Error> {
        let failed = |error: ConfineError| Error::from_journal(&error);
        let journal = self.journal.as_deref();
        let entries = journal.map(Journal::newest_first).transpose().map_err(failed)?;
        let was_made = |entry: &Entry| self.found_state(entry) != FoundState::Before;
        let entries = entries.map(|entries| entries.with_undo_check(was_made));
        let roots: Vec<_> = self.real_roots().collect();
        let inside = move |logged: &LoggedEntry| {
            let mut paths = [&logged.entry.path].into_iter().chain(&logged.entry.moved_to);
            paths.any(|path| roots.iter().any(|root| Path::new(path).starts_with(root)))
        };
        let entries = entries.into_iter().flatten().map(move |logged| logged.map_err(failed));
        Ok(entries.filter(move |logged| logged.as_ref().map_or(true, &inside)))
    }

    /// Adds a checkpoint to the journal, and returns its id. [`Rewind`](crate::operations::Rewind) can undo every
    /// change after it. The label may be empty.
    pub fn checkpoint(&self, label: &str) -> Result<String, Error> {
        let journal = self.journal_of_checkpoints()?;
        if label.len() > MAX_LABEL_BYTES {
            let problem = format!("the label of a checkpoint has at most {MAX_LABEL_BYTES} bytes");
            return Err(Error::InvalidArgument(problem));
        }
        let marked = self.mark(journal, label, "checkpoint", &Deadline::default());
        marked.map_err(|error| Error::from_journal(&error))
    }

    /// The journal, which holds the checkpoints.
    pub(crate) fn journal_of_checkpoints(&self) -> Result<&Journal, Error> {
        let problem = "there is no journal, so there are no checkpoints; set `journal`";
        self.journal.as_deref().ok_or_else(|| Error::InvalidArgument(problem.into()))
    }

    /// Adds a checkpoint for the beginning of a turn, unless the session's last change belongs to it.
    pub(crate) fn begin_turn(
        &self,
        journal: &Journal,
        label: &str,
        deadline: &Deadline,
    ) -> Result<(), ConfineError> {
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if turn.as_deref() != Some(label) {
            self.mark(journal, label, TURN, deadline)?;
            *turn = Some(label.to_owned());
        }
        Ok(())
    }

    /// Adds a checkpoint to the journal.
    fn mark(
        &self,
        journal: &Journal,
        label: &str,
        tool: &str,
        deadline: &Deadline,
    ) -> Result<String, ConfineError> {
        let real_root = self.real_roots().next().unwrap_or_default();
        let entry = Entry {
            id: fresh_id()?,
            time: now(),
            session: self.id.clone(),
            tool: tool.into(),
            path: real_root.to_string_lossy().into_owned(),
            roots: self.whole_roots(),
            before: State::Absent,
            after: State::Absent,
            moved_to: None,
            made_parents: 0,
            undoes: None,
            also_undoes: Vec::new(),
            group: None,
            checkpoint: Some(label.to_owned()),
        };
        journal.begin(vec![(&entry, Displaces::Nothing)], MustSurvive::Crash, deadline)?;
        journal.confirm(std::slice::from_ref(&entry.id), MustSurvive::Crash, deadline);
        Ok(entry.id)
    }

    /// Compares the path of an entry with the entry's states. For an interrupted set of changes, this shows which
    /// changes were made and which were not, and which files were changed since.
    pub fn found_state(&self, entry: &Entry) -> FoundState {
        let call = CallOptions::default();
        let view = View::new(self, &call);
        let at = |path: &str, state: &State| {
            current_state(&view, &path.into()).is_some_and(|now| state_matches(state, &now))
        };
        let (before, after) = match &entry.moved_to {
            Some(to) => (at(&entry.path, &entry.before), at(to, &entry.before)),
            None => (at(&entry.path, &entry.before), at(&entry.path, &entry.after)),
        };
        match (before, after) {
            (true, false) => FoundState::Before,
            (false, true) => FoundState::After,
            _ => FoundState::Other,
        }
    }
}

/// The state of the path of a change.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FoundState {
    /// The state before the change.
    Before,
    /// The state after the change.
    After,
    /// Another state, or the path cannot be read.
    Other,
}
