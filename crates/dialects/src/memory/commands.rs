//! The commands of the memory tool.

use pinfold::operations::{Delete, Insert, Move, Parents, RemoveTree};
use pinfold::{Error, ReadBeforeWrite};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::ToolContext;
use crate::answer::Blocks;
use crate::attachment::image;
use crate::change_summary::ChangeSummary;
use crate::file_commands::{CommandFile, line_to_insert_after, required, unknown_command};
use crate::phrases::shortened;
use crate::tool::{Annotations, DispatchTool};

/// Keeps notes for later conversations, as files below `/memories`. `view` shows a file with line
/// numbers, or what is in a directory. `create` makes a new file. `str_replace` replaces text that is
/// in a file exactly once. `insert` adds lines. `delete` removes a file or directory, `rename` moves
/// one.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Memory {
    /// `view`, `create`, `str_replace`, `insert`, `delete` or `rename`.
    command: String,
    /// Path that starts with `/memories`; for all but `rename`.
    path: Option<String>,
    /// For `view`: first and last line; -1 is the end.
    view_range: Option<Vec<i64>>,
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
    /// For `rename`: the path.
    old_path: Option<String>,
    /// For `rename`: the new path.
    new_path: Option<String>,
}

/// The directory's name for models.
const TOP: &str = "/memories";

/// The number of lines shown before and after a change.
const CONTEXT: u64 = 2;

impl DispatchTool for Memory {
    const NAME: &'static str = "memory";
    const TITLE: &'static str = "Memory";
    const ANNOTATIONS: Annotations =
        Annotations { read_only: false, destructive: true, idempotent: false };
    type Reply = Blocks;

    fn perform(&self, ctx: &ToolContext<'_>) -> Result<Blocks, Error> {
        let Some(session) = ctx.session.memory() else {
            let problem = "there is no directory for the memory; tell the user to set `memory`";
            return Err(Error::InvalidArgument(problem.into()));
        };
        let ctx = &ToolContext { session: &session, ..*ctx };
        let done = match self.command.as_str() {
            "view" => self.view(ctx),
            "create" => self.create(ctx).map(Blocks::text),
            "str_replace" => self.replace(ctx).map(Blocks::text),
            "insert" => self.insert(ctx).map(Blocks::text),
            "delete" => self.delete(ctx).map(Blocks::text),
            "rename" => self.rename(ctx).map(Blocks::text),
            other => Err(unknown_command(
                other,
                Self::NAME,
                "view, create, str_replace, insert, delete, rename",
            )),
        };
        done.map_err(with_memory_paths)
    }

    fn error_text(&self, error: &Error, _: &ToolContext<'_>) -> Option<String> {
        if let Error::InvalidArgument(problem) = error {
            let is_range = problem.starts_with("Invalid");
            return Some(if is_range { format!("Error: {problem}") } else { problem.clone() });
        }
        let given = if self.command == "rename" { &self.old_path } else { &self.path };
        let given = given.as_deref().unwrap_or_default();
        let file = memory_file(given).ok()?;
        let (path, old) = (&file.shown, self.old_str.as_deref().unwrap_or_default());
        let command = self.command.as_str();
        let not_there = || format!("Error: The path {path} does not exist");
        Some(match error {
            Error::Outside { path: outside, .. } => {
                let new = self.new_path.as_deref().and_then(|new| memory_file(new).ok());
                let new = new.filter(|new| new.path == *outside).map(|new| new.shown);
                format!("Path {} would escape {TOP} directory", new.as_ref().unwrap_or(path))
            }
            Error::NotFound { .. } | Error::DirectoryNotFound { .. } | Error::Dangling { .. }
                if matches!(command, "insert" | "delete" | "rename") =>
            {
                not_there()
            }
            Error::IsDirectory { .. } if command == "insert" => not_there(),
            Error::IsDirectory { .. } if command == "str_replace" => {
                format!("The path {path} does not exist. Please provide a valid path.")
            }
            Error::Exists { .. } if command == "rename" => {
                let new_path = self.new_path.as_deref().unwrap_or_default();
                let new_path = pinfold::RawPath::from(new_path);
                format!("Error: The destination {new_path} already exists; choose another one")
            }
            Error::Exists { .. } if command == "create" => {
                format!("Error: File {path} already exists; change it with `str_replace`")
            }
            Error::IsDirectory { .. } if command == "create" => {
                format!("Error: File {path} already exists")
            }
            Error::ManyMatches { lines, .. } => {
                let lines: Vec<_> = lines.iter().map(u64::to_string).collect();
                format!(
                    "No replacement was performed. Multiple occurrences of old_str `{old}` in \
                     lines: {}. Please ensure it is unique",
                    lines.join(", ")
                )
            }
            Error::OutOfRange { .. } => {
                format!("Error: {}", file.error_text(error, old, self.insert_line)?)
            }
            other => {
                return file
                    .error_text(other, old, self.insert_line)
                    .or_else(|| Some(self.with_given_paths(other)));
            }
        })
    }

    fn compact_params(&self, _: &ToolContext<'_>) -> String {
        let paths = [&self.path, &self.old_path, &self.new_path].into_iter().flatten();
        let paths = paths.map(|path| format!(" {}", shortened(path).escape_debug()));
        format!("{}{}", shortened(&self.command).escape_debug(), paths.collect::<String>())
    }
}

/// The file at a path below `/memories`.
fn memory_file(path: &str) -> Result<CommandFile, Error> {
    let below = path.strip_prefix(TOP).filter(|below| below.is_empty() || below.starts_with('/'));
    let below = below.ok_or_else(|| Error::InvalidArgument(not_in_memory(path)))?;
    let below = below.trim_start_matches('/');
    let shown = pinfold::RawPath::from(path).to_string();
    Ok(CommandFile { path: if below.is_empty() { "." } else { below }.into(), shown })
}

fn not_in_memory(path: &str) -> String {
    format!("Path must start with {TOP}, got: {}", pinfold::RawPath::from(shortened(path)))
}

/// The same error, with paths as the model knows them.
fn with_memory_paths(error: Error) -> Error {
    let named = |near: Vec<String>| near.iter().map(|name| format!("{TOP}/{name}")).collect();
    match error {
        Error::NotFound { path, near } => Error::NotFound { path, near: named(near) },
        Error::DirectoryNotFound { path, near } => {
            Error::DirectoryNotFound { path, near: named(near) }
        }
        // It may be about something in the directory that was given.
        Error::Denied { path, access, denial } => {
            Error::Denied { path: format!("{TOP}/{path}").into(), access, denial }
        }
        other => other,
    }
}

impl Memory {
    /// The error message, with paths as the model gave them.
    fn with_given_paths(&self, error: &Error) -> String {
        let given = [&self.path, &self.old_path, &self.new_path].into_iter().flatten();
        let files = given.filter_map(|given| memory_file(given).ok());
        files.fold(error.to_string(), |text, CommandFile { path, shown }| {
            text.replace(&format!("`{path}`"), &format!("`{shown}`"))
        })
    }

    fn file(&self) -> Result<CommandFile, Error> {
        memory_file(required(&self.command, "path", self.path.as_deref())?)
    }

    fn view(&self, ctx: &ToolContext<'_>) -> Result<Blocks, Error> {
        let file = self.file()?;
        let heading = format!("Here's the content of {} with line numbers:", file.shown);
        match file.view(&heading, self.view_range.as_deref(), ctx) {
            Err(Error::IsDirectory { .. }) if self.view_range.is_none() => {
                super::list::list(&file, ctx).map(Blocks::text)
            }
            Err(Error::IsDirectory { .. }) => Err(Error::InvalidArgument(
                "The `view_range` parameter is not allowed when `path` points to a directory."
                    .into(),
            )),
            Err(error @ Error::Binary { .. }) => match image(&file.path, ctx)? {
                Some(block) => Ok(Blocks { content: vec![block], ..Blocks::default() }),
                None => Err(error),
            },
            other => other.map(Blocks::text),
        }
    }

    fn create(&self, ctx: &ToolContext<'_>) -> Result<String, Error> {
        let text = required(&self.command, "file_text", self.file_text.as_deref())?;
        self.file()?.create(text, Parents::Make, ctx)
    }

    fn replace(&self, ctx: &ToolContext<'_>) -> Result<String, Error> {
        let old = required(&self.command, "old_str", self.old_str.as_deref())?;
        let new = self.new_str.as_deref().unwrap_or_default();
        let words = |snippet: &str| {
            format!(
                "The memory file has been edited. Here is the snippet showing the change (with \
                 line numbers):\n{}",
                snippet.strip_suffix('\n').unwrap_or(snippet)
            )
        };
        self.file()?.replace(old, new, CONTEXT, words, ctx)
    }

    fn insert(&self, ctx: &ToolContext<'_>) -> Result<String, Error> {
        let line = required(&self.command, "insert_line", self.insert_line.as_ref())?;
        let line = line_to_insert_after(*line);
        let text = required(&self.command, "insert_text", self.insert_text.as_deref())?;
        let file = self.file()?;
        let insert = Insert::new(file.path.clone(), line, text)
            .with_read_rule(ctx.read_rule(ReadBeforeWrite::Off));
        file.insert(insert, |_| format!("The file {} has been edited.", file.shown), ctx)
    }

    fn delete(&self, ctx: &ToolContext<'_>) -> Result<String, Error> {
        let file = self.file()?;
        refuse_top(&file, "delete")?;
        let words = format!("Successfully deleted {}", file.shown);
        match ctx.session.perform_with(&Delete::new(file.path.clone()), ctx.call) {
            Ok(done) => Ok(ChangeSummary::of_delete(&done, &file.shown).after(words)),
            Err(Error::IsDirectory { .. }) => {
                let done = ctx.session.perform_with(&RemoveTree::new(file.path), ctx.call)?;
                Ok(ChangeSummary::of_tree_removal(&done, &file.shown).after(words))
            }
            Err(other) => Err(other),
        }
    }

    fn rename(&self, ctx: &ToolContext<'_>) -> Result<String, Error> {
        let from = memory_file(required(&self.command, "old_path", self.old_path.as_deref())?)?;
        let to = memory_file(required(&self.command, "new_path", self.new_path.as_deref())?)?;
        refuse_top(&from, "rename")?;
        let done = ctx.session.perform_with(&Move::new(from.path, to.path), ctx.call)?;
        let words = format!("Successfully renamed {} to {}", from.shown, to.shown);
        Ok(ChangeSummary::of_move(&done, &from.shown, &to.shown).after(words))
    }
}

/// Refuses to remove or move the directory itself.
fn refuse_top(file: &CommandFile, command: &str) -> Result<(), Error> {
    if file.path.as_str() == "." {
        let problem = format!("Cannot {command} the {TOP} directory itself");
        return Err(Error::InvalidArgument(problem));
    }
    Ok(())
}
