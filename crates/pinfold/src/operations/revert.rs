//! Plans the changes that undo many changes of the journal at once.
//!
//! Only the net effect counts: each path goes from its state after the newest change to its state before the oldest.
//! So each path is changed once, however often it had changed. A path that is not in the state after the newest
//! change is a conflict, and is never changed.

mod directories;
mod net_changes;

use std::collections::{HashMap, HashSet};
use std::io::Read as _;

use pinfold_confine::{Place, RawPath, Removal, Target};

use directories::Directories;
use net_changes::{MovedDirectory, NetChange, NetChanges};

use super::r#move;
use super::undo::{CurrentState, backup, current_state, state_matches};
use crate::change::{
    Change, MakeDirectory, Relocate, Remove, Replace, ReplaceKind, RestoreLink, line_counts,
};
use crate::journal::{Entry, State};
use crate::limits::MAX_COMPARED_BYTES;
use crate::{Error, View};

/// A file whose changes cannot be undone.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Conflict {
    /// The file's real path.
    pub path: String,
    /// The reason.
    pub why: &'static str,
}

/// A path whose changes are undone.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct RevertedPath {
    /// Its current real path.
    pub path: String,
    /// The effect: `restored`, `removed`, `created again` or `moved back`.
    pub what: &'static str,
    /// The real path that it is moved back to.
    pub back_to: Option<String>,
    /// The numbers of added and removed lines, if both versions are text.
    pub lines: Option<(usize, usize)>,
}

/// The changes that undo other changes.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) changes: Vec<Box<dyn Change>>,
    pub(super) files: Vec<RevertedPath>,
    pub(super) conflicts: Vec<Conflict>,
}

/// Plans to undo the changes of `entries`, newest first. If `is_own` is false for an entry, another session made it,
/// and a file that it changed in between is a conflict.
pub(super) fn plan(
    view: &View<'_>,
    entries: &[Entry],
    is_own: &dyn Fn(&Entry) -> bool,
) -> Result<Plan, Error> {
    let NetChanges { mut nets, mut moved, .. } = NetChanges::of(entries, is_own);
    // A directory that was created and then moved is removed as a whole.
    moved.retain(|moved| {
        let made = nets.iter_mut().find(|net| net.path == moved.path && net.removes_directory());
        let Some(made) = made else { return true };
        made.ids.extend_from_slice(&moved.ids);
        made.is_made_parent = false;
        false
    });
    // Files are locked in the order of their paths, so two sets cannot deadlock.
    nets.sort_by(|one, other| one.path.cmp(&other.path));
    let sources = move_sources(&nets);
    let is_source: HashSet<usize> = sources.values().copied().collect();
    undo_cancelled_with_another(&mut nets, &mut moved, &is_source);
    let mut directories = Directories::new(&nets, &moved, &is_source);
    let mut ranked = Vec::new();
    let mut plan = Plan::default();
    for (number, net) in nets.iter().enumerate() {
        if same(&net.after, &net.before) || is_source.contains(&number) || directories.has(number) {
            continue;
        }
        let source = sources.get(&number).map(|source| &nets[*source]);
        let step = match net.conflict.or(source.and_then(|source| source.conflict)) {
            Some(why) => Err(Error::NotAsLeft { path: net.path.as_str().into(), what: why }),
            None if net.removes_directory() => {
                directories.remove(view, number, &mut plan.files).map(|()| None)
            }
            None => step(view, net, source, (&nets, entries)).map(Some),
        };
        match step {
            Ok(Some((rank, what, lines, change))) => {
                let path = source.map_or(&net.path, |source| &source.path).clone();
                let back_to = source.map(|_| net.path.clone());
                plan.files.push(RevertedPath { path, what, back_to, lines });
                ranked.push((rank, net.path.matches('/').count(), change));
            }
            Ok(None) => {}
            // It holds something that keeps it.
            Err(Error::BadPath { .. } | Error::Denied { .. } | Error::TooManyEntries { .. })
                if net.is_made_parent => {}
            Err(error) if net.is_made_parent => _ = conflict(&net.path, error)?,
            // Another process has already undone it, or the change was never made.
            Err(_) if is_at(view, &net.path, &net.before) => {}
            Err(error) => plan.conflicts.push(conflict(&net.path, error)?),
        }
    }
    // Parent directories are created before their children.
    ranked.sort_by_key(|(rank, depth, _)| (*rank, *depth));
    plan.changes.extend(ranked.into_iter().map(|(_, _, change)| change));
    for moved in &moved {
        match directories.move_back(view, moved) {
            Ok(()) => {
                let (path, what) = (moved.path.clone(), "moved back");
                let back_to = Some(moved.back_to.clone());
                plan.files.push(RevertedPath { path, what, back_to, lines: None });
            }
            // It was never moved.
            Err(Error::NotFound { .. })
                if is_at(view, &moved.back_to, &State::Directory { mode: None }) => {}
            Err(error) => plan.conflicts.push(conflict(&moved.path, error)?),
        }
    }
    plan.changes.extend(directories.changes());
    plan.files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(plan)
}

/// Counts changes that cancel each other out, such as the creation and the deletion of a file, as undone by the first
/// of the others. Otherwise they would still be the newest changes to undo.
fn undo_cancelled_with_another(
    nets: &mut [NetChange<'_>],
    moved: &mut [MovedDirectory],
    is_source: &HashSet<usize>,
) {
    let is_cancelled = |net: &NetChange<'_>| same(&net.after, &net.before);
    let cancelled = nets.iter().filter(|net| is_cancelled(net) && net.conflict.is_none());
    let cancelled: Vec<_> = cancelled.flat_map(|net| net.ids.clone()).collect();
    let others = nets.iter_mut().enumerate().filter(|(number, net)| {
        !is_cancelled(net) && net.conflict.is_none() && !is_source.contains(number)
    });
    let other = others.map(|(_, net)| net).min_by_key(|net| net.is_made_parent);
    let ids = other.map(|net| &mut net.ids).or(moved.first_mut().map(|moved| &mut moved.ids));
    if let Some(ids) = ids {
        ids.extend(cancelled);
    }
}

/// Whether a path is already in a state.
fn is_at(view: &View<'_>, path: &str, state: &State) -> bool {
    current_state(view, &RawPath::from(path)).is_some_and(|now| state_matches(state, &now))
}

/// The order in which files are changed. Directories are moved and removed after them.
#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
enum Rank {
    MakeDirectory,
    Restore,
    Move,
    Remove,
}

/// For each path that a file was moved from, the path that it has now. Both are indexes.
fn move_sources(nets: &[NetChange<'_>]) -> HashMap<usize, usize> {
    let mut sources = HashMap::new();
    for (number, net) in nets.iter().enumerate() {
        if net.backup.is_some() || net.after != State::Absent || net.before == State::Absent {
            continue;
        }
        let is_source = |(other, it): &(usize, &NetChange<'_>)| {
            it.before == State::Absent
                && same(&it.after, &net.before)
                && !sources.values().any(|known| known == other)
        };
        if let Some((source, _)) = nets.iter().enumerate().find(is_source) {
            sources.insert(number, source);
        }
    }
    sources
}

/// Whether two states have the same content, regardless of their modes.
fn same(one: &State, other: &State) -> bool {
    match (one, other) {
        (State::Absent, State::Absent) | (State::Directory { .. }, State::Directory { .. }) => true,
        (State::File { hash: one, .. }, State::File { hash: other, .. }) => one == other,
        (State::Link { target: one }, State::Link { target: other }) => one == other,
        _ => false,
    }
}

/// The rank of a change, its effect, the numbers of added and removed lines, and the change.
type Step = (Rank, &'static str, Option<(usize, usize)>, Box<dyn Change>);

/// Plans the change of one path.
fn step(
    view: &View<'_>,
    net: &NetChange<'_>,
    source: Option<&NetChange<'_>>,
    (nets, entries): (&[NetChange<'_>], &[Entry]),
) -> Result<Step, Error> {
    let path = RawPath::from(net.path.as_str());
    let differs = |what| Error::NotAsLeft { path: path.clone(), what };
    let check = |now: &CurrentState| match (&net.after, now) {
        (after, now) if state_matches(after, now) => Ok(()),
        (State::Absent, _) => Err(differs("a file is there again")),
        (_, CurrentState::Nothing) => Err(differs("the file is gone")),
        _ => Err(differs("its content has changed since")),
    };
    let undoes = net.ids.clone();
    let removal = || -> Result<Removal, Error> {
        let removal = view.removal(&path)?;
        let now = CurrentState::of_removed(&removal);
        check(&now.map_err(|error| view.path_error(&path, error))?)?;
        Ok(removal)
    };
    // The removal of a path, and its place after that.
    let free = |undoes| -> Result<(Remove, Target), Error> {
        let removal = removal()?;
        let target = removal.place_once_free();
        Ok((Remove { path: path.clone(), removal, undoes }, target))
    };
    // The file before the oldest change, for its owner and extended attributes.
    let like = || view.session().journal()?.open_backup(net.backup?).ok();
    if let Some(source) = source {
        let from = RawPath::from(source.path.as_str());
        let change = r#move::plan(view, &from, &path)?;
        let relocation = &change.relocation;
        let now = CurrentState::of_moved(relocation);
        let now = now.map_err(|error| view.path_error(&from, error))?;
        if !state_matches(&source.after, &now) {
            return Err(differs("its content has changed since"));
        }
        let change = Relocate { undoes, ..change };
        return Ok((Rank::Move, "moved back", None, Box::new(change)));
    }
    match (&net.after, &net.before) {
        (_, State::Absent) => {
            let removal = removal()?;
            let lines = removed_lines(view, removal.place());
            let change = Remove { path, removal, undoes };
            Ok((Rank::Remove, "removed", lines, Box::new(change)))
        }
        (State::Absent, State::Directory { mode }) => {
            let (mode, target) = (*mode, view.directory_target(&path)?);
            let change = MakeDirectory { path, target, mode, undoes };
            Ok((Rank::MakeDirectory, "created again", None, Box::new(change)))
        }
        (State::Absent | State::File { .. }, State::File { mode, .. }) => {
            let mut target = view.target(&path)?;
            let before = target.content().map_err(|error| view.path_error(&path, error))?;
            check(&CurrentState::of(
                target.hash().map_err(|error| view.path_error(&path, error))?,
            ))?;
            let after = content(view, net, nets, entries)?;
            let lines = lines(&before, &after);
            let what = if net.after == State::Absent { "created again" } else { "restored" };
            let replace = Replace::new(path, target, after);
            let like = if net.was_absent { like() } else { None };
            let replace = Replace { answers_with_diff: true, mode: *mode, like, undoes, ..replace };
            Ok((Rank::Restore, what, lines, Box::new(replace)))
        }
        (State::Absent, State::Link { target: to }) => {
            let target = view.target(&path)?;
            check(&CurrentState::of(
                target.hash().map_err(|error| view.path_error(&path, error))?,
            ))?;
            let change = RestoreLink { path, target, to: to.clone(), undoes };
            Ok((Rank::Restore, "created again", None, Box::new(change)))
        }
        (State::File { .. }, State::Link { target: to }) => {
            let (remove, target) = free(undoes)?;
            let create = RestoreLink { path, target, to: to.clone(), undoes: Vec::new() };
            let change = ReplaceKind { remove, create: Box::new(create) };
            Ok((Rank::Restore, "restored", None, Box::new(change)))
        }
        (State::Link { .. }, State::File { mode, .. }) => {
            let (remove, target) = free(undoes)?;
            let create = Replace::new(path, target, content(view, net, nets, entries)?);
            let create = Replace { answers_with_diff: true, mode: *mode, like: like(), ..create };
            let change = ReplaceKind { remove, create: Box::new(create) };
            Ok((Rank::Restore, "restored", None, Box::new(change)))
        }
        _ => Err(differs("it is of another kind than before; undo its changes one by one")),
    }
}

/// The numbers of added and removed lines, if both versions are text of a moderate size.
fn lines(before: &[u8], after: &[u8]) -> Option<(usize, usize)> {
    if before.len().max(after.len()) as u64 > MAX_COMPARED_BYTES {
        return None;
    }
    line_counts(before, after)
}

/// As [`lines`], for a file that is removed.
fn removed_lines(view: &View<'_>, place: &Place) -> Option<(usize, usize)> {
    let mut file = view.open_place(place).ok()?;
    if file.meta().len > MAX_COMPARED_BYTES {
        return None;
    }
    let mut content = Vec::new();
    file.read_to_end(&mut content).ok()?;
    lines(&content, &[])
}

/// The content before the oldest change: its backup, another backup with the same hash, or a file that has it now.
fn content(
    view: &View<'_>,
    net: &NetChange<'_>,
    nets: &[NetChange<'_>],
    entries: &[Entry],
) -> Result<Vec<u8>, Error> {
    let backups = net.backup.into_iter().chain(entries.iter().filter(|entry| {
        entry.moved_to.is_none()
            && matches!(entry.before, State::File { .. })
            && same(&entry.before, &net.before)
    }));
    let mut differs = None;
    for entry in backups {
        match backup(view, entry) {
            Ok(content) => return Ok(content),
            Err(error @ Error::NotAsLeft { .. }) => differs = differs.or(Some(error)),
            Err(_) => {}
        }
    }
    // It was moved away, and something else took its place.
    let mut copies = nets.iter().filter(|other| same(&other.after, &net.before));
    let read = |copy: &NetChange<'_>| {
        let place = view.session().workspace().lstat(&copy.path.as_str().into()).ok()?.place;
        let mut content = Vec::new();
        view.open_place(&place).ok()?.read_to_end(&mut content).ok()?;
        let now = CurrentState::File(pinfold_confine::hash(&content));
        state_matches(&net.before, &now).then_some(content)
    };
    let gone = || Error::NotAsLeft { path: net.path.as_str().into(), what: "its backup is gone" };
    copies.find_map(read).ok_or_else(|| differs.unwrap_or_else(gone))
}

/// The conflict for an error about the state of a file. Other errors are returned.
fn conflict(path: &str, error: Error) -> Result<Conflict, Error> {
    let why = match error {
        Error::NotAsLeft { what, .. } => what,
        Error::NotFound { .. } | Error::DirectoryNotFound { .. } => "the file is gone",
        Error::Exists { .. } => "something else is where it was before",
        Error::IsDirectory { .. } => "a directory is there now",
        Error::NotADirectory { .. } => "a file is there now",
        Error::NotRegular { .. } | Error::Dangling { .. } | Error::TooManyLinks { .. } => {
            "something else is there now"
        }
        other => return Err(other),
    };
    Ok(Conflict { path: path.to_owned(), why })
}
