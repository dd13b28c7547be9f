//! Brings a cached file set up to date with the known changes of its tree.
//!
//! The metadata of a changed file is read again. If files were created or removed in a directory, it is listed again,
//! and only its own files are exchanged. Other changes (of directories or ignore files) take a walk.

use std::sync::{Arc, PoisonError};

use pinfold_confine::{Candidate, FilterDecision, Kind, Place, TreeStamp};

use crate::search::file_set::{FileSet, Request, Selection, SetFile};
use crate::search::set_link::SetLink;
use crate::search::set_walk::{FilterBy, FoundFile, ThreadFiles, parent_of, start_len, walk};
use crate::{Error, View};

/// The maximum number of created and removed files. For more, a walk is faster.
const MAX_MOVED: usize = 64;

/// The changes since a set was made.
pub(super) struct SetChanges<'c> {
    pub(super) view: &'c View<'c>,
    pub(super) request: &'c Request,
    /// The stamps of the tree when the set was made.
    pub(super) then: &'c [TreeStamp],
    pub(super) filter_decision: FilterBy<'c>,
}

impl SetChanges<'_> {
    /// The set with the changes applied. Returns `None` if that takes a walk.
    pub(super) fn applied_to(&self, set: Arc<FileSet>) -> Result<Option<Arc<FileSet>>, Error> {
        let workspace = self.view.session().workspace();
        let stamps = self.request.starts.iter().zip(self.then);
        let directories = stamps.clone().map(|(start, then)| {
            let mut directories = workspace.changed_directories(start, *then)?;
            directories.retain(|directory| is_within(directory.as_bytes(), start.path.as_bytes()));
            let place = |path| Place { root: start.root, path };
            Some(directories.into_iter().map(place).collect::<Vec<_>>())
        });
        let Some(directories) = directories.collect::<Option<Vec<_>>>() else { return Ok(None) };
        // This comes before the files of the directories are exchanged, while the set still has the files that the
        // log names.
        let files = stamps.map(|(start, then)| {
            workspace.changed_files(start, *then).map(|mut changed| {
                changed.sort_unstable();
                changed
            })
        });
        let files: Option<Vec<_>> = files.collect();
        let mut set = Arc::try_unwrap(set).unwrap_or_else(|shared| shared.copy());
        set.links.iter_mut().for_each(SetLink::forget_target);
        for directory in directories.into_iter().flatten() {
            if !self.exchange(&mut set, &directory)? {
                return Ok(None);
            }
        }
        let index = self.view.session().content_index();
        let files = if workspace.has_new_links(&self.request.starts) { None } else { files };
        Ok(set.update(files.as_deref(), index).then(|| Arc::new(set)))
    }

    /// Lists a directory again, and exchanges its files in a set. Returns false if that is not enough.
    fn exchange(&self, set: &mut FileSet, directory: &Place) -> Result<bool, Error> {
        let by_name = self.request.selection == Selection::ByName;
        let starts: Vec<_> =
            self.request.starts.iter().filter(|start| start.root == directory.root).collect();
        let [start] = starts.as_slice() else { return Ok(false) };
        if by_name && self.request.starts.len() > 1 {
            return Ok(false);
        }
        let wanted = directory.path.as_bytes();
        let only_there = |candidate: &Candidate<'_>| {
            let path = candidate.below_root();
            let is_wanted = match candidate.kind {
                Kind::Directory => is_within(wanted, path),
                _ => parent_of(path) == wanted,
            };
            if is_wanted { (self.filter_decision)(candidate) } else { FilterDecision::Exclude }
        };
        let only = [Place::clone(start)];
        let (part, skipped, all_watched) = walk(self.view, self.request, &only, &only_there, None)?;
        if !all_watched || skipped.unreadable > 0 {
            return Ok(false);
        }
        if !self.exchange_files(set, directory, &part) {
            return Ok(false);
        }
        exchange_left_out(set, directory, start, part, by_name);
        Ok(true)
    }

    /// Exchanges the files of a directory in a set. Returns false if too many were created or removed.
    fn exchange_files<'p>(
        &self,
        set: &mut FileSet,
        directory: &Place,
        part: &'p ThreadFiles,
    ) -> bool {
        let (mut gone, mut outdated) = (Vec::new(), Vec::new());
        let with_key = |file: &'p FoundFile| (file.file.file.place().sort_key(), &file.file);
        let mut new = part.files.iter().map(with_key).peekable();
        let mut came = Vec::new();
        for (number, key) in set.numbers_in(directory) {
            while let Some(file) = new.next_if(|(new_key, _)| *new_key < key) {
                came.push(file);
            }
            match new.next_if(|(new_key, _)| *new_key == key) {
                Some((_, file)) => {
                    let known = &mut set.files[number];
                    if known.version != file.version {
                        outdated.push((number as u32, known.version));
                    }
                    *known = file.clone();
                }
                None => gone.push(number),
            }
        }
        came.extend(new);
        if gone.len() + came.len() > MAX_MOVED {
            return false;
        }
        let index = self.view.session().content_index();
        let coverage = set.coverage.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(coverage) = coverage {
            index.forget(Arc::make_mut(coverage), &outdated);
        }
        gone.iter().rev().for_each(|number| set.remove(*number));
        let before = start_len(&self.request.starts, directory.root);
        came.into_iter().for_each(|(key, file)| set.insert(&key, file, before));
        true
    }
}

impl FileSet {
    /// The numbers of a directory's own files, with their sort keys.
    fn numbers_in(&self, directory: &Place) -> Vec<(usize, Vec<u8>)> {
        let mut below = directory.sort_key();
        if !directory.path.is_root() {
            below.push(0);
        }
        let key = |file: &SetFile| file.file.place().sort_key();
        let first = self.files.partition_point(|file| key(file) < below);
        let files = &self.files[first..];
        let files = &files[..files.partition_point(|file| key(file).starts_with(&below))];
        let own = files.iter().zip(first..).filter(|(file, _)| file.file.is_in(directory));
        own.map(|(file, number)| (number, key(file))).collect()
    }

    fn remove(&mut self, number: usize) {
        self.files.remove(number);
        if let Some(names) = &mut self.names {
            Arc::make_mut(names).remove(number);
        }
        let coverage = self.coverage.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(coverage) = coverage {
            Arc::make_mut(coverage).remove(number as u32);
        }
    }

    /// Inserts a file with this sort key. Globs match its path from the byte `before` on.
    fn insert(&mut self, key: &[u8], file: &SetFile, before: usize) {
        let number = self.files.partition_point(|known| *known.file.place().sort_key() < *key);
        self.files.insert(number, file.clone());
        if let Some(names) = &mut self.names {
            let path = file.file.place().path;
            Arc::make_mut(names).insert(number, &path.as_bytes()[before..]);
        }
        let coverage = self.coverage.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(coverage) = coverage {
            Arc::make_mut(coverage).insert(number as u32);
        }
    }
}

/// Exchanges the links of a directory and the entries that the walk left out.
fn exchange_left_out(
    set: &mut FileSet,
    directory: &Place,
    start: &Place,
    part: ThreadFiles,
    by_name: bool,
) {
    let key = (directory.root, directory.path.as_bytes().to_vec());
    let now = part.left_out_counts.into_iter().find(|(known, _)| *known == key);
    let now = now.map(|(_, count)| count).unwrap_or_default();
    let then = Arc::make_mut(&mut set.left_out_counts).insert(key, now).unwrap_or_default();
    set.skipped.hidden = set.skipped.hidden + now.hidden - then.hidden;
    set.skipped.ignored = set.skipped.ignored + now.ignored - then.ignored;
    set.skipped.withheld = set.skipped.withheld + now.withheld - then.withheld;
    if !by_name {
        return;
    }
    let below_start = directory.path.as_bytes().get(start.path.as_bytes().len()..);
    let below_start = below_start.unwrap_or_default();
    let below_start = below_start.strip_prefix(b"/").unwrap_or(below_start);
    set.links.retain(|link| parent_of(&link.path) != below_start);
    set.links.extend(part.links);
    let left_out = Arc::make_mut(&mut set.left_out);
    left_out
        .withheld
        .retain(|(path, kind)| *kind == Kind::Directory || parent_of(path) != below_start);
    let is_file = |(_, kind): &(Vec<u8>, Kind)| *kind != Kind::Directory;
    left_out.withheld.extend(part.withheld.into_iter().filter(is_file));
    // A name that no longer exists costs a walk at most.
    if let Some(names) = &mut left_out.names {
        names.extend(part.names);
    }
}

/// Whether a path is a directory or below it.
fn is_within(path: &[u8], directory: &[u8]) -> bool {
    let rest = path.strip_prefix(directory);
    rest.is_some_and(|rest| directory.is_empty() || rest.is_empty() || rest.starts_with(b"/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_within_directories_by_whole_names() {
        for (path, directory, expected) in [
            ("a/b", "a", true),
            ("a", "a", true),
            ("ab", "a", false),
            ("a", "", true),
            ("a", "a/b", false),
        ] {
            assert_eq!(
                is_within(path.as_bytes(), directory.as_bytes()),
                expected,
                "{path} {directory}"
            );
        }
    }
}
