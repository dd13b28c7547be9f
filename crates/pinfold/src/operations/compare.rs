//! `Compare`: compares two versions of a file, from the journal or on the disk.

use std::io::Read as _;
use std::path::Path;

use pinfold_confine::{Error as ConfineError, RawPath};
use pinfold_text::DiffFormat;

use super::undo::{backup, find};
use crate::change::{can_compare, diff};
use crate::journal::State;
use crate::{Error, NoChange, Operation, View};

/// Compares two versions of a file, if the file may be read.
///
/// ```
/// use pinfold::operations::{Compare, Version, Write};
/// use pinfold::{JournalSetting, Session, Settings};
///
/// # let dir = tempfile::tempdir()?;
/// # let (workspace, journal) = (dir.path().join("workspace"), dir.path().join("journal"));
/// # std::fs::create_dir(&workspace)?;
/// # let workspace = workspace.canonicalize()?;
/// let mut settings = Settings::default();
/// settings.journal = Some(JournalSetting::Directory(journal));
/// let session = Session::with_settings([&workspace], settings)?;
/// session.perform(&Write::new("a.txt", "one\n"))?;
/// let id = session.perform(&Write::new("a.txt", "two\n"))?.receipt.id.expect("there is a journal");
/// session.perform(&Write::new("a.txt", "three\n"))?;
/// let file = workspace.join("a.txt").display().to_string();
/// let compared = session.perform(&Compare::new(file, Version::Before(id), Version::Now))?.outcome;
/// assert!(compared.diff.expect("both versions are text").ends_with("-one\n+three\n"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Compare {
    /// The file's real path.
    pub path: String,
    /// The version to compare with.
    pub from: Version,
    /// The version to compare.
    pub to: Version,
}

/// A version of a file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Version {
    /// The version before a change, by the change's id.
    Before(String),
    /// The version after a change, by the change's id.
    After(String),
    /// The current version.
    Now,
}

/// Two versions of a file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Compared {
    /// The states of the file in both versions.
    pub states: [State; 2],
    /// The diff, if both versions are text and still exist.
    pub diff: Option<String>,
}

impl Compare {
    /// Compares two versions of the file at a real path.
    pub fn new(path: impl Into<String>, from: Version, to: Version) -> Self {
        Self { path: path.into(), from, to }
    }
}

impl Operation for Compare {
    type Changes = NoChange;
    type Outcome = Compared;

    fn plan(&self, view: &View<'_>) -> Result<(Compared, NoChange), Error> {
        view.check_backup_readable(&RawPath::from(self.path.as_str()))?;
        let states = [self.state(view, &self.from)?, self.state(view, &self.to)?];
        let diff = compare(view, &self.path, [&states[0], &states[1]])?;
        Ok((Compared { states, diff }, NoChange))
    }
}

impl Compare {
    fn state(&self, view: &View<'_>, version: &Version) -> Result<State, Error> {
        let (Version::Before(id) | Version::After(id)) = version else {
            return now(view, &RawPath::from(self.path.as_str()));
        };
        let entry = find(view, id)?;
        // The file may have had another path then, at which it may not be read.
        view.check_backup_readable(&RawPath::from(entry.path.as_str()))?;
        // A move changes the path, not the content.
        let after = matches!(version, Version::After(_)) && entry.moved_to.is_none();
        Ok(if after { entry.after } else { entry.before })
    }
}

/// The diff of two states of a file, if both are text and their contents still exist. The caller has checked that the
/// file may be read.
pub(super) fn compare(
    view: &View<'_>,
    path: &str,
    states: [&State; 2],
) -> Result<Option<String>, Error> {
    let small = |state: &&State| match state {
        State::File { bytes, .. } => can_compare(*bytes, view),
        State::Absent | State::Directory { .. } | State::Link { .. } => true,
    };
    if !states.iter().all(small) {
        return Ok(None);
    }
    let [Some(before), Some(after)] = states.map(|state| content(view, path, state)) else {
        view.check_time()?;
        return Ok(None);
    };
    let roots: Vec<_> = view.session().real_roots().collect();
    let below = roots.iter().find_map(|root| Path::new(path).strip_prefix(root).ok());
    let shown = below.map_or_else(|| path.to_owned(), |below| below.display().to_string());
    Ok(diff(DiffFormat::Git, &shown, &before, &after, view))
}

/// The current state of a file.
fn now(view: &View<'_>, path: &RawPath) -> Result<State, Error> {
    let (_, mut file) = match view.file(path) {
        Ok(found) => found,
        Err(Error::NotFound { .. }) => return Ok(State::Absent),
        Err(Error::IsDirectory { .. }) => return Ok(State::Directory { mode: None }),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    if can_compare(file.len(), view) {
        file.read_to_end(&mut bytes)
            .map_err(|error| view.path_error(path, ConfineError::Os(error)))?;
    }
    Ok(State::file(pinfold_confine::hash(&bytes), file.len(), Some(file.meta().mode)))
}

/// The content of a file in some state: the current content, or a backup with the same hash.
fn content(view: &View<'_>, path: &str, state: &State) -> Option<Vec<u8>> {
    let (hash, len) = match state {
        State::Absent | State::Directory { .. } => return Some(Vec::new()),
        State::Link { target } => return Some(format!("symlink to {target}\n").into_bytes()),
        State::File { hash, bytes, .. } => (hash, *bytes),
    };
    if let Some(content) = on_disk(view, path, hash, len) {
        return Some(content);
    }
    let history = view.session().history().ok()?.map_while(Result::ok).map(|logged| logged.entry);
    let displaced = history.filter(|entry| {
        entry.moved_to.is_none()
            && matches!(&entry.before, State::File { hash: before, .. } if before == hash)
    });
    displaced.take_while(|_| view.check_time().is_ok()).find_map(|entry| backup(view, &entry).ok())
}

/// The file's current content, if it has this hash.
fn on_disk(view: &View<'_>, path: &str, hash: &str, len: u64) -> Option<Vec<u8>> {
    let (_, mut file) =
        view.file(&RawPath::from(path)).ok().filter(|(_, file)| file.len() == len)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).ok()?;
    (pinfold_confine::hash(&bytes).to_hex().as_str() == hash).then_some(bytes)
}
