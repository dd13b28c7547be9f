//! `read_file`

use pinfold::operations::{PastEnd, Read};
use pinfold::{Error, PageEnd, Style};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::ToolContext;
use crate::limits;
use crate::phrases::{count, malformed, with_notices};
use crate::tool::{Annotations, DispatchTool};
use crate::tool_context::RelativePath;

/// Reads a text file. Each line is shown as `L{number}: {line}`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadFile {
    /// Absolute path, or relative to the workspace root.
    file_path: RelativePath,
    /// First line, counting from 1; 1 if left out.
    #[schemars(range(min = 1))]
    offset: Option<u64>,
    /// Most lines; 2000 if left out.
    #[schemars(range(min = 1, max = limits::MAX_READ_LINES))]
    limit: Option<u64>,
}

/// The maximum number of shown bytes of a line.
const MAX_LINE_BYTES: usize = 500;

impl DispatchTool for ReadFile {
    const NAME: &'static str = "read_file";
    const TITLE: &'static str = "Read file";
    const ANNOTATIONS: Annotations =
        Annotations { read_only: true, destructive: false, idempotent: true };
    type Reply = String;

    fn perform(&self, ctx: &ToolContext<'_>) -> Result<String, Error> {
        let first = self.offset.unwrap_or(1);
        let read = Read::new(self.file_path.raw()?)
            .with_first(first)
            .with_lines(Some(self.limit.unwrap_or(limits::DEFAULT_READ_LINES)))
            .with_style(Style::Labelled)
            .with_max_line_bytes(Some(MAX_LINE_BYTES))
            .with_budget(ctx.budget(limits::DEFAULT_MAX_OUTPUT_BYTES))
            .with_past_end(PastEnd::Refuse);
        let page = ctx.session.perform_with(&read, ctx.call)?.outcome.page;
        let mut notices = Vec::new();
        if page.total == 0 {
            notices.push("(the file is empty)".to_owned());
        }
        notices.extend(malformed(&page).map(|text| format!("({text})")));
        if page.end != PageEnd::EndOfFile {
            let next = first + page.shown;
            let total = if page.complete { "" } else { "at least " };
            let lines = format!("lines {first}-{} of {total}{}", next - 1, page.total);
            notices.push(format!("({lines}; {})", (ctx.names.read_on)(next)));
        }
        Ok(with_notices(page.content, &notices))
    }

    fn error_text(&self, error: &Error, _: &ToolContext<'_>) -> Option<String> {
        match error {
            Error::OutOfRange { total, .. } => {
                Some(format!("offset exceeds file length; the file has {}", count(*total, "line")))
            }
            _ => None,
        }
    }

    fn compact_params(&self, ctx: &ToolContext<'_>) -> String {
        let path = ctx.short_path(self.file_path.as_str());
        match (self.offset, self.limit) {
            (None, None) => path,
            (offset, limit) => {
                let limit = limit.unwrap_or(limits::DEFAULT_READ_LINES);
                format!("{path} {}:{limit}", offset.unwrap_or(1))
            }
        }
    }
}
