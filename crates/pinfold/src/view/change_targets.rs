//! Finds and locks the files and directories that a change needs. Refuses what policy denies; `commit` asks the user.

use pinfold_confine::{
    Error as ConfineError, Kind, Place, RawPath, Relocation, RelocationError, Removal, Target,
    TreeRemoval,
};

use super::View;
use crate::permit::AccessRequest;
use crate::{Access, Error};

impl View<'_> {
    /// Finds and locks the file or symlink to delete. Fails if policy denies the deletion.
    pub(crate) fn removal(&self, path: &RawPath) -> Result<Removal, Error> {
        self.try_access(Access::Delete, path)?;
        let removal = self.session.workspace().removal(path, &self.deadline());
        let removal = removal.map_err(|error| self.path_error(path, error))?;
        self.check_change(Access::Delete, path, removal.place(), false)?;
        Ok(removal)
    }

    /// Finds and locks the file to change. Fails if policy denies the change.
    pub(crate) fn target(&self, path: &RawPath) -> Result<Target, Error> {
        self.try_access(Access::Write, path)?;
        loop {
            let target = self.session.workspace().target(path, &self.deadline());
            let target = target.map_err(|error| self.target_error(path, error))?;
            // The old content is compared with the new one and shown, which is a read. If reads are denied, the
            // answer does not reveal whether the file exists.
            let place = target.place().clone();
            let needed = self.read_approval(path, &place, false)?;
            // A denied write is refused here; `commit` asks the user.
            self.needs_write_approval(path, &target)?;
            match needed.filter(|_| target.meta().is_some()) {
                None => return Ok(target),
                Some(needed) => {
                    // Releases the file, so that other calls need not wait while the user decides.
                    drop(target);
                    self.request_approval(&needed)?;
                }
            }
        }
    }

    /// Finds and locks the file or directory to move, and its new place. Fails if policy denies the move.
    pub(crate) fn relocation(&self, from: &RawPath, to: &RawPath) -> Result<Relocation, Error> {
        self.try_access(Access::Delete, from)?;
        self.try_access(Access::Write, to)?;
        let relocation = self.session.workspace().relocation(from, to, &self.deadline());
        let relocation = relocation.map_err(|error| match error {
            RelocationError::Source(error) => self.path_error(from, error),
            RelocationError::Destination(error) => self.target_error(to, error),
        })?;
        let directory = relocation.meta().kind == Kind::Directory;
        self.check_change(Access::Delete, from, relocation.from(), directory)?;
        self.check_change(Access::Write, to, relocation.to(), directory)?;
        Ok(relocation)
    }

    /// Finds and locks the place of a directory to create. Fails if policy denies the change.
    pub(crate) fn directory_target(&self, path: &RawPath) -> Result<Target, Error> {
        self.try_access(Access::Write, path)?;
        let target = self.session.workspace().directory_target(path, &self.deadline());
        let target = target.map_err(|error| self.target_error(path, error))?;
        self.check_change(Access::Write, path, target.place(), true)?;
        Ok(target)
    }

    /// Finds and locks a directory to remove with everything in it. Fails if policy denies the deletion of the
    /// directory or of an entry.
    pub(crate) fn tree_removal(
        &self,
        path: &RawPath,
        max_entries: usize,
    ) -> Result<TreeRemoval, Error> {
        self.try_access(Access::Delete, path)?;
        let removal = self.session.workspace().tree_removal(path, max_entries, &self.deadline());
        let removal = removal.map_err(|error| match error {
            ConfineError::TooLarge => {
                Error::TooManyEntries { path: path.clone(), limit: max_entries }
            }
            other => self.path_error(path, other),
        })?;
        self.check_change(Access::Delete, path, removal.place(), true)?;
        self.check_tree((path, removal.place()), None, max_entries)?;
        Ok(removal)
    }

    /// Records the access for the audit log. Fails if policy denies the path by its name.
    fn try_access(&self, access: Access, path: &RawPath) -> Result<(), Error> {
        self.call.audit_trace().record_attempt(access, Some(path.as_str()));
        self.check_name(path)
    }

    /// Fails if policy denies the change, or denies reading the file. Only denials matter here: the content is not
    /// read, and `commit` asks the user.
    fn check_change(
        &self,
        access: Access,
        path: &RawPath,
        place: &Place,
        directory: bool,
    ) -> Result<(), Error> {
        for access in [Access::Read, access] {
            self.check_policy(&AccessRequest { access, path, place, directory })?;
        }
        Ok(())
    }

    /// Refuses a path if directories above it do not exist. `missing` is their number.
    pub(crate) fn check_parents(
        &self,
        path: &RawPath,
        place: &Place,
        missing: usize,
    ) -> Result<(), Error> {
        if missing == 0 {
            return Ok(());
        }
        let mut parent = place.clone();
        for _ in 0..missing {
            parent.path = parent.path.split().map(|(above, _)| above).unwrap_or_default();
        }
        let parent = self.session.relative(&parent);
        Err(Error::ParentMissing { path: path.clone(), parent })
    }
}
