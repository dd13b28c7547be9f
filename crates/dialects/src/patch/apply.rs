//! `apply_patch`

use pinfold::operations::{
    AfterUpdate, ChangeFiles, Existing, FileChange, FileOutcome, Update, Write,
};
use pinfold::patch::{FilePatch, Patch};
use pinfold::{Done, Error, ReadBeforeWrite};
use schemars::JsonSchema;
use serde::Deserialize;

use super::error_text;
use crate::change_summary::{ChangeSummary, PatchNotes};
use crate::tool_context::raw_path;
use crate::{Tool, ToolContext};

/// Changes files by one patch: adds, deletes, updates and moves any number of them, all or none.
///
/// The patch begins with `*** Begin Patch` and ends with `*** End Patch`. In between, each file has a line `*** Add
/// File: PATH`, followed by its lines with `+` in front; `*** Delete File: PATH`; or `*** Update File: PATH`, which
/// `*** Move to: PATH` may follow, and then chunks.
///
/// A chunk begins with `@@`, or with `@@ ` and a line that is in the file once above the change, such as the head of
/// the function. Its lines begin with a blank (stays), `-` (goes) or `+` (is new): three lines of context around
/// a change are enough. They must be unique in the file. `*** End of File` after them says that they end it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApplyPatch {
    /// The whole patch.
    input: String,
    #[serde(skip)]
    notation: Notation,
}

/// The accepted notations.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Notation {
    /// Codex's.
    #[default]
    Codex,
    /// Codex's, and unified diffs.
    Any,
}

impl ApplyPatch {
    pub(crate) fn new(input: String, notation: Notation) -> Self {
        Self { input, notation }
    }

    fn is_unified(&self) -> bool {
        self.notation == Notation::Any && !Patch::is_codex(&self.input)
    }

    fn patch(&self) -> Result<Patch, Error> {
        if self.is_unified() {
            Patch::parse_unified(&self.input).map_err(|error| error_text::unified_error(&error))
        } else {
            Patch::parse(&self.input).map_err(|error| error_text::parse_error(&error))
        }
    }

    /// Converts a part of the patch to a change.
    fn change(&self, file: &FilePatch, ctx: &ToolContext<'_>) -> Result<FileChange, Error> {
        let path = raw_path(file.path())?;
        Ok(match file {
            FilePatch::Add { content, mode, .. } => {
                // A unified diff names the file that it changes, so the file is not new.
                let unified = self.is_unified();
                let existing = if unified { Existing::Refuse } else { Existing::Replace };
                let write = Write::new(path, content.as_str())
                    .with_existing(existing)
                    .with_mode(*mode)
                    .with_read_rule(ctx.read_rule(ReadBeforeWrite::Require));
                FileChange::Write(write)
            }
            FilePatch::Delete { chunks, .. } => FileChange::Update(
                Update::new(path, chunks.clone()).with_after(AfterUpdate::Delete),
            ),
            FilePatch::Update { move_to, chunks, .. } => {
                let after = match move_to {
                    Some(to) => AfterUpdate::MoveTo(raw_path(to)?),
                    None => AfterUpdate::Stay,
                };
                FileChange::Update(Update::new(path, chunks.clone()).with_after(after))
            }
        })
    }
}

impl Tool for ApplyPatch {
    const NAME: &'static str = "apply_patch";
    const TITLE: &'static str = "Apply patch";
    const IDEMPOTENT: bool = false;
    type Op = ChangeFiles;
    type Reply = String;

    fn operation(&self, ctx: &ToolContext<'_>) -> Result<ChangeFiles, Error> {
        let patch = self.patch()?;
        if patch.files.is_empty() {
            return Err(Error::NoChange { number: None });
        }
        if let Some(path) = patch.repeated_path() {
            return Err(Error::ChangedTwice { path: path.into() });
        }
        let changes = patch.files.iter().map(|file| self.change(file, ctx));
        Ok(ChangeFiles::new(changes.collect::<Result<Vec<_>, _>>()?))
    }

    fn reply(&self, done: Done<ChangeFiles>, _: &ToolContext<'_>) -> String {
        let files = self.patch().map(|patch| patch.files).unwrap_or_default();
        let several = files.len() > 1;
        let mut notes = PatchNotes::default();
        let mut lines = Vec::new();
        for (file, outcome) in files.iter().zip(&done.outcome.outcomes) {
            lines.push(line(file, outcome));
            note(file, outcome, several, &mut notes);
        }
        // Added files come first, then changed ones, then deleted ones.
        lines.sort_by_key(|(mark, _)| "AMD".find(*mark));
        let list: Vec<_> = lines.iter().map(|(mark, path)| format!("{mark} {path}")).collect();
        let list = list.join("\n");
        let summary = ChangeSummary::of_patch(&done, &list, notes);
        let text = summary.after(format!("Success. Updated the following files:\n{list}"));
        if text.ends_with('\n') { text } else { text + "\n" }
    }

    fn error_text(&self, error: &Error, _: &ToolContext<'_>) -> Option<String> {
        error_text::error_text(error, &self.patch().ok()?)
    }

    fn compact_params(&self, ctx: &ToolContext<'_>) -> String {
        /// The maximum number of named paths. A patch can have hundreds.
        const MAX_PATHS: usize = 3;
        let Ok(patch) = self.patch() else { return "(not a patch)".into() };
        let named = patch.files.iter().take(MAX_PATHS).map(|file| ctx.short_path(file.path()));
        let named = named.collect::<Vec<_>>().join(", ");
        match patch.files.len().saturating_sub(MAX_PATHS) {
            0 => named,
            more => format!("{named} and {more} more"),
        }
    }
}

/// The status letter of a file in the answer, and its path.
fn line<'f>(file: &'f FilePatch, outcome: &FileOutcome) -> (char, &'f str) {
    match (file, outcome) {
        (FilePatch::Add { path, .. }, FileOutcome::Write(written)) if written.created => {
            ('A', path)
        }
        (FilePatch::Delete { path, .. }, _) => ('D', path),
        (FilePatch::Update { path, move_to, .. }, _) => ('M', move_to.as_ref().unwrap_or(path)),
        (FilePatch::Add { path, .. }, _) => ('M', path),
    }
}

/// Adds notes on a file.
fn note(file: &FilePatch, outcome: &FileOutcome, several: bool, notes: &mut PatchNotes) {
    let path = file.path();
    let (changed, other_names) = match outcome {
        FileOutcome::Write(written) => (written.changed, written.other_names),
        FileOutcome::Update(updated) => {
            let of_several = several.then(|| path.to_owned());
            let lenient = updated.lenient.iter();
            notes.lenient.extend(lenient.map(|(kind, lines)| (*kind, of_several.clone(), *lines)));
            (updated.changed, updated.other_names)
        }
        _ => (true, 0),
    };
    notes.other_names += other_names;
    match file {
        FilePatch::Update { move_to: Some(_), .. } => {}
        FilePatch::Update { mode: Some(mode), .. } => {
            notes.notices.push(format!("{path} keeps its mode; the patch gives it {mode:o}"));
        }
        _ if !changed => notes.notices.push(format!("{path} already has this content")),
        _ => {}
    }
}
