//! Shifts the indentation of new text by the same amount as the old text has to be shifted to match the file.
//!
//! All lines have the same shift; otherwise the edit is refused.

use std::collections::BTreeMap;

use crate::ReplaceError;
use crate::locate::WHITESPACE;

/// The change of indentation between the old text and the file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Shift {
    /// Adds this whitespace at the start of every line.
    Add(String),
    /// Removes this whitespace from the start of every line.
    Remove(String),
    /// Replaces every `unit` spaces by one tab, then adds `levels` tabs (removes them if negative).
    ToTabs { unit: usize, levels: isize },
    /// Replaces every tab by `unit` spaces, then adds `levels` times `unit` spaces (removes them if negative).
    ToSpaces { unit: usize, levels: isize },
}

/// Splits a line into its indentation and the rest.
pub(crate) fn indentation(line: &str) -> (&str, &str) {
    line.split_at(line.len() - line.trim_start_matches(WHITESPACE).len())
}

/// The indentation of every line of a text that is not blank.
fn indents(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').filter(|line| !is_blank(line)).map(|line| indentation(line).0)
}

/// The whitespace that indentations consist of.
#[derive(Clone, Copy, PartialEq)]
enum IndentKind {
    None,
    Spaces,
    Tabs,
    Mixed,
}

impl IndentKind {
    fn of<'i>(indents: impl Iterator<Item = &'i str>) -> Self {
        let (mut spaces, mut tabs) = (false, false);
        indents.for_each(|indent| {
            spaces |= indent.contains(' ');
            tabs |= indent.contains('\t');
        });
        match (spaces, tabs) {
            (false, false) => Self::None,
            (true, false) => Self::Spaces,
            (false, true) => Self::Tabs,
            (true, true) => Self::Mixed,
        }
    }
}

fn is_blank(line: &str) -> bool {
    line.trim_matches(WHITESPACE).is_empty()
}

/// The width of one level, if the text has no deeper lines that show it.
const DEFAULT_UNIT: usize = 4;

impl Shift {
    /// The shift between pairs of lines, of the old text and of the file, that differ only in indentation.
    ///
    /// The width of a level in spaces is, from spaces to tabs, that of the old text, or else of `new`, the text to shift;
    /// from tabs to spaces, that of `file`.
    pub(crate) fn between(pairs: &[(&str, &str)], new: &str, file: &str) -> Option<Self> {
        let pairs: Vec<(&str, &str)> = pairs
            .iter()
            .filter(|(old, _)| !is_blank(old))
            .map(|(old, found)| (indentation(old).0, indentation(found).0))
            .collect();
        let request = pairs.iter().map(|(old, _)| *old).chain(indents(new));
        match (IndentKind::of(request), IndentKind::of(pairs.iter().map(|(_, found)| *found))) {
            (IndentKind::Spaces, IndentKind::Tabs) => Self::to_tabs(&pairs, new),
            (IndentKind::Tabs, IndentKind::Spaces) => Self::to_spaces(&pairs, file),
            _ => Self::same_kind(&pairs),
        }
    }

    fn same_kind(pairs: &[(&str, &str)]) -> Option<Self> {
        let (old, found) = *pairs.first()?;
        if let Some(more) = found.strip_suffix(old).filter(|more| !more.is_empty()) {
            let same = pairs.iter().all(|(old, found)| found.strip_suffix(old) == Some(more));
            return same.then(|| Self::Add(more.to_owned()));
        }
        let more = old.strip_suffix(found).filter(|more| !more.is_empty())?;
        let same = pairs.iter().all(|(old, found)| old.strip_suffix(found) == Some(more));
        same.then(|| Self::Remove(more.to_owned()))
    }

    fn to_tabs(pairs: &[(&str, &str)], new: &str) -> Option<Self> {
        let widths = pairs.iter().map(|(old, _)| old.len());
        let unit =
            unit(widths).or_else(|| unit(indents(new).map(str::len))).unwrap_or(DEFAULT_UNIT);
        let levels = constant(
            pairs.iter().map(|(old, found)| Some(found.len() as isize - whole(old.len(), unit)?)),
        )?;
        Some(Self::ToTabs { unit, levels })
    }

    fn to_spaces(pairs: &[(&str, &str)], file: &str) -> Option<Self> {
        /// The number of lines of the file in which the width of a level is looked for.
        const MAX_SAMPLE_LINES: usize = 2_000;
        let unit = unit(indents(file).take(MAX_SAMPLE_LINES).map(str::len)).unwrap_or(DEFAULT_UNIT);
        let levels = constant(
            pairs.iter().map(|(old, found)| Some(whole(found.len(), unit)? - old.len() as isize)),
        )?;
        Some(Self::ToSpaces { unit, levels })
    }

    /// Shifts new text. Fails if one of its lines cannot be shifted, or if the result is too large.
    pub(crate) fn apply(&self, new: &str, max_bytes: u64) -> Result<String, ReplaceError> {
        let mut shifted = String::with_capacity(new.len());
        for (number, line) in new.split('\n').enumerate() {
            if number > 0 {
                shifted.push('\n');
            }
            let ShiftedLine { more, times, rest } =
                self.shift_line(line).ok_or(ReplaceError::NotFound)?;
            // Checked before the line is built, since a large shift could need too much memory.
            let size = more.len().saturating_mul(times).saturating_add(shifted.len() + rest.len());
            if size as u64 > max_bytes {
                return Err(ReplaceError::TooLarge { size: size as u64 });
            }
            (0..times).for_each(|_| shifted.push_str(more));
            shifted.push_str(rest);
        }
        Ok(shifted)
    }

    /// Shifts one line of new text. Returns `None` if it cannot be shifted.
    fn shift_line<'l>(&'l self, line: &'l str) -> Option<ShiftedLine<'l>> {
        if is_blank(line) {
            return Some(ShiftedLine { more: "", times: 0, rest: line });
        }
        let (indent, rest) = indentation(line);
        let deep = |level: isize| usize::try_from(level).ok();
        Some(match self {
            Self::Add(more) => ShiftedLine { more, times: 1, rest: line },
            Self::Remove(more) => {
                ShiftedLine { more: "", times: 0, rest: line.strip_prefix(more)? }
            }
            Self::ToTabs { unit, levels } => {
                let times = deep(level(indent, ' ', *unit)? + levels)?;
                ShiftedLine { more: "\t", times, rest }
            }
            Self::ToSpaces { unit, levels } => {
                let times = deep(level(indent, '\t', 1)? + levels)?.saturating_mul(*unit);
                ShiftedLine { more: " ", times, rest }
            }
        })
    }
}

/// A shifted line: `more` repeated `times`, then the rest of the line.
struct ShiftedLine<'l> {
    more: &'l str,
    times: usize,
    rest: &'l str,
}

/// The level of an indentation. Returns `None` if it has other whitespace than `kind`.
fn level(indent: &str, kind: char, unit: usize) -> Option<isize> {
    indent.chars().all(|c| c == kind).then_some(())?;
    whole(indent.len(), unit)
}

/// The width in units, if it is a multiple of the unit.
fn whole(width: usize, unit: usize) -> Option<isize> {
    (width.is_multiple_of(unit)).then_some((width / unit) as isize)
}

/// The common value, if all values are equal.
fn constant(mut values: impl Iterator<Item = Option<isize>>) -> Option<isize> {
    let first = values.next()??;
    values.all(|value| value == Some(first)).then_some(first)
}

/// The width of one level: the most common increase from a line to the next. Returns `None` if there is none.
fn unit(widths: impl Iterator<Item = usize>) -> Option<usize> {
    let mut steps: BTreeMap<usize, usize> = BTreeMap::new();
    let mut last = 0;
    for width in widths {
        if width > last {
            *steps.entry(width - last).or_default() += 1;
        }
        last = width;
    }
    // The smallest of the most common widths. A single space is alignment, not a level.
    let common = steps.into_iter().filter(|(step, _)| *step > 1);
    common.rev().max_by_key(|(_, count)| *count).map(|(step, _)| step)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shifted(old: &[&str], file: &[&str], new: &str) -> Option<String> {
        let pairs: Vec<_> = old.iter().copied().zip(file.iter().copied()).collect();
        Shift::between(&pairs, new, &file.join("\n"))?.apply(new, u64::MAX).ok()
    }

    #[test]
    fn text_that_grows_too_large_is_refused() {
        let wide = Shift::Add(" ".repeat(1_000));
        let refused = wide.apply(&"a\n".repeat(1_000), 10_000).unwrap_err();
        assert!(matches!(refused, ReplaceError::TooLarge { size: 10_001..12_000 }), "{refused:?}");
        assert_eq!(wide.apply("a\n", 1_002).unwrap().len(), 1_002);
        let endless = Shift::ToSpaces { unit: usize::MAX / 2, levels: 3 };
        assert!(matches!(endless.apply("a", 10_000), Err(ReplaceError::TooLarge { .. })));
        let deep = Shift::ToTabs { unit: 1, levels: isize::MAX / 2 };
        assert!(matches!(deep.apply("a", 10_000), Err(ReplaceError::TooLarge { .. })));
    }

    #[test]
    fn new_text_is_shifted_like_the_old_text() {
        for (old, file, new, expected) in [
            // Deeper, and back.
            (&["a", "  b"][..], &["    a", "      b"][..], "x\n  y\n", Some("    x\n      y\n")),
            (&["    a", "    b"], &["  a", "  b"], "    x\n      y", Some("  x\n    y")),
            (&["\ta"], &["\t\ta"], "\tx\n\t\ty", Some("\t\tx\n\t\t\ty")),
            // Blank lines stay blank.
            (&["a", "", "b"], &["  a", "", "  b"], "x\n\ny", Some("  x\n\n  y")),
            // A line cannot be shifted left of the margin.
            (&["    a"], &["a"], "  x", None),
            (&["    a"], &["a"], "    x", Some("x")),
            // Spaces to tabs, by the unit of the old text, or four.
            (&["  a", "    b"], &["\ta", "\t\tb"], "  x\n    y", Some("\tx\n\t\ty")),
            (&["    a"], &["\ta"], "    x\n        y", Some("\tx\n\t\ty")),
            (&["a"], &["\ta"], "x\n    y", Some("\tx\n\t\ty")),
            (&["a"], &["\ta"], "x\n  y", Some("\tx\n\t\ty")),
            (&["a"], &["  a", "    b"], "x\n\ty", Some("  x\n    y")),
            (&["a"], &["\ta"], "x\ny", Some("\tx\n\ty")),
            (&["    a"], &["\t\ta"], "    x", Some("\t\tx")),
            (&["    a", "        b"], &["\ta", "\tb"], "    x", None),
            (&["    a"], &["\ta"], "   x", None),
            // Tabs to spaces, by the unit of the file.
            (&["\ta", "\t\tb"], &["  a", "    b"], "\tx\n\t\ty", Some("  x\n    y")),
            (&["\ta"], &["    a"], "\tx", Some("    x")),
            (&["\ta", "\t\tb"], &["   a", "     b"], "\tx", None),
            // The shift differs between lines.
            (&["a", "b"], &["  a", "    b"], "x", None),
        ] {
            assert_eq!(shifted(old, file, new).as_deref(), expected, "{old:?} {file:?} {new:?}");
        }
    }
}
