//! `Undo`: undoes one change of the journal.

use pinfold_confine::{Error as ConfineError, Hash, Kind, Place, RawPath, Relocation, Removal};

use super::revert;
use crate::journal::{Entry, LoggedEntry, State, in_effect};
use crate::{ChangeSet, Error, Operation, View};

/// Undoes one change of the journal. Refuses a file that was modified since.
///
/// It is a change itself, so it can be undone too. Needs a journal, which the settings turn on.
///
/// ```
/// use pinfold::operations::{Undo, Write};
/// use pinfold::{JournalSetting, Session, Settings};
///
/// # let dir = tempfile::tempdir()?;
/// # let (workspace, journal) = (dir.path().join("workspace"), dir.path().join("journal"));
/// # std::fs::create_dir(&workspace)?;
/// let mut settings = Settings::default();
/// settings.journal = Some(JournalSetting::Directory(journal));
/// let session = Session::with_settings([&workspace], settings)?;
/// session.perform(&Write::new("a.txt", "one\n"))?;
/// let changed = session.perform(&Write::new("a.txt", "two\n"))?;
///
/// session.perform(&Undo::newest())?;
/// assert_eq!(std::fs::read_to_string(workspace.join("a.txt"))?, "one\n");
///
/// // A change that was undone cannot be undone again: the file is no longer as the change left it.
/// let id = changed.receipt.id.expect("there is a journal");
/// assert!(session.perform(&Undo::change(id)).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Undo {
    /// The id of the change; `None` for the newest one in this workspace that was not undone yet.
    pub id: Option<String>,
    /// Without an id, only changes of this file.
    pub path: Option<RawPath>,
    /// Without an id, only changes that this session made.
    pub own_only: bool,
}

/// A change that was undone.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Undone {
    /// The change's entry in the journal.
    pub entry: Entry,
    /// The file's place.
    pub place: Place,
    /// How many other paths of the same set were changed back with it.
    pub others: usize,
}

impl Undo {
    /// Undoes the newest change in the workspace that was not undone yet.
    pub fn newest() -> Self {
        Self::default()
    }

    /// Undoes the change with an id.
    pub fn change(id: impl Into<String>) -> Self {
        Self { id: Some(id.into()), ..Self::default() }
    }

    /// Undoes the newest change of a file that this session made and that was not undone yet.
    pub fn of_file(path: impl Into<RawPath>) -> Self {
        Self { path: Some(path.into()), own_only: true, ..Self::default() }
    }
}

impl Operation for Undo {
    type Changes = ChangeSet;
    type Outcome = Undone;

    fn plan(&self, view: &View<'_>) -> Result<(Undone, ChangeSet), Error> {
        if let Some(id) = &self.id {
            return inverse(view, &find(view, id)?);
        }
        let path = self.path.as_ref().map(|path| real_path(view, path)).transpose()?;
        for logged in in_effect(view.session().history()?) {
            let LoggedEntry { entry, confirmed, .. } = logged?;
            let mut paths = [&entry.path].into_iter().chain(&entry.moved_to);
            let other_path = path.as_ref().is_some_and(|path| paths.all(|known| known != path));
            if other_path || self.own_only && entry.session != view.session().id() {
                continue;
            }
            match inverse(view, &entry) {
                // The process was killed before it made this change, so there is nothing to undo.
                Err(Error::NotAsLeft { .. }) if !confirmed || never_made(view, &entry) => {}
                other => return other,
            }
        }
        Err(Error::NothingToUndo { id: None })
    }
}

/// The real path that a path leads to. Nothing needs to be there.
pub(super) fn real_path(view: &View<'_>, path: &RawPath) -> Result<String, Error> {
    view.check_name(path)?;
    let found = view.session().workspace().deepest_existing(path);
    let (place, missing) = found.map_err(|error| view.path_error(path, error))?;
    let below = missing.iter().fold(place.path, |path, name| path.join(name));
    let real = view.session().workspace().real_path(&Place { root: place.root, path: below });
    Ok(String::from_utf8_lossy(&real).into_owned())
}

/// The changes that undo a change, together with the others of its set.
fn inverse(view: &View<'_>, entry: &Entry) -> Result<(Undone, ChangeSet), Error> {
    let entries = match &entry.group {
        Some(group) => entries_of(view, group)?,
        None => vec![entry.clone()],
    };
    let revert::Plan { changes, files, conflicts } = revert::plan(view, &entries, &|_| true)?;
    let differs = |path: &str, what| Error::NotAsLeft { path: path.into(), what };
    if let Some(conflict) = conflicts.first() {
        return Err(differs(&conflict.path, conflict.why));
    }
    let place = changes.iter().find(|change| change.path().as_str() == entry.path);
    let Some(place) = place.or(changes.first()).map(|change| change.place().clone()) else {
        return Err(match &entry.group {
            Some(_) => Error::NothingToUndo { id: Some(entry.id.clone()) },
            None => differs(&entry.path, "it is as it was before the change"),
        });
    };
    let others = files.len().saturating_sub(1);
    Ok((Undone { entry: entry.clone(), place, others }, ChangeSet(changes)))
}

/// The changes of a set, newest first, without those that were never made.
fn entries_of(view: &View<'_>, group: &str) -> Result<Vec<Entry>, Error> {
    let mut entries = Vec::new();
    for logged in view.session().history()? {
        let logged = logged?;
        // The entries of a set are adjacent.
        if logged.entry.group.as_deref() == Some(group) {
            if logged.confirmed || !was_not_moved(view, &logged.entry) {
                entries.push(logged.entry);
            }
        } else if !entries.is_empty() {
            break;
        }
    }
    Ok(entries)
}

/// Whether the process was killed before it moved a directory. Then the directory's entries are at the old path.
fn was_not_moved(view: &View<'_>, entry: &Entry) -> bool {
    let is_directory =
        |path: &str| matches!(current_state(view, &path.into()), Some(CurrentState::Directory));
    let Some(to) = entry.moved_to.as_ref() else { return false };
    matches!(entry.before, State::Directory { .. })
        && is_directory(&entry.path)
        && !is_directory(to)
}

/// Finds the entry with an id.
pub(super) fn find(view: &View<'_>, id: &str) -> Result<Entry, Error> {
    let mut history = view.session().history()?;
    let found = history.find(|logged| {
        logged
            .as_ref()
            .map_or(true, |logged| logged.entry.id == id && logged.entry.checkpoint.is_none())
    });
    let found = found.ok_or_else(|| Error::NothingToUndo { id: Some(id.to_owned()) })?;
    Ok(found?.entry)
}

/// Whether a change was never made, because the file is in the state before it.
pub(super) fn never_made(view: &View<'_>, entry: &Entry) -> bool {
    let now = current_state(view, &RawPath::from(entry.path.as_str()));
    now.is_some_and(|now| state_matches(&entry.before, &now))
}

/// The current state of a path. Returns `None` if it cannot be read.
pub(crate) fn current_state(view: &View<'_>, path: &RawPath) -> Option<CurrentState> {
    match view.removal(path) {
        Err(Error::NotFound { .. }) => Some(CurrentState::Nothing),
        Err(Error::IsDirectory { .. }) => Some(CurrentState::Directory),
        Err(_) => None,
        Ok(removal) => CurrentState::of_removed(&removal).ok(),
    }
}

/// The file before a change, from its backup. Fails if the backup was modified.
pub(super) fn backup(view: &View<'_>, entry: &Entry) -> Result<Vec<u8>, Error> {
    let gone = || Error::NothingToUndo { id: Some(entry.id.clone()) };
    let backup = view.session().journal().ok_or_else(gone)?.backup(entry);
    let backup = backup.map_err(|error| match error {
        ConfineError::NotFound => gone(),
        other => Error::from_read(&entry.path.as_str().into(), other),
    })?;
    // A process with the file open could still write to it after it was displaced.
    if state_matches(&entry.before, &CurrentState::File(pinfold_confine::hash(&backup))) {
        return Ok(backup);
    }
    let what = "what was kept of it has been written to since";
    Err(Error::NotAsLeft { path: entry.path.as_str().into(), what })
}

/// The state of a path in the file system.
pub(crate) enum CurrentState {
    Nothing,
    Directory,
    File(Hash),
    Link(String),
}

impl CurrentState {
    pub(super) fn of(hash: Option<Hash>) -> Self {
        hash.map_or(Self::Nothing, Self::File)
    }

    /// The state of a file or symlink to remove.
    pub(super) fn of_removed(removal: &Removal) -> Result<Self, ConfineError> {
        Ok(match removal.link_target() {
            Some(to) => Self::link(to),
            None => Self::of(removal.hash()?),
        })
    }

    /// The state of something to move.
    pub(super) fn of_moved(relocation: &Relocation) -> Result<Self, ConfineError> {
        Ok(match (relocation.link_target(), relocation.meta().kind) {
            (Some(to), _) => Self::link(to),
            (None, Kind::Directory) => Self::Directory,
            (None, _) => Self::of(relocation.hash()?),
        })
    }

    pub(super) fn link(to: &[u8]) -> Self {
        Self::Link(String::from_utf8_lossy(to).into_owned())
    }
}

/// Whether a path is in a state of the journal.
pub(crate) fn state_matches(state: &State, now: &CurrentState) -> bool {
    match (state, now) {
        (State::Absent, CurrentState::Nothing)
        | (State::Directory { .. }, CurrentState::Directory) => true,
        (State::File { hash, .. }, CurrentState::File(now)) => *hash == now.to_hex().as_str(),
        (State::Link { target }, CurrentState::Link(now)) => target == now,
        _ => false,
    }
}
