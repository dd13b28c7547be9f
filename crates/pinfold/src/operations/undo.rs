//! Taking a change back.

use pinfold_confine::{Error as ConfineError, Hash, Place, RawPath};

use crate::change::{ChangeOrigin, Remove, Replace, RestoreLink};
use crate::journal::{Entry, State, standing};
use crate::{ChangeSet, Error, Operation, ReadRule, View};

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
        let entries = view.session().history()?;
        if let Some(id) = &self.id {
            let entry = entries.iter().find(|entry| entry.id == *id);
            return back(view, entry.ok_or_else(|| Error::NothingToUndo { id: self.id.clone() })?);
        }
        for entry in standing(&entries) {
            match back(view, entry) {
                // A process was killed before it made this change: there is nothing to take back.
                Err(Error::NotAsLeft { .. }) if never_made(view, entry) => {}
                other => return other,
            }
        }
        Err(Error::NothingToUndo { id: None })
    }
}

/// The change that takes one back.
fn back(view: &View<'_>, entry: &Entry) -> Result<(Undone, ChangeSet), Error> {
    let path = RawPath::from(entry.path.as_str());
    let origin = ChangeOrigin::Undo { id: entry.id.clone() };
    let (place, changes) = match &entry.before {
        State::Absent => {
            let removal = view.removal(&path).map_err(|error| differs(entry, error))?;
            let place = removal.place().clone();
            let now = match removal.link_target() {
                Some(to) => Now::Link(String::from_utf8_lossy(to).into_owned()),
                None => Now::of(removal.hash().map_err(|error| view.missed(&path, error))?),
            };
            check_same(entry, &now)?;
            (place, ChangeSet::remove(Remove { path, removal, origin }))
        }
        State::File { mode, .. } => {
            let target = view.target(&path).map_err(|error| differs(entry, error))?;
            let now = target.hash().map_err(|error| view.missed(&path, error))?;
            check_same(entry, &Now::of(now))?;
            let after = kept(view, entry)?;
            let (place, mode) = (target.place().clone(), *mode);
            let (seen, before) = (ReadRule::Off, None);
            let replace = Replace { path, target, before, after, seen, show: true, mode, origin };
            (place, ChangeSet::replace(replace))
        }
        State::Link { target: to } => {
            let target = view.target(&path).map_err(|error| differs(entry, error))?;
            let now = target.hash().map_err(|error| view.missed(&path, error))?;
            check_same(entry, &Now::of(now))?;
            let (place, to) = (target.place().clone(), to.clone());
            (place, ChangeSet::restore(RestoreLink { path, target, to, origin }))
        }
    };
    Ok((Undone { entry: entry.clone(), place }, changes))
}

/// Whether everything is still as it was before a change.
fn never_made(view: &View<'_>, entry: &Entry) -> bool {
    let path = RawPath::from(entry.path.as_str());
    let now = match view.removal(&path) {
        Err(Error::NotFound { .. }) => Now::Nothing,
        Err(_) => return false,
        Ok(removal) => match (removal.link_target(), removal.hash()) {
            (Some(to), _) => Now::Link(String::from_utf8_lossy(to).into_owned()),
            (None, Ok(hash)) => Now::of(hash),
            (None, Err(_)) => return false,
        },
    };
    is_now(&entry.before, &now)
}

/// What a change displaced, if that is still what it was.
pub(super) fn kept(view: &View<'_>, entry: &Entry) -> Result<Vec<u8>, Error> {
    let gone = || Error::NothingToUndo { id: Some(entry.id.clone()) };
    let origin = view.session().journal().ok_or_else(gone)?.backup(entry);
    let origin = origin.map_err(|error| match error {
        ConfineError::NotFound => gone(),
        other => Error::looking(&entry.path.as_str().into(), other),
    })?;
    // Whoever had the file open could still write to it after it was displaced.
    if is_now(&entry.before, &Now::File(pinfold_confine::hash(&origin))) {
        return Ok(origin);
    }
    let what = "what was kept of it has been written to since";
    Err(Error::NotAsLeft { path: entry.path.as_str().into(), what })
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

/// Whether a state is what is there now.
fn is_now(state: &State, now: &Now) -> bool {
    match (state, now) {
        (State::Absent, Now::Nothing) => true,
        (State::File { hash, .. }, Now::File(now)) => *hash == now.to_hex().as_str(),
        (State::Link { target }, Now::Link(now)) => target == now,
        _ => false,
    }
}

/// The file must be as the change left it.
fn check_same(entry: &Entry, now: &Now) -> Result<(), Error> {
    let what = match (&entry.after, now) {
        (after, now) if is_now(after, now) => return Ok(()),
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
