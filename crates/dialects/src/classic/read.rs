//! `Read`

use pinfold::operations::{self, PastEnd};
use pinfold::{Done, Error, Stopped, Style, limits};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::desk::AbsolutePath;
use crate::words::{count, malformed};
use crate::{Desk, Tool, ToolResult};

/// Reads a text file and shows it with line numbers, as `cat -n` does; number and tab are not part of
/// the file. A long file is shown in part, with a notice how to go on.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Read {
    /// Absolute path.
    file_path: AbsolutePath,
    /// First line to show, counting from 1.
    #[schemars(range(min = 1))]
    offset: Option<u64>,
    /// Most lines to show; 2000 if left out.
    #[schemars(range(min = 1, max = 10_000))]
    limit: Option<u64>,
}

impl Tool for Read {
    const NAME: &'static str = "Read";
    const TITLE: &'static str = "Read file";
    const IDEMPOTENT: bool = true;
    type Op = operations::Read;
    type Reply = ToolResult;

    fn operation(&self, desk: &Desk<'_>) -> Result<operations::Read, Error> {
        Ok(operations::Read {
            path: self.file_path.raw("file_path", desk)?,
            first: self.offset(),
            lines: Some(self.limit()),
            style: Style::Numbered,
            budget: desk.budget(limits::CLASSIC_OUTPUT_BYTES),
            past_end: PastEnd::Refuse,
        })
    }

    fn reply(&self, done: Done<operations::Read>, desk: &Desk<'_>) -> ToolResult {
        let operations::Reading { place, page } = done.outcome;
        let mut notices = Vec::new();
        if page.total == 0 {
            notices.push("(the file is empty)".to_owned());
        }
        notices.extend(malformed(&page).map(|text| format!("({text})")));
        if page.stopped != Stopped::AtEnd {
            let (first, next) = (self.offset(), self.offset() + page.shown);
            let total = if page.complete { "" } else { "at least " };
            let lines = format!("lines {first}-{} of {total}{}", next - 1, page.total);
            notices.push(format!("({lines}; continue with offset={next})"));
        }
        let mut content = page.content;
        if !notices.is_empty() && !content.is_empty() && !content.ends_with('\n') {
            content.push('\n');
        }
        content.push_str(&notices.join("\n"));
        let mut metadata = Map::new();
        let mut fact = |name: &str, value: Value| metadata.insert(name.into(), value);
        fact("encoding", page.encoding.name().into());
        fact("line_ending", page.line_ending.name().into());
        fact("total_lines", page.total.into());
        fact("lines_read", page.shown.into());
        fact("offset", self.offset().into());
        fact("limit", self.limit().into());
        fact("truncated", json!(page.stopped != Stopped::AtEnd));
        ToolResult {
            success: true,
            content,
            short_result: Some(format!("Read {}", count(page.shown, "line"))),
            file_path: Some(desk.absolute(&place)),
            metadata,
            ..ToolResult::default()
        }
    }

    fn compact(&self, desk: &Desk<'_>) -> String {
        let path = desk.brief(self.file_path.as_str());
        match (self.offset, self.limit) {
            (None, None) => path,
            _ => format!("{path} {}:{}", self.offset(), self.limit()),
        }
    }
}

impl Read {
    fn offset(&self) -> u64 {
        self.offset.unwrap_or(1)
    }

    fn limit(&self) -> u64 {
        self.limit.unwrap_or(limits::READ_LINES).min(limits::MOST_READ_LINES)
    }
}
