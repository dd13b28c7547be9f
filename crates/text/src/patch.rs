//! Patches: what they say about files, in one form for both notations that people and models write.
//!
//! [`Patch::parse`] reads codex's notation, [`Patch::parse_unified`] unified diffs. A patch is text and nothing else:
//! [`apply_chunks`] finds the lines that its chunks are about, and replaces them.

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
        /// All that the file holds.
        content: String,
        /// The mode of the new file, if the patch says it.
        mode: Option<u32>,
    },
    /// Deletes a file.
    Delete {
        /// The path.
        path: String,
        /// The content that it must have, if the patch says it.
        chunks: Vec<Chunk>,
    },
    /// Changes a file, or moves it, or both.
    Update {
        /// The path.
        path: String,
        /// The path that it goes to.
        move_to: Option<String>,
        /// The changes, from the top of the file to the bottom.
        chunks: Vec<Chunk>,
        /// The mode that the file should get, if the patch says it.
        mode: Option<u32>,
    },
}

/// Lines of a file that follow each other, some of them changed.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Chunk {
    /// Lines of the file that come before the chunk, each somewhere behind the one before.
    pub headers: Vec<String>,
    /// The number of the first old line, counting from 1, where the patch has numbers; 0 if there are no old lines.
    pub line: Option<u64>,
    /// The lines.
    pub lines: Vec<PatchLine>,
    /// Whether the last old line is the last of the file.
    pub at_end: bool,
    /// Whether the file ends with a line ending afterwards; `None` leaves it as it is.
    pub final_newline: Option<bool>,
}

/// A line of a chunk, without its line ending.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PatchLine {
    /// Stays.
    Context(String),
    /// Is removed.
    Remove(String),
    /// Is added.
    Add(String),
}

/// The chunk that could not be applied.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PlaceError {
    /// Which one it is, counting from 1.
    pub chunk: usize,
    /// Why.
    pub problem: PlaceProblem,
}

/// Why a chunk could not be applied.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PlaceProblem {
    /// A header is not in the file, or not behind what comes before it.
    NoHeader {
        /// The header.
        header: String,
    },
    /// The first header is several lines of the file.
    ManyHeaders {
        /// The header.
        header: String,
        /// The first of the lines.
        lines: Vec<u64>,
    },
    /// The old lines are not in the file, or not behind what comes before them.
    NotFound,
    /// The old lines are in several places.
    Many {
        /// How many.
        count: usize,
        /// The lines on which the first of them start.
        lines: Vec<u64>,
        /// How they were found.
        match_kind: MatchKind,
    },
    /// The file would become larger than it may.
    TooLarge {
        /// How large, at least.
        size: u64,
    },
    /// A new line has a character that the file's encoding cannot express.
    Unmappable(Unmappable),
    /// The deadline has passed, or the call was cancelled.
    Interrupted,
}

impl PatchLine {
    /// The line, if it is in the file before the patch.
    pub fn old_text(&self) -> Option<&str> {
        match self {
            Self::Context(text) | Self::Remove(text) => Some(text),
            Self::Add(_) => None,
        }
    }

    /// The line, if it is in the file after the patch.
    pub fn new_text(&self) -> Option<&str> {
        match self {
            Self::Context(text) | Self::Add(text) => Some(text),
            Self::Remove(_) => None,
        }
    }
}

impl Chunk {
    /// The lines that the file has before the patch.
    pub fn old_lines(&self) -> Vec<&str> {
        self.lines.iter().filter_map(PatchLine::old_text).collect()
    }

    /// The lines that the file has after the patch.
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
    /// A path that two files of the patch have.
    pub fn repeated_path(&self) -> Option<&str> {
        let mut known = std::collections::HashSet::new();
        self.files.iter().flat_map(FilePatch::paths).find(|path| !known.insert(*path))
    }
}

/// Codex's notation. What only unified diffs can say is left out.
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
