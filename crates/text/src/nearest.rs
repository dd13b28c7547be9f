//! Explains why a text is not in a file: shows the nearest region, and how it differs.
//!
//! The explanation is only shown and decides nothing. Its length and the time to find it are bounded, even for a
//! large file or text.

mod aligned;
mod excerpt;
mod fold;
mod likeness;
mod old_text;
mod reason;
mod search;

use std::fmt::Write as _;

use memchr::memmem;

use crate::Encoding;
use crate::document::Document;
use crate::nearest::aligned::Aligned;
use crate::nearest::likeness::Work;
use crate::nearest::old_text::OldText;
use crate::replace::fold_line_endings;

const INFALLIBLE: &str = "a String takes anything";

/// Explains why `old` is not in a file: shows the nearest region with line numbers, says how it differs, and whether
/// `new` is already in the file. Returns `None` if no region resembles `old`.
///
/// The search ends early once `keep_going` returns false.
pub fn nearest(
    bytes: &[u8],
    encoding: Encoding,
    old: &str,
    new: &str,
    keep_going: &dyn Fn() -> bool,
) -> Option<String> {
    let document = Document::new(bytes, encoding);
    let text = document.text();
    let (old, new) = (fold_line_endings(old), fold_line_endings(new));
    let mut out = String::new();
    if let Some(at) = already_there(text, &new) {
        let line = line_number(text, at);
        writeln!(out, "the new text is there already, on line {line}").expect(INFALLIBLE);
    }
    let old = OldText::new(&old, text);
    let work = Work::new(keep_going);
    if let Some(found) = Aligned::find(text, &old, &work) {
        found.describe(text, &old, &work, &mut out);
    }
    (!out.is_empty()).then(|| out.trim_end_matches('\n').to_owned())
}

fn already_there(text: &str, new: &str) -> Option<usize> {
    // A short text may occur by chance.
    (new.trim().len() >= 8).then(|| memmem::find(text.as_bytes(), new.as_bytes()))?
}

fn line_number(text: &str, at: usize) -> usize {
    memchr::memchr_iter(b'\n', &text.as_bytes()[..at]).count() + 1
}

fn line_start(text: &str, at: usize) -> usize {
    memchr::memrchr(b'\n', &text.as_bytes()[..at]).map_or(0, |lf| lf + 1)
}

/// The end of the line at an offset, without its LF.
fn line_end(text: &str, at: usize) -> usize {
    memchr::memchr(b'\n', &text.as_bytes()[at..]).map_or(text.len(), |lf| at + lf)
}

/// Makes spaces and tabs visible.
fn mark_whitespace(text: &str) -> String {
    text.replace('\t', "\u{2192}").replace(' ', "\u{b7}")
}

#[cfg(test)]
mod tests;
