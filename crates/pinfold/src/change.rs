//! What an operation wants changed.

use pinfold_confine::{RawPath, Target};

/// Whether a file that is there must have been read in the session before it is changed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SeenRule {
    /// It must have been, and must still be as it was read.
    Required,
    /// It need not have been.
    Off,
}

/// Changes that were planned and not made yet: one file, as it was found and as it is to be; or none.
#[derive(Debug)]
pub struct ChangeSet(pub(crate) Option<Replace>);

#[derive(Debug)]
pub(crate) struct Replace {
    pub(crate) path: RawPath,
    /// Holds the file, and knows it as it was found.
    pub(crate) target: Target,
    pub(crate) after: Vec<u8>,
    pub(crate) seen: SeenRule,
}

impl ChangeSet {
    /// Everything is as it should be already.
    pub(crate) fn nothing() -> Self {
        Self(None)
    }

    /// The file's whole content becomes `after`.
    pub(crate) fn replace(path: &RawPath, target: Target, after: Vec<u8>, seen: SeenRule) -> Self {
        Self(Some(Replace { path: path.clone(), target, after, seen }))
    }
}
