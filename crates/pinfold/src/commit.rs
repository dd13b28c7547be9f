//! The one place where changes are made.
//!
//! In order: is it allowed, has the session seen what it wants to change, does a person who has to be
//! asked agree; then what will be displaced and an entry into the journal, the change itself, and the
//! ledger. A dry run makes the same checks, asks nobody, and ends with whether the system would allow it.

use pinfold_confine::{Error as ConfineError, Metadata, RawPath, Target};
use pinfold_text::{text_encoding, unified_diff};

use crate::change::{Change, ChangeSet, ReadRule, Remove, Replace, RestoreLink};
use crate::journal::{Displaces, State};
use crate::ledger::Fingerprint;
use crate::permit::{AccessRequest, Shown};
use crate::record::Record;
use crate::{Access, Error, View};

/// What a commit says about itself.
#[derive(Clone, Debug, Default)]
pub struct Receipt {
    /// Whether the change was only described.
    pub dry_run: bool,
    /// What changed, or would have, where that is part of the answer.
    pub diff: Option<String>,
    /// The change's id in the journal.
    pub id: Option<String>,
    /// What a reader has to know, if the change cannot be taken back.
    pub warning: Option<String>,
}

/// Why a commit did not happen.
#[derive(Debug)]
#[doc(hidden)]
pub enum CommitError {
    /// The file is no longer as it was planned on. Another plan may fit.
    Conflict {
        /// The path as it was given.
        path: RawPath,
    },
    /// A person was asked and said yes. Meanwhile the file may have changed.
    Asked,
    /// No other plan would help.
    Error(Error),
}

impl From<Error> for CommitError {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl CommitError {
    fn from_confine(view: &View<'_>, path: &RawPath, error: ConfineError) -> Self {
        match error {
            ConfineError::Changed => Self::Conflict { path: path.clone() },
            ConfineError::TimedOut => Self::Error(view.timed_out(path)),
            other => Self::Error(Error::changing(path, other)),
        }
    }
}

pub(crate) fn commit(changes: ChangeSet, view: &View<'_>) -> Result<Receipt, CommitError> {
    view.check_time()?;
    view.session().check_audit()?;
    let mut receipt = Receipt { dry_run: view.dry_run(), ..Receipt::default() };
    match changes.0 {
        None => {}
        Some(Change::Replace(change)) => replace(*change, view, &mut receipt)?,
        Some(Change::Remove(change)) => remove(*change, view, &mut receipt)?,
        Some(Change::RestoreLink(change)) => restore(*change, view, &mut receipt)?,
    }
    Ok(receipt)
}

fn replace(change: Replace, view: &View<'_>, receipt: &mut Receipt) -> Result<(), CommitError> {
    let place = change.target.place().clone();
    let request = AccessRequest {
        access: Access::Write,
        path: &change.path,
        place: &place,
        directory: false,
    };
    let verdict = allowed(&request, view)?;
    check_seen(&change, view)?;
    let Replace { path, mut target, before, after, show, mode, origin, .. } = change;
    if receipt.dry_run || show || verdict == Verdict::Ask {
        let diff = planned_diff(&mut target, before, &after, view);
        receipt.diff = diff.map_err(|error| view.missed(&path, error))?;
    }
    if verdict == Verdict::Ask {
        let request =
            AccessRequest { access: Access::Write, path: &path, place: &place, directory: false };
        let diff = receipt.diff.clone();
        // The diff may be cut: what counts is what is there, and what would be.
        let there = target.hash().map_err(|error| view.missed(&path, error))?;
        let mut subject = blake3::Hasher::new();
        subject.update(there.as_ref().map_or(&[][..], |hash| hash.as_bytes())).update(&after);
        let subject = Some(subject.finalize());
        let shown = Shown { diff, subject };
        if !agreed(&request, view, receipt, &shown) {
            drop(target);
            return Err(ask(&request, view, shown));
        }
        if !(receipt.dry_run || show) {
            receipt.diff = None;
        }
    }
    if receipt.dry_run {
        return Ok(target.check_writable().map_err(|error| Error::changing(&path, error))?);
    }
    let hash = blake3::hash(&after);
    let before = match view.session().is_audited() {
        true => target.hash().ok().flatten(),
        false => None,
    };
    let record = match view.session().journal() {
        None => None,
        Some(_) => {
            let before = state(&target).map_err(|error| view.missed(&path, error))?;
            let kept = target.meta().map(|meta| meta.mode & 0o1777).or(mode);
            let after = State::file(hash, after.len() as u64, kept);
            let (place, displaces) = (target.place().clone(), Displaces::Target(&mut target));
            Some(Record::begin(view, &place, &origin, [before, after], displaces, &path)?)
        }
    };
    let durability = view.session().settings().durability.into();
    let committed = match target.replace_with_mode(&after, durability, mode) {
        Ok(committed) => committed,
        Err(error) => {
            record.into_iter().for_each(Record::call_off);
            return Err(CommitError::from_confine(view, &path, error));
        }
    };
    if let Some(record) = record {
        (receipt.id, receipt.warning) = record.end();
    }
    view.call().audit_trace.changed(before, Some(hash));
    let fingerprint = Fingerprint { hash, meta: committed.meta };
    view.session().saw(target.place(), fingerprint);
    Ok(())
}

fn remove(change: Remove, view: &View<'_>, receipt: &mut Receipt) -> Result<(), CommitError> {
    let Remove { path, removal, origin } = change;
    let place = removal.place().clone();
    let request =
        AccessRequest { access: Access::Delete, path: &path, place: &place, directory: false };
    if allowed(&request, view)? == Verdict::Ask {
        // What is shown is that it is deleted; what is meant is what is there now.
        let Metadata { kind, identity, len, mode, modified, .. } = removal.meta();
        let now = format!("{:?}", (kind, identity, len, mode, modified));
        let subject = Some(blake3::hash(now.as_bytes()));
        let shown = Shown { diff: None, subject };
        if !agreed(&request, view, receipt, &shown) {
            drop(removal);
            return Err(ask(&request, view, shown));
        }
    }
    if receipt.dry_run {
        return Ok(removal.check_removable().map_err(|error| Error::changing(&path, error))?);
    }
    let record = match view.session().journal() {
        None => None,
        Some(_) => {
            let before = match (removal.link_target(), removal.hash()) {
                (Some(to), _) => State::Link { target: String::from_utf8_lossy(to).into_owned() },
                (None, Ok(Some(hash))) => State::of(removal.meta(), hash),
                (None, Ok(None)) => State::Absent,
                (None, Err(ConfineError::Changed)) => return Err(CommitError::Conflict { path }),
                (None, Err(error)) => return Err(view.missed(&path, error).into()),
            };
            let displaces = Displaces::Removal(&removal);
            let states = [before, State::Absent];
            Some(Record::begin(view, &place, &origin, states, displaces, &path)?)
        }
    };
    let durability = view.session().settings().durability.into();
    let before = match view.session().is_audited() {
        true => removal.hash().ok().flatten(),
        false => None,
    };
    match removal.remove(durability) {
        Ok(displaced) => {
            drop(displaced);
            view.call().audit_trace.changed(before, None);
            if let Some(record) = record {
                (receipt.id, receipt.warning) = record.end();
            }
            view.session().forget(&place);
            Ok(())
        }
        Err(error) => {
            record.into_iter().for_each(Record::call_off);
            Err(CommitError::from_confine(view, &path, error))
        }
    }
}

/// Only undoing makes links: one that was deleted.
fn restore(change: RestoreLink, view: &View<'_>, receipt: &mut Receipt) -> Result<(), CommitError> {
    let RestoreLink { path, target, to, origin } = change;
    let place = target.place().clone();
    let request =
        AccessRequest { access: Access::Write, path: &path, place: &place, directory: false };
    if allowed(&request, view)? == Verdict::Ask {
        let shown = Shown { diff: None, subject: Some(blake3::hash(to.as_bytes())) };
        if !agreed(&request, view, receipt, &shown) {
            drop(target);
            return Err(ask(&request, view, shown));
        }
    }
    if receipt.dry_run {
        return Ok(target.check_writable().map_err(|error| Error::changing(&path, error))?);
    }
    let after = State::Link { target: to.clone() };
    let states = [State::Absent, after];
    let nothing = Displaces::Nothing;
    let record = Record::begin(view, target.place(), &origin, states, nothing, &path)?;
    match target.link(to.as_bytes()) {
        Ok(()) => {
            (receipt.id, receipt.warning) = record.end();
            Ok(())
        }
        Err(error) => {
            record.call_off();
            Err(CommitError::from_confine(view, &path, error))
        }
    }
}

/// Whether a change may be made, before anybody is asked.
#[derive(Clone, Copy, PartialEq)]
enum Verdict {
    Yes,
    Ask,
}

fn allowed(request: &AccessRequest<'_>, view: &View<'_>) -> Result<Verdict, Error> {
    Ok(if view.must_ask(request)? { Verdict::Ask } else { Verdict::Yes })
}

/// Whether a person has said yes to just this. A dry run asks nobody, but says that it would be.
fn agreed(
    request: &AccessRequest<'_>,
    view: &View<'_>,
    receipt: &mut Receipt,
    shown: &Shown,
) -> bool {
    if receipt.dry_run && view.can_ask() {
        receipt.warning = Some("a person will be asked before this is done".into());
        return true;
    }
    view.granted(request, shown.subject)
}

/// Asks a person. Whatever was held must have been let go: others should not have to wait.
fn ask(request: &AccessRequest<'_>, view: &View<'_>, shown: Shown) -> CommitError {
    match view.permit(request, || shown) {
        Ok(_) => CommitError::Asked,
        Err(error) => error.into(),
    }
}

/// What is there before a change.
fn state(target: &Target) -> Result<State, ConfineError> {
    Ok(match (target.meta(), target.hash()?) {
        (Some(meta), Some(hash)) => State::of(meta, hash),
        _ => State::Absent,
    })
}

/// A file that is there must be known, and be as it is known.
fn check_seen(change: &Replace, view: &View<'_>) -> Result<(), Error> {
    let Replace { path, target, seen, .. } = change;
    if *seen == ReadRule::Off || target.meta().is_none() {
        return Ok(());
    }
    match view.freshness(path, target)? {
        Freshness::None => Err(Error::NotRead { path: path.clone() }),
        Freshness::Changed => Err(Error::Changed { path: path.clone(), region: None }),
        Freshness::Current => Ok(()),
    }
}

/// How well the session knows a file that is there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Freshness {
    /// It has never seen it.
    None,
    /// It has seen it, but not as it is now.
    Changed,
    /// It knows it as it is.
    Current,
}

impl View<'_> {
    /// How well the session knows a target's content.
    pub(crate) fn freshness(&self, path: &RawPath, target: &Target) -> Result<Freshness, Error> {
        let fingerprint = self.session().last_fingerprint(target.place());
        let (Some(fingerprint), Some(found)) = (fingerprint, target.meta()) else {
            return Ok(Freshness::None);
        };
        if fingerprint.meta.is_some_and(|meta| meta.proven_unchanged(found)) {
            return Ok(Freshness::Current);
        }
        let hash = target.hash().map_err(|error| self.missed(path, error))?;
        let same = hash == Some(fingerprint.hash);
        Ok(if same { Freshness::Current } else { Freshness::Changed })
    }
}

/// What would change, where that can be shown.
fn planned_diff(
    target: &mut Target,
    before: Option<Vec<u8>>,
    after: &[u8],
    view: &View<'_>,
) -> Result<Option<String>, ConfineError> {
    if target.meta().is_some_and(|meta| !can_compare(meta.len, view)) {
        return Ok(None);
    }
    let before = match before {
        Some(before) => before,
        None => target.content()?,
    };
    Ok(diff(&target.place().path.to_string(), &before, after, view))
}

/// Whether a file of so many bytes is shown as a diff.
pub(crate) fn can_compare(bytes: u64, view: &View<'_>) -> bool {
    bytes <= view.session().settings().max_edit_bytes
}

/// What is different, where both versions are text and small enough to compare.
pub(crate) fn diff(path: &str, before: &[u8], after: &[u8], view: &View<'_>) -> Option<String> {
    if ![before, after].iter().all(|bytes| can_compare(bytes.len() as u64, view)) {
        return None;
    }
    let (old, new) = (text_encoding(before)?, text_encoding(after)?);
    Some(unified_diff(path, (before, old), (after, new), view.output_bytes()))
}
