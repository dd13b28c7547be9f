//! The error messages of `apply_patch`. Those that agents know are repeated literally.

use pinfold::patch::{FilePatch, ParseError, ParseProblem, Patch, UnifiedError};
use pinfold::{Denial, Error, RawPath};

use crate::hint::{FailedCall, HintNames};

/// The beginning of an error that was found before anything was changed.
const FAILED: &str = "apply_patch verification failed: ";

/// The error message, with its hint.
pub(crate) fn message(error: &Error, call: &FailedCall, hint_names: &HintNames) -> String {
    match (error, &call.error_text) {
        // These end with lines of the patch, so the hint is a separate paragraph.
        (Error::NoMatch { .. }, Some(problem)) => hint_names.message_below(problem, error, call),
        (Error::ManyMatches { .. }, Some(problem)) => format!(
            "{problem}\nAdd context lines until they are unique, or a line `@@ ` with the line above \
             them that is in the file once, such as the head of the function."
        ),
        // This message already has all the information.
        (Error::OutOfRange { .. }, Some(problem)) => problem.clone(),
        (_, Some(problem)) => hint_names.message_after(problem.clone(), error, call),
        (_, None) => hint_names.message(error, call),
    }
}

/// The error for a text that is not a patch in codex's notation.
pub(super) fn parse_error(ParseError { line, problem }: &ParseError) -> Error {
    let hunk = |words: String| format!("invalid hunk at line {line}, {words}");
    let words = match problem {
        ParseProblem::NoBegin => {
            "invalid patch: The first line of the patch must be '*** Begin Patch'".into()
        }
        ParseProblem::NoEnd => {
            "invalid patch: The last line of the patch must be '*** End Patch'".into()
        }
        ParseProblem::NotAFile { found } => hunk(format!(
            "'{found}' is not a valid hunk header. Valid hunk headers: '*** Add File: {{path}}', \
             '*** Delete File: {{path}}', '*** Update File: {{path}}'"
        )),
        ParseProblem::NoChunks { path } => {
            hunk(format!("Update file hunk for path '{path}' is empty"))
        }
        ParseProblem::NoLines => hunk("Update hunk does not contain any lines".into()),
        ParseProblem::NoMark { found } => hunk(format!(
            "Unexpected line found in update hunk: '{found}'. Begin each line with ' ' if it stays, \
             '-' if it goes, '+' if it is new."
        )),
        ParseProblem::NoHeader { found } => {
            hunk(format!("Expected update hunk to start with a @@ context marker, got: '{found}'"))
        }
        ParseProblem::NoContext { header } => hunk(format!(
            "the lines to add under '@@ {header}' need a context line: repeat the line of the file \
             before or after them, with ' ' in front"
        )),
    };
    Error::InvalidArgument(format!("{FAILED}{words}"))
}

/// The error for a text that is not a unified diff.
pub(super) fn unified_error(UnifiedError { line, problem }: &UnifiedError) -> Error {
    Error::InvalidArgument(format!("{FAILED}invalid patch at line {line}: {problem}"))
}

/// The error message for a patch. It includes the patch's lines for the file.
pub(super) fn error_text(error: &Error, patch: &Patch) -> Option<String> {
    let words = match error {
        Error::ChangedTwice { path } => format!("invalid patch: multiple operations target {path}"),
        Error::BadAnchor { path, anchor, lines, .. } if lines.is_empty() => {
            format!("Failed to find context '{anchor}' in {path}")
        }
        Error::BadAnchor { path, anchor, lines, .. } => {
            format!("Found context '{anchor}' {} times in {path}", lines.len())
        }
        Error::NoMatch { path, number, .. } => {
            let lines = old_lines(patch, path, *number);
            format!("Failed to find expected lines in {path}:\n{lines}")
        }
        Error::ManyMatches { path, number, count, lines, .. } => {
            let at: Vec<_> = lines.iter().map(u64::to_string).collect();
            let more = if *count > at.len() { ", …" } else { "" };
            let (at, lines) = (at.join(", "), old_lines(patch, path, *number));
            format!("Found expected lines {count} times in {path}, on lines {at}{more}:\n{lines}")
        }
        Error::Exists { path } => format!("Failed to write {path}: File exists (os error 17)"),
        Error::Denied { denial: Denial::User(_), .. } => {
            return Some("patch rejected by user".into());
        }
        Error::NoChange { .. } => return Some("No files were modified.".into()),
        other => {
            let (path, cause) = cause(other)?;
            match file(patch, path)? {
                FilePatch::Add { .. } => format!("Failed to write {path}: {cause}"),
                FilePatch::Update { move_to: Some(to), .. } if to == path.as_str() => {
                    format!("Failed to write {path}: {cause}")
                }
                FilePatch::Delete { .. } => format!("Failed to read {path}: {cause}"),
                FilePatch::Update { .. } => {
                    format!("Failed to read file to update {path}: {cause}")
                }
            }
        }
    };
    Some(format!("{FAILED}{words}"))
}

/// The path of a file that cannot be read or written, and the reason.
fn cause(error: &Error) -> Option<(&RawPath, String)> {
    Some(match error {
        Error::NotFound { path, .. }
        | Error::DirectoryNotFound { path, .. }
        | Error::Dangling { path } => (path, "No such file or directory (os error 2)".into()),
        Error::Outside { path, roots } => {
            (path, format!("it is outside the workspace, which is {}", roots.join(" and ")))
        }
        Error::IsDirectory { path } => (path, "Is a directory (os error 21)".into()),
        Error::NotADirectory { path } => (path, "Not a directory (os error 20)".into()),
        Error::AccessDenied { path, why } => {
            let why = why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
            (path, format!("Permission denied (os error 13){why}"))
        }
        Error::NotRegular { path, .. }
        | Error::Binary { path, .. }
        | Error::NotRead { path, .. }
        | Error::Changed { path, .. }
        | Error::TooLarge { path, .. }
        | Error::ReadFailed { path, .. }
        | Error::WriteFailed { path, .. }
        | Error::NoSpace { path } => (path, error.to_string()),
        _ => return None,
    })
}

/// The lines of the patch for a file.
fn file<'p>(patch: &'p Patch, path: &RawPath) -> Option<&'p FilePatch> {
    patch.files.iter().find(|file| file.paths().any(|known| known == path.as_str()))
}

/// The lines that a chunk expects in the file.
fn old_lines(patch: &Patch, path: &RawPath, number: Option<usize>) -> String {
    let chunks = file(patch, path).map(FilePatch::chunks).unwrap_or_default();
    let chunk = chunks.get(number.unwrap_or(1).saturating_sub(1));
    chunk.map(|chunk| chunk.old_lines().join("\n")).unwrap_or_default()
}
