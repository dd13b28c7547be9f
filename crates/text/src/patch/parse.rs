//! Parses codex's notation for patches.
//!
//! The parser is as lenient as codex's: it accepts blanks around marker lines, a first chunk without `@@`, an empty
//! line as empty context, a shell's here-document around the patch, and CR before LF. It also accepts stacked `@@`
//! lines.

use super::{Chunk, FilePatch, Patch, PatchLine};

pub(super) const BEGIN: &str = "*** Begin Patch";
pub(super) const END: &str = "*** End Patch";
pub(super) const ADD: &str = "*** Add File: ";
pub(super) const DELETE: &str = "*** Delete File: ";
pub(super) const UPDATE: &str = "*** Update File: ";
pub(super) const MOVE: &str = "*** Move to: ";
pub(super) const END_OF_FILE: &str = "*** End of File";
pub(super) const HEADER: &str = "@@";

/// The reason why a text is not a patch.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ParseError {
    /// The line of the text, counting from 1.
    pub line: usize,
    /// The problem.
    pub problem: ParseProblem,
}

/// A problem with a line of a patch.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ParseProblem {
    /// The patch does not start with its first marker line.
    NoBegin,
    /// The patch does not end with its last marker line.
    NoEnd,
    /// The line does not begin a file.
    NotAFile {
        /// The line, without blanks around it.
        found: String,
    },
    /// The section of a changed file has no chunks.
    NoChunks {
        /// The file's path.
        path: String,
    },
    /// A chunk has no lines.
    NoLines,
    /// A line of a chunk has no mark.
    NoMark {
        /// The line.
        found: String,
    },
    /// A chunk other than the first does not begin with `@@`.
    NoHeader {
        /// The line.
        found: String,
    },
    /// A chunk with headers only adds lines, so their place after the header is unknown.
    NoContext {
        /// The last header.
        header: String,
    },
}

impl Patch {
    /// Parses codex's notation.
    ///
    /// ```
    /// use pinfold_text::patch::{FilePatch, Patch};
    ///
    /// let patch = Patch::parse("*** Begin Patch\n*** Delete File: a.txt\n*** End Patch\n").unwrap();
    /// assert_eq!(patch.files, [FilePatch::Delete { path: "a.txt".into(), chunks: vec![] }]);
    ///
    /// let error = Patch::parse("*** Begin Patch\n*** Erase File: a.txt\n*** End Patch\n").unwrap_err();
    /// assert_eq!(error.line, 2);
    /// ```
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let mut lines = Lines::new(text)?;
        let mut files = Vec::new();
        while let Some(line) = lines.peek() {
            files.push(lines.file(line)?);
        }
        Ok(Self { files })
    }

    /// Whether a text begins like codex's notation.
    pub fn is_codex(text: &str) -> bool {
        let mut lines = text.lines().map(str::trim).skip_while(|line| line.is_empty());
        match lines.next() {
            Some(BEGIN) => true,
            Some(first) if is_heredoc(first) => lines.next() == Some(BEGIN),
            _ => false,
        }
    }
}

/// Whether a line begins a here-document, as in `apply_patch <<'EOF'`.
fn is_heredoc(line: &str) -> bool {
    matches!(line, "<<EOF" | "<<'EOF'" | "<<\"EOF\"")
}

/// The lines between the first and the last line of the patch, and the position of the parser.
struct Lines<'t> {
    lines: Vec<&'t str>,
    /// The number of parsed lines.
    at: usize,
    /// The number of lines of the text before the patch.
    before: usize,
}

impl<'t> Lines<'t> {
    fn new(text: &'t str) -> Result<Self, ParseError> {
        let mut lines: Vec<&str> = text.split('\n').map(without_cr).collect();
        let is_blank = |line: &&str| line.trim().is_empty();
        lines.truncate(lines.len() - lines.iter().rev().take_while(|line| is_blank(line)).count());
        let mut before = lines.iter().take_while(|line| is_blank(line)).count().min(lines.len());
        lines.drain(..before);
        if let [first, .., last] = lines[..]
            && is_heredoc(first.trim())
            && last.trim_end().ends_with("EOF")
        {
            lines.pop();
            lines.remove(0);
            before += 1;
        }
        let line = before + 1;
        if lines.first().map(|first| first.trim()) != Some(BEGIN) {
            return Err(ParseError { line, problem: ParseProblem::NoBegin });
        }
        let last = before + lines.len();
        if lines.len() < 2 || lines.pop().map(str::trim) != Some(END) {
            return Err(ParseError { line: last, problem: ParseProblem::NoEnd });
        }
        lines.remove(0);
        Ok(Self { lines, at: 0, before: before + 1 })
    }

    fn peek(&self) -> Option<&'t str> {
        self.lines.get(self.at).copied()
    }

    /// The next line, if `select` returns something for it.
    fn next_if<T>(&mut self, select: impl FnOnce(&'t str) -> Option<T>) -> Option<T> {
        let found = select(self.peek()?)?;
        self.at += 1;
        Some(found)
    }

    /// The error for the next line.
    fn error(&self, problem: ParseProblem) -> ParseError {
        ParseError { line: self.before + self.at + 1, problem }
    }

    fn file(&mut self, line: &'t str) -> Result<FilePatch, ParseError> {
        let line = line.trim();
        let path = |start| line.strip_prefix(start).map(|path: &str| path.trim().to_owned());
        if let Some(path) = path(ADD) {
            self.at += 1;
            let mut content = String::new();
            while let Some(added) = self.next_if(|line| line.strip_prefix('+')) {
                content.push_str(added);
                content.push('\n');
            }
            return Ok(FilePatch::Add { path, content, mode: None });
        }
        if let Some(path) = path(DELETE) {
            self.at += 1;
            return Ok(FilePatch::Delete { path, chunks: Vec::new() });
        }
        let Some(path) = path(UPDATE) else {
            return Err(self.error(ParseProblem::NotAFile { found: line.to_owned() }));
        };
        let empty = self.error(ParseProblem::NoChunks { path: path.clone() });
        self.at += 1;
        let move_to = self.next_if(|line| line.trim().strip_prefix(MOVE));
        let move_to = move_to.map(|path| path.trim().to_owned());
        let mut chunks = Vec::new();
        while let Some(line) = self.peek() {
            if line.trim().is_empty() {
                self.at += 1;
            } else if line.starts_with("***") {
                break;
            } else {
                chunks.push(self.chunk(chunks.is_empty())?);
            }
        }
        if chunks.is_empty() && move_to.is_none() {
            return Err(empty);
        }
        Ok(FilePatch::Update { path, move_to, chunks, mode: None })
    }

    /// Parses one chunk. Only the first chunk of a file may lack a header.
    fn chunk(&mut self, is_first: bool) -> Result<Chunk, ParseError> {
        let start = self.at;
        let mut headers = Vec::new();
        while let Some(header) = self.next_if(header) {
            headers.extend((!header.trim().is_empty()).then(|| header.to_owned()));
        }
        if self.at == start && !is_first {
            let found = self.peek().unwrap_or_default().to_owned();
            return Err(self.error(ParseProblem::NoHeader { found }));
        }
        let mut lines = Vec::new();
        while let Some(line) = self.next_if(patch_line) {
            lines.push(line);
        }
        if lines.is_empty() {
            let problem = match self.peek() {
                Some(line) if !line.starts_with("***") => {
                    ParseProblem::NoMark { found: line.to_owned() }
                }
                _ => ParseProblem::NoLines,
            };
            return Err(self.error(problem));
        }
        if let Some(header) = headers.last()
            && lines.iter().all(|line| line.old_text().is_none())
        {
            self.at = start;
            return Err(self.error(ParseProblem::NoContext { header: header.clone() }));
        }
        let at_end = self.next_if(|line| (line.trim_end() == END_OF_FILE).then_some(())).is_some();
        Ok(Chunk { headers, lines, at_end, ..Chunk::default() })
    }
}

/// The text of a line that begins with `@@`.
fn header(line: &str) -> Option<&str> {
    if line.trim_end() == HEADER { Some("") } else { line.strip_prefix("@@ ") }
}

fn patch_line(line: &str) -> Option<PatchLine> {
    let mut letters = line.chars();
    let mark = letters.next();
    let text = letters.as_str().to_owned();
    match mark {
        None | Some(' ') => Some(PatchLine::Context(text)),
        Some('-') => Some(PatchLine::Remove(text)),
        Some('+') => Some(PatchLine::Add(text)),
        Some(_) => None,
    }
}

fn without_cr(line: &str) -> &str {
    line.strip_suffix('\r').unwrap_or(line)
}

#[cfg(test)]
mod tests;
