//! A change's entry in the journal, from before it is made until it is.

use pinfold_confine::{Error as ConfineError, Place, RawPath};

use crate::change::ChangeOrigin;
use crate::commit::CommitError;
use crate::journal::{Displaces, Entry, State, fresh_id, now};
use crate::{Error, JournalFailure, View};

/// The entry of a change that is being made; none if there is no journal.
pub(crate) struct Record<'v> {
    view: &'v View<'v>,
    id: Option<String>,
    warning: Option<String>,
}

impl<'v> Record<'v> {
    /// Notes a change before it is made. If that cannot be done, the change is refused, or it will
    /// be said that it cannot be taken back, as the settings have it.
    pub(crate) fn begin(
        view: &'v View<'v>,
        place: &Place,
        origin: &ChangeOrigin,
        states: [State; 2],
        displaces: Displaces<'_>,
        path_as_given: &RawPath,
    ) -> Result<Self, CommitError> {
        let mut record = Self { view, id: None, warning: None };
        let Some(journal) = view.session().journal() else { return Ok(record) };
        let [before, after] = states;
        let (Some(path), false) = (real_path(view, place), before.is_lossy()) else {
            record.warning =
                Some("this change cannot be undone: the journal takes only names in UTF-8".into());
            return Ok(record);
        };
        let noted = fresh_id().and_then(|id| {
            let entry = Entry {
                id: id.clone(),
                time: now(),
                session: view.session().id().to_owned(),
                tool: view.tool().to_owned(),
                path,
                before,
                after,
                undoes: match origin {
                    ChangeOrigin::New => None,
                    ChangeOrigin::Undo { id } => Some(id.clone()),
                },
            };
            journal.begin(&entry, displaces, &view.deadline()).map(|()| id)
        });
        match (noted, view.session().settings().journal_failure) {
            (Ok(id), _) => record.id = Some(id),
            // Not the journal's fault: somebody else was faster.
            (Err(ConfineError::Changed), _) => {
                return Err(CommitError::Conflict { path: path_as_given.clone() });
            }
            (Err(ConfineError::TimedOut), _) => return Err(view.timed_out(path_as_given).into()),
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

    /// The change was made. Gives the entry's id, and what is to be said if it cannot be taken back.
    pub(crate) fn end(self) -> (Option<String>, Option<String>) {
        (self.id, self.warning)
    }
}

fn real_path(view: &View<'_>, place: &Place) -> Option<String> {
    String::from_utf8(view.session().workspace().real_path(place)).ok()
}
