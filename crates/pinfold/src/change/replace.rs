//! Replaces a file's content, and makes diffs.

use blake3::Hash;
use pinfold_confine::{
    Durability, Error as ConfineError, File, Place, RawPath, Target, WrittenAhead,
};
use pinfold_text::{DiffFormat, LineHashes, text_encoding, unified_diff};

use super::{Applied, Change, file_request};
use crate::journal::{Displaces, State};
use crate::ledger::Fingerprint;
use crate::limits::{MAX_COUNTED_BYTES, MAX_SET_BYTES, MIN_RESERVED_BYTES};
use crate::permit::AccessRequest;
use crate::preview::{Proposal, Version};
use crate::{Access, View};

/// Replaces a file's whole content, or creates the file.
#[derive(Debug)]
pub(crate) struct Replace {
    pub(crate) path: RawPath,
    pub(crate) target: Target,
    pub(crate) after: Vec<u8>,
    pub(crate) after_hash: Hash,
    /// The file's content, if planning has read it.
    pub(crate) before: Option<Vec<u8>>,
    /// The hashes of its lines, if the ledger has them.
    pub(crate) lines_before: Option<LineHashes>,
    /// The hashes of the new content's lines, if planning has computed them.
    pub(crate) lines_after: Option<LineHashes>,
    /// Whether to compute them if planning has not.
    pub(crate) keeps_line_hashes: bool,
    /// Whether the answer includes the diff even if this is not a dry run.
    pub(crate) answers_with_diff: bool,
    /// The notation of that diff.
    pub(crate) diff_format: DiffFormat,
    /// The maximum size of the diff in bytes; `None` for the session's setting.
    pub(crate) max_diff_bytes: Option<usize>,
    /// The mode of a created file, if the change sets one.
    pub(crate) mode: Option<u32>,
    /// A file whose owner and extended attributes the new content gets, together with `mode`, even if it replaces
    /// another file.
    pub(crate) like: Option<File>,
    pub(crate) undoes: Vec<String>,
    /// The new content beside the file, if it was written before the change.
    pub(crate) written: Option<WrittenAhead>,
}

impl Replace {
    pub(crate) fn new(path: RawPath, target: Target, after: Vec<u8>) -> Self {
        let after_hash = blake3::hash(&after);
        Self {
            path,
            target,
            after,
            after_hash,
            before: None,
            lines_before: None,
            lines_after: None,
            keeps_line_hashes: true,
            answers_with_diff: false,
            diff_format: DiffFormat::Git,
            max_diff_bytes: None,
            mode: None,
            like: None,
            undoes: Vec::new(),
            written: None,
        }
    }

    /// Reads the file's content, once, if it is small enough to compare.
    fn read_before(&mut self, view: &View<'_>) -> Result<Option<&[u8]>, ConfineError> {
        if self.before.is_none() {
            if self.target.meta().is_some_and(|meta| !can_show(meta.len, view)) {
                return Ok(None);
            }
            self.before = Some(self.target.content()?);
        }
        Ok(self.before.as_deref())
    }
}

impl Change for Replace {
    fn path(&self) -> &RawPath {
        &self.path
    }

    fn place(&self) -> &Place {
        self.target.place()
    }

    fn requests(&self) -> Vec<AccessRequest<'_>> {
        file_request(self, Access::Write)
    }

    fn undoes(&self) -> &[String] {
        &self.undoes
    }

    fn proposal(&mut self, view: &View<'_>) -> Result<Proposal, ConfineError> {
        let content = self.read_before(view)?.map(Into::into);
        let before = match (self.target.meta(), self.target.hash()?) {
            (Some(meta), Some(hash)) => Some(Version { bytes: meta.len, hash, content }),
            _ => None,
        };
        let bytes = self.after.len() as u64;
        let content = can_show(bytes, view).then(|| self.after.as_slice().into());
        let after = Version { bytes, hash: self.after_hash, content };
        let (path, mode) = (self.place().path.to_string(), self.mode);
        Ok(Proposal::Replace { path, before, after, mode })
    }

    fn change_hash(&self) -> Result<Hash, ConfineError> {
        let mut hasher = blake3::Hasher::new();
        if let Some(before) = self.target.hash()? {
            hasher.update(before.as_bytes());
        }
        hasher.update(self.after_hash.as_bytes());
        if let Some(mode) = self.mode {
            hasher.update(&mode.to_le_bytes());
        }
        Ok(hasher.finalize())
    }

    fn answers_with_diff(&self) -> bool {
        self.answers_with_diff
    }

    fn diff(&mut self, view: &View<'_>) -> Result<Option<String>, ConfineError> {
        self.read_before(view)?;
        let path = match self.diff_format {
            DiffFormat::Git | DiffFormat::Snippet => self.place().path.to_string(),
            DiffFormat::Index => view.session().absolute(self.place()),
        };
        let Some(before) = self.before.as_deref() else { return Ok(None) };
        let budget = self.max_diff_bytes.unwrap_or_else(|| view.max_output_bytes());
        Ok(diff_within(budget, self.diff_format, &path, (before, &self.after), view))
    }

    fn line_counts(&mut self, view: &View<'_>) -> Option<(u64, u64)> {
        let is_small = |bytes: u64| bytes <= MAX_COUNTED_BYTES;
        if !self.target.meta().is_none_or(|meta| is_small(meta.len)) {
            return None;
        }
        self.read_before(view).ok()?;
        let before = self.before.as_deref().unwrap_or_default();
        if !is_small(self.after.len() as u64) {
            return None;
        }
        let (added, removed) = line_counts(before, &self.after)?;
        Some((added as u64, removed as u64))
    }

    fn check_possible(&self) -> Result<(), ConfineError> {
        self.target.check_writable()
    }

    fn states(&self) -> Result<[State; 2], ConfineError> {
        let before = match (self.target.meta(), self.target.hash()?) {
            (Some(meta), Some(hash)) => State::of(meta, hash),
            _ => State::Absent,
        };
        let kept = self.target.meta().filter(|_| self.like.is_none());
        let mode = kept.map(|meta| meta.mode & 0o1777).or(self.mode);
        Ok([before, State::file(self.after_hash, self.after.len() as u64, mode)])
    }

    fn displaces(&mut self) -> Displaces<'_> {
        Displaces::Target(&mut self.target)
    }

    fn made_parents(&self) -> usize {
        self.target.missing_parents().len()
    }

    fn write_ahead(&mut self) -> Result<(), ConfineError> {
        self.written = self.target.write_ahead(&self.after, self.mode, self.like.as_ref())?;
        Ok(())
    }

    fn apply(mut self: Box<Self>, durability: Durability) -> Result<Applied, ConfineError> {
        let (mode, like) = (self.mode, self.like.as_ref());
        let mut made = match self.written.take() {
            Some(written) => self.target.replace_with_written(written, durability)?,
            None => self.target.replace_with_metadata(&self.after, durability, mode, like)?,
        };
        let lines = match (self.lines_after, &self.lines_before, &self.before) {
            (Some(lines), ..) => Some(lines),
            (None, Some(lines), Some(before)) => lines.after_change(before, &self.after),
            _ if self.keeps_line_hashes => LineHashes::of(&self.after),
            _ => None,
        };
        let fingerprint = Fingerprint { hash: self.after_hash, meta: made.meta, lines };
        let unverified = std::mem::take(&mut made.unverified);
        let (target, may_have_replaced) = (self.target, made.may_have_replaced);
        Ok(Applied {
            fingerprint: Some(fingerprint),
            roll_back: Box::new(move || target.roll_back(made)),
            discard_rollback: None,
            unverified,
            may_have_replaced,
        })
    }
}

/// The numbers of added and removed lines, if both versions are text.
pub(crate) fn line_counts(before: &[u8], after: &[u8]) -> Option<(usize, usize)> {
    let [old, new] = [before, after].map(|bytes| Some((bytes, text_encoding(bytes)?)));
    let diff = unified_diff(DiffFormat::Git, "", old?, new?, usize::MAX);
    let lines = |sign| diff.lines().skip(2).filter(|line| line.starts_with(sign)).count();
    Some((lines('+'), lines('-')))
}

/// Whether a file of this size is shown as a diff.
pub(crate) fn can_compare(bytes: u64, view: &View<'_>) -> bool {
    bytes <= view.session().settings().max_edit_bytes
}

/// Whether a file of this size is in memory to be shown. Of the large ones in a set, only some are, so that many of them do
/// not take all memory; small ones always are, whatever is beside them.
pub(crate) fn can_show(bytes: u64, view: &View<'_>) -> bool {
    can_compare(bytes, view)
        && (bytes < MIN_RESERVED_BYTES || view.show_bytes(bytes) <= MAX_SET_BYTES)
}

/// The diff of two versions, if both are text and small enough to compare.
pub(crate) fn diff(
    format: DiffFormat,
    path: &str,
    before: &[u8],
    after: &[u8],
    view: &View<'_>,
) -> Option<String> {
    diff_within(view.max_output_bytes(), format, path, (before, after), view)
}

/// The same, in at most about `budget` bytes.
fn diff_within(
    budget: usize,
    format: DiffFormat,
    path: &str,
    (before, after): (&[u8], &[u8]),
    view: &View<'_>,
) -> Option<String> {
    if ![before, after].iter().all(|bytes| can_compare(bytes.len() as u64, view)) {
        return None;
    }
    let (old, new) = (text_encoding(before)?, text_encoding(after)?);
    Some(unified_diff(format, path, (before, old), (after, new), budget))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::DEFAULT_MAX_EDIT_BYTES;
    use crate::{CallOptions, Session};

    #[test]
    fn large_files_do_not_push_small_ones_out_of_sight() {
        let dir = tempfile::tempdir().unwrap();
        let session = Session::open([dir.path()]).unwrap();
        let call = CallOptions::default();
        let view = View::new(&session, &call);
        let shown = [
            DEFAULT_MAX_EDIT_BYTES,
            DEFAULT_MAX_EDIT_BYTES,
            DEFAULT_MAX_EDIT_BYTES,
            MIN_RESERVED_BYTES - 1,
        ];
        assert_eq!(shown.map(|bytes| can_show(bytes, &view)), [true, true, false, true]);
    }
}
