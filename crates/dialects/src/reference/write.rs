//! `write_file`, `create_directory` and `move_file`

use pinfold::operations::{self, Info, Parents};
use pinfold::{Done, Error, ReadBeforeWrite};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::change_summary::ChangeSummary;
use crate::reference::Text;
use crate::reference::error_text::SystemCall;
use crate::reference::path::ReferencePath;
use crate::{Tool, ToolContext};

/// Creates a file, or replaces all of its content. Its directory must exist.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WriteFile {
    /// Absolute or relative path.
    path: ReferencePath,
    /// The whole content.
    content: String,
}

impl Tool for WriteFile {
    const NAME: &'static str = "write_file";
    const TITLE: &'static str = "Write File";
    const IDEMPOTENT: bool = true;
    type Op = operations::Write;
    type Reply = Text;

    fn operation(&self, ctx: &ToolContext<'_>) -> Result<operations::Write, Error> {
        Ok(operations::Write::new(self.path.raw(), self.content.as_str())
            .with_parents(Parents::Refuse)
            .with_counts_lines(false)
            .with_keeps_line_hashes(ctx.requires_reads)
            .with_read_rule(ctx.read_rule(ReadBeforeWrite::Off)))
    }

    fn reply(&self, done: Done<operations::Write>, _: &ToolContext<'_>) -> Text {
        let path = self.path.shown();
        let words = format!("Successfully wrote to {path}");
        ChangeSummary::of_write(&done, &path).after(words).into()
    }

    fn error_text(&self, error: &Error, ctx: &ToolContext<'_>) -> Option<String> {
        // The original writes a file beside it, and fails when it renames that file.
        let call = if matches!(error, Error::IsDirectory { .. }) { "rename" } else { "open" };
        SystemCall::Of(call, &self.path).error_text(error, ctx)
    }

    fn compact_params(&self, ctx: &ToolContext<'_>) -> String {
        ctx.short_path(self.path.as_str())
    }
}

/// Creates a directory and those above it. If it exists, that is fine.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CreateDirectory {
    /// Absolute or relative path.
    path: ReferencePath,
}

impl Tool for CreateDirectory {
    const NAME: &'static str = "create_directory";
    const TITLE: &'static str = "Create Directory";
    const IDEMPOTENT: bool = true;
    const DESTRUCTIVE: bool = false;
    type Op = operations::Mkdir;
    type Reply = Text;

    fn operation(&self, _: &ToolContext<'_>) -> Result<operations::Mkdir, Error> {
        Ok(operations::Mkdir::new(self.path.raw()))
    }

    fn reply(&self, done: Done<operations::Mkdir>, _: &ToolContext<'_>) -> Text {
        let path = self.path.shown();
        let words = format!("Successfully created directory {path}");
        ChangeSummary::of_mkdir(&done, &path).after(words).into()
    }

    fn error_text(&self, error: &Error, ctx: &ToolContext<'_>) -> Option<String> {
        let call = SystemCall::Of("mkdir", &self.path);
        let path = self.path.raw();
        match error {
            // Something is at the path itself, not only a file above it.
            Error::NotADirectory { .. }
                if ctx.session.perform(&Info::new(path.clone())).is_ok() =>
            {
                call.error_text(&Error::Exists { path }, ctx)
            }
            _ => call.error_text(error, ctx),
        }
    }

    fn compact_params(&self, ctx: &ToolContext<'_>) -> String {
        ctx.short_path(self.path.as_str())
    }
}

/// Moves or renames a file or directory. The destination must not exist, its directory must.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MoveFile {
    /// What to move.
    source: ReferencePath,
    /// Its new path.
    destination: ReferencePath,
}

impl Tool for MoveFile {
    const NAME: &'static str = "move_file";
    const TITLE: &'static str = "Move File";
    const IDEMPOTENT: bool = false;
    type Op = operations::Move;
    type Reply = Text;

    fn operation(&self, _: &ToolContext<'_>) -> Result<operations::Move, Error> {
        let (from, to) = (self.source.raw(), self.destination.raw());
        Ok(operations::Move::new(from, to).with_parents(Parents::Refuse))
    }

    fn reply(&self, done: Done<operations::Move>, _: &ToolContext<'_>) -> Text {
        let (from, to) = (self.source.shown(), self.destination.shown());
        let words = format!("Successfully moved {from} to {to}");
        ChangeSummary::of_move(&done, &from, &to).after(words).into()
    }

    fn error_text(&self, error: &Error, ctx: &ToolContext<'_>) -> Option<String> {
        SystemCall::Rename(&self.source, &self.destination).error_text(error, ctx)
    }

    fn compact_params(&self, ctx: &ToolContext<'_>) -> String {
        let [from, to] =
            [&self.source, &self.destination].map(|path| ctx.short_path(path.as_str()));
        format!("{from} → {to}")
    }
}
