//! The `opencode` dialect: the file tools of opencode. They are the tools of `classic`, and `apply_patch`, under
//! other names.

use pinfold::{Error, ReadBeforeWrite};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::answer::Blocks;
use crate::classic::edit::Edit;
use crate::classic::grep::{Grep, Mode};
use crate::classic::read::Read;
use crate::classic::write::Write;
use crate::hint::FailedCall;
use crate::limits;
use crate::names::{AnswerNames, SHORT_NAMES};
use crate::patch::{self, ApplyPatch, Notation};
use crate::tool::{Alias, alias, parse_alias};
use crate::tool_context::RelativePath;
use crate::toolset::{GlobArgs, HINT_NAMES};
use crate::{Answer, Dialect, ToolEntry, ToolResult, classic, code};

/// `read`, `write`, `edit`, `glob`, `grep` and `apply_patch`.
pub static OPENCODE: Dialect = Dialect {
    name: "opencode",
    tools: &[
        entry::<ReadArgs>(),
        entry::<WriteArgs>(),
        entry::<EditArgs>(),
        entry::<GlobArgs>(),
        entry::<GrepArgs>(),
        alias::<PatchArgs>(&NAMES, |arguments| parse_alias::<PatchArgs>(arguments, patch::text)),
    ],
    error_answer,
    answers_unknown_tools: false,
    requires_reads: true,
};

const fn entry<T: Alias<Of: crate::Tool<Reply = ToolResult>>>() -> ToolEntry {
    alias::<T>(&NAMES, |arguments| parse_alias::<T>(arguments, Blocks::of_result))
}

static NAMES: AnswerNames = AnswerNames {
    old_text: "oldString",
    new_text: "newString",
    replace_all: "replaceAll",
    more_results: |_| "narrow the pattern, path or include to see the others".into(),
    ..SHORT_NAMES
};

/// Reads a file: text with line numbers, as `cat -n` does (number and tab are not part of the file); images; the
/// text of PDFs; notebooks. A long one is shown in part, with a notice how to go on.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ReadArgs {
    /// Absolute path, or relative to the workspace root.
    file_path: RelativePath,
    /// First line, counting from 1.
    #[schemars(range(min = 1))]
    offset: Option<u64>,
    /// Most lines; 2000 if left out.
    #[schemars(range(min = 1, max = limits::MAX_READ_LINES))]
    limit: Option<u64>,
}

impl Alias for ReadArgs {
    const NAME: &'static str = "read";
    type Of = Read;

    fn into_tool(self) -> Result<Read, Error> {
        let Self { file_path, offset, limit } = self;
        Ok(Read { file_path: file_path.into(), offset, limit, pages: None })
    }
}

/// Creates a file, or replaces the whole content of one. A file that exists must have been read before. Missing
/// directories are created.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
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

/// Replaces text in a file. `oldString` must be in it exactly once, or set `replaceAll`. An empty `oldString` creates
/// the file.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
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

/// Searches file contents with ripgrep's regex engine, and shows the lines that match. Git-ignored files only where
/// `path` or `include` names them.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GrepArgs {
    /// Regex, matched line by line.
    pattern: String,
    /// File or directory; all if left out.
    path: Option<RelativePath>,
    /// Files to search, such as `*.{ts,tsx}`.
    include: Option<String>,
}

impl Alias for GrepArgs {
    const NAME: &'static str = "grep";
    type Of = Grep;

    fn into_tool(self) -> Result<Grep, Error> {
        Ok(Grep::new(self.pattern, self.path, self.include, Mode::Content))
    }
}

// It has no documentation: the model reads that of the tool.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct PatchArgs {
    /// The whole patch.
    patch_text: String,
}

impl Alias for PatchArgs {
    const NAME: &'static str = "apply_patch";
    type Of = ApplyPatch;

    fn into_tool(self) -> Result<ApplyPatch, Error> {
        Ok(ApplyPatch::new(self.patch_text, Notation::Codex))
    }
}

fn error_answer(error: &Error, call: &FailedCall) -> Answer {
    let message = match &call.error_text {
        // Only `apply_patch` has its own wording.
        Some(_) => patch::message(error, call, &HINT_NAMES),
        None => classic::message(error, call, &HINT_NAMES, &NAMES),
    };
    Blocks::failure(message, code(error))
}
