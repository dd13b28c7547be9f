//! A change's entry in the journal, from before it is made until what it displaced is safe.

use pinfold_confine::{Displaced, Place, Target, escaped};

use crate::change::Image;
use crate::journal::{Entry, State, fresh_id, now};
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
        image: &Image,
        states: [State; 2],
        target: Option<&Target>,
    ) -> Result<Self, Error> {
        let mut record = Self { view, id: None, warning: None };
        let Some(journal) = view.session().journal() else { return Ok(record) };
        let [before, after] = states;
        let noted = fresh_id().and_then(|id| {
            let entry = Entry {
                id: id.clone(),
                time: now(),
                session: view.session().id().to_owned(),
                tool: view.tool().to_owned(),
                path: real_path(view, place),
                before,
                after,
                undoes: match image {
                    Image::New => None,
                    Image::Undo { id } => Some(id.clone()),
                },
            };
            journal.begin(&entry, target, &view.patience()).map(|()| id)
        });
        match (noted, view.session().settings().journal_failure) {
            (Ok(id), _) => record.id = Some(id),
            (Err(error), JournalFailure::Refuse) => {
                return Err(Error::JournalFailed { cause: error.to_string() });
            }
            (Err(error), JournalFailure::Say) => record.warn(&error),
        }
        Ok(record)
    }

    fn warn(&mut self, error: &pinfold_confine::Error) {
        self.warning = Some(format!("this change cannot be undone: the journal failed ({error})"));
    }

    /// The change was not made.
    pub(crate) fn call_off(self) {
        if let (Some(journal), Some(id)) = (self.view.session().journal(), self.id) {
            journal.call_off(&id, &self.view.patience());
        }
    }

    /// The change was made: what it displaced, if anything was there, goes to the journal. Gives the
    /// entry's id, and what is to be said if it cannot be taken back.
    pub(crate) fn end(
        mut self,
        displaced: Option<Displaced>,
        existed: bool,
    ) -> (Option<String>, Option<String>) {
        if let (Some(journal), Some(id), true) = (self.view.session().journal(), &self.id, existed)
            && let Err(error) = journal.keep(id, displaced, &self.view.patience())
        {
            self.warn(&error);
        }
        (self.id, self.warning)
    }
}

fn real_path(view: &View<'_>, place: &Place) -> String {
    let path = view.session().workspace().real_path(place);
    String::from_utf8(path).unwrap_or_else(|error| escaped(error.as_bytes()).to_string())
}
