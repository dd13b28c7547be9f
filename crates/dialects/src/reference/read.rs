//! `read_text_file`, `read_file` and `read_multiple_files`

use pinfold::operations::{self, PastEnd, Reading};
use pinfold::{Done, Error, PageEnd};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::hint::FailedCall;
use crate::limits;
use crate::reference::Text;
use crate::reference::error_text::{SystemCall, message};
use crate::reference::path::ReferencePath;
use crate::{Tool, ToolContext};

/// Reads a text file: all of it, its first or last lines, or lines from an offset.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadTextFile {
    /// Absolute or relative path.
    path: ReferencePath,
    /// Only the last N lines.
    tail: Option<u64>,
    /// Only the first N lines.
    head: Option<u64>,
    /// Line to start from, counting from 1.
    offset: Option<u64>,
    /// Lines to read from the offset.
    limit: Option<u64>,
}

/// Deprecated: use `read_text_file`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadFile {
    /// Absolute or relative path.
    path: ReferencePath,
    /// Only the last N lines.
    tail: Option<u64>,
    /// Only the first N lines.
    head: Option<u64>,
}

/// Reads several text files. One that fails does not keep the others from being read.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadMultipleFiles {
    /// Absolute or relative paths.
    #[schemars(with = "Vec<String>", length(min = 1))]
    paths: Vec<ReferencePath>,
}

/// The lines to read. 0 counts as not given, since models fill it in.
#[derive(Clone, Copy, Default)]
struct Window {
    tail: Option<u64>,
    head: Option<u64>,
    offset: Option<u64>,
    limit: Option<u64>,
}

impl Window {
    fn new(tail: Option<u64>, head: Option<u64>) -> Self {
        let some = |number: Option<u64>| number.filter(|number| *number > 0);
        Self { tail: some(tail), head: some(head), ..Self::default() }
    }

    fn operation(
        self,
        path: &ReferencePath,
        ctx: &ToolContext<'_>,
    ) -> Result<operations::Read, Error> {
        if self.head.is_some() && self.tail.is_some() {
            let both = "Cannot specify both head and tail parameters simultaneously";
            return Err(Error::InvalidArgument(both.into()));
        }
        if (self.head.or(self.tail).is_some()) && (self.offset.or(self.limit).is_some()) {
            let both = "Cannot specify offset or limit together with head or tail; leave one out";
            return Err(Error::InvalidArgument(both.into()));
        }
        Ok(operations::Read::new(path.raw())
            .with_first(self.offset.unwrap_or(1))
            .with_lines(self.head.or(self.limit))
            .with_tail(self.tail)
            .with_budget(ctx.budget(limits::DEFAULT_MAX_LIBRARY_OUTPUT_BYTES))
            // A program may write the text back, so no line is cut.
            .with_max_line_chars(Some(usize::MAX))
            .with_binary_as_text(true)
            // The answer has no total, so the file is read only as far as the shown lines.
            .with_whole(ctx.requires_reads)
            .with_past_end(PastEnd::Refuse))
    }

    fn reply(self, done: Done<operations::Read>) -> Text {
        let is_cut = done.outcome.page.end == PageEnd::ByteBudget;
        let mut text = content(&done.outcome);
        if self.tail.is_some() {
            text = text.replace("\r\n", "\n");
        }
        if self.head.is_some() && !is_cut && text.ends_with('\n') {
            text.pop();
        }
        text.push_str(&next_offset(&done.outcome));
        text.into()
    }

    fn error_text(
        self,
        path: &ReferencePath,
        error: &Error,
        ctx: &ToolContext<'_>,
    ) -> Option<String> {
        let call = match error {
            Error::NotFound { .. } if self.tail.is_some() => "stat",
            _ => "open",
        };
        SystemCall::Of(call, path).error_text(error, ctx)
    }
}

/// The lines, with the byte order mark at the beginning of the file.
fn content(reading: &Reading) -> String {
    let is_marked = reading.page.encoding.bom && reading.first == Some(1);
    let mark = if is_marked { "\u{feff}" } else { "" };
    format!("{mark}{}", reading.page.content)
}

/// Where to continue, if the budget cut the lines.
fn next_offset(reading: &Reading) -> String {
    let Some(first) = reading.first.filter(|_| reading.page.end == PageEnd::ByteBudget) else {
        return String::new();
    };
    let total = reading.page.total;
    let next = first + reading.page.shown;
    format!(
        "\n[Lines {first}-{} of {total} are shown. Continue with read_text_file and offset={next}.]",
        next - 1
    )
}

impl ReadTextFile {
    fn window(&self) -> Window {
        let some = |number: Option<u64>| number.filter(|number| *number > 0);
        let (offset, limit) = (some(self.offset), some(self.limit));
        Window { offset, limit, ..Window::new(self.tail, self.head) }
    }
}

impl Tool for ReadTextFile {
    const NAME: &'static str = "read_text_file";
    const TITLE: &'static str = "Read Text File";
    const IDEMPOTENT: bool = true;
    type Op = operations::Read;
    type Reply = Text;

    fn operation(&self, ctx: &ToolContext<'_>) -> Result<operations::Read, Error> {
        self.window().operation(&self.path, ctx)
    }

    fn reply(&self, done: Done<operations::Read>, _: &ToolContext<'_>) -> Text {
        self.window().reply(done)
    }

    fn error_text(&self, error: &Error, ctx: &ToolContext<'_>) -> Option<String> {
        self.window().error_text(&self.path, error, ctx)
    }

    fn compact_params(&self, ctx: &ToolContext<'_>) -> String {
        ctx.short_path(self.path.as_str())
    }
}

impl Tool for ReadFile {
    const NAME: &'static str = "read_file";
    const TITLE: &'static str = "Read File (Deprecated)";
    const IDEMPOTENT: bool = true;
    type Op = operations::Read;
    type Reply = Text;

    fn operation(&self, ctx: &ToolContext<'_>) -> Result<operations::Read, Error> {
        Window::new(self.tail, self.head).operation(&self.path, ctx)
    }

    fn reply(&self, done: Done<operations::Read>, _: &ToolContext<'_>) -> Text {
        Window::new(self.tail, self.head).reply(done)
    }

    fn error_text(&self, error: &Error, ctx: &ToolContext<'_>) -> Option<String> {
        Window::new(self.tail, self.head).error_text(&self.path, error, ctx)
    }

    fn compact_params(&self, ctx: &ToolContext<'_>) -> String {
        ctx.short_path(self.path.as_str())
    }
}

impl Tool for ReadMultipleFiles {
    const NAME: &'static str = "read_multiple_files";
    const TITLE: &'static str = "Read Multiple Files";
    const IDEMPOTENT: bool = true;
    type Op = operations::ReadMany;
    type Reply = Text;

    fn operation(&self, ctx: &ToolContext<'_>) -> Result<operations::ReadMany, Error> {
        Ok(operations::ReadMany::new(self.paths.iter().map(ReferencePath::raw))
            .with_budget(ctx.budget(limits::DEFAULT_MAX_LIBRARY_OUTPUT_BYTES))
            .with_max_line_chars(Some(usize::MAX))
            .with_binary_as_text(true))
    }

    fn reply(&self, done: Done<operations::ReadMany>, ctx: &ToolContext<'_>) -> Text {
        let files = self.paths.iter().zip(done.outcome).map(|(path, read)| match read {
            Ok(reading) => {
                let (content, next) = (content(&reading), next_offset(&reading));
                format!("{}:\n{content}{next}\n", path.shown())
            }
            Err(error) => {
                let call = FailedCall {
                    tool: Some(Self::NAME),
                    read_only: true,
                    portable: ctx.session.settings().portable_names,
                    error_text: SystemCall::Of("open", path).error_text(&error, ctx),
                    front_end_hint: None,
                };
                format!("{}: Error - {}", path.shown(), message(&error, &call))
            }
        });
        files.collect::<Vec<_>>().join("\n---\n").into()
    }

    fn compact_params(&self, ctx: &ToolContext<'_>) -> String {
        let paths: Vec<_> = self.paths.iter().map(|path| ctx.short_path(path.as_str())).collect();
        crate::phrases::shortened(&paths.join(", "))
    }
}
