//! The journal entry of one change, from before the change is made until it is done.

use pinfold_confine::{Error as ConfineError, Place};

use crate::change::Change;
use crate::commit::CommitError;
use crate::journal::{Entry, State, fresh_id, now};
use crate::{Error, JournalFailure, View};

/// The entry of a change that is being made; none if there is no journal.
pub(crate) struct Record<'v> {
    view: &'v View<'v>,
    id: Option<String>,
    warning: Option<String>,
}

impl<'v> Record<'v> {
    /// A change that the journal does not have.
    pub(crate) fn none(view: &'v View<'v>) -> Self {
        Self { view, id: None, warning: None }
    }

    /// Enters a change before it is made. If that fails, the change is refused, or the answer warns
    /// that it cannot be undone, as the settings say.
    pub(crate) fn begin(
        view: &'v View<'v>,
        change: &mut dyn Change,
        [before, after]: &[State; 2],
    ) -> Result<Self, CommitError> {
        let mut record = Self::none(view);
        let Some(journal) = view.session().journal() else { return Ok(record) };
        let moved_to = change.destination().map(|(_, place)| real_path(view, place));
        let real_path = real_path(view, change.place());
        let lossy = before.is_lossy() || matches!(moved_to, Some(None));
        let (Some(path), false) = (real_path, lossy) else {
            record.warning =
                Some("this change cannot be undone: the journal takes only names in UTF-8".into());
            return Ok(record);
        };
        let begun = fresh_id().and_then(|id| {
            let entry = Entry {
                id: id.clone(),
                time: now(),
                session: view.session().id().to_owned(),
                tool: view.tool().to_owned(),
                path,
                before: before.clone(),
                after: after.clone(),
                moved_to: moved_to.flatten(),
                made_parents: change.made_parents(),
                undoes: change.undoes().map(str::to_owned),
            };
            journal.begin(&entry, change.displaces(), &view.deadline()).map(|()| id)
        });
        match (begun, view.session().settings().journal_failure) {
            (Ok(id), _) => record.id = Some(id),
            // The file changed; the journal did not fail.
            (Err(ConfineError::Changed), _) => {
                return Err(CommitError::Stale { path: change.path().clone() });
            }
            (Err(ConfineError::TimedOut), _) => return Err(view.timed_out(change.path()).into()),
            (Err(error), JournalFailure::Refuse) => {
                return Err(Error::JournalFailed { cause: error.to_string() }.into());
            }
            (Err(error), JournalFailure::Warn) => record.warn(&error),
        }
        Ok(record)
    }

    fn warn(&mut self, error: &ConfineError) {
        self.warning = Some(format!("this change cannot be undone: the journal failed ({error})"));
    }

    /// The change was not made.
    pub(crate) fn call_off(self) {
        if let (Some(journal), Some(id)) = (self.view.session().journal(), self.id) {
            journal.call_off(&id, &self.view.deadline());
        }
    }

    /// The change was made. Returns the entry's id, or the warning that the change cannot be undone.
    pub(crate) fn end(self) -> (Option<String>, Option<String>) {
        if let (Some(journal), Some(id)) = (self.view.session().journal(), &self.id) {
            journal.made(id, &self.view.deadline());
        }
        (self.id, self.warning)
    }
}

fn real_path(view: &View<'_>, place: &Place) -> Option<String> {
    String::from_utf8(view.session().workspace().real_path(place)).ok()
}
