//! Undoes changes of the journal, or shows what would be undone and refused.

use pinfold::operations::{RevertedPath, Rewind, RewindScope, Undo};
use pinfold::{CallOptions, Entry, Error, Journal};
use serde::{Deserialize, Serialize};

use crate::history::{History, escaped};

/// A request to undo changes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UndoRequest {
    what: UndoSubject,
    /// Whether this is only a preview.
    preview: bool,
    /// Whether files that were changed since are skipped. Otherwise nothing is undone if there is one. The changes of
    /// a set are always undone as a whole.
    #[serde(default)]
    leave_out: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum UndoSubject {
    /// A change by its id, with all changes of its set.
    Change(String),
    /// All changes of a session, by its id.
    Session(String),
}

/// The result of an undo, or of its dry run.
#[derive(Default, Serialize)]
pub(crate) struct UndoOutcome {
    files: Vec<File>,
    refused: Vec<RefusedFile>,
    /// The diff, with invisible characters escaped.
    diff: Option<String>,
    /// The id of the undo in the journal, so that it can be undone.
    id: Option<String>,
}

/// A file whose change is undone.
#[derive(Serialize)]
struct File {
    path: String,
    /// `restored`, `removed`, `created again` or `moved back`.
    what: &'static str,
    /// The path that it is moved back to.
    back_to: Option<String>,
    /// The numbers of added and removed lines, if both versions are text.
    lines: Option<(usize, usize)>,
}

/// A file whose change is not undone, and the reason.
#[derive(Serialize)]
struct RefusedFile {
    path: String,
    why: String,
}

impl History {
    pub(crate) fn undo(
        &self,
        journals: &[Journal],
        request: UndoRequest,
    ) -> Result<UndoOutcome, String> {
        let UndoRequest { what, preview, leave_out } = request;
        let call = CallOptions::default().with_tool("undo").with_dry_run(preview);
        match what {
            UndoSubject::Change(id) => self.undo_change(journals, id, &call),
            UndoSubject::Session(id) => self.undo_session(journals, id, leave_out, &call),
        }
    }

    fn undo_change(
        &self,
        journals: &[Journal],
        id: String,
        call: &CallOptions,
    ) -> Result<UndoOutcome, String> {
        let (logged, session) = self.find(journals, &id)?;
        match session.perform_with(&Undo::change(id), call) {
            Ok(done) => {
                let files = self.together(journals, &logged.entry)?;
                let diff = done.receipt.diff.map(escaped);
                Ok(UndoOutcome { files, diff, id: done.receipt.id, ..UndoOutcome::default() })
            }
            Err(error) => Ok(refused(&logged.entry, &error)),
        }
    }

    fn undo_session(
        &self,
        journals: &[Journal],
        id: String,
        leave_out: bool,
        call: &CallOptions,
    ) -> Result<UndoOutcome, String> {
        let found = self.find_by(journals, |entry| entry.session == id)?;
        let (_, session) = found.ok_or("the journal has no change of this session any more")?;
        let rewind = Rewind::all().with_scope(RewindScope::Session(id));
        let rewind = rewind.with_leave_out_conflicts(leave_out);
        let done = session.perform_with(&rewind, call).map_err(|error| error.with_hint())?;
        let conflicts = done.outcome.conflicts.into_iter();
        Ok(UndoOutcome {
            files: done.outcome.files.into_iter().map(File::from).collect(),
            refused: conflicts
                .map(|it| RefusedFile { path: it.path, why: it.why.into() })
                .collect(),
            diff: done.receipt.diff.map(escaped),
            id: done.receipt.id,
        })
    }

    /// Undoes a change with all changes of its set.
    fn together(&self, journals: &[Journal], entry: &Entry) -> Result<Vec<File>, String> {
        let Some(group) = &entry.group else { return Ok(vec![File::of(entry)]) };
        let mut files = Vec::new();
        for logged in self.newest_first(journals)? {
            let (_, logged) = logged?;
            // The entries of a set are adjacent.
            match logged.entry.group.as_ref() {
                Some(other) if other == group => files.push(File::of(&logged.entry)),
                _ if files.is_empty() => {}
                _ => break,
            }
        }
        Ok(files)
    }
}

impl File {
    /// Undoes one change.
    fn of(entry: &Entry) -> Self {
        let what = match entry.kind() {
            "created" => "removed",
            "deleted" => "created again",
            "moved" => "moved back",
            _ => "restored",
        };
        let back_to = entry.moved_to.as_ref().map(|_| entry.path.clone());
        let path = entry.moved_to.as_ref().unwrap_or(&entry.path).clone();
        Self { path, what, back_to, lines: None }
    }
}

impl From<RevertedPath> for File {
    fn from(taken: RevertedPath) -> Self {
        let RevertedPath { path, what, back_to, lines, .. } = taken;
        Self { path, what, back_to, lines }
    }
}

fn refused(entry: &Entry, error: &Error) -> UndoOutcome {
    let (path, why) = match error {
        Error::NotAsLeft { path, what } => (path.as_str().to_owned(), (*what).to_owned()),
        other => (entry.path.clone(), other.with_hint()),
    };
    UndoOutcome { refused: vec![RefusedFile { path, why }], ..UndoOutcome::default() }
}
