//! Parses the hunks of a unified diff.

use super::{Parser, UnifiedError, UnifiedProblem};
use crate::patch::{Chunk, PatchLine};

impl Parser<'_> {
    /// The hunks of a file.
    pub(super) fn hunks(&mut self) -> Result<Vec<Chunk>, UnifiedError> {
        let mut chunks = Vec::new();
        while self.line(0).starts_with("@@") {
            chunks.push(self.hunk()?);
        }
        // A line of a hunk must not be skipped like a commit message.
        let next = self.line(0);
        let is_diff = next.starts_with("--- ") && self.line(1).starts_with("+++ ");
        if !chunks.is_empty()
            && next.starts_with(['+', '-', ' '])
            && next.trim_end() != "--"
            && !is_diff
        {
            return Err(self.error(UnifiedProblem::LongHunk));
        }
        Ok(chunks)
    }

    fn hunk(&mut self) -> Result<Chunk, UnifiedError> {
        let numbers = hunk_numbers(self.line(0));
        let bad = self.error(UnifiedProblem::BadHunk);
        let (line, mut old, mut new) = numbers.ok_or(bad)?;
        if old == 0 && line > 0 {
            return Err(self.error(UnifiedProblem::NoContext));
        }
        self.at += 1;
        let mut lines = Vec::new();
        let (mut old_open, mut new_open) = (false, false);
        loop {
            let next = self.peek();
            if next.is_some_and(|next| next.starts_with("\\ ")) {
                match lines.last() {
                    Some(PatchLine::Context(_)) => (old_open, new_open) = (true, true),
                    Some(PatchLine::Remove(_)) => old_open = true,
                    Some(PatchLine::Add(_)) => new_open = true,
                    None => return Err(self.error(UnifiedProblem::BadHunk)),
                }
                self.at += 1;
                continue;
            }
            if (old, new) == (0, 0) {
                break;
            }
            let next = next.ok_or_else(|| self.error(UnifiedProblem::ShortHunk))?;
            let (mark, text) = if next.is_empty() {
                (" ", "")
            } else {
                next.split_at_checked(1).unwrap_or((next, ""))
            };
            let text = text.to_owned();
            let (line, removes, adds) = match mark {
                " " => (PatchLine::Context(text), 1, 1),
                "\r" => (PatchLine::Context("\r".into()), 1, 1),
                "-" => (PatchLine::Remove(text), 1, 0),
                "+" => (PatchLine::Add(text), 0, 1),
                _ => return Err(self.error(UnifiedProblem::ShortHunk)),
            };
            let left = old.checked_sub(removes).zip(new.checked_sub(adds));
            (old, new) = left.ok_or_else(|| self.error(UnifiedProblem::LongHunk))?;
            lines.push(line);
            self.at += 1;
        }
        let at_end = old_open || new_open;
        let final_newline = at_end.then_some(!new_open);
        Ok(Chunk { headers: Vec::new(), line: Some(line), lines, at_end, final_newline })
    }
}

/// The numbers in `@@ -1,3 +1,4 @@`: the first old line, and the numbers of old and new lines.
pub(super) fn hunk_numbers(line: &str) -> Option<(u64, u64, u64)> {
    let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let range = |text: &str| match text.split_once(',') {
        None => Some((text.parse().ok()?, 1)),
        Some((first, count)) => Some((first.parse::<u64>().ok()?, count.parse::<u64>().ok()?)),
    };
    let ((line, old), (_, new)) = (range(old)?, range(new)?);
    Some((line, old, new))
}

/// The content of a new file. Line endings are those of the diff.
pub(super) fn content(chunks: &[Chunk]) -> String {
    let lines: Vec<&str> = chunks.iter().flat_map(Chunk::new_lines).collect();
    let open = chunks.last().is_some_and(|chunk| chunk.final_newline == Some(false));
    let end = if open || lines.is_empty() { "" } else { "\n" };
    lines.join("\n") + end
}

/// Chunks without the CR of line endings. A patch does not decide about a file's line endings.
pub(super) fn folded(mut chunks: Vec<Chunk>) -> Vec<Chunk> {
    let lines = chunks.iter_mut().flat_map(|chunk| &mut chunk.lines);
    for PatchLine::Context(text) | PatchLine::Remove(text) | PatchLine::Add(text) in lines {
        if text.ends_with('\r') {
            text.pop();
        }
    }
    chunks
}
