//! Parses unified diffs of `git diff` and `diff -u`.
//!
//! Every line of a hunk counts: a hunk with fewer or more lines than its header says is refused. Text around the
//! diffs, such as a commit message, is skipped.

mod hunk;

use std::fmt;

use super::git_names::{both_names, plain_name, without_prefix};
use super::{FilePatch, Patch};
use crate::patch::unified::hunk::{content, folded, hunk_numbers};

/// The reason why a text is not a unified diff that can be applied.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnifiedError {
    /// The line of the text, counting from 1.
    pub line: usize,
    /// The problem.
    pub problem: UnifiedProblem,
}

/// A problem with a line of a unified diff.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum UnifiedProblem {
    /// The text has no diff.
    Nothing,
    /// The diff is of a binary file.
    Binary,
    /// A merge's diff with several old versions.
    Combined,
    /// A file is copied.
    Copy,
    /// The file is a symlink or a submodule.
    SpecialFile,
    /// The file's name cannot be read.
    NoName,
    /// The section of a file has no change.
    NoChange,
    /// A hunk is not in the section of a file.
    NoFile,
    /// The numbers of a hunk cannot be read.
    BadHunk,
    /// A hunk has fewer lines than its header says.
    ShortHunk,
    /// A hunk has more lines than its header says.
    LongHunk,
    /// A hunk has neither context nor removed lines.
    NoContext,
}

impl fmt::Display for UnifiedProblem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Nothing => {
                "there is no patch here: neither `*** Begin Patch` nor a unified diff with `---`, `+++` and `@@` lines"
            }
            Self::Binary => "this is the diff of a binary file, which cannot be applied; copy the file instead",
            Self::Combined => "this is the diff of a merge, which has several old versions; make one against a single version",
            Self::Copy => "copies cannot be applied; make the diff without `-C`",
            Self::SpecialFile => "symlinks and submodules cannot be patched",
            Self::NoName => "the file's name cannot be read",
            Self::NoChange => "nothing of this file is changed",
            Self::NoFile => "a hunk needs the lines `---` and `+++` before it, which name its file",
            Self::BadHunk => "a hunk begins like `@@ -1,3 +1,4 @@`",
            Self::ShortHunk => "the hunk has fewer lines than its `@@` line says",
            Self::LongHunk => "the hunk has more lines than its `@@` line says",
            Self::NoContext => "the hunk has no context; make the diff with some, without `-U0`",
        })
    }
}

impl Patch {
    /// Parses unified diffs of any number of files.
    ///
    /// ```
    /// use pinfold_text::patch::Patch;
    ///
    /// let diff = "--- a/x.txt\n+++ b/x.txt\n@@ -1 +1 @@\n-one\n+two\n";
    /// assert_eq!(Patch::parse_unified(diff).unwrap().files[0].path(), "x.txt");
    /// ```
    pub fn parse_unified(text: &str) -> Result<Self, UnifiedError> {
        let lines: Vec<&str> = text.strip_suffix('\n').unwrap_or(text).split('\n').collect();
        let mut parser = Parser { lines, at: 0 };
        let mut files = Vec::new();
        while let Some(line) = parser.peek() {
            if let Some(names) = line.strip_prefix("diff --git ") {
                files.push(parser.git_file(names)?);
            } else if line.starts_with("--- ") && parser.line(1).starts_with("+++ ") {
                files.push(parser.plain_file()?);
            } else if line.starts_with("diff --cc ") || line.starts_with("diff --combined ") {
                return Err(parser.error(UnifiedProblem::Combined));
            } else if line.starts_with("Binary files ") && line.trim_end().ends_with(" differ") {
                return Err(parser.error(UnifiedProblem::Binary));
            } else if hunk_numbers(line).is_some() {
                return Err(parser.error(UnifiedProblem::NoFile));
            } else {
                parser.at += 1;
            }
        }
        if files.is_empty() {
            return Err(UnifiedError { line: 1, problem: UnifiedProblem::Nothing });
        }
        Ok(Self { files })
    }
}

/// The header of a file.
#[derive(Default)]
struct Header {
    is_new: bool,
    is_deleted: bool,
    rename: Option<(String, String)>,
    mode: Option<u32>,
}

struct Parser<'t> {
    lines: Vec<&'t str>,
    at: usize,
}

impl<'t> Parser<'t> {
    fn peek(&self) -> Option<&'t str> {
        self.lines.get(self.at).copied()
    }

    /// A line after the current one. Empty after the last.
    fn line(&self, later: usize) -> &'t str {
        self.lines.get(self.at + later).copied().unwrap_or_default()
    }

    fn error(&self, problem: UnifiedProblem) -> UnifiedError {
        UnifiedError { line: self.at + 1, problem }
    }

    /// Parses a file of `git diff`, at its first line.
    fn git_file(&mut self, names: &str) -> Result<FilePatch, UnifiedError> {
        let begin = self.at;
        let both = both_names(names);
        self.at += 1;
        let header = self.git_header()?;
        let has_names = self.line(0).starts_with("--- ") && self.line(1).starts_with("+++ ");
        let names = if has_names { Some(self.names()?) } else { both };
        // Names in `rename` lines have no prefix.
        let names = match &header.rename {
            Some((from, to)) => Some((from.clone(), to.clone())),
            None => names.map(|(old, new)| {
                (without_prefix(&old).to_owned(), without_prefix(&new).to_owned())
            }),
        };
        let no_name = UnifiedError { line: begin + 1, problem: UnifiedProblem::NoName };
        let (old, new) = names.ok_or(no_name)?;
        let chunks = self.hunks()?;
        let Header { is_new, is_deleted, rename, mode } = header;
        if is_new {
            return Ok(FilePatch::Add { path: new, content: content(&chunks), mode });
        }
        if is_deleted {
            return Ok(FilePatch::Delete { path: old, chunks: folded(chunks) });
        }
        if chunks.is_empty() && rename.is_none() && mode.is_none() {
            return Err(UnifiedError { line: begin + 1, problem: UnifiedProblem::NoChange });
        }
        let move_to = rename.map(|(_, to)| to);
        Ok(FilePatch::Update { path: old, move_to, chunks: folded(chunks), mode })
    }

    /// The lines between `diff --git` and `---`.
    fn git_header(&mut self) -> Result<Header, UnifiedError> {
        let mut header = Header::default();
        let (mut from, mut to) = (None, None);
        while let Some(line) = self.peek() {
            let line = line.strip_suffix('\r').unwrap_or(line);
            let mode = |digits: &str| match u32::from_str_radix(digits, 8) {
                Ok(0o100_644) => Ok(None),
                Ok(mode) if mode & 0o170_000 == 0o100_000 => Ok(Some(mode & 0o777)),
                Ok(_) => Err(self.error(UnifiedProblem::SpecialFile)),
                Err(_) => Ok(None),
            };
            if let Some(digits) = line.strip_prefix("new file mode ") {
                (header.is_new, header.mode) = (true, mode(digits)?);
            } else if let Some(digits) = line.strip_prefix("deleted file mode ") {
                mode(digits)?;
                header.is_deleted = true;
            } else if let Some(digits) = line.strip_prefix("new mode ") {
                mode(digits)?;
                header.mode = u32::from_str_radix(digits, 8).ok().map(|mode| mode & 0o777);
            } else if let Some(name) = line.strip_prefix("rename from ") {
                from = plain_name(name);
            } else if let Some(name) = line.strip_prefix("rename to ") {
                to = plain_name(name);
            } else if line.starts_with("copy from ") || line.starts_with("copy to ") {
                return Err(self.error(UnifiedProblem::Copy));
            } else if line.starts_with("GIT binary patch") || line.starts_with("Binary files ") {
                return Err(self.error(UnifiedProblem::Binary));
            } else if !["old mode ", "index ", "similarity ", "dissimilarity "]
                .iter()
                .any(|start| line.starts_with(start))
            {
                break;
            }
            self.at += 1;
        }
        header.rename = from.zip(to);
        Ok(header)
    }

    /// The names in the lines `---` and `+++`.
    fn names(&mut self) -> Result<(String, String), UnifiedError> {
        let names = ["--- ", "+++ "].map(|start| {
            let name = self.line(0).strip_prefix(start).and_then(plain_name);
            let name = name.ok_or_else(|| self.error(UnifiedProblem::NoName));
            self.at += 1;
            name
        });
        let [old, new] = names;
        Ok((old?, new?))
    }

    /// Parses a file of `diff -u`, at its line `---`.
    fn plain_file(&mut self) -> Result<FilePatch, UnifiedError> {
        let begin = self.at;
        let (mut old, mut new) = self.names()?;
        let chunks = self.hunks()?;
        if chunks.is_empty() {
            return Err(UnifiedError { line: begin + 1, problem: UnifiedProblem::NoChange });
        }
        let is_there = (old != NULL, new != NULL);
        let has_prefix = |name: &str, prefix: &str| name == NULL || name.starts_with(prefix);
        if has_prefix(&old, "a/") && has_prefix(&new, "b/") {
            [old, new] = [old, new].map(|name| without_prefix(&name).to_owned());
        }
        Ok(match is_there {
            (false, _) => FilePatch::Add { path: new, content: content(&chunks), mode: None },
            (_, false) => FilePatch::Delete { path: old, chunks: folded(chunks) },
            _ => {
                let chunks = folded(chunks);
                FilePatch::Update { path: new, move_to: None, chunks, mode: None }
            }
        })
    }
}

/// Stands for no file.
const NULL: &str = "/dev/null";

#[cfg(test)]
mod tests;
