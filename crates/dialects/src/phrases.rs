//! Phrases that several tools share.

use std::time::{SystemTime, UNIX_EPOCH};

use chrono::{DateTime, Utc};
use pinfold::{Kind, Page, Skipped, cut_to_chars};

/// `1 line`, `2 lines`.
pub(crate) fn count(number: u64, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// A note on malformed bytes in a page, if there are any.
pub(crate) fn malformed(page: &Page) -> Option<String> {
    let encoding = page.encoding.name();
    page.malformed.then(|| format!("bytes that are not {encoding} are shown as U+FFFD"))
}

/// The first 40 characters of a text of any length.
pub(crate) fn shortened(text: &str) -> String {
    cut_to_chars(text, 40).into_owned()
}

/// A human-readable size in units of 1,024: `1.2 KB`.
pub(crate) fn human_size(bytes: u64) -> String {
    let mut unit = "B";
    let mut size = bytes as f64;
    for larger in ["KB", "MB", "GB", "TB"] {
        // 1023.95 would be rounded to 1024.0.
        if size < 1023.95 {
            break;
        }
        size /= 1024.0;
        unit = larger;
    }
    if unit == "B" { format!("{bytes} B") } else { format!("{size:.1} {unit}") }
}

/// The name of an entry's kind in structured answers.
pub(crate) fn kind_word(kind: Kind) -> &'static str {
    match kind {
        Kind::File => "file",
        Kind::Directory => "directory",
        Kind::Symlink => "symlink",
        Kind::Fifo | Kind::Socket | Kind::Device => "other",
    }
}

/// A time in ISO 8601, in UTC, with milliseconds.
pub(crate) fn utc(time: SystemTime) -> String {
    utc_time(time).format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

/// A time in UTC. A file may have one that no calendar has; then it is the epoch.
pub(crate) fn utc_time(time: SystemTime) -> DateTime<Utc> {
    let nanoseconds = match time.duration_since(UNIX_EPOCH) {
        Ok(after) => i128::try_from(after.as_nanos()),
        Err(before) => i128::try_from(before.duration().as_nanos()).map(|before| -before),
    };
    let nanoseconds = nanoseconds.unwrap_or_default();
    let seconds = i64::try_from(nanoseconds.div_euclid(1_000_000_000));
    let rest = u32::try_from(nanoseconds.rem_euclid(1_000_000_000));
    let time = seconds.ok().zip(rest.ok());
    time.and_then(|(seconds, rest)| DateTime::from_timestamp(seconds, rest)).unwrap_or_default()
}

/// A note on entries that were skipped because they are hidden or ignored. `how` says how to see them.
pub(crate) fn skipped(skipped: &Skipped, how: &str) -> Option<String> {
    let kinds = [(skipped.hidden, "hidden"), (skipped.ignored, "ignored")];
    let kinds: Vec<_> = kinds.into_iter().filter(|(number, _)| *number > 0).collect();
    let total: u64 = kinds.iter().map(|(number, _)| number).sum();
    let named: Vec<_> = kinds.iter().map(|(number, kind)| format!("{number} {kind}")).collect();
    let entries = if total == 1 { "entry was" } else { "entries were" };
    (total > 0).then(|| format!("{total} {entries} skipped: {}; {how}", named.join(", ")))
}

/// A note on a glob with brackets that fits nothing: they may be part of a name, such as `[id].tsx`.
pub(crate) fn brackets(glob: &str) -> Option<String> {
    let has_set = glob.contains('[') && !glob.contains('\\');
    let can_be_shown = glob.len() <= 200 && !glob.contains(char::is_control);
    let literal = || glob.replace('[', r"\[").replace(']', r"\]");
    (has_set && can_be_shown).then(|| {
        format!("`[` starts a set of characters; `{}` fits names with brackets", literal())
    })
}

/// A note on entries that could not be read, or only in part.
pub(crate) fn unread(skipped: &Skipped) -> Option<String> {
    let unreadable = match skipped.unreadable {
        0 => None,
        1 => Some("1 entry could not be read".to_owned()),
        number => Some(format!("{number} entries could not be read")),
    };
    let deep = match skipped.too_deep {
        0 => None,
        number => Some(format!("{number} too deep down to be entered; name one in path")),
    };
    let large = match skipped.too_large {
        0 => None,
        1 => Some("1 file was not searched: a line is too long".to_owned()),
        number => Some(format!("{number} files were not searched: a line is too long")),
    };
    let rules = match skipped.cut_ignore_files {
        0 => None,
        1 => Some("1 ignore file is too long and was read in part".to_owned()),
        number => Some(format!("{number} ignore files are too long and were read in part")),
    };
    let withheld = withheld(skipped).map(|number| format!("{number} withheld by policy"));
    joined([withheld, unreadable, deep, large, rules])
}

/// How many entries the policy withholds, if any.
pub(crate) fn withheld(skipped: &Skipped) -> Option<u64> {
    (skipped.withheld > 0).then_some(skipped.withheld)
}

/// A note on the items that are missing because the list would be too long.
pub(crate) fn left_out(shown: u64, total: u64, what: &str, how: &str) -> Option<String> {
    (shown < total).then(|| format!("{what} 1-{shown} of {total}; {how} to see the others"))
}

/// The leading items whose total cost fits into a budget. The first item is always included.
pub(crate) fn fit<T>(
    budget: usize,
    items: impl IntoIterator<Item = T>,
    cost: impl Fn(&T) -> usize,
) -> Vec<T> {
    let mut left = budget;
    let mut fitting = Vec::new();
    for item in items {
        let cost = cost(&item);
        if cost > left && !fitting.is_empty() {
            break;
        }
        left = left.saturating_sub(cost);
        fitting.push(item);
    }
    fitting
}

/// Joins the notes that are present.
pub(crate) fn joined(parts: impl IntoIterator<Item = Option<String>>) -> Option<String> {
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Appends notices to a text, each on its own line.
pub(crate) fn with_notices(mut content: String, notices: &[String]) -> String {
    if !notices.is_empty() && !content.is_empty() && !content.ends_with('\n') {
        content.push('\n');
    }
    content.push_str(&notices.join("\n"));
    content
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_in_units_of_1024() {
        for (bytes, expected) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KB"),
            (1229, "1.2 KB"),
            (1024 * 1024 - 1, "1.0 MB"),
            (5 << 30, "5.0 GB"),
            (3000 << 40, "3000.0 TB"),
        ] {
            assert_eq!(human_size(bytes), expected);
        }
    }
}
