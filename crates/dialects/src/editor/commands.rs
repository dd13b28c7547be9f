//! The commands of the text editor tool.

use std::borrow::Cow;

use pinfold::operations::{Edit, Existing, Insert, Parents, Undo, Write};
use pinfold::{Error, MatchMode, ReadRule, Replacement, State};
use schemars::generate::SchemaGenerator;
use schemars::{JsonSchema, Schema};
use serde::Deserialize;

use crate::ToolContext;
use crate::change_summary::ChangeSummary;
use crate::tool::{DispatchTool, Hints};
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
    insert_line: Option<u64>,
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

/// Lines that are shown before and after a change.
const CONTEXT: u64 = 4;

impl<const UNDO: bool> DispatchTool for Editor<UNDO> {
    const NAME: &'static str =
        if UNDO { "str_replace_editor" } else { "str_replace_based_edit_tool" };
    const TITLE: &'static str = "Text editor";
    const HINTS: Hints = Hints { read_only: false, destructive: true, idempotent: false };
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
                Err(Error::InvalidArgument(format!(
                    "Unrecognized command {}. The allowed commands for the {} tool are: view, \
                     create, str_replace, insert{undo}",
                    crate::words::brief(other),
                    Self::NAME,
                )))
            }
        }
    }

    fn problem(&self, error: &Error, ctx: &ToolContext<'_>) -> Option<String> {
        self.0.problem(error, ctx)
    }

    fn compact(&self, ctx: &ToolContext<'_>) -> String {
        let path = ctx.brief(self.0.path.as_str());
        format!("{} {path}", crate::words::brief(&self.0.command).escape_debug())
    }
}

impl Arguments {
    /// The path, as it is repeated in answers.
    pub(super) fn shown_path(&self) -> Result<String, Error> {
        Ok(self.path.raw()?.to_string())
    }

    /// An argument that the command cannot do without.
    fn required<'a, T: ?Sized>(&self, name: &str, value: Option<&'a T>) -> Result<&'a T, Error> {
        value.ok_or_else(|| {
            let command = &self.command;
            let problem = format!("Parameter `{name}` is required for command: {command}");
            Error::InvalidArgument(problem)
        })
    }

    fn create(&self, ctx: &ToolContext<'_>) -> Result<String, Error> {
        let text = self.required("file_text", self.file_text.as_deref())?;
        let write = Write::new(self.path.raw()?, text)
            .with_parents(Parents::Refuse)
            .with_existing(Existing::Refuse);
        let done = ctx.session.perform_with(&write, ctx.call)?;
        let path = self.shown_path()?;
        let words = format!("File created successfully at: {path}");
        Ok(ChangeSummary::of_write(&done, &path).after(words))
    }

    fn replace(&self, ctx: &ToolContext<'_>) -> Result<String, Error> {
        let old = self.required("old_str", self.old_str.as_deref())?.to_owned();
        let new = self.new_str.clone().unwrap_or_default();
        let edit = Edit::all(self.path.raw()?, vec![Replacement { old, new, all: false }])
            .with_matching(MatchMode::Lenient)
            .with_read_rule(ctx.read_rule(ReadRule::Off))
            .with_may_create(false)
            .with_snippet(Some(CONTEXT));
        let done = ctx.session.perform_with(&edit, ctx.call)?;
        let path = self.shown_path()?;
        let snippet = done.outcome.snippet.as_deref().unwrap_or_default();
        let words = edited(&path, &path, snippet);
        Ok(ChangeSummary::of_edit(&done, &path).after(words))
    }

    fn insert(&self, ctx: &ToolContext<'_>) -> Result<String, Error> {
        let line = *self.required("insert_line", self.insert_line.as_ref())?;
        let text = self.insert_text.as_deref().or(self.new_str.as_deref());
        let text = self.required("insert_text", text)?;
        let insert = Insert::new(self.path.raw()?, line, text)
            .with_read_rule(ctx.read_rule(ReadRule::Require))
            .with_snippet(Some(CONTEXT));
        let done = ctx.session.perform_with(&insert, ctx.call)?;
        let path = self.shown_path()?;
        let snippet = done.outcome.snippet.as_deref().unwrap_or_default();
        let words = edited(&path, "the edited file", snippet);
        Ok(ChangeSummary::of_insert(&done, &path).after(words))
    }

    fn undo(&self, ctx: &ToolContext<'_>) -> Result<String, Error> {
        let undo = Undo::of_file(self.path.raw()?);
        let done = ctx.session.perform_with(&undo, ctx.call)?;
        let path = self.shown_path()?;
        let undone = format!("Last edit to {path} undone successfully.");
        let words = if done.outcome.entry.before == State::Absent {
            format!("{undone} The file is removed: it was created by that edit.")
        } else {
            format!("{undone} {}", self.whole_file(ctx)?)
        };
        Ok(ChangeSummary::of_undo(&done, &path).after(words))
    }

    fn problem(&self, error: &Error, _: &ToolContext<'_>) -> Option<String> {
        let path = self.shown_path().ok()?;
        let old = self.old_str.as_deref().unwrap_or_default();
        let ran_into = |to: &str| format!("Ran into {error} while trying to {to} {path}");
        Some(match error {
            Error::InvalidArgument(problem) => problem.clone(),
            Error::NotFound { .. } | Error::DirectoryNotFound { .. } | Error::Dangling { .. } => {
                format!("The path {path} does not exist. Please provide a valid path.")
            }
            Error::Exists { .. } | Error::IsDirectory { .. } if self.command == "create" => {
                format!(
                    "File already exists at: {path}. Cannot overwrite files using command `create`."
                )
            }
            Error::IsDirectory { .. } => format!(
                "The path {path} is a directory and only the `view` command can be used on directories"
            ),
            Error::OutOfRange { first, total, .. } => format!(
                "Invalid `insert_line` parameter: {first}. It should be within the range of lines \
                 of the file: [0, {total}]"
            ),
            Error::NoMatch { .. } => format!(
                "No replacement was performed, old_str `{old}` did not appear verbatim in {path}."
            ),
            Error::ManyMatches { lines, .. } => format!(
                "No replacement was performed. Multiple occurrences of old_str `{old}` in lines \
                 {lines:?}. Please ensure it is unique"
            ),
            Error::EmptyOld { .. } => {
                format!("No replacement was performed. old_str is empty, and {path} is not.")
            }
            Error::NoChange { .. } => {
                "No replacement was performed. old_str and new_str are the same.".into()
            }
            Error::NothingToUndo { .. } => format!("No edit history found for {path}."),
            Error::Binary { .. } | Error::NotRegular { .. } | Error::ReadFailed { .. } => {
                ran_into("read")
            }
            Error::ParentMissing { .. } | Error::WriteFailed { .. } | Error::NoSpace { .. } => {
                ran_into("write to")
            }
            _ => return None,
        })
    }
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
