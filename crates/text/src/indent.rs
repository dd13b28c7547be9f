//! Shifts indentation, by the same amount on every line.

use std::collections::BTreeMap;

use crate::ReplaceError;
use crate::locate::WHITESPACE;

/// How far an old text has to be moved to stand as it does in the file, and any new text with it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Shift {
    /// This whitespace comes before every line.
    Add(String),
    /// This whitespace goes from the beginning of every line.
    Remove(String),
    /// So many spaces of the old text are one tab of the file, and so many tabs come before that.
    ToTabs { unit: usize, levels: isize },
    /// One tab of the old text is so many spaces of the file, and so many levels come before that.
    ToSpaces { unit: usize, levels: isize },
}

/// A line's indentation, and the rest of it.
pub(crate) fn indentation(line: &str) -> (&str, &str) {
    line.split_at(line.len() - line.trim_start_matches(WHITESPACE).len())
}

/// The indentations of a text's lines, blank ones left out.
fn indents(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').filter(|line| !is_blank(line)).map(|line| indentation(line).0)
}

/// What indentations are made of.
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

/// How wide one level is in a text that shows none.
const USUAL_UNIT: usize = 4;

impl Shift {
    /// The shift between pairs of lines, wanted and found, that are alike but for indentation.
    ///
    /// `new` is what will be moved: its whitespace tells how wide a level is where the old text does not.
    pub(crate) fn between(pairs: &[(&str, &str)], new: &str, file: &str) -> Option<Self> {
        let pairs: Vec<(&str, &str)> = pairs
            .iter()
            .filter(|(wanted, _)| !is_blank(wanted))
            .map(|(wanted, found)| (indentation(wanted).0, indentation(found).0))
            .collect();
        let given = pairs.iter().map(|(wanted, _)| *wanted).chain(indents(new));
        match (IndentKind::of(given), IndentKind::of(pairs.iter().map(|(_, found)| *found))) {
            (IndentKind::Spaces, IndentKind::Tabs) => Self::to_tabs(&pairs, new),
            (IndentKind::Tabs, IndentKind::Spaces) => Self::to_spaces(&pairs, file),
            _ => Self::same_kind(&pairs),
        }
    }

    fn same_kind(pairs: &[(&str, &str)]) -> Option<Self> {
        let (wanted, found) = *pairs.first()?;
        if let Some(more) = found.strip_suffix(wanted).filter(|more| !more.is_empty()) {
            let same = pairs.iter().all(|(wanted, found)| found.strip_suffix(wanted) == Some(more));
            return same.then(|| Self::Add(more.to_owned()));
        }
        let more = wanted.strip_suffix(found).filter(|more| !more.is_empty())?;
        let same = pairs.iter().all(|(wanted, found)| wanted.strip_suffix(found) == Some(more));
        same.then(|| Self::Remove(more.to_owned()))
    }

    fn to_tabs(pairs: &[(&str, &str)], new: &str) -> Option<Self> {
        let widths = pairs.iter().map(|(wanted, _)| wanted.len());
        let unit = unit(widths).or_else(|| unit(indents(new).map(str::len))).unwrap_or(USUAL_UNIT);
        let levels = constant(
            pairs
                .iter()
                .map(|(wanted, found)| Some(found.len() as isize - whole(wanted.len(), unit)?)),
        )?;
        Some(Self::ToTabs { unit, levels })
    }

    fn to_spaces(pairs: &[(&str, &str)], file: &str) -> Option<Self> {
        /// Enough lines to know a file's habits.
        const ENOUGH: usize = 2_000;
        let unit = unit(indents(file).take(ENOUGH).map(str::len)).unwrap_or(USUAL_UNIT);
        let levels = constant(
            pairs
                .iter()
                .map(|(wanted, found)| Some(whole(found.len(), unit)? - wanted.len() as isize)),
        )?;
        Some(Self::ToSpaces { unit, levels })
    }

    /// New text, moved in the same way; refused if a line of it cannot be, or if it gets too large.
    pub(crate) fn apply(&self, new: &str, max_bytes: u64) -> Result<String, ReplaceError> {
        let mut moved = String::with_capacity(new.len());
        for (number, line) in new.split('\n').enumerate() {
            if number > 0 {
                moved.push('\n');
            }
            let ShiftedLine { more, times, rest } =
                self.moved(line).ok_or(ReplaceError::NotFound)?;
            // A line can be asked to stand further to the right than there is memory.
            let size = more.len().saturating_mul(times).saturating_add(moved.len() + rest.len());
            if size as u64 > max_bytes {
                return Err(ReplaceError::TooLarge { size: size as u64 });
            }
            (0..times).for_each(|_| moved.push_str(more));
            moved.push_str(rest);
        }
        Ok(moved)
    }

    /// One line of new text; `None` if it cannot be moved.
    fn moved<'l>(&'l self, line: &'l str) -> Option<ShiftedLine<'l>> {
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

/// A line that was moved: whitespace, how often it comes, and the rest of it.
struct ShiftedLine<'l> {
    more: &'l str,
    times: usize,
    rest: &'l str,
}

/// The level that an indentation of one kind of whitespace stands for.
fn level(indent: &str, kind: char, unit: usize) -> Option<isize> {
    indent.chars().all(|c| c == kind).then_some(())?;
    whole(indent.len(), unit)
}

/// How many units a width is, if it is a whole number of them.
fn whole(width: usize, unit: usize) -> Option<isize> {
    (width.is_multiple_of(unit)).then_some((width / unit) as isize)
}

/// The value that all have.
fn constant(mut values: impl Iterator<Item = Option<isize>>) -> Option<isize> {
    let first = values.next()??;
    values.all(|value| value == Some(first)).then_some(first)
}

/// How wide one level is, by how much deeper lines are than the ones before them, if any is.
fn unit(widths: impl Iterator<Item = usize>) -> Option<usize> {
    let mut steps: BTreeMap<usize, usize> = BTreeMap::new();
    let mut last = 0;
    for width in widths {
        if width > last {
            *steps.entry(width - last).or_default() += 1;
        }
        last = width;
    }
    // Most common first, and of those the smallest. A single space is alignment, not a level.
    let common = steps.into_iter().filter(|(step, _)| *step > 1);
    common.rev().max_by_key(|(_, count)| *count).map(|(step, _)| step)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(old: &[&str], file: &[&str], new: &str) -> Option<String> {
        let pairs: Vec<_> = old.iter().copied().zip(file.iter().copied()).collect();
        Shift::between(&pairs, new, &file.join("\n"))?.apply(new, u64::MAX).ok()
    }

    #[test]
    fn text_that_grows_too_large_is_not_made() {
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
    fn new_text_moves_with_the_old() {
        for (old, file, new, expected) in [
            // Deeper, and back.
            (&["a", "  b"][..], &["    a", "      b"][..], "x\n  y\n", Some("    x\n      y\n")),
            (&["    a", "    b"], &["  a", "  b"], "    x\n      y", Some("  x\n    y")),
            (&["\ta"], &["\t\ta"], "\tx\n\t\ty", Some("\t\tx\n\t\t\ty")),
            // Blank lines stay blank.
            (&["a", "", "b"], &["  a", "", "  b"], "x\n\ny", Some("  x\n\n  y")),
            // Left of the margin is nowhere.
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
            // Not the same on every line.
            (&["a", "b"], &["  a", "    b"], "x", None),
        ] {
            assert_eq!(moved(old, file, new).as_deref(), expected, "{old:?} {file:?} {new:?}");
        }
    }
}
