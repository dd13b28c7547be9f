//! The one place where changes are made.
//!
//! In order: has the session seen what it wants to change, would the system allow it; then, unless
//! this is a dry run, the change itself; then the ledger. A dry run makes every check.

use pinfold_confine::{Error as Fence, RawPath, Target};
use pinfold_text::{Content, SNIFF_BYTES, sniff, unified_diff};

use crate::change::{Change, ChangeSet, Remove, Replace, SeenRule};
use crate::ledger::Sight;
use crate::{Error, View};

/// What a commit says about itself.
#[derive(Clone, Debug, Default)]
pub struct Receipt {
    /// Whether the change was only described.
    pub dry_run: bool,
    /// What changed, or would have, where that is part of the answer.
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

impl Refusal {
    fn of_fence(view: &View<'_>, path: &RawPath, error: Fence) -> Self {
        match error {
            Fence::Changed => Self::Conflict { path: path.clone() },
            Fence::Impatient => Self::Error(view.impatient(path)),
            other => Self::Error(Error::changing(path, other)),
        }
    }
}

pub(crate) fn commit(changes: ChangeSet, view: &View<'_>) -> Result<Receipt, Refusal> {
    match changes.0 {
        None => Ok(Receipt { dry_run: view.dry_run(), diff: None }),
        Some(Change::Replace(change)) => replace(*change, view),
        Some(Change::Remove(change)) => remove(*change, view),
    }
}

fn replace(change: Replace, view: &View<'_>) -> Result<Receipt, Refusal> {
    check_seen(&change, view)?;
    view.check_time()?;
    let Replace { path, mut target, after, show, .. } = change;
    let dry_run = view.dry_run();
    let diff = match dry_run || show {
        true => diff(&mut target, &after, view).map_err(|error| Error::looking(&path, error))?,
        false => None,
    };
    if dry_run {
        target.check_writable().map_err(|error| Error::changing(&path, error))?;
        return Ok(Receipt { dry_run, diff });
    }
    let durability = view.session().settings().durability.into();
    let committed = target
        .replace(&after, durability)
        .map_err(|error| Refusal::of_fence(view, &path, error))?;
    // What was displaced goes with `committed`: nothing keeps it.
    let sight = Sight { hash: blake3::hash(&after), meta: committed.meta };
    view.session().ledger(|ledger| ledger.saw(target.place().clone(), sight));
    Ok(Receipt { dry_run, diff })
}

fn remove(change: Remove, view: &View<'_>) -> Result<Receipt, Refusal> {
    view.check_time()?;
    let Remove { path, removal } = change;
    let dry_run = view.dry_run();
    if dry_run {
        removal.check_removable().map_err(|error| Error::changing(&path, error))?;
    } else {
        let durability = view.session().settings().durability.into();
        // What was displaced is dropped at once: nothing keeps it.
        removal.remove(durability).map_err(|error| Refusal::of_fence(view, &path, error))?;
    }
    Ok(Receipt { dry_run, diff: None })
}

/// A file that is there must be known, and be as it is known.
fn check_seen(change: &Replace, view: &View<'_>) -> Result<(), Error> {
    let Replace { path, target, seen, .. } = change;
    if *seen == SeenRule::Off || target.meta().is_none() {
        return Ok(());
    }
    match view.acquaintance(path, target)? {
        Acquaintance::None => Err(Error::NotRead { path: path.clone() }),
        Acquaintance::Changed => Err(Error::Changed { path: path.clone(), region: None }),
        Acquaintance::Current => Ok(()),
    }
}

/// How well the session knows a file that is there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Acquaintance {
    /// It has never seen it.
    None,
    /// It has seen it, but not as it is now.
    Changed,
    /// It knows it as it is.
    Current,
}

impl View<'_> {
    /// How well the session knows a target's content.
    pub(crate) fn acquaintance(
        &self,
        path: &RawPath,
        target: &Target,
    ) -> Result<Acquaintance, Error> {
        let sight = self.session().ledger(|ledger| ledger.last_sight(target.place()));
        let (Some(sight), Some(found)) = (sight, target.meta()) else {
            return Ok(Acquaintance::None);
        };
        if sight.meta.is_some_and(|meta| meta.surely_unchanged(found)) {
            return Ok(Acquaintance::Current);
        }
        let hash = target.hash().map_err(|error| self.missed(path, error))?;
        let same = hash == Some(sight.hash);
        Ok(if same { Acquaintance::Current } else { Acquaintance::Changed })
    }
}

/// What would change, where both versions are text and small enough to compare.
fn diff(target: &mut Target, after: &[u8], view: &View<'_>) -> Result<Option<String>, Fence> {
    let shown = target.place().path.to_string();
    let limit = view.session().settings().edit_bytes;
    if target.meta().is_some_and(|meta| meta.len > limit) {
        return Ok(None);
    }
    let before = target.content()?;
    let encoding = |bytes: &[u8]| match sniff(
        &bytes[..bytes.len().min(SNIFF_BYTES)],
        bytes.len() <= SNIFF_BYTES,
    ) {
        Content::Text(encoding) => Some(encoding),
        Content::Binary(_) => None,
    };
    let (Some(old), Some(new)) = (encoding(&before), encoding(after)) else { return Ok(None) };
    let (before, after) = (old.decode_lossy(&before).0, new.decode_lossy(after).0);
    Ok(Some(unified_diff(&shown, &before, &after, view.output_bytes())))
}
