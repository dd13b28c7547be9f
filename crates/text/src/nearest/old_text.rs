//! Cleans the text of an edit: removes pasted line numbers and diff markers, and recognises placeholders.

use memchr::memmem;

use super::search::MAX_SEGMENTS;

/// A prefix that was pasted with every line, and that the file does not have.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Prefix {
    /// A line number. `tab` says whether each is followed by a tab.
    LineNumber { tab: bool },
    /// `+`, `-` or a space.
    DiffMarker,
}

/// The text of an edit, without a prefix that was pasted with every line.
pub(super) struct OldText {
    pub(super) text: String,
    pub(super) prefix: Option<Prefix>,
    /// The number of lines after the first [`MAX_SEGMENTS`], which are not searched for.
    pub(super) more_lines: usize,
}

impl OldText {
    pub(super) fn new(old: &str, file: &str) -> Self {
        let lines: Vec<&str> = old.strip_suffix('\n').unwrap_or(old).split('\n').collect();
        let more_lines = lines.len().saturating_sub(MAX_SEGMENTS);
        let lines = &lines[..lines.len() - more_lines];
        let longest = lines.iter().max_by_key(|line| line.trim().len()).unwrap_or(&"").trim();
        let present = memmem::find(file.as_bytes(), longest.as_bytes()).is_some();
        let (text, prefix) = match without_numbers(lines).or_else(|| without_markers(lines)) {
            Some((stripped, prefix)) if !present => (stripped.join("\n"), Some(prefix)),
            _ => (lines.join("\n"), None),
        };
        let ended = more_lines == 0 && old.ends_with('\n');
        Self { text: if ended { text + "\n" } else { text }, prefix, more_lines }
    }
}

/// The lines without their numbers, if each has one and they count up.
fn without_numbers<'o>(lines: &[&'o str]) -> Option<(Vec<&'o str>, Prefix)> {
    let (mut stripped, mut last, mut tab) = (Vec::new(), None, true);
    for line in lines {
        if line.trim().is_empty() {
            stripped.push(*line);
            continue;
        }
        let digits = line.trim_start_matches(' ');
        let digits = digits.strip_prefix('L').unwrap_or(digits);
        let after = digits.trim_start_matches(|c: char| c.is_ascii_digit());
        let number: u64 = digits[..digits.len() - after.len()].parse().ok()?;
        if last.is_some_and(|last| number <= last) {
            return None;
        }
        last = Some(number);
        let bare = after.trim_start_matches(' ');
        let rest = match after.strip_prefix(['\t', '\u{2192}']) {
            Some(rest) => rest,
            None => {
                tab = false;
                let rest = bare.strip_prefix(['|', ':', '\u{2502}'])?;
                rest.strip_prefix(' ').unwrap_or(rest)
            }
        };
        stripped.push(rest);
    }
    last.map(|_| (stripped, Prefix::LineNumber { tab }))
}

/// The lines of a diff without markers and without added lines.
fn without_markers<'o>(lines: &[&'o str]) -> Option<(Vec<&'o str>, Prefix)> {
    let marked = |line: &&&str| line.starts_with(['+', '-']);
    let fits = |line: &&str| line.is_empty() || line.starts_with(['+', '-', ' ', '@', '\\']);
    if !lines.iter().any(|line| marked(&line)) || !lines.iter().all(fits) {
        return None;
    }
    let added = lines.iter().filter(|line| line.starts_with('+')).count();
    // If all lines are added, the text is what the model expects in the file.
    let keeps_added = added == lines.len();
    let kept = lines.iter().filter(|line| {
        !line.starts_with("@@")
            && !line.starts_with('\\')
            && (keeps_added || !line.starts_with('+'))
    });
    let stripped: Vec<&str> = kept.map(|line| line.get(1..).unwrap_or("")).collect();
    (!stripped.is_empty()).then_some((stripped, Prefix::DiffMarker))
}

/// Whether a line is a placeholder for omitted lines, such as `// ... existing code ...`.
pub(super) fn is_placeholder(line: &str) -> bool {
    let leaders: &[char] =
        &['/', '#', '*', '-', ';', '<', '!', '%', '(', '[', '{', ' ', '\t', '\''];
    let closers: &[char] = &['/', '*', '-', '>', ')', ']', '}', ' ', '\t'];
    let inner = line.trim_start_matches(leaders).trim_end_matches(closers);
    let dots = |text: &str| text.starts_with("...") || text.starts_with('\u{2026}');
    if inner.is_empty() || !(dots(inner) || inner.ends_with("...") || inner.ends_with('\u{2026}')) {
        return false;
    }
    if inner.trim_matches(['.', '\u{2026}', ' ']).is_empty() {
        return true;
    }
    // Words beside the dots count only in a comment, since `...args` is code.
    let comment = ["//", "#", "/*", "--", "<!--", ";", "%", "{/*", "*"];
    comment.iter().any(|leader| line.trim_start().starts_with(leader))
}
