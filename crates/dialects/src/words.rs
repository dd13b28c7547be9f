//! Words that several tools use.

use pinfold::operations::Write;
use pinfold::{Done, Page};

/// `1 line`, `2 lines`.
pub(crate) fn count(number: u64, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// The names that are most like `wanted`, if any are like it at all.
pub(crate) fn nearest<'n>(wanted: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let wanted = wanted.to_lowercase();
    let names: Vec<_> = names.collect();
    let within =
        names.iter().find(|name| wanted.len() > 2 && name.to_lowercase().contains(&wanted));
    if let Some(name) = within {
        return Some(name);
    }
    names
        .into_iter()
        .map(|name| (strsim::normalized_damerau_levenshtein(&wanted, &name.to_lowercase()), name))
        .filter(|(score, _)| *score >= 0.5)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, name)| name)
}

/// What a reader should know about bytes that are not what they should be, if there are any.
pub(crate) fn malformed(page: &Page) -> Option<String> {
    let encoding = page.encoding.name();
    page.malformed.then(|| format!("bytes that are not {encoding} are shown as U+FFFD"))
}

/// What came of a write, told.
pub(crate) struct Story {
    /// One line for a person.
    pub(crate) short: String,
    /// One line that names the file.
    pub(crate) line: String,
    /// What a reader should know besides.
    pub(crate) notices: Vec<String>,
    /// In a dry run, what would change.
    pub(crate) diff: Option<String>,
    /// Bytes that went to the disk, or would have.
    pub(crate) bytes_written: u64,
}

impl Story {
    pub(crate) fn of(done: &Done<Write>, path: &str) -> Self {
        let bytes = count(done.bytes, "byte");
        let (did, would) = match (done.changed, done.created) {
            (false, _) => ("Unchanged", "change nothing"),
            (true, true) => ("Created", "create"),
            (true, false) => ("Updated", "update"),
        };
        let dry_run = done.receipt.dry_run;
        let (short, line) = match (dry_run, done.changed) {
            (false, false) => (did.into(), format!("{did}: {path} already has this content")),
            (false, true) => (format!("{did} ({bytes})"), format!("{did} {path} ({bytes})")),
            (true, false) => (
                format!("[Dry Run] Would {would}"),
                format!("[Dry Run] Would {would}: {path} already has this content"),
            ),
            (true, true) => (
                format!("[Dry Run] Would {would} ({bytes})"),
                format!("[Dry Run] Would {would} {path} ({bytes})"),
            ),
        };
        let mut notices = Vec::new();
        if let Some(before) = done.recoded_from.filter(|_| done.changed) {
            let mark = if before.bom { " with a byte order mark" } else { "" };
            notices.push(format!("the file was {}{mark} before", before.name()));
        }
        if done.changed && done.other_names > 0 {
            let names = count(done.other_names, "other hard link");
            notices.push(format!("the old content is still there under {names}"));
        }
        let bytes_written = if done.changed { done.bytes } else { 0 };
        Self { short, line, notices, diff: done.receipt.diff.clone(), bytes_written }
    }

    /// Everything, for a model.
    pub(crate) fn long(&self) -> String {
        let mut text = self.line.clone();
        self.notices.iter().for_each(|notice| text.push_str(&format!("\n({notice})")));
        if let Some(diff) = &self.diff {
            text.push('\n');
            text.push_str(diff);
        }
        text
    }

    /// For dialects that answer with fields: what the fields do not say, if there is something.
    pub(crate) fn besides(&self, dry_run: bool) -> Option<String> {
        let unsaid = dry_run || !self.notices.is_empty() || self.bytes_written == 0;
        unsaid.then(|| self.long())
    }
}
