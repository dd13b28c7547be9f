//! The journal entries of a set of changes, from before they are made until they are done.

use pinfold_confine::{Error as ConfineError, Place, StoreLock};

use crate::change::Change;
use crate::commit::CommitError;
use crate::journal::{Entry, State, fresh_id, now};
use crate::{Error, JournalFailure, View};

/// The entries of changes that are being made; none if there is no journal.
pub(crate) struct Record<'v> {
    view: &'v View<'v>,
    /// In the order of the changes. The first names the whole set.
    ids: Vec<String>,
    warning: Option<String>,
    /// Held while a set of several changes is made.
    _lock: Option<StoreLock>,
}

impl<'v> Record<'v> {
    /// Changes that the journal does not have.
    pub(crate) fn none(view: &'v View<'v>) -> Self {
        Self { view, ids: Vec::new(), warning: None, _lock: None }
    }

    /// Enters changes before they are made. If that fails, they are refused, or the answer warns that they cannot
    /// be undone, as the settings say.
    pub(crate) fn begin(
        view: &'v View<'v>,
        changes: &mut [Box<dyn Change>],
        states: &[[State; 2]],
    ) -> Result<Self, CommitError> {
        let mut record = Self::none(view);
        let (Some(journal), Some(first)) = (view.session().journal(), changes.first()) else {
            return Ok(record);
        };
        let path = first.path().clone();
        let entries =
            changes.iter().zip(states).map(|(change, states)| entry(view, &**change, states));
        let Some(mut entries) = entries.collect::<Option<Vec<_>>>() else {
            record.warning =
                Some("this change cannot be undone: the journal takes only names in UTF-8".into());
            return Ok(record);
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
            journal.begin(entries.iter().zip(displaced).collect(), &view.deadline())
        };
        let begun = begin();
        match (begun, view.session().settings().journal_failure) {
            (Ok(lock), _) => {
                record._lock = (entries.len() > 1).then_some(lock);
                record.ids = entries.into_iter().map(|entry| entry.id).collect();
            }
            // A file changed, or the call ended: the journal did not fail.
            (Err(error), JournalFailure::Warn)
                if !matches!(error, ConfineError::Changed | ConfineError::TimedOut) =>
            {
                record.warn(&error);
            }
            (Err(error), _) => {
                return Err(view.commit_error(&path, error, |_, error| Error::from_journal(&error)));
            }
        }
        Ok(record)
    }

    fn warn(&mut self, error: &ConfineError) {
        self.warning = Some(format!("this change cannot be undone: the journal failed ({error})"));
    }

    /// The changes were not made, or taken back: all but those with the numbers in `made`.
    pub(crate) fn call_off(self, made: &[usize]) {
        let Some(journal) = self.view.session().journal() else { return };
        let (stand, void): (Vec<_>, Vec<_>) =
            self.ids.into_iter().enumerate().partition(|(number, _)| made.contains(number));
        let ids =
            |list: Vec<(usize, String)>| list.into_iter().map(|(_, id)| id).collect::<Vec<_>>();
        let (stand, void) = (ids(stand), ids(void));
        if !void.is_empty() {
            journal.call_off(&void, &self.view.deadline());
        }
        if !stand.is_empty() {
            journal.made(&stand, &self.view.deadline());
        }
    }

    /// The changes were made. Returns the id of the first, which names the set, or the warning that they cannot be
    /// undone.
    pub(crate) fn end(self) -> (Option<String>, Option<String>) {
        if let (Some(journal), false) = (self.view.session().journal(), self.ids.is_empty()) {
            journal.made(&self.ids, &self.view.deadline());
        }
        (self.ids.into_iter().next(), self.warning)
    }
}

/// The entry of a change, without an id; `None` if the journal cannot hold it exactly.
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
