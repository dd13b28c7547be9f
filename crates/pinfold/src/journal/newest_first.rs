//! The entries of the journal, newest first.

use std::collections::HashSet;
use std::fmt;

use pinfold_confine::{BackupStore, Error as ConfineError, LinesFromEnd, Segment};

use super::{Entry, LineKey, LoggedEntry, log};

/// Decides whether an unconfirmed change was made.
pub(super) type WasMade<'j> = Box<dyn Fn(&Entry) -> bool + Send + Sync + 'j>;

/// The entries of a journal, newest first.
pub struct NewestFirst<'j> {
    pub(super) store: &'j BackupStore,
    pub(super) lines: LinesFromEnd,
    /// The newest segment when the current log was opened. Newer ones repeat lines of that log.
    pub(super) newest_segment: u64,
    /// The segments that have not been read, oldest first. `None` until the current log has been read.
    pub(super) segments: Option<Vec<Segment>>,
    pub(super) made: HashSet<String>,
    pub(super) void: HashSet<String>,
    /// Older changes that the entries read so far have undone.
    pub(super) undone: HashSet<String>,
    pub(super) was_made: WasMade<'j>,
}

impl fmt::Debug for NewestFirst<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewestFirst").finish_non_exhaustive()
    }
}

impl<'j> NewestFirst<'j> {
    /// Sets the function that decides whether an unconfirmed undo was made. Without it, such an undo counts as made.
    pub(crate) fn with_undo_check(
        self,
        was_made: impl Fn(&Entry) -> bool + Send + Sync + 'j,
    ) -> Self {
        Self { was_made: Box::new(was_made), ..self }
    }

    /// Opens the log of the newest segment that has not been read.
    fn next_log(&mut self) -> Result<Option<LinesFromEnd>, ConfineError> {
        let mut segments = match self.segments.replace(Vec::new()) {
            Some(segments) => segments,
            None => {
                let mut segments = self.store.segments()?;
                segments.retain(|segment| segment.number <= self.newest_segment);
                segments
            }
        };
        let Some(segment) = segments.pop() else { return Ok(None) };
        self.segments = Some(segments);
        self.store.lines_from_end(&log(), Some(&segment)).map(Some)
    }
}

impl Iterator for NewestFirst<'_> {
    type Item = Result<LoggedEntry, ConfineError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let line = match self.lines.next() {
                Some(Ok(line)) => line,
                Some(Err(error)) => return Some(Err(error)),
                None => match self.next_log().transpose()? {
                    Ok(lines) => {
                        self.lines = lines;
                        continue;
                    }
                    Err(error) => return Some(Err(error)),
                },
            };
            // The lines `made` and `void` follow their entry, so they are read before it.
            if let Ok(entry) = serde_json::from_str::<Entry>(&line) {
                let confirmed = self.made.remove(&entry.id);
                if !self.void.remove(&entry.id) {
                    let undone = self.undone.remove(&entry.id);
                    // The process may have been killed before it undid the change.
                    let undoes_something = entry.undoes.is_some();
                    if !undone && undoes_something && (confirmed || (self.was_made)(&entry)) {
                        let undoes = entry.undoes.iter().chain(&entry.also_undoes);
                        self.undone.extend(undoes.cloned());
                    }
                    return Some(Ok(LoggedEntry { entry, confirmed, undone }));
                }
            } else if let Some(key) = LineKey::parse(&line) {
                self.made.extend(key.made);
                self.void.extend(key.void);
            }
        }
    }
}

/// Selects the entries whose changes are in effect: not undone, or undone and redone. Omits entries that undid
/// others. `entries` starts with the newest.
pub(crate) fn in_effect<E>(
    entries: impl Iterator<Item = Result<LoggedEntry, E>>,
) -> impl Iterator<Item = Result<LoggedEntry, E>> {
    entries.filter(|logged| {
        let Ok(LoggedEntry { entry, undone, .. }) = logged else { return true };
        !undone && !entry.id.is_empty() && entry.undoes.is_none() && entry.checkpoint.is_none()
    })
}
