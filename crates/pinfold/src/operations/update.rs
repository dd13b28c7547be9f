//! `Update`: applies the chunks of a patch to a file, and moves or deletes the file in the same change.

use pinfold_confine::{Kind, Place, RawPath, Removal};
use pinfold_text::patch::{Chunk, PatchedText, PlaceError, PlaceProblem, apply_chunks};
use pinfold_text::{Encoding, MatchKind, MatchMode, nearest};

use super::edit::{check_size, encoding_of, keep_going, match_mode, max_edit_bytes};
use super::r#move;
use crate::change::{Remove, Replace};
use crate::media::{check_notebook, has_notebook_name};
use crate::{ChangeSet, Error, Operation, View};

/// Applies the chunks of a patch to a file, all of them or none.
///
/// ```
/// use pinfold::operations::{AfterUpdate, Update, Write};
/// use pinfold::{Session, patch::Patch};
///
/// # let dir = tempfile::tempdir()?;
/// # let workspace = dir.path();
/// let session = Session::open([workspace])?;
/// session.perform(&Write::new("a.txt", "one\ntwo\n"))?;
/// let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n one\n-two\n+2\n*** End Patch";
/// let chunks = Patch::parse(patch).unwrap().files[0].chunks().to_vec();
/// session.perform(&Update::new("a.txt", chunks).with_after(AfterUpdate::MoveTo("b.txt".into())))?;
/// assert_eq!(std::fs::read_to_string(workspace.join("b.txt"))?, "one\n2\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Update {
    /// The file.
    pub path: RawPath,
    /// The chunks, in the order of the file.
    pub chunks: Vec<Chunk>,
    /// What happens to the file after that.
    pub after: AfterUpdate,
    /// How leniently the lines are matched. The session's setting may be stricter.
    pub matching: MatchMode,
}

/// What happens to a file after its chunks were applied.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum AfterUpdate {
    /// It stays where it is.
    Stay,
    /// It moves to a free path. Missing directories are created; the mode stays.
    MoveTo(RawPath),
    /// It is deleted. If there are chunks, they must remove all of its content.
    Delete,
}

/// A file that was updated.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Updated {
    /// The file's old place.
    pub place: Place,
    /// Whether its content changed.
    pub changed: bool,
    /// The chunks that did not match exactly: the kind of match, and the first and last line in the new file.
    pub lenient: Vec<(MatchKind, (u64, u64))>,
    /// How many other hard links still have the old content.
    pub other_names: u64,
}

impl Update {
    /// Applies chunks to the file at a path.
    pub fn new(path: impl Into<RawPath>, chunks: Vec<Chunk>) -> Self {
        Self { path: path.into(), chunks, after: AfterUpdate::Stay, matching: MatchMode::Lenient }
    }
}

builder!(Update {
    with_after(after: AfterUpdate),
    with_matching(matching: MatchMode),
});

impl Operation for Update {
    type Changes = ChangeSet;
    type Outcome = Updated;

    fn edited_files(&self) -> Vec<&RawPath> {
        if self.chunks.is_empty() { Vec::new() } else { vec![&self.path] }
    }

    fn plan(&self, view: &View<'_>) -> Result<(Updated, ChangeSet), Error> {
        match &self.after {
            AfterUpdate::Stay => self.stay(view),
            AfterUpdate::MoveTo(to) => self.move_to(view, to),
            AfterUpdate::Delete => self.delete(view),
        }
    }
}

impl Update {
    fn stay(&self, view: &View<'_>) -> Result<(Updated, ChangeSet), Error> {
        let mut target = view.target(&self.path)?;
        let meta = *target.meta().ok_or_else(|| view.not_found(&self.path))?;
        check_size(view, &self.path, meta.len)?;
        let before = target.content().map_err(|error| view.path_error(&self.path, error))?;
        let patched = self.patched(view, &before)?;
        let changed = patched.bytes != before;
        let (place, lenient) = (target.place().clone(), patched.lenient);
        let other_names = meta.links.saturating_sub(1);
        let updated = Updated { place, changed, lenient, other_names };
        if !changed {
            return Ok((updated, ChangeSet::default()));
        }
        let replace = Replace::new(self.path.clone(), target, patched.bytes);
        Ok((updated, ChangeSet::of(Replace { before: Some(before), ..replace })))
    }

    fn move_to(&self, view: &View<'_>, to: &RawPath) -> Result<(Updated, ChangeSet), Error> {
        if self.chunks.is_empty() {
            return self.only_move(view, to, Vec::new());
        }
        let (removal, before) = self.removal(view)?;
        let patched = self.patched(view, &before)?;
        if patched.bytes == before {
            drop(removal);
            return self.only_move(view, to, patched.lenient);
        }
        let target = view.target(to)?;
        if target.meta().is_some() {
            return Err(Error::Exists { path: to.clone() });
        }
        let meta = removal.meta();
        let (place, lenient) = (removal.place().clone(), patched.lenient);
        let other_names = meta.links.saturating_sub(1);
        let updated = Updated { place, changed: true, lenient, other_names };
        let mode = Some(meta.mode & 0o1777);
        let like = view.open_place(removal.place()).ok();
        let create = Replace { mode, like, ..Replace::new(to.clone(), target, patched.bytes) };
        let mut changes = ChangeSet::of(create);
        changes.0.extend(self.remove(removal).0);
        Ok((updated, changes))
    }

    /// Moves the file without changing its content.
    fn only_move(
        &self,
        view: &View<'_>,
        to: &RawPath,
        lenient: Vec<(MatchKind, (u64, u64))>,
    ) -> Result<(Updated, ChangeSet), Error> {
        let relocate = r#move::plan(view, &self.path, to)?;
        let place = relocate.relocation.from().clone();
        if relocate.relocation.meta().kind == Kind::Directory {
            return Err(Error::IsDirectory { path: self.path.clone() });
        }
        let updated = Updated { place, changed: false, lenient, other_names: 0 };
        Ok((updated, ChangeSet::of(relocate)))
    }

    fn delete(&self, view: &View<'_>) -> Result<(Updated, ChangeSet), Error> {
        let removal = if self.chunks.is_empty() {
            view.removal(&self.path)?
        } else {
            let (removal, before) = self.removal(view)?;
            let left = self.patched(view, &before)?.bytes;
            if left.len() > encoding_of(&self.path, &before)?.mark_len() {
                let path = &self.path;
                let problem = format!("`{path}` has lines that the patch does not delete");
                return Err(Error::InvalidArgument(problem));
            }
            removal
        };
        let place = removal.place().clone();
        let updated = Updated { place, changed: true, lenient: Vec::new(), other_names: 0 };
        Ok((updated, self.remove(removal)))
    }

    /// The file, locked for removal, and its content.
    fn removal(&self, view: &View<'_>) -> Result<(Removal, Vec<u8>), Error> {
        let path = &self.path;
        let removal = view.readable(path, || view.removal(path), |it| (it.place(), false))?;
        check_size(view, path, removal.meta().len)?;
        let kind = removal.meta().kind;
        let content = removal.content().map_err(|error| view.path_error(path, error))?;
        let content = content.ok_or_else(|| Error::NotRegular { path: path.clone(), kind })?;
        Ok((removal, content))
    }

    fn remove(&self, removal: Removal) -> ChangeSet {
        let (path, undoes) = (self.path.clone(), Vec::new());
        ChangeSet::of(Remove { path, removal, undoes })
    }

    /// The content with the chunks applied.
    fn patched(&self, view: &View<'_>, before: &[u8]) -> Result<PatchedText, Error> {
        let encoding = encoding_of(&self.path, before)?;
        let (mode, limit) = (match_mode(view, self.matching), max_edit_bytes(view));
        let patched = apply_chunks(before, encoding, &self.chunks, mode, limit, &keep_going(view));
        let patched = patched.map_err(|error| self.refusal(view, before, encoding, error))?;
        if has_notebook_name(&self.path) {
            check_notebook(&self.path, before, &patched.bytes)?;
        }
        Ok(patched)
    }

    fn refusal(
        &self,
        view: &View<'_>,
        bytes: &[u8],
        encoding: Encoding,
        PlaceError { chunk, problem }: PlaceError,
    ) -> Error {
        let path = self.path.clone();
        let number = (self.chunks.len() > 1).then_some(chunk);
        let near = |old: &str, new: &str| nearest(bytes, encoding, old, new, &keep_going(view));
        match problem {
            PlaceProblem::NoHeader { header } => {
                let nearest = near(&header, "");
                Error::BadAnchor { path, anchor: header, lines: Vec::new(), nearest }
            }
            PlaceProblem::ManyHeaders { header, lines } => {
                Error::BadAnchor { path, anchor: header, lines, nearest: None }
            }
            PlaceProblem::NotFound => {
                let chunk = &self.chunks[chunk - 1];
                let nearest = near(&chunk.old_lines().join("\n"), &chunk.new_lines().join("\n"));
                Error::NoMatch { path, number, nearest }
            }
            PlaceProblem::Elsewhere { line, at_end } => {
                let why = if at_end {
                    "and not at the end of the file"
                } else {
                    "above what the patch has before them; keep the order of the file"
                };
                let nearest = Some(format!("they are at line {line}, {why}"));
                Error::NoMatch { path, number, nearest }
            }
            PlaceProblem::Many { count, lines, match_kind } => {
                Error::ManyMatches { path, number, count, or_more: false, lines, match_kind }
            }
            PlaceProblem::TooLarge { size } => {
                Error::TooLarge { path, size, limit: max_edit_bytes(view) }
            }
            PlaceProblem::Unmappable(missing) => Error::Unmappable {
                number,
                encoding: encoding.name(),
                character: missing.character.escape_debug().to_string(),
                line: missing.line,
            },
            PlaceProblem::TimedOut => view.timed_out(&path),
        }
    }
}
