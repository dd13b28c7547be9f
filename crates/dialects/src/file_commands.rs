//! Commands on one text file: `view`, `create`, `str_replace` and `insert`. The tools of `editor` and `memory` share
//! them.
//!
//! The first words of the answers come from the dialect. The rest, and most errors, are the same.

use pinfold::operations::{Edit, Existing, Insert, Parents, PastEnd, Read, Write};
use pinfold::{Error, MatchMode, PageEnd, RawPath, ReadBeforeWrite, Replacement, Style};

use crate::answer::Blocks;
use crate::change_summary::ChangeSummary;
use crate::hint::{FailedCall, HintNames};
use crate::phrases::malformed;
use crate::{Answer, ToolContext, code};

/// The maximum number of characters in an answer, unless the settings override it. The vendor's own implementation
/// has the same.
pub(crate) const MAX_CHARACTERS: usize = 16_000;

/// The maximum number of shown entries of a directory.
pub(crate) const MAX_ENTRIES: usize = 1_000;

/// The number of shown levels of a directory.
pub(crate) const DEPTH: usize = 2;

/// The names of tools and arguments in hints.
pub(crate) static HINT_NAMES: HintNames = HintNames {
    relative_paths: false,
    read_tool: "`view`",
    list_tool: "`view`",
    find_glob: "path",
    filter_glob: "path",
    ignore_glob: "path",
    multiline: None,
    plain_text: "leave it out",
    create_parents: None,
};

/// The answer to a call that failed.
pub(crate) fn error_answer(error: &Error, call: &FailedCall) -> Answer {
    let message = match (error, &call.error_text) {
        // These messages already say what to do.
        (
            Error::ManyMatches { .. }
            | Error::OutOfRange { .. }
            | Error::EmptyOld { .. }
            | Error::Exists { .. },
            Some(problem),
        ) => problem.clone(),
        (_, Some(problem)) => HINT_NAMES.message_after(problem.clone(), error, call),
        (_, None) => HINT_NAMES.message(error, call),
    };
    Blocks::failure(message, code(error))
}

/// Returns an argument that a command requires.
pub(crate) fn required<'a, T: ?Sized>(
    command: &str,
    name: &str,
    value: Option<&'a T>,
) -> Result<&'a T, Error> {
    value.ok_or_else(|| {
        Error::InvalidArgument(format!("Parameter `{name}` is required for command: {command}"))
    })
}

/// The line that `insert` inserts after. A negative number becomes a line that no file has, so that it is out of range
/// like a number past the end.
pub(crate) fn line_to_insert_after(insert_line: i64) -> u64 {
    u64::try_from(insert_line).unwrap_or(u64::MAX)
}

/// The error for a command that the tool does not have.
pub(crate) fn unknown_command(command: &str, tool: &str, commands: &str) -> Error {
    Error::InvalidArgument(format!(
        "Unrecognized command {}. The allowed commands for the {tool} tool are: {commands}",
        crate::phrases::shortened(command),
    ))
}

/// The first lines of a text, with at most `max_chars` characters but at least one line, and the number of these lines.
fn first_lines(text: &str, max_chars: usize) -> (&str, u64) {
    let (mut bytes, mut chars, mut lines) = (0, 0, 0);
    for line in text.split_inclusive('\n') {
        chars += line.chars().count();
        if chars > max_chars && lines > 0 {
            break;
        }
        bytes += line.len();
        lines += 1;
    }
    (&text[..bytes], lines)
}

/// A file that a command is about.
pub(crate) struct CommandFile {
    /// Its path.
    pub(crate) path: RawPath,
    /// The path in answers.
    pub(crate) shown: String,
}

impl CommandFile {
    /// The lines of a range, numbered, after a heading.
    pub(crate) fn view(
        &self,
        heading: &str,
        range: Option<&[i64]>,
        ctx: &ToolContext<'_>,
    ) -> Result<String, Error> {
        let (first, last) = match range {
            None => (1, -1),
            Some([first, last]) => (*first, *last),
            Some(_) => {
                let problem = "Invalid `view_range`. It should be a list of two integers.";
                return Err(Error::InvalidArgument(problem.into()));
            }
        };
        let start = u64::try_from(first).unwrap_or(0).max(1);
        let max_bytes = ctx.session.settings().max_output_bytes;
        let read = Read::new(self.path.clone())
            .with_first(start)
            .with_lines(u64::try_from(last).ok().map(|last| (last + 1).saturating_sub(start)))
            .with_style(Style::Numbered)
            // A character has up to four bytes.
            .with_budget(max_bytes.unwrap_or(4 * MAX_CHARACTERS))
            .with_past_end(PastEnd::Empty);
        let page = ctx.session.perform_with(&read, ctx.call)?.outcome.page;
        let total = page.total;
        let wrong = |problem: String| {
            let problem = format!("Invalid `view_range`: [{first}, {last}]. {problem}");
            Err(Error::InvalidArgument(problem))
        };
        if first < 1 || start > total.max(1) {
            return wrong(format!(
                "Its first element `{first}` should be within the range of lines of the file: \
                 [1, {total}]"
            ));
        }
        if last != -1 && last < first {
            return wrong(format!(
                "Its second element `{last}` should be larger or equal than its first `{first}`"
            ));
        }
        let max_chars = max_bytes.map_or(MAX_CHARACTERS, |_| usize::MAX);
        let (content, shown) = first_lines(&page.content, max_chars);
        let mut text = format!("{heading}\n{content}");
        if !text.ends_with('\n') {
            text.push('\n');
        }
        let mut note = |note: String| text.push_str(&format!("<NOTE>{note}</NOTE>\n"));
        if total == 0 {
            note("The file is empty.".into());
        }
        if let Some(last) = u64::try_from(last).ok().filter(|last| *last > total && total > 0) {
            note(format!("Line {last} is past the end; the file has {total} lines."));
        }
        if let Some(malformed) = malformed(&page) {
            note(malformed);
        }
        if page.end == PageEnd::ByteBudget || shown < page.shown {
            let next = start + shown;
            let end = u64::try_from(last).map_or(-1, |last| last.min(total) as i64);
            text.push_str(&format!(
                "<response clipped><NOTE>Lines {start}-{} of {total} are shown. Continue with \
                 view_range=[{next}, {end}].</NOTE>",
                next - 1
            ));
        }
        Ok(text)
    }

    /// Creates the file, which must not exist.
    pub(crate) fn create(
        &self,
        text: &str,
        parents: Parents,
        ctx: &ToolContext<'_>,
    ) -> Result<String, Error> {
        let write = Write::new(self.path.clone(), text)
            .with_parents(parents)
            .with_existing(Existing::Refuse);
        let done = ctx.session.perform_with(&write, ctx.call)?;
        let words = format!("File created successfully at: {}", self.shown);
        Ok(ChangeSummary::of_write(&done, &self.shown).after(words))
    }

    /// Replaces a text that occurs once in the file. `words` makes the beginning of the answer from the lines around
    /// the change.
    pub(crate) fn replace(
        &self,
        old: &str,
        new: &str,
        context: u64,
        words: impl Fn(&str) -> String,
        ctx: &ToolContext<'_>,
    ) -> Result<String, Error> {
        let replacement = Replacement { old: old.into(), new: new.into(), all: false };
        let edit = Edit::all(self.path.clone(), vec![replacement])
            .with_matching(MatchMode::Lenient)
            .with_read_rule(ctx.read_rule(ReadBeforeWrite::Off))
            .with_may_create(false)
            .with_snippet(Some(context));
        let done = ctx.session.perform_with(&edit, ctx.call)?;
        let words = words(done.outcome.snippet.as_deref().unwrap_or_default());
        Ok(ChangeSummary::of_edit(&done, &self.shown).after(words))
    }

    /// Inserts text after a line. `words` makes the beginning of the answer from the lines around the change.
    pub(crate) fn insert(
        &self,
        insert: Insert,
        words: impl Fn(&str) -> String,
        ctx: &ToolContext<'_>,
    ) -> Result<String, Error> {
        let done = ctx.session.perform_with(&insert, ctx.call)?;
        let words = words(done.outcome.snippet.as_deref().unwrap_or_default());
        Ok(ChangeSummary::of_insert(&done, &self.shown).after(words))
    }

    /// The error message in both tools. `old` is the text to replace, `insert_line` the line to insert after.
    pub(crate) fn error_text(
        &self,
        error: &Error,
        old: &str,
        insert_line: Option<i64>,
    ) -> Option<String> {
        let path = &self.shown;
        let ran_into = |to: &str| {
            let error = error.to_string().replace(self.path.as_str(), path);
            format!("Ran into {error} while trying to {to} {path}")
        };
        Some(match error {
            Error::InvalidArgument(problem) => problem.clone(),
            Error::NotFound { .. } | Error::DirectoryNotFound { .. } | Error::Dangling { .. } => {
                format!("The path {path} does not exist. Please provide a valid path.")
            }
            Error::OutOfRange { total, .. } => format!(
                "Invalid `insert_line` parameter: {}. It should be within the range of lines \
                 of the file: [0, {total}]",
                insert_line.unwrap_or_default()
            ),
            Error::NoMatch { .. } => format!(
                "No replacement was performed, old_str `{old}` did not appear verbatim in {path}."
            ),
            Error::EmptyOld { .. } => format!(
                "No replacement was performed. old_str is empty, and {path} is not. Give the text to \
                 replace."
            ),
            Error::NoChange { .. } => {
                "No replacement was performed. old_str and new_str are the same.".into()
            }
            Error::Binary { .. } | Error::NotRegular { .. } | Error::ReadFailed { .. } => {
                ran_into("read")
            }
            Error::ParentMissing { parent, .. } => format!(
                "Ran into the missing directory `{parent}` while trying to write to {path}; choose a \
                 directory that exists"
            ),
            Error::WriteFailed { .. } | Error::NoSpace { .. } => ran_into("write to"),
            _ => return None,
        })
    }
}
