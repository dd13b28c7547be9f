//! The one place where changes are made. Every kind of [`Change`] takes the same steps:
//!
//! 1. Check the deadline, and that the audit log can be written.
//! 2. Policy: refuse what is denied.
//! 3. Approval: if policy asks and the user has not approved this change yet, release the file, ask the user,
//!    and return [`CommitError::Approved`], so that the session plans again. A dry run does not ask.
//! 4. Make the diff, if the answer has one. A dry run ends here, with whether the operating system would allow
//!    the change.
//! 5. Write the new content beside the file, if it is a single change that is flushed. Journal: make the backups
//!    and add the entries, of several changes as one group.
//! 6. Apply the changes. If one fails, those before it are rolled back and the entries become void; if a file is
//!    no longer as it was planned on, the session plans again.
//! 7. Mark the entries as made, and note the changes for the audit log and in the ledger.

use std::collections::HashSet;

use blake3::Hash;
use pinfold_confine::{Error as ConfineError, Place, RawPath, SharedLocks};

use crate::change::{Applied, Change, ChangeSet};
use crate::journal::{PendingEntries, State};
use crate::permit::{ApprovalPart, NeededApproval};
use crate::preview::Proposal;
use crate::{ChangeEvent, Durability, Error, View};

/// The result of a commit.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Receipt {
    /// Whether this was a dry run.
    pub dry_run: bool,
    /// The diff, if the answer includes it.
    pub diff: Option<String>,
    /// The change's id in the journal.
    pub id: Option<String>,
    /// A warning for the user, for example that the change cannot be undone.
    pub warning: Option<String>,
}

/// Why a commit did not happen.
#[derive(Debug)]
pub enum CommitError {
    /// The user has approved the change. The file may have changed meanwhile, so the session plans again.
    Approved {
        /// The path as it was given.
        path: RawPath,
    },
    /// The file has changed since the change was planned. The session plans again.
    Stale {
        /// The path as it was given.
        path: RawPath,
    },
    /// Planning again would not help.
    Error(Error),
}

impl From<Error> for CommitError {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

pub(crate) fn commit(changes: ChangeSet, view: &View<'_>) -> Result<Receipt, CommitError> {
    view.check_time()?;
    view.session().check_audit()?;
    let mut receipt = Receipt { dry_run: view.dry_run(), ..Receipt::default() };
    let mut changes = changes.0;
    if let Some(needed) = needed_approval(&mut changes, view, &mut receipt)? {
        let path = changes[0].path().clone();
        // Releases the files, so that other calls need not wait while the user decides.
        drop(changes);
        view.request_approval(&needed)?;
        return Err(CommitError::Approved { path });
    }
    for change in &mut changes {
        if receipt.dry_run || change.answers_with_diff() {
            let diff = change.diff(view).map_err(|error| failed_to_read(&**change, error, view))?;
            receipt.diff = receipt.diff.into_iter().chain(diff).reduce(|all, next| all + &next);
        }
        if receipt.dry_run {
            let possible = change.check_possible();
            possible.map_err(|error| Error::from_write(change.path(), error))?;
        }
    }
    if !receipt.dry_run && !changes.is_empty() {
        make(changes, view, &mut receipt)?;
    }
    Ok(receipt)
}

/// The approval request that the changes need, if policy asks about one of them and the user has not approved them
/// yet. A dry run only warns that the user will be asked.
fn needed_approval(
    changes: &mut [Box<dyn Change>],
    view: &View<'_>,
    receipt: &mut Receipt,
) -> Result<Option<NeededApproval>, CommitError> {
    let mut asking = Vec::new();
    for (number, change) in changes.iter().enumerate() {
        for (nth, request) in change.requests().iter().enumerate() {
            asking.extend(view.check_policy(request)?.map(|reason| (number, nth, reason)));
        }
    }
    if asking.is_empty() {
        return Ok(None);
    }
    if receipt.dry_run && view.can_ask() {
        receipt.warning = Some("the user will be asked before this is done".into());
        return Ok(None);
    }
    let change_hash = change_hash(changes, view)?;
    let mut parts = Vec::new();
    // The question is about changes that need approval by their paths, before those that need it as any change does.
    let by_path = asking.iter().filter(|(.., reason)| !reason.is_general());
    let first: HashSet<usize> = by_path.map(|(number, ..)| *number).collect();
    asking.sort_by_key(|(number, ..)| !first.contains(number));
    for (number, nth, reason) in asking {
        let request = changes[number].requests()[nth];
        if !view.is_approved(&request, Some(change_hash)) {
            parts.push(ApprovalPart::new(&request, reason));
        }
    }
    if parts.is_empty() {
        return Ok(None);
    }
    let (mut asked, mut others) = (Vec::new(), Vec::new());
    for (number, change) in changes.iter_mut().enumerate() {
        let proposal = change.proposal(view);
        let proposal = proposal.map_err(|error| failed_to_read(&**change, error, view))?;
        let list = if first.contains(&number) { &mut asked } else { &mut others };
        list.push((view.session().relative(change.place()), proposal));
    }
    let proposal = Proposal::of_all(asked, others);
    Ok(Some(NeededApproval { parts, change: Some((change_hash, proposal)) }))
}

/// The hash of all changes. One approval covers all of them.
fn change_hash(changes: &[Box<dyn Change>], view: &View<'_>) -> Result<Hash, CommitError> {
    let hash = |change: &dyn Change| {
        change.change_hash().map_err(|error| failed_to_read(change, error, view))
    };
    if let [change] = changes {
        return hash(&**change);
    }
    let mut hasher = blake3::Hasher::new();
    for change in changes {
        hasher.update(hash(&**change)?.as_bytes());
    }
    Ok(hasher.finalize())
}

/// Data about a change that is needed after it was made.
struct ChangeInfo {
    path: RawPath,
    place: Place,
    destination: Option<(RawPath, Place)>,
    made_parents: usize,
}

impl ChangeInfo {
    fn of(change: &dyn Change) -> Self {
        let destination = change.destination().map(|(path, place)| (path.clone(), place.clone()));
        Self {
            path: change.path().clone(),
            place: change.place().clone(),
            destination,
            made_parents: change.made_parents(),
        }
    }
}

/// Adds the changes to the journal, makes all of them or none, and records them in the audit log and the ledger.
fn make(
    mut changes: Vec<Box<dyn Change>>,
    view: &View<'_>,
    receipt: &mut Receipt,
) -> Result<(), CommitError> {
    let session = view.session();
    // Without this, the changes of a set would wait for each other's locks.
    let locks = (changes.len() > 1).then(SharedLocks::begin);
    // After a loss of power, the journal must know every set that is partly on the disk. Once the journal confirms a
    // set, the whole set must be on the disk.
    let durability = match session.settings().durability {
        Durability::Data if changes.len() > 1 => Durability::Full,
        chosen => chosen,
    };
    let infos: Vec<_> = changes.iter().map(|change| ChangeInfo::of(&**change)).collect();
    let states = changes.iter().map(|change| states(&**change, view));
    let states = states.collect::<Result<Option<Vec<_>>, _>>()?;
    // Of a set, each file is written when it is its turn: the set may have more files than a process may have open.
    if let [change] = &mut changes[..]
        && durability != Durability::None
    {
        let written = change.write_ahead();
        written.map_err(|error| view.commit_error(change.path(), error, Error::from_write))?;
    }
    let entries = match &states {
        Some(states) => PendingEntries::begin(view, &mut changes, states, durability)?,
        None => PendingEntries::none(view),
    };
    // The lines are counted while both versions exist.
    let observed = session.is_watched();
    let lines = changes.iter_mut().map(|change| observed.then(|| change.line_counts(view)));
    let lines: Vec<_> = lines.map(Option::flatten).collect();
    let mut applied = Vec::new();
    if let Some(locks) = &locks {
        let places = infos
            .iter()
            .flat_map(|info| [Some(&info.place), info.destination.as_ref().map(|(_, to)| to)]);
        let (workspace, deadline) = (session.workspace(), view.deadline());
        let locked = locks.lock_directories(workspace, places.flatten(), &deadline);
        if let Err(error) = locked {
            return Err(roll_back(view, applied, &infos, entries, error));
        }
    }
    for change in changes {
        match change.apply(durability) {
            Ok(done) => applied.push(done),
            Err(error) => return Err(roll_back(view, applied, &infos, entries, error)),
        }
    }
    // This must come before the journal confirms the changes. Otherwise a sweep would restore what it confirms as
    // removed, if the process is killed in between.
    applied
        .iter_mut()
        .filter_map(|done| done.discard_rollback.take())
        .for_each(|discard| discard());
    (receipt.id, receipt.warning) = entries.confirm();
    for (([before, after], info), lines) in states.iter().flatten().zip(&infos).zip(lines) {
        view.call().audit_trace().record_hashes(before, after);
        let places = (&info.place, info.destination.as_ref().map(|(_, to)| to));
        view.tell_observer(places, [before, after], receipt.id.as_deref(), lines);
    }
    for (done, info) in applied.into_iter().zip(&infos) {
        for warning in warnings(&done) {
            let known = receipt.warning.take().map(|known| format!("{known}; "));
            receipt.warning = Some(known.unwrap_or_default() + &warning);
        }
        match (done.fingerprint, &info.destination) {
            (Some(fingerprint), _) => session.record_write(&info.place, fingerprint),
            (None, Some((_, to))) => session.record_move(&info.place, to),
            (None, None) => session.forget(&info.place),
        }
    }
    Ok(())
}

/// Rolls back the changes that were made before one failed, in reverse order. Returns the error of the whole set.
fn roll_back(
    view: &View<'_>,
    applied: Vec<Applied>,
    infos: &[ChangeInfo],
    entries: PendingEntries<'_>,
    error: ConfineError,
) -> CommitError {
    let failed = &infos[applied.len()];
    let path = match (&error, &failed.destination) {
        (ConfineError::Exists | ConfineError::CrossDevice, Some((to, _))) => to.clone(),
        _ => failed.path.clone(),
    };
    let (mut made, mut remain) = (Vec::new(), Vec::new());
    for (number, done) in applied.into_iter().enumerate().rev() {
        let info = &infos[number];
        match (done.roll_back)() {
            Ok(()) => {
                let place = info.destination.as_ref().map_or(&info.place, |(_, place)| place);
                view.session().workspace().remove_empty_parents(place, info.made_parents);
            }
            Err(cause) => {
                made.push(number);
                remain.push(format!("`{}` ({cause})", info.path));
            }
        }
    }
    entries.void(&made);
    if !remain.is_empty() {
        let remain = remain.join(", ");
        let cause = format!("{error}; these changes could not be rolled back: {remain}");
        return Error::WriteFailed { path, cause }.into();
    }
    view.commit_error(&path, error, Error::from_write)
}

/// The warnings about a change that was made.
fn warnings(applied: &Applied) -> Vec<String> {
    let mut warnings = Vec::new();
    if let [first, more @ ..] = &applied.unverified[..] {
        let names = more.iter().fold(format!("`{first}`"), |all, name| format!("{all}, `{name}`"));
        warnings.push(format!(
            "in the same directory, {names} holds content that a killed process left: another \
             program saved it, and it may exist nowhere else"
        ));
    }
    if applied.may_have_replaced {
        warnings.push(
            "this file system cannot create a file without replacing another: if another program \
             saved one under this name at the same moment, that is lost"
                .into(),
        );
    }
    warnings
}

/// The states before and after a change, if the journal, the audit log or the observer needs them.
fn states(change: &dyn Change, view: &View<'_>) -> Result<Option<[State; 2]>, CommitError> {
    if view.session().journal().is_some() {
        let states = change.states().map_err(|error| failed_to_read(change, error, view))?;
        return Ok(Some(states));
    }
    // The audit log and the observer do not need states that cannot be read.
    let needed = view.session().is_audited() || view.session().is_watched();
    Ok(if needed { change.states().ok() } else { None })
}

impl View<'_> {
    /// Reports a change to the observer while a viewer watches.
    fn tell_observer(
        &self,
        (place, moved_to): (&Place, Option<&Place>),
        [before, after]: [&State; 2],
        id: Option<&str>,
        lines: Option<(u64, u64)>,
    ) {
        let session = self.session();
        let Some(observer) = session.watching_observer() else { return };
        let path = |place: &Place| {
            String::from_utf8_lossy(&session.workspace().real_path(place)).into_owned()
        };
        observer.changed(&ChangeEvent {
            call: self.call().audit_trace().number(),
            session: session.id(),
            tool: self.tool(),
            path: path(place),
            moved_to: moved_to.map(path),
            kind: match (before, after) {
                _ if moved_to.is_some() => "moved",
                (State::Absent, _) => "created",
                (_, State::Absent) => "deleted",
                _ => "changed",
            },
            id,
            lines,
        });
    }
}

fn failed_to_read(change: &dyn Change, error: ConfineError, view: &View<'_>) -> CommitError {
    view.commit_error(change.path(), error, |path, error| view.path_error(path, error))
}
