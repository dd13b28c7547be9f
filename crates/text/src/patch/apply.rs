//! Applies a patch's chunks to the bytes of a file.
//!
//! Only removed and added lines are spliced. Context lines and everything between chunks keep their bytes.

use super::place::{Placed, lines_of, place};
use super::{Chunk, PatchLine, PlaceError, PlaceProblem};
use crate::document::Document;
use crate::replace::with_line_endings;
use crate::{Encoding, MatchKind, MatchMode, ReplaceError};

/// A file with the changes of a patch.
#[derive(Clone, Debug)]
pub struct PatchedText {
    /// The whole file's new bytes.
    pub bytes: Vec<u8>,
    /// The chunks that did not match exactly: the kind of match, and the first and last line in the new file.
    pub lenient: Vec<(MatchKind, (u64, u64))>,
}

/// Lines to replace: the number of lines before them, their number, and the new lines.
struct Run {
    chunk: usize,
    start: usize,
    removed: usize,
    added: Vec<String>,
    final_newline: Option<bool>,
}

/// Makes the changes of chunks, all of them or none.
///
/// ```
/// use pinfold_text::patch::{FilePatch, Patch, apply_chunks};
/// use pinfold_text::{Encoding, MatchMode};
///
/// let patch = "*** Begin Patch\n*** Update File: a\n@@\n one\n-two\n+TWO\n*** End Patch";
/// let patch = Patch::parse(patch).unwrap();
/// let chunks = patch.files[0].chunks();
/// let patched =
///     apply_chunks(b"one\r\ntwo\r\n", Encoding::UTF_8, chunks, MatchMode::Lenient, 1_000, &|| true);
/// assert_eq!(patched.unwrap().bytes, b"one\r\nTWO\r\n");
/// ```
pub fn apply_chunks(
    bytes: &[u8],
    encoding: Encoding,
    chunks: &[Chunk],
    matching: MatchMode,
    max_bytes: u64,
    keep_going: &dyn Fn() -> bool,
) -> Result<PatchedText, PlaceError> {
    let document = Document::new(bytes, encoding);
    let text = document.text();
    let placed = place(text, chunks, matching, keep_going)?;
    let mut runs = Vec::new();
    for chunk in &placed {
        runs.extend(runs_of(chunk, max_bytes)?);
    }
    // Appended lines come last, wherever their chunk is in the patch.
    runs.sort_by_key(|run| run.start);
    let starts = line_starts(text);
    let mut spans = Vec::new();
    for run in &runs {
        let (start, end, new) = span(run, text, &starts);
        let new = with_line_endings(&document, start, end, &new);
        let error = |problem| PlaceError { chunk: run.chunk, problem };
        let new = document.encode(&new);
        spans.push((start, end, new.map_err(|missing| error(PlaceProblem::Unmappable(missing)))?));
    }
    let problem = |problem| PlaceError { chunk: chunks.len(), problem };
    let bytes = document.splice(&spans).ok_or_else(|| problem(PlaceProblem::NotFound))?;
    let size = bytes.len() as u64;
    if size > max_bytes {
        return Err(problem(PlaceProblem::TooLarge { size }));
    }
    Ok(PatchedText { bytes, lenient: lenient(&placed) })
}

/// The start of each line, and the end of the text.
fn line_starts(text: &str) -> Vec<usize> {
    let mut starts: Vec<usize> = lines_of(text)
        .iter()
        .scan(0, |at, line| {
            let start = *at;
            *at += line.len() + 1;
            Some(start)
        })
        .collect();
    starts.push(text.len());
    starts
}

/// The changed lines of a chunk. The new ones have the indentation of the file.
fn runs_of(placed: &Placed<'_>, max_bytes: u64) -> Result<Vec<Run>, PlaceError> {
    let (chunk, final_newline) = (placed.number, placed.final_newline);
    let mut runs: Vec<Run> = Vec::new();
    let (mut at, mut open) = (placed.start, false);
    for line in placed.lines.iter() {
        if let PatchLine::Context(_) = line {
            (at, open) = (at + 1, false);
            continue;
        }
        if !open {
            runs.push(Run { chunk, start: at, removed: 0, added: Vec::new(), final_newline });
            open = true;
        }
        let run = runs.last_mut().expect("one was pushed");
        match line {
            PatchLine::Add(text) => run.added.push(text.clone()),
            _ => (at, run.removed) = (at + 1, run.removed + 1),
        }
    }
    if let Some(shift) = &placed.shift {
        for run in runs.iter_mut().filter(|run| !run.added.is_empty()) {
            let shifted = shift.apply(&run.added.join("\n"), max_bytes).map_err(|error| {
                let problem = match error {
                    ReplaceError::TooLarge { size } => PlaceProblem::TooLarge { size },
                    _ => PlaceProblem::NotFound,
                };
                PlaceError { chunk, problem }
            })?;
            run.added = shifted.split('\n').map(str::to_owned).collect();
        }
    }
    Ok(runs)
}

/// The part of the text that a run replaces, and the new text.
fn span(run: &Run, text: &str, starts: &[usize]) -> (usize, usize, String) {
    let total = starts.len() - 1;
    let (first, last) = (run.start, run.start + run.removed);
    let mut new = run.added.join("\n");
    if last < total {
        if !run.added.is_empty() {
            new.push('\n');
        }
        return (starts[first], starts[last], new);
    }
    let was_ended = text.is_empty() || text.ends_with('\n');
    let is_ended = run.final_newline.unwrap_or(was_ended);
    if run.added.is_empty() {
        // The line before becomes the last one, and ends as the last one did.
        let start = if is_ended { starts[first] } else { starts[first].saturating_sub(1) };
        return (start, text.len(), new);
    }
    if first == total && !was_ended {
        new.insert(0, '\n');
    }
    if is_ended {
        new.push('\n');
    }
    (starts[first], text.len(), new)
}

/// The lines of leniently matched chunks in the new file.
fn lenient(placed: &[Placed<'_>]) -> Vec<(MatchKind, (u64, u64))> {
    let mut grown = 0_i64;
    let mut lenient = Vec::new();
    for chunk in placed {
        let new = chunk.lines.iter().filter(|line| line.new_text().is_some()).count() as i64;
        let old = chunk.lines.iter().filter(|line| line.old_text().is_some()).count() as i64;
        let first = chunk.start as i64 + 1 + grown;
        grown += new - old;
        if !matches!(chunk.match_kind, MatchKind::Exact | MatchKind::LineEndings) {
            let last = (first + new - 1).max(first);
            lenient.push((chunk.match_kind, (first.unsigned_abs(), last.unsigned_abs())));
        }
    }
    lenient
}

#[cfg(test)]
mod tests;
