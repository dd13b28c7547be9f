//! Unified diffs for users and models.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;
use std::time::Duration;

use similar::{DiffOp, group_diff_ops};

use crate::edit_script::edit_script_of_lines;
use crate::{Charset, Encoding};

/// After this time the diff is still correct, but may not be the shortest.
const MAX_SEARCH_TIME: Duration = Duration::from_millis(500);

/// The format of a unified diff.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum DiffFormat {
    /// Git's format, with three lines of context.
    #[default]
    Git,
    /// jsdiff's format: an `Index:` line, labels after the paths, four lines of context, and the count of lines in
    /// every hunk header. A byte order mark is shown, and every line ends with LF.
    Index,
    /// Not a diff, but the new lines with five lines of context, and `...` for omitted lines. Every line ends with LF.
    Snippet,
}

impl DiffFormat {
    /// Lines of context around a change.
    fn context(self) -> usize {
        match self {
            Self::Git => 3,
            Self::Index => 4,
            Self::Snippet => 5,
        }
    }

    /// The lines before the first hunk.
    pub fn header(self, path: &str) -> String {
        match self {
            Self::Git => format!("--- a/{path}\n+++ b/{path}\n"),
            Self::Index => {
                let rule = "=".repeat(67);
                format!("Index: {path}\n{rule}\n--- {path}\toriginal\n+++ {path}\tmodified\n")
            }
            Self::Snippet => String::new(),
        }
    }

    /// A text in the form that the diff shows.
    fn shown(self, bytes: &[u8], encoding: Encoding) -> Cow<'_, str> {
        let (text, _) = encoding.decode_lossy(bytes);
        let marked = encoding.bom && !bytes.is_empty();
        match self {
            Self::Index if marked || text.contains("\r\n") => {
                let mark = if marked { "\u{feff}" } else { "" };
                Cow::Owned(format!("{mark}{}", text.replace("\r\n", "\n")))
            }
            Self::Snippet if text.contains("\r\n") => Cow::Owned(text.replace("\r\n", "\n")),
            _ => text,
        }
    }

    /// A range of lines in a hunk header.
    fn range(self, lines: Range<usize>, offset: usize) -> String {
        match lines.len() {
            0 => format!("{},0", lines.start + offset),
            1 if self == Self::Git => format!("{}", lines.start + offset + 1),
            count => format!("{},{count}", lines.start + offset + 1),
        }
    }
}

/// The unified diff from `old` to `new`, in at most about `budget` bytes.
///
/// Both have their encoding; malformed bytes are shown as U+FFFD. A longer diff is cut after a line, and its last
/// line says how many lines are missing.
pub fn unified_diff(
    format: DiffFormat,
    path: &str,
    old: (&[u8], Encoding),
    new: (&[u8], Encoding),
    budget: usize,
) -> String {
    let context = format.context();
    let plain = Encoding { bom: false, ..old.1 };
    let changed = match old.1.charset {
        // Line endings are visible in the bytes, so only the changed lines have to be decoded.
        Charset::Utf8 | Charset::Legacy(_) if old.1 == new.1 => {
            Some(ChangedLines::of(old.0, new.0, context))
        }
        _ => None,
    };
    let (before, after, offset) = match &changed {
        Some(middle) if middle.start > 0 => (
            format.shown(middle.old, plain),
            format.shown(middle.new, plain),
            memchr::memchr_iter(b'\n', &old.0[..middle.start]).count(),
        ),
        Some(middle) => (format.shown(middle.old, old.1), format.shown(middle.new, new.1), 0),
        None => (format.shown(old.0, old.1), format.shown(new.0, new.1), 0),
    };
    let mut out = format.header(path);
    // Only LF ends a line; a lone CR is an ordinary character.
    let [before, after]: [Vec<&str>; 2] =
        [&before, &after].map(|text| text.split_inclusive('\n').collect());
    let script = edit_script_of_lines(&before, &after, MAX_SEARCH_TIME);
    let groups = group_diff_ops(script, context);
    if format == DiffFormat::Snippet {
        let rest = changed.as_ref().is_some_and(|middle| middle.has_rest);
        let mut end = 0;
        for lines in groups.iter().filter_map(|group| new_lines(group)) {
            if lines.start + offset > end {
                out.push_str("...\n");
            }
            out.extend(after[lines.clone()].iter().copied());
            end = lines.end + offset;
        }
        if !groups.is_empty() && (rest || end < after.len() + offset) {
            out.push_str("...\n");
        }
        return cut(out, budget);
    }
    for group in groups {
        let (Some(first), Some(new)) = (group.first(), new_lines(&group)) else { continue };
        let old_end = group.last().unwrap_or(first).old_range().end;
        let [old, new] = [first.old_range().start..old_end, new];
        let [old, new] = [old, new].map(|lines| format.range(lines, offset));
        writeln!(out, "@@ -{old} +{new} @@").expect(INFALLIBLE);
        for change in group.iter().flat_map(|op| op.iter_changes(&before, &after)) {
            let line = change.value();
            write!(out, "{}{line}", change.tag()).expect(INFALLIBLE);
            if !line.ends_with('\n') {
                out.push_str("\n\\ No newline at end of file\n");
            }
        }
    }
    cut(out, budget)
}

/// The new lines of a hunk.
fn new_lines(group: &[DiffOp]) -> Option<Range<usize>> {
    Some(group.first()?.new_range().start..group.last()?.new_range().end)
}

/// The lines from the first to the last difference, with context, so that a large file need not be split into lines
/// as a whole.
struct ChangedLines<'b> {
    /// The start offset of both.
    start: usize,
    old: &'b [u8],
    new: &'b [u8],
    /// Whether the file goes on after them.
    has_rest: bool,
}

impl<'b> ChangedLines<'b> {
    fn of(old: &'b [u8], new: &'b [u8], context: usize) -> Self {
        let start = context_before(old, common_prefix_len(old, new), context);
        let (old, new) = (&old[start..], &new[start..]);
        let end = context_after(old, old.len() - common_suffix_len(old, new), context);
        let (rest, old) = (old.len() - end, &old[..end]);
        Self { start, old, new: &new[..new.len() - rest], has_rest: rest > 0 }
    }
}

const INFALLIBLE: &str = "a String takes anything";

/// Long texts are compared in large blocks, the rest in smaller ones.
const BLOCKS: [usize; 3] = [4096, 64, 1];

/// The length of the common prefix.
pub(crate) fn common_prefix_len(one: &[u8], other: &[u8]) -> usize {
    BLOCKS.into_iter().fold(0, |same, size| {
        let blocks = one[same..].chunks_exact(size).zip(other[same..].chunks_exact(size));
        same + size * blocks.take_while(|(one, other)| one == other).count()
    })
}

/// The length of the common suffix.
pub(crate) fn common_suffix_len(one: &[u8], other: &[u8]) -> usize {
    BLOCKS.into_iter().fold(0, |same, size| {
        let (one, other) = (&one[..one.len() - same], &other[..other.len() - same]);
        let blocks = one.rchunks_exact(size).zip(other.rchunks_exact(size));
        same + size * blocks.take_while(|(one, other)| one == other).count()
    })
}

/// The start of the lines of context before an offset.
fn context_before(text: &[u8], offset: usize, context: usize) -> usize {
    let mut start = memchr::memrchr(b'\n', &text[..offset]).map_or(0, |lf| lf + 1);
    for _ in 0..context {
        let above = &text[..start.saturating_sub(1)];
        start = memchr::memrchr(b'\n', above).map_or(0, |lf| lf + 1);
    }
    start
}

/// The end of the lines of context after an offset.
fn context_after(text: &[u8], offset: usize, context: usize) -> usize {
    let mut end = offset;
    for _ in 0..=context {
        end += memchr::memchr(b'\n', &text[end..]).map_or(text.len() - end, |lf| lf + 1);
    }
    end
}

fn cut(mut diff: String, budget: usize) -> String {
    if diff.len() <= budget {
        return diff;
    }
    let keep = memchr::memrchr(b'\n', &diff.as_bytes()[..budget]).map_or(0, |end| end + 1);
    let missing = diff[keep..].lines().count();
    diff.truncate(keep);
    write!(diff, "[diff cut: {missing} more lines]").expect(INFALLIBLE);
    diff.push('\n');
    diff
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unified_diff(path: &str, old: &str, new: &str, budget: usize) -> String {
        let utf8 = |text| (str::as_bytes(text), Encoding::UTF_8);
        super::unified_diff(DiffFormat::Git, path, utf8(old), utf8(new), budget)
    }

    #[test]
    fn common_ends_are_counted_to_the_byte() {
        for len in [1, 63, 64, 65, 4095, 4097, 9000] {
            let text = vec![b'x'; len];
            for at in [0, len / 3, len / 2, len - 1] {
                let mut other = text.clone();
                other[at] = b'y';
                assert_eq!(common_prefix_len(&text, &other), at);
                assert_eq!(common_suffix_len(&text, &other), len - 1 - at);
            }
            assert_eq!(common_prefix_len(&text, &text[..len / 2]), len / 2);
            assert_eq!(common_suffix_len(&text[len / 2..], &text), len - len / 2);
        }
    }

    #[test]
    fn a_diff_names_the_file_and_the_lines() {
        let diff = unified_diff("a.txt", "one\ntwo\nthree\n", "one\n2\nthree\n", 1000);
        let expected = "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n";
        assert_eq!(diff, expected);
    }

    #[test]
    fn hunk_headers_count_lines_from_the_start_of_the_file() {
        let old: String = (1..=5000).map(|n| format!("{n}\n")).collect();
        let new = old.replace("\n4000\n", "\nnew\nlines\n");
        let diff = unified_diff("a", &old, &new, 1000);
        assert!(diff.contains("@@ -3997,7 +3997,8 @@\n 3997\n"), "{diff}");
    }

    #[test]
    fn the_index_format_counts_every_line() {
        let diff = |old: &str, new: &str| {
            let [old, new] = [old, new].map(|text| {
                let bom = text.starts_with('\u{feff}');
                (text.as_bytes(), Encoding { bom, ..Encoding::UTF_8 })
            });
            super::unified_diff(DiffFormat::Index, "/w/a", old, new, 1000)
        };
        let rule = "=".repeat(67);
        let header = format!("Index: /w/a\n{rule}\n--- /w/a\toriginal\n+++ /w/a\tmodified\n");
        let filled = format!("{header}@@ -0,0 +1,1 @@\n+y\n\\ No newline at end of file\n");
        assert_eq!(diff("", "y"), filled);
        let hunk = "@@ -2,9 +2,9 @@\n 2\n 3\n 4\n 5\n-6\n+x\n 7\n 8\n 9\n 10\n";
        let old: String = (1..=11).map(|line| format!("{line}\n")).collect();
        assert_eq!(diff(&old, &old.replace('6', "x")), format!("{header}{hunk}"));
        let marked = diff("\u{feff}one\r\ntwo\r\n", "\u{feff}one\r\nTWO\r\n");
        let hunk = "@@ -1,2 +1,2 @@\n \u{feff}one\n-two\n+TWO\n";
        assert_eq!(marked, format!("{header}{hunk}"));
    }

    #[test]
    fn a_snippet_is_what_is_there_now() {
        let snippet = |old: &str, new: &str| {
            let [old, new] = [old, new].map(|text| (text.as_bytes(), Encoding::UTF_8));
            super::unified_diff(DiffFormat::Snippet, "a", old, new, 1000)
        };
        assert_eq!(snippet("", "x\ny"), "x\ny");
        assert_eq!(snippet("a\nb\n", "a\n"), "a\n");
        assert_eq!(snippet("a\r\nb\r\n", "a\r\nc\r\n"), "a\nc\n");
        let lines = |range: std::ops::RangeInclusive<u32>| -> String {
            range.map(|line| format!("{line}\n")).collect()
        };
        let old = lines(1..=40);
        let new = old.replace("\n10\n", "\nten\n").replace("\n30\n", "\n");
        let (first, second) =
            (lines(5..=15).replace("10", "ten"), lines(25..=35).replace("30\n", ""));
        assert_eq!(snippet(&old, &new), format!("...\n{first}...\n{second}...\n"));
        let first = format!("new\n{}...\n", lines(1..=5));
        assert_eq!(snippet(&old, &format!("new\n{old}")), first);
        assert_eq!(snippet(&old, &format!("{old}new\n")), format!("...\n{}new\n", lines(36..=40)));
    }

    proptest::proptest! {
        #[test]
        fn a_diff_applied_to_the_old_text_gives_the_new(old in "[ab\n]{0,40}", new in "[ab\n]{0,40}") {
            let diff = unified_diff("x", &old, &new, usize::MAX);
            proptest::prop_assert_eq!(applied(&old, &diff), new);
        }
    }

    /// Applies a unified diff to a text.
    fn applied(old: &str, diff: &str) -> String {
        let lines: Vec<&str> = old.split_inclusive('\n').collect();
        let (mut out, mut at, mut last_kept) = (String::new(), 0, false);
        for line in diff.split_inclusive('\n').skip(2) {
            let body = &line[1..];
            match &line[..1] {
                "@" => {
                    let from = body
                        .split(['-', ' ', ','])
                        .find_map(|word| word.parse::<usize>().ok())
                        .unwrap();
                    let empty =
                        body.split(' ').find(|word| word.starts_with('-')).unwrap().ends_with(",0");
                    let from = if empty { from } else { from - 1 };
                    out.extend(lines[at..from].iter().copied());
                    at = from;
                }
                " " => {
                    out.push_str(body);
                    at += 1;
                    last_kept = true;
                }
                "-" => {
                    at += 1;
                    last_kept = false;
                }
                "+" => {
                    out.push_str(body);
                    last_kept = true;
                }
                _ => {
                    if last_kept {
                        out.pop();
                    }
                }
            }
        }
        out.extend(lines[at..].iter().copied());
        out
    }

    #[test]
    fn text_in_any_encoding_is_decoded_before_it_is_compared() {
        for label in ["utf-16", "utf-32be", "latin1"] {
            let encoding = Encoding::for_label(label).unwrap();
            let [old, new] = ["one\ntwo\n", "one\n2\n"].map(|text| encoding.encode(text).unwrap());
            let diff =
                super::unified_diff(DiffFormat::Git, "a", (&old, encoding), (&new, encoding), 1000);
            assert!(diff.ends_with("@@ -1,2 +1,2 @@\n one\n-two\n+2\n"), "{label}: {diff}");
        }
        let marked = Encoding { bom: true, ..Encoding::UTF_8 };
        let old = (&b"\xEF\xBB\xBFa\n"[..], marked);
        let diff = super::unified_diff(DiffFormat::Git, "a", old, (b"b\n", Encoding::UTF_8), 1000);
        assert!(diff.ends_with("@@ -1 +1 @@\n-a\n+b\n"), "{diff}");
    }

    #[test]
    fn a_lone_cr_ends_no_line() {
        let diff = unified_diff("a", "h\ra\rb\nc\nd\n", "h\ra\rb\nc\nD\n", 1000);
        assert!(diff.contains("@@ -1,3 +1,3 @@\n h\ra\rb\n c\n-d\n+D\n"), "{diff}");
    }

    #[test]
    fn a_missing_final_newline_is_noted() {
        let diff = unified_diff("a", "x\n", "x", 1000);
        assert!(diff.ends_with("+x\n\\ No newline at end of file\n"), "{diff}");
    }

    #[test]
    fn a_long_diff_is_cut_at_a_line() {
        let new = "line\n".repeat(100);
        let diff = unified_diff("a", "", &new, 60);
        assert!(diff.len() < 100, "{diff}");
        assert!(diff.ends_with("more lines]\n"), "{diff}");
        let uncut = unified_diff("a", "", &new, 10_000);
        assert_eq!(unified_diff("a", "", &new, uncut.len()), uncut);
    }
}
