//! The one place where changes are made.
//!
//! In order: has the session seen what it wants to change, would the system allow it; then, unless
//! this is a dry run, the atomic replacement; then the ledger. A dry run makes every check.

use pinfold_confine::{Error as Fence, RawPath, Target};
use pinfold_text::{Content, SNIFF_BYTES, sniff, unified_diff};

use crate::change::{ChangeSet, Replace, SeenRule};
use crate::ledger::Sight;
use crate::limits::DIFF_BYTES;
use crate::{Error, View};

/// What a commit says about itself.
#[derive(Clone, Debug, Default)]
pub struct Receipt {
    /// Whether the change was only described.
    pub dry_run: bool,
    /// In a dry run, what would have changed.
    pub diff: Option<String>,
}

/// Why a commit did not happen.
#[derive(Debug)]
#[doc(hidden)]
pub enum Refusal {
    /// The file is no longer as it was planned on. Another plan may fit.
    Conflict {
        /// The path as it was given.
        path: RawPath,
    },
    /// No other plan would help.
    Error(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

pub(crate) fn commit(changes: ChangeSet, view: &View<'_>) -> Result<Receipt, Refusal> {
    let dry_run = view.dry_run();
    let Some(replace) = changes.0 else { return Ok(Receipt { dry_run, diff: None }) };
    check_seen(&replace, view)?;
    view.check_time()?;
    if dry_run { rehearse(replace, view) } else { make(replace, view) }
}

/// A file that is there must be known, and be as it is known.
fn check_seen(replace: &Replace, view: &View<'_>) -> Result<(), Error> {
    let Replace { path, target, seen, .. } = replace;
    let (SeenRule::Required, Some(found)) = (seen, target.meta()) else { return Ok(()) };
    let sight = view.session().ledger(|ledger| ledger.last_sight(target.place()));
    let sight = sight.ok_or_else(|| Error::NotRead { path: path.clone() })?;
    if sight.meta.is_some_and(|meta| meta.surely_unchanged(found)) {
        return Ok(());
    }
    let hash = target.hash().map_err(|error| Error::looking(path, error))?;
    if hash == Some(sight.hash) { Ok(()) } else { Err(Error::Changed { path: path.clone() }) }
}

fn rehearse(mut replace: Replace, view: &View<'_>) -> Result<Receipt, Refusal> {
    let Replace { path, target, after, .. } = &mut replace;
    target.check_writable().map_err(|error| Error::changing(path, error))?;
    let diff = diff(target, after, view).map_err(|error| Error::looking(path, error))?;
    Ok(Receipt { dry_run: true, diff })
}

fn make(replace: Replace, view: &View<'_>) -> Result<Receipt, Refusal> {
    let Replace { path, target, after, .. } = replace;
    let durability = view.session().settings().durability.into();
    let committed = target.replace(&after, durability).map_err(|error| match error {
        Fence::Changed => Refusal::Conflict { path: path.clone() },
        other => Error::changing(&path, other).into(),
    })?;
    // What was displaced goes with `committed`: nothing keeps it.
    let sight = Sight { hash: blake3::hash(&after), meta: committed.meta };
    view.session().ledger(|ledger| ledger.saw(target.place().clone(), sight));
    Ok(Receipt { dry_run: false, diff: None })
}

/// What would change, where both versions are text and small enough to compare.
fn diff(target: &mut Target, after: &[u8], view: &View<'_>) -> Result<Option<String>, Fence> {
    let shown = target.place().path.to_string();
    let before = match target.meta() {
        Some(meta) if meta.len > DIFF_BYTES => return Ok(None),
        _ => view.content(target)?,
    };
    let text = |bytes: &[u8]| match sniff(&bytes[..bytes.len().min(SNIFF_BYTES)], true) {
        Content::Text(encoding) => Some(encoding.decode_lossy(bytes).0),
        Content::Binary(_) => None,
    };
    let (Some(before), Some(after)) = (text(&before), text(after)) else { return Ok(None) };
    Ok(Some(unified_diff(&shown, &before, &after, view.output_bytes())))
}
