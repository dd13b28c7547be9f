//! `Show`: shows one change of the journal.

use std::io::Read as _;
use std::path::Path;

use pinfold_confine::RawPath;
use pinfold_text::DiffFormat;

use super::undo::{backup, find};
use crate::change::{can_compare, diff};
use crate::journal::{Entry, State};
use crate::{Error, NoChange, Operation, View};

/// Shows one change of the journal, if the file may be read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Show {
    /// The id of the change.
    pub id: String,
}

/// A change of the journal.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Shown {
    /// The change's entry in the journal.
    pub entry: Entry,
    /// The diff, where both versions are text and still exist.
    pub diff: Option<String>,
}

impl Show {
    /// Shows the change with an id.
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into() }
    }
}

impl Operation for Show {
    type Changes = NoChange;
    type Outcome = Shown;

    fn plan(&self, view: &View<'_>) -> Result<(Shown, NoChange), Error> {
        let entry = find(view, &self.id)?;
        // The backup of a file may be read if the file may.
        view.check_backup_readable(&RawPath::from(entry.path.as_str()))?;
        let small = |state: &State| match state {
            State::File { bytes, .. } => can_compare(*bytes, view),
            State::Absent | State::Directory { .. } | State::Link { .. } => true,
        };
        if entry.moved_to.is_some() || !small(&entry.before) || !small(&entry.after) {
            return Ok((Shown { entry, diff: None }, NoChange));
        }
        let before = content(&entry.before, || backup(view, &entry).ok());
        let after = content(&entry.after, || left(view, &entry));
        let both = before.zip(after);
        let roots: Vec<_> = view.session().real_roots().collect();
        let below = roots.iter().find_map(|root| Path::new(&entry.path).strip_prefix(root).ok());
        let path = below.map_or_else(|| entry.path.clone(), |below| below.display().to_string());
        let diff =
            both.and_then(|(before, after)| diff(DiffFormat::Git, &path, &before, &after, view));
        Ok((Shown { entry, diff }, NoChange))
    }
}

fn content(state: &State, file: impl FnOnce() -> Option<Vec<u8>>) -> Option<Vec<u8>> {
    match state {
        State::Absent | State::Directory { .. } => Some(Vec::new()),
        State::File { .. } => file(),
        State::Link { target } => Some(format!("symlink to {target}\n").into_bytes()),
    }
}

/// The content that a change wrote: the file's, or the backup of a later change.
fn left(view: &View<'_>, entry: &Entry) -> Option<Vec<u8>> {
    let State::File { hash, .. } = &entry.after else { return None };
    let same = |other: &Entry| {
        other.path == entry.path
            && matches!(&other.before, State::File { hash: before, .. } if before == hash)
    };
    let history = view.session().history().ok()?.map_while(Result::ok).map(|logged| logged.entry);
    if let Some(other) = history.take_while(|other| other.id != entry.id).filter(same).last() {
        return backup(view, &other).ok();
    }
    let (_, mut file) = view.file(&RawPath::from(entry.path.as_str())).ok()?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).ok()?;
    (pinfold_confine::hash(&bytes).to_hex().as_str() == hash).then_some(bytes)
}
