//! The net effect of a series of changes on each path.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Bound;

use crate::journal::{Entry, State};

/// The net effect of the changes on one path.
pub(super) struct NetChange<'e> {
    /// The current path.
    pub(super) path: String,
    /// The state after the newest change.
    pub(super) after: State,
    /// The state before the oldest change.
    pub(super) before: State,
    /// The oldest change, which has the backup of that state; `None` if the file was moved away.
    pub(super) backup: Option<&'e Entry>,
    /// The changes, newest first.
    pub(super) ids: Vec<String>,
    /// Whether nothing was at the path between two of the changes. Then what is there now is another file than before.
    pub(super) was_absent: bool,
    /// Whether it is a directory that was only created for the files in it. Then it stays if it holds others.
    pub(super) is_made_parent: bool,
    pub(super) conflict: Option<&'static str>,
}

impl NetChange<'_> {
    /// Whether it removes a directory that was created.
    pub(super) fn removes_directory(&self) -> bool {
        matches!((&self.after, &self.before), (State::Directory { .. }, State::Absent))
    }
}

/// A moved directory: its current path and the path to move it back to. Both use the current names of the directories
/// above.
pub(super) struct MovedDirectory {
    pub(super) path: String,
    pub(super) back_to: String,
    pub(super) ids: Vec<String>,
}

/// Collects net effects. Changes are added from the newest to the oldest.
#[derive(Default)]
pub(super) struct NetChanges<'e> {
    pub(super) nets: Vec<NetChange<'e>>,
    pub(super) moved: Vec<MovedDirectory>,
    known: HashMap<String, usize>,
    /// The current name of each directory, by its name before the changes that were added so far.
    names: BTreeMap<String, String>,
}

impl<'e> NetChanges<'e> {
    /// The net effects of `entries`, newest first. If `is_own` is false for an entry, another session made it, and a
    /// file that it changed in between is a conflict.
    pub(super) fn of(entries: &'e [Entry], is_own: &dyn Fn(&Entry) -> bool) -> Self {
        let mut nets = Self::default();
        let mut others: HashSet<String> = HashSet::new();
        for entry in entries {
            let paths = || [&entry.path].into_iter().chain(&entry.moved_to);
            if !is_own(entry) {
                others.extend(paths().map(|path| nets.current_path(path)));
                nets.step_back(entry);
                continue;
            }
            let now: Vec<_> = paths().map(|path| nets.current_path(path)).collect();
            nets.add_entry(entry);
            for path in now.iter().filter(|path| others.contains(*path)) {
                if let Some(number) = nets.known.get(path) {
                    nets.nets[*number].conflict = Some("another session changed it too");
                }
            }
        }
        nets.moved.retain(|moved| moved.path != moved.back_to);
        nets
    }

    /// The current path of a file that had this path before the changes added so far.
    fn current_path(&self, path: &str) -> String {
        // In this map, the names above a path come before it, the longest last.
        let mut names = self.names.range::<str, _>((Bound::Unbounded, Bound::Included(path))).rev();
        let found = names.find_map(|(then, now)| Some(format!("{now}{}", below(path, then)?)));
        found.unwrap_or_else(|| path.to_owned())
    }

    /// Updates `names` to the state before a change.
    fn step_back(&mut self, entry: &Entry) {
        let Entry { path, moved_to, before, after, .. } = entry;
        let is_below = |name: &str, directory: &str| below(name, directory).is_some();
        match (moved_to, before, after) {
            (Some(to), State::Directory { .. }, _) => {
                let now = self.current_path(to);
                let inside: Vec<_> =
                    self.names.keys().filter(|name| is_below(name, to)).cloned().collect();
                for name in inside {
                    let (Some(rest), Some(now)) = (below(&name, to), self.names.remove(&name))
                    else {
                        continue;
                    };
                    self.names.insert(format!("{path}{rest}"), now);
                }
                self.names.insert(path.clone(), now);
            }
            // Before the directory was created, its name belonged to something else.
            (None, State::Absent, State::Directory { .. }) => {
                self.names.retain(|name, _| !is_below(name, path));
            }
            _ => {}
        }
        for parent in made_parents(entry) {
            self.names.retain(|name, _| !is_below(name, parent));
        }
    }

    /// Adds an older change of a path.
    fn add(
        &mut self,
        path: &str,
        [before, after]: [&State; 2],
        entry: &'e Entry,
        backup: Option<&'e Entry>,
    ) -> &mut NetChange<'e> {
        let path = self.current_path(path);
        let number = *self.known.entry(path.clone()).or_insert(self.nets.len());
        if number == self.nets.len() {
            self.nets.push(NetChange {
                path,
                after: after.clone(),
                before: State::Absent,
                backup: None,
                ids: Vec::new(),
                was_absent: false,
                is_made_parent: true,
                conflict: None,
            });
        }
        let net = &mut self.nets[number];
        net.was_absent |= *after == State::Absent;
        net.before = before.clone();
        net.backup = backup;
        net.ids.push(entry.id.clone());
        net
    }

    fn add_entry(&mut self, entry: &'e Entry) {
        let Entry { path, before, after, moved_to, .. } = entry;
        match moved_to {
            None => {
                self.add(path, [before, after], entry, Some(entry)).is_made_parent = false;
            }
            Some(to) if matches!(before, State::Directory { .. }) => self.add_move(entry, to),
            Some(to) => {
                self.add(to, [&State::Absent, before], entry, None).is_made_parent = false;
                self.add(path, [before, &State::Absent], entry, None).is_made_parent = false;
            }
        }
        for parent in made_parents(entry) {
            self.add(parent, [&State::Absent, &State::Directory { mode: None }], entry, None);
        }
        self.step_back(entry);
    }

    /// Adds an older move of a directory.
    fn add_move(&mut self, entry: &Entry, to: &str) {
        let ids = vec![entry.id.clone()];
        let path = self.current_path(to);
        // The move changed only its own name. The directories above it may have been moved since.
        let (above, name) = entry.path.rsplit_once('/').unwrap_or_default();
        let back_to = format!("{}/{name}", self.current_path(above));
        match self.moved.iter_mut().find(|moved| moved.path == path) {
            Some(moved) => {
                moved.back_to = back_to;
                moved.ids.extend(ids);
            }
            None => self.moved.push(MovedDirectory { path, back_to, ids }),
        }
    }
}

/// The directories that a change created above its path, the deepest first.
fn made_parents(entry: &Entry) -> impl Iterator<Item = &str> {
    let path = entry.moved_to.as_ref().unwrap_or(&entry.path);
    let parents = path.rmatch_indices('/').map(|(end, _)| &path[..end]);
    parents.take(entry.made_parents)
}

/// The rest of a path after `directory`: empty if both are the same. Returns `None` if it is not below.
pub(super) fn below<'p>(path: &'p str, directory: &str) -> Option<&'p str> {
    path.strip_prefix(directory).filter(|rest| rest.is_empty() || rest.starts_with('/'))
}
