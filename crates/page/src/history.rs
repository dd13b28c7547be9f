//! The user's journals: the changes of all workspaces, and the versions of files.

use std::collections::BTreeSet;
use std::iter::Peekable;
use std::path::{Path, PathBuf};

use pinfold::operations::{Compare, Show, Version};
use pinfold::{
    CallOptions, Entry, Journal, JournalSetting, LoggedEntry, Mode, NewestFirst, Operation,
    Session, Settings, State,
};
use pinfold_confine::device_and_inode;
use serde::{Deserialize, Serialize};

use crate::limits;

/// Options of the history: which changes are shown and can be undone.
#[derive(Debug)]
pub struct HistoryOptions {
    /// The user's settings. Deny rules and the mode `plan` apply. Nothing else needs approval, since the user acts.
    pub settings: Settings,
    /// Pinfold's own files, which are denied.
    pub own_files: Vec<PathBuf>,
    /// Only changes below these real paths; empty for all.
    pub roots: Vec<PathBuf>,
}

/// The user's journals.
pub(crate) struct History {
    options: HistoryOptions,
}

/// Selects changes.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Query {
    /// Only those before the change with this id.
    before: Option<String>,
    /// Only those of this session.
    session: Option<String>,
    /// Only those of a file, or of files below a directory, by real path.
    path: Option<String>,
    /// Only those with these words in path, tool, session or id.
    words: String,
    /// Only those since this time, in milliseconds since 1970.
    since: Option<u64>,
    until: Option<u64>,
    limit: Option<usize>,
}

/// A part of the list of changes.
#[derive(Serialize)]
pub(crate) struct ChangeList {
    changes: Vec<Change>,
    /// Whether there are older ones.
    more: bool,
    /// The directories of the journals.
    journals: Vec<String>,
}

/// A change for the page.
#[derive(Serialize)]
pub(crate) struct Change {
    #[serde(flatten)]
    entry: Entry,
    kind: &'static str,
    confirmed: bool,
    undone: bool,
}

impl From<LoggedEntry> for Change {
    fn from(logged: LoggedEntry) -> Self {
        let LoggedEntry { entry, confirmed, undone } = logged;
        Self { kind: entry.kind(), entry, confirmed, undone }
    }
}

/// A diff for the page.
#[derive(Serialize)]
pub(crate) struct Diff {
    /// The diff, with invisible characters escaped. `None` if a version is not text or no longer exists.
    diff: Option<String>,
    /// The versions to compare.
    states: [State; 2],
}

/// The two versions of a file to compare.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Versions {
    path: String,
    from: VersionName,
    to: VersionName,
}

/// A version of a file.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum VersionName {
    Before(String),
    After(String),
    Now,
}

impl From<VersionName> for Version {
    fn from(name: VersionName) -> Self {
        match name {
            VersionName::Before(id) => Self::Before(id),
            VersionName::After(id) => Self::After(id),
            VersionName::Now => Self::Now,
        }
    }
}

impl History {
    pub(crate) fn new(mut options: HistoryOptions) -> Self {
        let settings = &mut options.settings;
        if settings.permissions.mode != Mode::Plan {
            settings.permissions.mode = Mode::BypassPermissions;
        }
        settings.max_output_bytes = Some(limits::MAX_DIFF_BYTES);
        settings.dry_run = false;
        Self { options }
    }

    /// The user's journal, and those of running servers with another one.
    pub(crate) fn journals(&self, of_servers: Vec<PathBuf>) -> Vec<Journal> {
        let own = Journal::of(&self.options.settings);
        let mut known = BTreeSet::from_iter(own.iter().map(|it| it.directory().to_owned()));
        let others = of_servers.into_iter().filter(|directory| known.insert(directory.clone()));
        let others = others.collect::<Vec<_>>().into_iter();
        let others = others.filter_map(|directory| Journal::of(&self.with_journal(&directory)));
        own.into_iter().chain(others).collect()
    }

    fn with_journal(&self, directory: &Path) -> Settings {
        let journal = Some(JournalSetting::Directory(directory.to_owned()));
        self.options.settings.clone().with_journal(journal)
    }

    /// The changes that a query selects, newest first.
    pub(crate) fn changes(
        &self,
        journals: &[Journal],
        query: &Query,
    ) -> Result<ChangeList, String> {
        let limit = query.limit.unwrap_or(limits::MAX_CHANGES).min(limits::MAX_CHANGES);
        let mut names = FileNames::new(query.path.as_deref());
        let words = query.words.to_lowercase();
        let mut waiting = query.before.as_deref();
        let (mut changes, mut more) = (Vec::new(), false);
        for logged in self.newest_first(journals)? {
            let (_, logged) = logged?;
            let named = names.follow(&logged.entry);
            if let Some(id) = waiting {
                waiting = (logged.entry.id != id).then_some(id);
                continue;
            }
            if !named || !query.matches(&logged.entry, &words) {
                continue;
            }
            more = changes.len() == limit;
            if more {
                break;
            }
            changes.push(logged.into());
        }
        let journals = journals.iter().map(|it| it.directory().display().to_string()).collect();
        Ok(ChangeList { changes, more, journals })
    }

    /// All entries of the journals, newest first, each with the index of its journal.
    pub(crate) fn newest_first(
        &self,
        journals: &[Journal],
    ) -> Result<impl Iterator<Item = Result<(usize, LoggedEntry), String>>, String> {
        let opened = journals.iter().map(|journal| {
            let failed = |error| format!("cannot read {}: {error}", journal.directory().display());
            journal.newest_first().map(Iterator::peekable).map_err(failed)
        });
        let merged = MergedJournals { journals: opened.collect::<Result<Vec<_>, _>>()? };
        let roots = self.options.roots.clone();
        Ok(merged.filter(move |logged| {
            let Ok((_, LoggedEntry { entry, .. })) = logged else { return true };
            let mut paths = [&entry.path].into_iter().chain(&entry.moved_to);
            roots.is_empty()
                || paths.any(|path| roots.iter().any(|root| Path::new(path).starts_with(root)))
        }))
    }

    /// The change with an id, and a session on its workspace.
    pub(crate) fn find(
        &self,
        journals: &[Journal],
        id: &str,
    ) -> Result<(LoggedEntry, Session), String> {
        let is_it = |entry: &Entry| entry.id == id;
        self.find_by(journals, is_it)?.ok_or_else(|| {
            format!("there is no change `{id}` in the journal any more; reload the list")
        })
    }

    /// The newest change that `is_it` selects, and a session on its workspace.
    pub(crate) fn find_by(
        &self,
        journals: &[Journal],
        is_it: impl Fn(&Entry) -> bool,
    ) -> Result<Option<(LoggedEntry, Session)>, String> {
        for logged in self.newest_first(journals)? {
            let (number, logged) = logged?;
            if is_it(&logged.entry) {
                let session = self.session(&logged.entry, journals[number].directory())?;
                return Ok(Some((logged, session)));
            }
        }
        Ok(None)
    }

    /// A session on the workspace of a change, with those of its other roots that still exist.
    fn session(&self, entry: &Entry, journal: &Path) -> Result<Session, String> {
        let paths = || [&entry.path].into_iter().chain(&entry.moved_to).map(Path::new);
        let mut roots: Vec<&Path> = entry.roots.iter().map(Path::new).collect();
        roots.retain(|root| {
            paths().any(|path| path.starts_with(root)) || device_and_inode(root).is_some()
        });
        if roots.is_empty() {
            // Journals of older versions do not have the roots.
            roots.extend(paths().next().and_then(Path::parent));
        }
        let session = Session::with_settings(roots, self.with_journal(journal));
        let session = session.map_err(|error| error.to_string())?;
        Ok(session.with_denied_files(self.options.own_files.clone()))
    }

    /// A change, and its diff.
    pub(crate) fn show(&self, journals: &[Journal], id: &str) -> Result<(Change, Diff), String> {
        let (logged, session) = self.find(journals, id)?;
        let shown = perform(&session, &Show::new(id))?;
        let states = [logged.entry.before.clone(), logged.entry.after.clone()];
        Ok((logged.into(), Diff { diff: shown.diff.map(escaped), states }))
    }

    /// The diff of two versions of a file.
    pub(crate) fn compare(&self, journals: &[Journal], versions: Versions) -> Result<Diff, String> {
        let Versions { path, from, to } = versions;
        let of_file = |entry: &Entry| entry.path == path || entry.moved_to.as_ref() == Some(&path);
        let found = self.find_by(journals, of_file)?;
        let (_, session) = found.ok_or("the journal has no change of this file")?;
        let compare = Compare::new(path.clone(), from.into(), to.into());
        let compared = perform(&session, &compare)?;
        Ok(Diff { diff: compared.diff.map(escaped), states: compared.states })
    }
}

/// Performs an operation that changes nothing, for the user. The error is a sentence with a hint.
fn perform<O: Operation>(session: &Session, operation: &O) -> Result<O::Outcome, String> {
    let call = CallOptions::default().with_tool("page");
    let done = session.perform_with(operation, &call);
    done.map(|done| done.outcome).map_err(|error| error.with_hint())
}

/// A diff with invisible characters escaped.
pub(crate) fn escaped(diff: String) -> String {
    pinfold::escaped_text(diff.as_bytes())
}

impl Query {
    fn matches(&self, entry: &Entry, words: &str) -> bool {
        let has = |text: &str| text.to_lowercase().contains(words);
        self.session.as_ref().is_none_or(|session| *session == entry.session)
            && self.since.is_none_or(|since| entry.time >= since)
            && self.until.is_none_or(|until| entry.time < until)
            && (words.is_empty()
                || has(&entry.path)
                || entry.moved_to.as_deref().is_some_and(has)
                || entry.checkpoint.as_deref().is_some_and(has)
                || has(&entry.tool)
                || entry.session == words
                || entry.id == words)
    }
}

/// The name of a file, which changes while the list is read backwards past a move.
struct FileNames(Option<String>);

impl FileNames {
    fn new(path: Option<&str>) -> Self {
        Self(path.map(str::to_owned))
    }

    /// Whether a change is one of this file, or of a file below this directory.
    fn follow(&mut self, entry: &Entry) -> bool {
        let Some(name) = &self.0 else { return true };
        if entry.moved_to.as_ref() == Some(name) {
            self.0 = Some(entry.path.clone());
            return true;
        }
        let mut paths = [&entry.path].into_iter().chain(&entry.moved_to);
        paths.any(|path| Path::new(path).starts_with(name))
    }
}

/// Merges several journals, newest first.
struct MergedJournals<'j> {
    journals: Vec<Peekable<NewestFirst<'j>>>,
}

impl Iterator for MergedJournals<'_> {
    type Item = Result<(usize, LoggedEntry), String>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut newest: Option<(usize, u64)> = None;
        for (number, journal) in self.journals.iter_mut().enumerate() {
            let time = match journal.peek() {
                Some(Ok(logged)) => logged.entry.time,
                Some(Err(_)) => u64::MAX,
                None => continue,
            };
            if newest.is_none_or(|(_, newest)| time > newest) {
                newest = Some((number, time));
            }
        }
        let number = newest?.0;
        let logged = self.journals[number].next()?;
        Some(logged.map(|it| (number, it)).map_err(|error| format!("the journal: {error}")))
    }
}
