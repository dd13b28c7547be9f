//! Taking a change back.

use pinfold_confine::{Error as Fence, Hash, Place, RawPath};

use crate::change::{Image, Remove, Replace, Restore};
use crate::journal::{Entry, State};
use crate::{ChangeSet, Error, Operation, SeenRule, View};

/// Takes back one change of the journal, if the file still is as the change left it.
///
/// It is a change itself, so it can be taken back in its turn.
#[derive(Clone, Debug, Default)]
pub struct Undo {
    /// Which change; the newest one in this workspace that was not taken back yet if not said.
    pub id: Option<String>,
}

/// What was taken back.
#[derive(Clone, Debug)]
pub struct Undone {
    /// The change that was taken back.
    pub entry: Entry,
    /// Where the file is.
    pub place: Place,
}

impl Operation for Undo {
    type Changes = ChangeSet;
    type Outcome = Undone;

    fn plan(&self, view: &View<'_>) -> Result<(Undone, ChangeSet), Error> {
        let entry = self.entry(view)?;
        let path = RawPath::from(entry.path.as_str());
        let image = Image::Undo { id: entry.id.clone() };
        let (place, changes) = match (&entry.before, &entry.after) {
            (State::Absent, _) => {
                let removal = view.removal(&path).map_err(|error| differs(&entry, error))?;
                let place = removal.place().clone();
                let now = match removal.link_target() {
                    Some(to) => Now::Link(String::from_utf8_lossy(to).into_owned()),
                    None => Now::of(removal.hash().map_err(|error| view.missed(&path, error))?),
                };
                check_same(&entry, &now)?;
                (place, ChangeSet::remove(Remove { path, removal, image }))
            }
            (State::File { mode, .. }, _) => {
                let target = view.target(&path).map_err(|error| differs(&entry, error))?;
                let now = target.hash().map_err(|error| view.missed(&path, error))?;
                check_same(&entry, &Now::of(now))?;
                let after = self.image(view, &entry)?;
                let (place, mode) = (target.place().clone(), Some(*mode));
                let seen = SeenRule::Off;
                (
                    place,
                    ChangeSet::replace(Replace {
                        path,
                        target,
                        before: None,
                        after,
                        seen,
                        show: true,
                        mode,
                        image,
                    }),
                )
            }
            (State::Link { target: to }, _) => {
                let target = view.target(&path).map_err(|error| differs(&entry, error))?;
                let now = target.hash().map_err(|error| view.missed(&path, error))?;
                check_same(&entry, &Now::of(now))?;
                let (place, to) = (target.place().clone(), to.clone());
                (place, ChangeSet::restore(Restore { path, target, to, image }))
            }
        };
        Ok((Undone { entry, place }, changes))
    }
}

impl Undo {
    fn entry(&self, view: &View<'_>) -> Result<Entry, Error> {
        let entries = view.session().history()?;
        let found = match &self.id {
            Some(id) => entries.iter().find(|entry| entry.id == *id),
            None => entries.iter().rev().find(|entry| {
                entry.undoes.is_none()
                    && !entries.iter().any(|other| other.undoes.as_ref() == Some(&entry.id))
            }),
        };
        found.cloned().ok_or_else(|| Error::NothingToUndo { id: self.id.clone() })
    }

    fn image(&self, view: &View<'_>, entry: &Entry) -> Result<Vec<u8>, Error> {
        let journal = view.session().journal();
        let image = journal.ok_or(Error::NothingToUndo { id: self.id.clone() })?.image(entry);
        image.map_err(|error| match error {
            Fence::NotFound => Error::NothingToUndo { id: Some(entry.id.clone()) },
            other => Error::looking(&entry.path.as_str().into(), other),
        })
    }
}

/// What is at the path now.
enum Now {
    Nothing,
    File(Hash),
    Link(String),
}

impl Now {
    fn of(hash: Option<Hash>) -> Self {
        hash.map_or(Self::Nothing, Self::File)
    }
}

/// The file must be as the change left it.
fn check_same(entry: &Entry, now: &Now) -> Result<(), Error> {
    let what = match (&entry.after, now) {
        (State::Absent, Now::Nothing) => return Ok(()),
        (State::File { hash, .. }, Now::File(now)) if *hash == now.to_hex().as_str() => {
            return Ok(());
        }
        (State::Link { target }, Now::Link(now)) if target == now => return Ok(()),
        (State::Absent, _) => "a file is there again",
        (_, Now::Nothing) => "the file is gone",
        _ => "its content has changed since",
    };
    Err(Error::NotAsLeft { path: entry.path.as_str().into(), what })
}

fn differs(entry: &Entry, error: Error) -> Error {
    let path = RawPath::from(entry.path.as_str());
    match error {
        Error::NotFound { .. } if entry.after != State::Absent => {
            Error::NotAsLeft { path, what: "the file is gone" }
        }
        Error::IsDirectory { .. } => Error::NotAsLeft { path, what: "a directory is there now" },
        Error::NotRegular { .. } | Error::Dangling { .. } | Error::TooManyLinks { .. } => {
            Error::NotAsLeft { path, what: "something else is there now" }
        }
        other => other,
    }
}
