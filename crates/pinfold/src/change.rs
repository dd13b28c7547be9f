//! What an operation wants changed.

use pinfold_confine::{RawPath, Removal, Target};
use serde::Deserialize;

/// Whether an existing file must have been read in the session before it is changed.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
pub enum ReadRule {
    /// The session must have read the file, and the file must not have changed since.
    Require,
    /// Any file can be changed.
    Off,
}

/// Changes that were planned and not made yet: one file, as it was found and as it is to be; or none.
#[derive(Debug)]
pub struct ChangeSet(pub(crate) Option<Change>);

#[derive(Debug)]
pub(crate) enum Change {
    Replace(Box<Replace>),
    Remove(Box<Remove>),
    RestoreLink(Box<RestoreLink>),
}

/// The file's whole content is to be another.
#[derive(Debug)]
pub(crate) struct Replace {
    pub(crate) path: RawPath,
    /// Holds the file, and knows it as it was found.
    pub(crate) target: Target,
    /// What it holds, where that was read to plan the change.
    pub(crate) before: Option<Vec<u8>>,
    pub(crate) after: Vec<u8>,
    /// Whether a file that is there must have been seen before it is changed.
    pub(crate) seen: ReadRule,
    /// Whether the answer shows what changed, and not only in a dry run.
    pub(crate) show: bool,
    /// The mode of a file that was not there, where it is to have a certain one.
    pub(crate) mode: Option<u32>,
    pub(crate) origin: ChangeOrigin,
}

/// How the journal knows a change.
#[derive(Clone, Debug, Default)]
pub(crate) enum ChangeOrigin {
    /// As a change of its own.
    #[default]
    New,
    /// As one that takes another back.
    Undo { id: String },
}

/// A link is to be there again.
#[derive(Debug)]
pub(crate) struct RestoreLink {
    pub(crate) path: RawPath,
    /// Holds the place, in which nothing is.
    pub(crate) target: Target,
    /// Where the link points.
    pub(crate) to: String,
    pub(crate) origin: ChangeOrigin,
}

/// The file is to be gone.
#[derive(Debug)]
pub(crate) struct Remove {
    pub(crate) path: RawPath,
    /// Holds the file, and knows it as it was found.
    pub(crate) removal: Removal,
    pub(crate) origin: ChangeOrigin,
}

impl ChangeSet {
    /// Everything is as it should be already.
    pub(crate) fn nothing() -> Self {
        Self(None)
    }

    pub(crate) fn replace(replace: Replace) -> Self {
        Self(Some(Change::Replace(Box::new(replace))))
    }

    pub(crate) fn restore(restore: RestoreLink) -> Self {
        Self(Some(Change::RestoreLink(Box::new(restore))))
    }

    pub(crate) fn remove(remove: Remove) -> Self {
        Self(Some(Change::Remove(Box::new(remove))))
    }
}
