//! The commands of the text editor tool.

use std::borrow::Cow;

use pinfold::operations::{Insert, Parents, Undo};
use pinfold::{Error, ReadBeforeWrite, State};
use schemars::generate::SchemaGenerator;
use schemars::{JsonSchema, Schema};
use serde::Deserialize;

use crate::ToolContext;
use crate::change_summary::ChangeSummary;
use crate::file_commands::{CommandFile, line_to_insert_after, required, unknown_command};
use crate::tool::{Annotations, DispatchTool};
use crate::tool_context::RelativePath;

/// Views, creates and edits text files. `view` shows a file with line numbers, or what is in a
/// directory, two levels deep. `create` makes a new file. `str_replace` replaces text that is in the
/// file exactly once. `insert` adds lines; the file must have been viewed before.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// `view`, `create`, `str_replace` or `insert`.
    pub(super) command: String,
    /// Absolute path, or relative to the workspace root.
    pub(super) path: RelativePath,
    /// For `view`: first and last line; -1 is the end.
    pub(super) view_range: Option<Vec<i64>>,
    /// For `create`: the content.
    #[schemars(length(min = 0))]
    file_text: Option<String>,
    /// For `str_replace`: the text to replace, exactly as it is in the file.
    #[schemars(length(min = 0))]
    old_str: Option<String>,
    /// For `str_replace`: the new text; left out, the old is deleted.
    new_str: Option<String>,
    /// For `insert`: the line to insert after; 0 is the top.
    insert_line: Option<i64>,
    /// For `insert`: the lines.
    #[schemars(length(min = 0))]
    insert_text: Option<String>,
}

/// The tool, with or without `undo_edit`.
#[derive(Deserialize)]
#[serde(transparent)]
pub(super) struct Editor<const UNDO: bool>(Arguments);

impl<const UNDO: bool> JsonSchema for Editor<UNDO> {
    fn schema_name() -> Cow<'static, str> {
        Self::NAME.into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = Arguments::json_schema(generator);
        if UNDO && let Some(command) = schema.pointer_mut("/properties/command/description") {
            *command = "`view`, `create`, `str_replace`, `insert`, or `undo_edit`, which undoes \
                        the last change of the file."
                .into();
        }
        schema
    }
}

/// The number of lines shown before and after a change.
const CONTEXT: u64 = 4;

impl<const UNDO: bool> DispatchTool for Editor<UNDO> {
    const NAME: &'static str =
        if UNDO { "str_replace_editor" } else { "str_replace_based_edit_tool" };
    const TITLE: &'static str = "Text editor";
    const ANNOTATIONS: Annotations =
        Annotations { read_only: false, destructive: true, idempotent: false };
    type Reply = String;

    fn perform(&self, ctx: &ToolContext<'_>) -> Result<String, Error> {
        let arguments = &self.0;
        match arguments.command.as_str() {
            "view" => arguments.view(ctx),
            "create" => arguments.create(ctx),
            "str_replace" => arguments.replace(ctx),
            "insert" => arguments.insert(ctx),
            "undo_edit" if UNDO => arguments.undo(ctx),
            other => {
                let undo = if UNDO { ", undo_edit" } else { "" };
                let commands = format!("view, create, str_replace, insert{undo}");
                Err(unknown_command(other, Self::NAME, &commands))
            }
        }
    }

    fn error_text(&self, error: &Error, _: &ToolContext<'_>) -> Option<String> {
        self.0.error_text(error)
    }

    fn compact_params(&self, ctx: &ToolContext<'_>) -> String {
        let path = ctx.short_path(self.0.path.as_str());
        format!("{} {path}", crate::phrases::shortened(&self.0.command).escape_debug())
    }
}

impl Arguments {
    pub(super) fn file(&self) -> Result<CommandFile, Error> {
        let path = self.path.raw()?;
        Ok(CommandFile { shown: path.to_string(), path })
    }

    fn create(&self, ctx: &ToolContext<'_>) -> Result<String, Error> {
        let text = required(&self.command, "file_text", self.file_text.as_deref())?;
        self.file()?.create(text, Parents::Refuse, ctx)
    }

    fn replace(&self, ctx: &ToolContext<'_>) -> Result<String, Error> {
        let old = required(&self.command, "old_str", self.old_str.as_deref())?;
        let (new, file) = (self.new_str.as_deref().unwrap_or_default(), self.file()?);
        let words = |snippet: &str| edited(&file.shown, &file.shown, snippet);
        file.replace(old, new, CONTEXT, words, ctx)
    }

    fn insert(&self, ctx: &ToolContext<'_>) -> Result<String, Error> {
        let line = required(&self.command, "insert_line", self.insert_line.as_ref())?;
        let line = line_to_insert_after(*line);
        let text = self.insert_text.as_deref().or(self.new_str.as_deref());
        let (text, file) = (required(&self.command, "insert_text", text)?, self.file()?);
        let insert = Insert::new(file.path.clone(), line, text)
            .with_read_rule(ctx.read_rule(ReadBeforeWrite::Require))
            .with_snippet(Some(CONTEXT));
        file.insert(insert, |snippet| edited(&file.shown, "the edited file", snippet), ctx)
    }

    fn undo(&self, ctx: &ToolContext<'_>) -> Result<String, Error> {
        let file = self.file()?;
        let undo = Undo::of_file(file.path.clone());
        let done = ctx.session.perform_with(&undo, ctx.call)?;
        let path = &file.shown;
        let undone = format!("Last edit to {path} undone successfully.");
        let words = if done.outcome.entry.before == State::Absent {
            format!("{undone} The file is removed: it was created by that edit.")
        } else {
            format!("{undone} {}", file.view(&heading(&file), None, ctx)?)
        };
        Ok(ChangeSummary::of_undo(&done, path).after(words))
    }

    fn error_text(&self, error: &Error) -> Option<String> {
        let file = self.file().ok()?;
        let (path, old) = (&file.shown, self.old_str.as_deref().unwrap_or_default());
        Some(match error {
            Error::Exists { .. } => format!(
                "File already exists at: {path}. Cannot overwrite files using command `create`. \
                 Change it with `str_replace` or `insert`."
            ),
            Error::IsDirectory { .. } if self.command == "create" => format!(
                "File already exists at: {path}. Cannot overwrite files using command `create`."
            ),
            Error::IsDirectory { .. } => format!(
                "The path {path} is a directory and only the `view` command can be used on directories"
            ),
            Error::ManyMatches { lines, .. } => format!(
                "No replacement was performed. Multiple occurrences of old_str `{old}` in lines \
                 {lines:?}. Please ensure it is unique"
            ),
            Error::NothingToUndo { .. } => format!("No edit history found for {path}."),
            Error::NotAsLeft { what, .. } => {
                format!("The last edit to {path} cannot be undone: {what}.")
            }
            Error::Outside { roots, .. } => {
                format!(
                    "The path {path} is outside the workspace, which is {}",
                    roots.join(" and ")
                )
            }
            other => return file.error_text(other, old, self.insert_line),
        })
    }
}

/// The text before the lines of a file.
pub(super) fn heading(file: &CommandFile) -> String {
    format!("Here's the result of running `cat -n` on {}:", file.shown)
}

/// The answer to an edit: the snippet, and the advice to look at it.
fn edited(path: &str, snippet_of: &str, snippet: &str) -> String {
    let end = if snippet.ends_with('\n') || snippet.is_empty() { "" } else { "\n" };
    format!(
        "The file {path} has been edited. Here's the result of running `cat -n` on a snippet of \
         {snippet_of}:\n{snippet}{end}Check that the snippet is as intended, and edit the file \
         again if it is not."
    )
}
