//! The `toolset` dialect: the file tools of Anthropic's agent toolset, 20260401. They are the tools of `classic`
//! under other names.

use pinfold::{Error, ReadBeforeWrite};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::answer::Blocks;
use crate::classic::edit::Edit;
use crate::classic::glob::Glob;
use crate::classic::grep::{Grep, Mode};
use crate::classic::read::Read;
use crate::classic::write::Write;
use crate::hint::{FailedCall, HintNames};
use crate::names::{AnswerNames, SHORT_NAMES};
use crate::tool::{Alias, alias, parse_alias};
use crate::tool_context::RelativePath;
use crate::{Answer, Dialect, ToolEntry, ToolResult, classic, code};

/// `read`, `write`, `edit`, `glob` and `grep`.
pub static TOOLSET: Dialect = Dialect {
    name: "toolset",
    tools: &[
        entry::<ReadArgs>(),
        entry::<WriteArgs>(),
        entry::<EditArgs>(),
        entry::<GlobArgs>(),
        entry::<GrepArgs>(),
    ],
    error_answer,
    answers_unknown_tools: false,
    requires_reads: true,
};

const fn entry<T: Alias<Of: crate::Tool<Reply = ToolResult>>>() -> ToolEntry {
    alias::<T>(&NAMES, |arguments| parse_alias::<T>(arguments, Blocks::of_result))
}

static NAMES: AnswerNames = AnswerNames {
    read_on: |line| format!("continue with view_range=[{line}, -1]"),
    lines_are: "`view_range` is",
    omit_lines_hint: "leave it out",
    ..SHORT_NAMES
};

/// Reads a file: text with line numbers, as `cat -n` does (number and tab are not part of the file); images; the
/// text of PDFs; notebooks.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReadArgs {
    /// Absolute path, or relative to the workspace root.
    file_path: RelativePath,
    /// First and last line, counting from 1; -1 is the end.
    view_range: Option<Vec<i64>>,
}

impl Alias for ReadArgs {
    const NAME: &'static str = "read";
    type Of = Read;

    fn into_tool(self) -> Result<Read, Error> {
        let (offset, limit) = match self.view_range.as_deref() {
            None => (None, None),
            Some([first, last]) => window(*first, *last)?,
            Some(_) => return Err(wrong_range("it must be [first line, last line]")),
        };
        Ok(Read { file_path: self.file_path.into(), offset, limit, pages: None })
    }
}

/// The first line of a range, and the number of its lines, which is `None` if it ends with the file.
fn window(first: i64, last: i64) -> Result<(Option<u64>, Option<u64>), Error> {
    let start = u64::try_from(first).ok().filter(|first| *first > 0);
    let start = start.ok_or_else(|| wrong_range("the first line is 1"))?;
    if last == -1 {
        return Ok((Some(start), None));
    }
    let last = u64::try_from(last).ok().filter(|last| *last >= start);
    let last = last.ok_or_else(|| wrong_range("the last line is before the first"))?;
    Ok((Some(start), Some(last - start + 1)))
}

fn wrong_range(problem: &str) -> Error {
    Error::InvalidArgument(format!("`view_range`: {problem}"))
}

/// Creates a file, or replaces the whole content of one. A file that exists must have been read before. Missing
/// directories are created.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WriteArgs {
    /// Absolute path, or relative to the workspace root.
    file_path: RelativePath,
    /// The whole new content, stored as UTF-8.
    content: String,
}

impl Alias for WriteArgs {
    const NAME: &'static str = "write";
    type Of = Write;

    fn into_tool(self) -> Result<Write, Error> {
        Ok(Write { file_path: self.file_path.into(), content: self.content })
    }
}

/// Replaces text in a file. `old_string` must be in it exactly once, or set `replace_all`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EditArgs {
    /// Absolute path, or relative to the workspace root.
    file_path: RelativePath,
    /// The text to replace, exactly as it is in the file.
    old_string: String,
    /// The text to put in its place.
    new_string: String,
    /// Replace every occurrence.
    replace_all: Option<bool>,
}

impl Alias for EditArgs {
    const NAME: &'static str = "edit";
    type Of = Edit;

    fn into_tool(self) -> Result<Edit, Error> {
        let Self { file_path, old_string, new_string, replace_all } = self;
        let read_rule = Some(ReadBeforeWrite::Off);
        Ok(Edit { file_path: file_path.into(), old_string, new_string, replace_all, read_rule })
    }
}

/// Finds files by name, newest first, such as `**/*.ts`. Hidden and git-ignored ones only where the pattern or path
/// names them.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GlobArgs {
    /// Glob with `**`, `*`, `?`, `[abc]`, `{a,b}`.
    pattern: String,
    /// Directory to start from; all if left out.
    path: Option<RelativePath>,
}

impl Alias for GlobArgs {
    const NAME: &'static str = "glob";
    type Of = Glob;

    fn into_tool(self) -> Result<Glob, Error> {
        Ok(Glob { pattern: self.pattern, path: self.path.map(Into::into) })
    }
}

/// Searches file contents with ripgrep's regex engine, and shows the lines that match. Git-ignored files only where
/// `path` names them.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GrepArgs {
    /// Regex, matched line by line.
    pattern: String,
    /// File or directory; all if left out.
    path: Option<RelativePath>,
}

impl Alias for GrepArgs {
    const NAME: &'static str = "grep";
    type Of = Grep;

    fn into_tool(self) -> Result<Grep, Error> {
        Ok(Grep::new(self.pattern, self.path, None, Mode::Content))
    }
}

/// The names of tools and arguments in hints.
pub(crate) static HINT_NAMES: HintNames = HintNames {
    relative_paths: false,
    read_tool: "read",
    list_tool: "glob",
    find_glob: "pattern",
    filter_glob: "include",
    ignore_glob: "pattern",
    multiline: None,
    plain_text: "escape it",
    create_parents: None,
};

fn error_answer(error: &Error, call: &FailedCall) -> Answer {
    Blocks::failure(classic::message(error, call, &HINT_NAMES, &NAMES), code(error))
}
