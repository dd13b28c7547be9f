//! What the person who runs Pinfold can choose.
//!
//! The field names are the keys of the configuration file and the options of the packages.

use std::path::PathBuf;

use etcetera::BaseStrategy as _;
use pinfold_confine::Durability;
use serde::Deserialize;

use crate::{Permissions, limits};

/// Everything that can be set; each has a default.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Whether tools that want absolute paths take relative ones too, as below the first root.
    pub relative_paths: bool,
    /// Whether changes are only described, and never made.
    pub dry_run: bool,
    /// What is flushed to the disk before a change counts as made.
    pub durability: DurabilitySetting,
    /// Whether a file must have been read before it is changed; by dialect if not set.
    pub seen: Option<SeenSetting>,
    /// How the text that an edit replaces is looked for.
    pub matching: MatchingSetting,
    /// The largest file that can be edited, in bytes.
    pub edit_bytes: u64,
    /// Whether changes are journalled, so that they can be taken back; by door if not set: the
    /// command line does so, a program that uses the library has to ask for it.
    pub journal: Option<JournalSetting>,
    /// For how many days the journal keeps what it displaced.
    pub journal_days: u64,
    /// How many bytes of displaced files the journal keeps.
    pub journal_bytes: u64,
    /// What becomes of a change that cannot be journalled.
    pub journal_failure: JournalFailure,
    /// How many bytes of text one answer may hold; by dialect if not set.
    pub output_bytes: Option<usize>,
    /// Where a long line is cut, in characters.
    pub max_line_chars: usize,
    /// What becomes of PDF files.
    pub documents: DocumentsSetting,
    /// Images with a longer side, in pixels, are shrunk; none if not set.
    pub image_side: Option<usize>,
    /// Images with more bytes are shrunk; none if not set.
    pub image_bytes: Option<u64>,
    /// How many files `Glob` names.
    pub glob_limit: usize,
    /// How long one call may take, in seconds. While a person is asked, the clock stands still.
    pub deadline_seconds: u64,
    /// A file that gets a line for every call.
    pub audit: Option<PathBuf>,
    /// What becomes of changes while that file cannot be written.
    pub audit_failure: AuditFailure,
    /// Who may do what.
    pub permissions: Permissions,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            relative_paths: false,
            dry_run: false,
            durability: DurabilitySetting::Data,
            seen: None,
            matching: MatchingSetting::Ladder,
            edit_bytes: limits::EDIT_BYTES,
            journal: None,
            journal_days: limits::JOURNAL_DAYS,
            journal_bytes: limits::JOURNAL_BYTES,
            journal_failure: JournalFailure::Refuse,
            output_bytes: None,
            max_line_chars: limits::MAX_LINE_CHARS,
            documents: DocumentsSetting::Extract,
            image_side: None,
            image_bytes: None,
            glob_limit: limits::GLOB_FILES,
            deadline_seconds: limits::DEADLINE_SECONDS,
            audit: None,
            audit_failure: AuditFailure::Refuse,
            permissions: Permissions::default(),
        }
    }
}

/// The values of `audit_failure`.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
pub enum AuditFailure {
    /// They are refused.
    Refuse,
    /// They are made.
    Ignore,
}

/// The values of `durability`.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
pub enum DurabilitySetting {
    /// Flush nothing.
    None,
    /// Flush the content before it takes its place.
    Data,
    /// Flush the directory too.
    Full,
}

impl From<DurabilitySetting> for Durability {
    fn from(setting: DurabilitySetting) -> Self {
        match setting {
            DurabilitySetting::None => Self::None,
            DurabilitySetting::Data => Self::Data,
            DurabilitySetting::Full => Self::Full,
        }
    }
}

/// The values of `seen`.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
pub enum SeenSetting {
    /// A file that is there must have been read in this session.
    Require,
    /// Any file can be changed.
    Off,
}

/// The values of `journal`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(untagged)]
pub enum JournalSetting {
    /// In the user's state directory, or not at all.
    Usual(bool),
    /// In this directory.
    Directory(PathBuf),
}

impl JournalSetting {
    /// The directory, if there is to be a journal.
    pub(crate) fn directory(&self) -> Option<PathBuf> {
        match self {
            Self::Usual(false) => None,
            Self::Usual(true) => {
                let base = etcetera::choose_base_strategy().ok()?;
                let state = base.state_dir().unwrap_or_else(|| base.data_dir());
                Some(state.join("pinfold").join("journal"))
            }
            Self::Directory(directory) => Some(directory.clone()),
        }
    }
}

/// The values of `journal_failure`.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
pub enum JournalFailure {
    /// The change is refused.
    Refuse,
    /// The change is made, and it is said that it cannot be taken back.
    Say,
}

/// The values of `documents`.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
pub enum DocumentsSetting {
    /// Their text is read.
    Extract,
    /// They are refused.
    Reject,
}

/// The values of `matching`.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
pub enum MatchingSetting {
    /// The text as it is, then whole lines without regard to blanks at their ends, then whole lines
    /// with another indentation.
    Ladder,
    /// The text as it is, whatever its line ends.
    Exact,
}

/// A key that nobody knows.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnknownKey {
    /// The key.
    pub key: String,
    /// One that is known, and is called almost like it.
    pub near: Option<String>,
}

/// What to say of a key that is not known, rather than all that are: made of what serde says.
/// `more` are keys that are known besides.
pub fn unknown_key(error: &str, more: &[&str]) -> Option<UnknownKey> {
    let (before, after) = error.split_once("unknown field `")?;
    let (key, known) = after.split_once('`')?;
    // Between backticks, every second part is a name.
    let known = known.split('`').skip(1).step_by(2);
    let known = known.chain(more.iter().copied().filter(|_| before.is_empty()));
    let likeness = |known: &str| strsim::jaro_winkler(key, known);
    let nearest = known.max_by(|one, other| likeness(one).total_cmp(&likeness(other)))?;
    let near = (likeness(nearest) > 0.8).then(|| nearest.to_owned());
    Some(UnknownKey { key: key.to_owned(), near })
}
