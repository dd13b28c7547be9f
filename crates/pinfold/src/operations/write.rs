//! `Write`: creates a file, or replaces its whole content.

use std::io::Read as _;

use pinfold_confine::{Error as ConfineError, Place, RawPath, Target};
use pinfold_text::{DiffFormat, Encoding, LineHashes, SNIFF_BYTES, line_counts, text_encoding};

use crate::change::Replace;
use crate::ledger::Freshness;
use crate::limits::{MAX_CHANGED_BYTES, MAX_COMPARED_BYTES};
use crate::media::{check_notebook, has_notebook_name};
use crate::{ChangeSet, Error, Operation, ReadBeforeWrite, View};

/// Creates a file, or replaces its whole content.
///
/// ```
/// use pinfold::Session;
/// use pinfold::operations::{Parents, Write};
///
/// # let dir = tempfile::tempdir()?;
/// # let workspace = dir.path();
/// let session = Session::open([workspace])?;
/// let done = session.perform(&Write::new("notes/todo.txt", "buy milk\n"))?;
/// assert!(done.outcome.created);
/// assert_eq!(done.outcome.bytes, 9);
///
/// let mut write = Write::new("no/such/directory.txt", "");
/// write.parents = Parents::Refuse;
/// assert!(session.perform(&write).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Write {
    /// The file.
    pub path: RawPath,
    /// Its new text.
    pub content: String,
    /// The encoding of the file.
    pub encoding: Encoding,
    /// What to do if the file's directory does not exist.
    pub parents: Parents,
    /// What to do if the file exists.
    pub existing: Existing,
    /// Whether an existing file must have been read first.
    pub read_rule: ReadBeforeWrite,
    /// The mode of a new file; `None` for the default.
    pub mode: Option<u32>,
    /// The notation of the diff in the receipt. With `None`, only a dry run has a diff.
    pub diff_format: Option<DiffFormat>,
    /// Whether to count the lines that were added and removed. A dry run always does.
    pub counts_lines: bool,
    /// Whether the session can later name the lines that others changed in this file: see [`Error::Changed`]. Only
    /// tools that require a read name them.
    pub keeps_line_hashes: bool,
}

/// What to do if the file's directory does not exist.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Parents {
    /// Create it.
    Make,
    /// Refuse to write.
    Refuse,
}

/// What to do if the file exists.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Existing {
    /// Replace its content.
    Replace,
    /// Refuse to write.
    Refuse,
}

/// A file that was written.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Written {
    /// The file's place.
    pub place: Place,
    /// The file's new size in bytes.
    pub bytes: u64,
    /// Whether the file was created.
    pub created: bool,
    /// Whether the content changed.
    pub changed: bool,
    /// The old encoding, if it has changed.
    pub recoded_from: Option<Encoding>,
    /// The numbers of added and removed lines, if they were asked for, and the file was replaced and is small enough to
    /// compare.
    pub lines: Option<(usize, usize)>,
    /// How many other hard links still have the old content.
    pub other_names: u64,
}

impl Write {
    /// Stores text as UTF-8, and creates missing directories.
    pub fn new(path: impl Into<RawPath>, content: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            content: content.into(),
            encoding: Encoding::UTF_8,
            parents: Parents::Make,
            existing: Existing::Replace,
            read_rule: ReadBeforeWrite::Off,
            mode: None,
            diff_format: None,
            counts_lines: true,
            keeps_line_hashes: true,
        }
    }
}

builder!(Write {
    with_encoding(encoding: Encoding),
    with_parents(parents: Parents),
    with_existing(existing: Existing),
    with_read_rule(read_rule: ReadBeforeWrite),
    with_mode(mode: Option<u32>),
    with_diff_format(diff_format: Option<DiffFormat>),
    with_counts_lines(counts_lines: bool),
    with_keeps_line_hashes(keeps_line_hashes: bool),
});

impl Operation for Write {
    type Changes = ChangeSet;
    type Outcome = Written;

    fn plan(&self, view: &View<'_>) -> Result<(Written, ChangeSet), Error> {
        let after = self.encoding.encode(&self.content).map_err(|missing| Error::Unmappable {
            number: None,
            encoding: self.encoding.name(),
            character: missing.character.escape_debug().to_string(),
            line: missing.line,
        })?;
        let mut target = view.target(&self.path)?;
        if self.parents == Parents::Refuse {
            view.check_parents(&self.path, target.place(), target.missing_parents().len())?;
        }
        if self.existing == Existing::Refuse && target.meta().is_some() {
            return Err(Error::Exists { path: self.path.clone() });
        }
        let shown = view.describes_change(&self.path, &target)?;
        let is_notebook = has_notebook_name(&self.path);
        let limit = if shown || is_notebook {
            view.session().settings().max_edit_bytes
        } else {
            MAX_COMPARED_BYTES
        };
        let before = Before::read(&mut target, &after, limit)
            .map_err(|error| view.path_error(&self.path, error))?;
        let mut lines_after = None;
        let lines = before.content.as_deref().and_then(|content| {
            if before.same {
                return Some((0, 0));
            }
            if !self.counts_lines && !view.dry_run() {
                return None;
            }
            let lines_before = view.lines_before(&target).or_else(|| LineHashes::of(content))?;
            Some(line_counts(&lines_before, lines_after.insert(LineHashes::of(&after)?)))
        });
        let written = Written {
            place: target.place().clone(),
            bytes: after.len() as u64,
            created: target.meta().is_none(),
            changed: !before.same,
            lines,
            recoded_from: before.encoding.filter(|it| Some(*it) != text_encoding(&after)),
            other_names: target.meta().map_or(0, |meta| meta.links.saturating_sub(1)),
        };
        if before.same {
            view.record_content(&target, &after);
            return Ok((written, ChangeSet::default()));
        }
        if let Freshness::Changed(then) = view.freshness(&self.path, &target, self.read_rule)? {
            let now = before.content.and_then(|now| then.changed_lines(&now, MAX_CHANGED_BYTES));
            let now = now.map(|changed| changed.shown);
            return Err(Error::Changed { path: self.path.clone(), now, read_again: true });
        }
        if let Some(before) = before.content.as_ref().filter(|_| is_notebook) {
            check_notebook(&self.path, before, &after)?;
        }
        let replace = Replace {
            before: before.content,
            lines_after,
            keeps_line_hashes: self.keeps_line_hashes,
            mode: self.mode,
            answers_with_diff: self.diff_format.is_some(),
            diff_format: self.diff_format.unwrap_or_default(),
            ..Replace::new(self.path.clone(), target, after)
        };
        Ok((written, ChangeSet::of(replace)))
    }
}

/// The old content, as far as it was read.
struct Before {
    /// Whether it is equal to the new content.
    same: bool,
    /// The encoding of the old content, if it was text.
    encoding: Option<Encoding>,
    /// The whole old content, if it was read to its end.
    content: Option<Vec<u8>>,
}

impl Before {
    /// Reads the whole old content if it may be equal to the new one or has at most `limit` bytes. Otherwise reads
    /// only its beginning, to detect the encoding.
    fn read(target: &mut Target, after: &[u8], limit: u64) -> Result<Self, ConfineError> {
        let Some(len) = target.meta().map(|meta| meta.len) else {
            return Ok(Self { same: false, encoding: None, content: None });
        };
        if len == after.len() as u64 || len <= limit {
            let content = target.content()?;
            let encoding = text_encoding(&content).filter(|_| len > 0);
            return Ok(Self { same: content == after, encoding, content: Some(content) });
        }
        let mut beginning = Vec::new();
        if let Some(file) = target.file() {
            let read = file.take(SNIFF_BYTES as u64).read_to_end(&mut beginning);
            read.map_err(ConfineError::Os)?;
        }
        let encoding = text_encoding(&beginning).filter(|_| len > 0);
        Ok(Self { same: false, encoding, content: None })
    }
}
