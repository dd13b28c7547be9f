//! The journal entries of a set of changes, from before the changes until they are confirmed or voided.

use pinfold_confine::{Error as ConfineError, Place, StoreLock};

use super::{Entry, MustSurvive, State, fresh_id, now};
use crate::change::Change;
use crate::commit::CommitError;
use crate::{Durability, Error, JournalFailure, View};

/// The entries of changes that are being made. Empty if there is no journal.
pub(crate) struct PendingEntries<'v> {
    view: &'v View<'v>,
    /// In the order of the changes. The first id names the set.
    ids: Vec<String>,
    warning: Option<String>,
    must_survive: MustSurvive,
    /// Held while a set of several changes is made.
    _lock: Option<StoreLock>,
}

impl<'v> PendingEntries<'v> {
    /// No entries.
    pub(crate) fn none(view: &'v View<'v>) -> Self {
        Self { view, ids: Vec::new(), warning: None, must_survive: MustSurvive::Crash, _lock: None }
    }

    /// Adds entries before their changes are made. If that fails, the settings decide: the changes are refused, or
    /// the answer warns that they cannot be undone.
    pub(crate) fn begin(
        view: &'v View<'v>,
        changes: &mut [Box<dyn Change>],
        states: &[[State; 2]],
        durability: Durability,
    ) -> Result<Self, CommitError> {
        let mut pending = Self::none(view);
        if durability == Durability::Full {
            pending.must_survive = MustSurvive::PowerLoss;
        }
        let (Some(journal), Some(first)) = (view.session().journal(), changes.first()) else {
            return Ok(pending);
        };
        let path = first.path().clone();
        let entries =
            changes.iter().zip(states).map(|(change, states)| entry(view, &**change, states));
        let Some(mut entries) = entries.collect::<Option<Vec<_>>>() else {
            pending.warning =
                Some("this change cannot be undone: the journal takes only names in UTF-8".into());
            return Ok(pending);
        };
        let mut begin = || {
            for entry in &mut entries {
                entry.id = fresh_id()?;
            }
            if entries.len() > 1 {
                let group = entries[0].id.clone();
                entries.iter_mut().for_each(|entry| entry.group = Some(group.clone()));
            }
            if let Some(turn) = &view.call().turn {
                view.session().begin_turn(journal, turn, &view.deadline())?;
            }
            let displaced = changes.iter_mut().map(|change| change.displaces());
            let entries = entries.iter().zip(displaced).collect();
            journal.begin(entries, pending.must_survive, &view.deadline())
        };
        let begun = begin();
        match (begun, view.session().settings().journal_failure) {
            (Ok(lock), _) => {
                pending._lock = (entries.len() > 1).then_some(lock);
                pending.ids = entries.into_iter().map(|entry| entry.id).collect();
            }
            // A file changed or the call ended, so this is no failure of the journal.
            (Err(error), JournalFailure::Warn)
                if !matches!(error, ConfineError::Changed | ConfineError::TimedOut) =>
            {
                pending.warn(&error);
            }
            (Err(error), _) => {
                return Err(view.commit_error(&path, error, |_, error| Error::from_journal(&error)));
            }
        }
        Ok(pending)
    }

    fn warn(&mut self, error: &ConfineError) {
        self.warning = Some(format!("this change cannot be undone: the journal failed ({error})"));
    }

    /// Voids the entries, because their changes were not made or were rolled back. Confirms those with the indexes in
    /// `made`.
    pub(crate) fn void(self, made: &[usize]) {
        let Some(journal) = self.view.session().journal() else { return };
        let (stand, void): (Vec<_>, Vec<_>) =
            self.ids.into_iter().enumerate().partition(|(number, _)| made.contains(number));
        let ids =
            |list: Vec<(usize, String)>| list.into_iter().map(|(_, id)| id).collect::<Vec<_>>();
        let (stand, void) = (ids(stand), ids(void));
        if !void.is_empty() {
            journal.void(&void, &self.view.deadline());
        }
        if !stand.is_empty() {
            journal.confirm(&stand, MustSurvive::Crash, &self.view.deadline());
        }
    }

    /// Confirms the entries, because the changes were made. Returns the id of the set, or the warning that it cannot
    /// be undone.
    pub(crate) fn confirm(self) -> (Option<String>, Option<String>) {
        if let (Some(journal), false) = (self.view.session().journal(), self.ids.is_empty()) {
            // The next start rolls back a set that is not confirmed. A single change shows in its file.
            let must_survive =
                if self.ids.len() > 1 { self.must_survive } else { MustSurvive::Crash };
            journal.confirm(&self.ids, must_survive, &self.view.deadline());
        }
        (self.ids.into_iter().next(), self.warning)
    }
}

/// The entry of a change, without an id. Returns `None` if the journal cannot represent the change exactly.
fn entry(view: &View<'_>, change: &dyn Change, [before, after]: &[State; 2]) -> Option<Entry> {
    let moved_to = match change.destination() {
        Some((_, place)) => Some(real_path(view, place)?),
        None => None,
    };
    if before.is_lossy() {
        return None;
    }
    let mut undoes = change.undoes().iter().cloned();
    Some(Entry {
        id: String::new(),
        time: now(),
        session: view.session().id().to_owned(),
        tool: view.tool().to_owned(),
        path: real_path(view, change.place())?,
        roots: view.session().whole_roots(),
        before: before.clone(),
        after: after.clone(),
        moved_to,
        made_parents: change.made_parents(),
        undoes: undoes.next(),
        also_undoes: undoes.collect(),
        group: None,
        checkpoint: None,
    })
}

fn real_path(view: &View<'_>, place: &Place) -> Option<String> {
    String::from_utf8(view.session().workspace().real_path(place)).ok()
}
