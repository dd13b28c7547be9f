//! Patches: changes of files, in one form for both notations that people and models write.
//!
//! [`Patch::parse`] parses codex's notation, and [`Patch::parse_unified`] parses unified diffs. A patch is only text:
//! [`apply_chunks`] finds the lines of its chunks in a file, and replaces them.

mod apply;
mod git_names;
mod parse;
mod place;
mod unified;

use std::fmt;

use crate::{MatchKind, Unmappable};

pub use apply::{PatchedText, apply_chunks};
pub use parse::{ParseError, ParseProblem};
pub use unified::{UnifiedError, UnifiedProblem};

/// A parsed patch: its changes to files.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Patch {
    /// The files, in the order of the patch.
    pub files: Vec<FilePatch>,
}

/// The change of one file by a patch.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum FilePatch {
    /// Creates a file.
    Add {
        /// The path.
        path: String,
        /// The file's whole content.
        content: String,
        /// The mode of the new file, if the patch has one.
        mode: Option<u32>,
    },
    /// Deletes a file.
    Delete {
        /// The path.
        path: String,
        /// The content that it must have, if the patch has it.
        chunks: Vec<Chunk>,
    },
    /// Changes a file, or moves it, or both.
    Update {
        /// The path.
        path: String,
        /// The path that it is moved to.
        move_to: Option<String>,
        /// The chunks, in the order of the file.
        chunks: Vec<Chunk>,
        /// The new mode of the file, if the patch has one.
        mode: Option<u32>,
    },
}

/// Adjacent lines of a file, some of them changed.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Chunk {
    /// Lines of the file before the chunk. Each is somewhere after the one before it.
    pub headers: Vec<String>,
    /// The number of the first old line, counting from 1, if the patch has numbers; 0 if there are no old lines.
    pub line: Option<u64>,
    /// The lines.
    pub lines: Vec<PatchLine>,
    /// Whether the last old line is the last of the file.
    pub at_end: bool,
    /// Whether the file ends with a line ending afterwards; `None` keeps it.
    pub final_newline: Option<bool>,
}

/// A line of a chunk, without its line ending.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PatchLine {
    /// The line stays.
    Context(String),
    /// The line is removed.
    Remove(String),
    /// The line is added.
    Add(String),
}

/// The chunk that could not be applied.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PlaceError {
    /// Its number, counting from 1.
    pub chunk: usize,
    /// The reason.
    pub problem: PlaceProblem,
}

/// The reason why a chunk could not be applied.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PlaceProblem {
    /// A header does not occur in the file, or not after the one before it.
    NoHeader {
        /// The header.
        header: String,
    },
    /// The first header occurs several times.
    ManyHeaders {
        /// The header.
        header: String,
        /// The first lines where it occurs.
        lines: Vec<u64>,
    },
    /// The old lines are not in the file.
    NotFound,
    /// The old lines are in the file, but not where the patch has them.
    Elsewhere {
        /// The line on which they start.
        line: u64,
        /// Whether the patch has them at the end of the file, or behind what comes before them.
        at_end: bool,
    },
    /// The old lines are in several places.
    Many {
        /// The number of occurrences.
        count: usize,
        /// The first lines of the first occurrences.
        lines: Vec<u64>,
        /// How they were matched.
        match_kind: MatchKind,
    },
    /// The file would become larger than the maximum.
    TooLarge {
        /// The minimum size that it would have.
        size: u64,
    },
    /// A new line has a character that the file's encoding cannot express.
    Unmappable(Unmappable),
    /// The deadline has passed, or the call was cancelled.
    TimedOut,
}

impl PatchLine {
    /// The line, if the file has it before the patch.
    pub fn old_text(&self) -> Option<&str> {
        match self {
            Self::Context(text) | Self::Remove(text) => Some(text),
            Self::Add(_) => None,
        }
    }

    /// The line, if the file has it after the patch.
    pub fn new_text(&self) -> Option<&str> {
        match self {
            Self::Context(text) | Self::Add(text) => Some(text),
            Self::Remove(_) => None,
        }
    }
}

impl Chunk {
    /// The lines of the file before the patch.
    pub fn old_lines(&self) -> Vec<&str> {
        self.lines.iter().filter_map(PatchLine::old_text).collect()
    }

    /// The lines of the file after the patch.
    pub fn new_lines(&self) -> Vec<&str> {
        self.lines.iter().filter_map(PatchLine::new_text).collect()
    }
}

impl FilePatch {
    /// The path.
    pub fn path(&self) -> &str {
        match self {
            Self::Add { path, .. } | Self::Delete { path, .. } | Self::Update { path, .. } => path,
        }
    }

    /// The paths that it changes: its own, and the one that it moves the file to.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        let to = match self {
            Self::Update { move_to, .. } => move_to.as_deref(),
            Self::Add { .. } | Self::Delete { .. } => None,
        };
        std::iter::once(self.path()).chain(to)
    }

    /// Its chunks.
    pub fn chunks(&self) -> &[Chunk] {
        match self {
            Self::Add { .. } => &[],
            Self::Delete { chunks, .. } | Self::Update { chunks, .. } => chunks,
        }
    }
}

impl Patch {
    /// A path that occurs twice in the patch.
    pub fn repeated_path(&self) -> Option<&str> {
        let mut known = std::collections::HashSet::new();
        self.files.iter().flat_map(FilePatch::paths).find(|path| !known.insert(*path))
    }
}

/// Codex's notation. It omits what only unified diffs can express.
impl fmt::Display for Patch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{}", parse::BEGIN)?;
        self.files.iter().try_for_each(|file| file.fmt(out))?;
        writeln!(out, "{}", parse::END)
    }
}

impl fmt::Display for FilePatch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Add { path, content, .. } => {
                writeln!(out, "{}{path}", parse::ADD)?;
                content.lines().try_for_each(|line| writeln!(out, "+{line}"))
            }
            Self::Delete { path, .. } => writeln!(out, "{}{path}", parse::DELETE),
            Self::Update { path, move_to, chunks, .. } => {
                writeln!(out, "{}{path}", parse::UPDATE)?;
                if let Some(to) = move_to {
                    writeln!(out, "{}{to}", parse::MOVE)?;
                }
                chunks.iter().try_for_each(|chunk| chunk.fmt(out))
            }
        }
    }
}

impl fmt::Display for Chunk {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.headers.is_empty() {
            writeln!(out, "{}", parse::HEADER)?;
        }
        self.headers.iter().try_for_each(|header| writeln!(out, "{} {header}", parse::HEADER))?;
        for line in &self.lines {
            match line {
                PatchLine::Context(text) => writeln!(out, " {text}")?,
                PatchLine::Remove(text) => writeln!(out, "-{text}")?,
                PatchLine::Add(text) => writeln!(out, "+{text}")?,
            }
        }
        if self.at_end { writeln!(out, "{}", parse::END_OF_FILE) } else { Ok(()) }
    }
}
