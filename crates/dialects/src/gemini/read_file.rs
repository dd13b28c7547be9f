//! `read_file`

use pinfold::operations::{PastEnd, Read};
use pinfold::{Error, Page, PageEnd};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::ToolContext;
use crate::answer::{Block, Blocks};
use crate::attachment::attachment;
use crate::limits;
use crate::phrases::malformed;
use crate::tool::{Annotations, DispatchTool};
use crate::tool_context::RelativePath;

/// Reads a file: text as it is, without line numbers; images, PDFs and audio as attachments. A long
/// one is shown in part, and the answer says how to go on.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadFile {
    /// Absolute path, or relative to the workspace root.
    file_path: RelativePath,
    /// First line, counting from 1.
    #[schemars(range(min = 1))]
    start_line: Option<u64>,
    /// Last line, included. At most 2000 lines are shown if it is left out.
    #[schemars(range(min = 1))]
    end_line: Option<u64>,
}

impl DispatchTool for ReadFile {
    const NAME: &'static str = "read_file";
    const TITLE: &'static str = "Read file";
    const ANNOTATIONS: Annotations =
        Annotations { read_only: true, destructive: false, idempotent: true };
    type Reply = Blocks;

    fn perform(&self, ctx: &ToolContext<'_>) -> Result<Blocks, Error> {
        let path = self.file_path.raw()?;
        let first = self.start_line.unwrap_or(1);
        if self.end_line.is_some_and(|last| last < first) {
            let problem = "start_line cannot be greater than end_line";
            return Err(Error::InvalidArgument(problem.into()));
        }
        let read = Read::new(path.clone())
            .with_first(first)
            .with_lines(Some(self.asked().unwrap_or(limits::DEFAULT_READ_LINES)))
            .with_budget(ctx.budget(limits::DEFAULT_MAX_OUTPUT_BYTES))
            .with_past_end(PastEnd::Refuse);
        match ctx.session.perform_with(&read, ctx.call) {
            Ok(done) => Ok(self.text(done.outcome.page, ctx)),
            Err(error @ Error::Binary { mime, .. }) => match attachment(&path, mime, ctx)? {
                Some(block) => Ok(Blocks { content: vec![block], ..Blocks::default() }),
                None => Err(error),
            },
            Err(other) => Err(other),
        }
    }

    fn error_text(&self, error: &Error, ctx: &ToolContext<'_>) -> Option<String> {
        Some(match error {
            Error::NotFound { .. } | Error::Dangling { .. } | Error::DirectoryNotFound { .. } => {
                "Could not read file because no file was found at the specified path.".into()
            }
            Error::IsDirectory { .. } => {
                "Could not read file because the provided path is a directory, not a file.".into()
            }
            Error::Binary { mime, .. } => {
                let path = ctx.short_path(self.file_path.as_str());
                format!("Cannot display content of binary file: {path} ({mime})")
            }
            _ => return None,
        })
    }

    fn compact_params(&self, ctx: &ToolContext<'_>) -> String {
        let path = ctx.short_path(self.file_path.as_str());
        match (self.start_line, self.end_line) {
            (None, None) => path,
            (first, Some(last)) => format!("{path} {}-{last}", first.unwrap_or(1)),
            (Some(first), None) => format!("{path} {first}-"),
        }
    }
}

impl ReadFile {
    /// The requested number of lines.
    fn asked(&self) -> Option<u64> {
        Some(self.end_line?.saturating_sub(self.start_line.unwrap_or(1)).saturating_add(1))
    }

    fn text(&self, page: Page, ctx: &ToolContext<'_>) -> Blocks {
        let content = truncated_lines(&page.content, ctx.session.settings().max_line_chars);
        let first = self.start_line.unwrap_or(1);
        let has_more = page.end != PageEnd::EndOfFile && self.asked() != Some(page.shown);
        let text = if page.total == 0 {
            "(the file is empty)".into()
        } else if has_more {
            let (next, at_least) =
                (first + page.shown, if page.complete { "" } else { "at least " });
            format!(
                "\nIMPORTANT: The file content has been truncated.\nStatus: Showing lines \
                 {first}-{} of {at_least}{} total lines.\nAction: Go on with start_line {next}, \
                 or search with grep_search.\n\n--- FILE CONTENT (truncated) ---\n{content}",
                next - 1,
                page.total,
            )
        } else {
            content
        };
        let mut blocks = Blocks::text(text);
        let note = malformed(&page).map(|note| Block::Text { text: format!("({note})") });
        blocks.content.extend(note);
        blocks
    }
}

/// The lines of a page. A line that was cut ends as in gemini-cli.
fn truncated_lines(content: &str, max_chars: usize) -> String {
    let truncated = |line: &str| -> Option<String> {
        let (text, end) = line.split_at_checked(line.rfind("... [+")?)?;
        let line_end = if end.ends_with('\n') { "\n" } else { "" };
        // Only a line that was cut is longer.
        (text.chars().count() == max_chars).then(|| format!("{text}... [truncated]{line_end}"))
    };
    let lines = content.split_inclusive('\n');
    lines.map(|line| truncated(line).unwrap_or_else(|| line.to_owned())).collect()
}
