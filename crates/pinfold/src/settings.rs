//! The settings of a session, which only the user chooses.
//!
//! The field names are the keys of the configuration file, the flags of the command line (with `-` for `_`) and the
//! options of the packages. Every setting has one type, which all of them parse with serde.

use std::fmt;
use std::path::PathBuf;

use etcetera::BaseStrategy as _;
use pinfold_confine::{Durability, IndexMode};
use pinfold_text::MatchMode;
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Visitor, value};

use crate::similar_names::similar_names;
use crate::{Permissions, limits};

/// Everything that can be set; each has a default.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Settings {
    /// Whether tools that require absolute paths also accept relative ones, which start at the first root.
    pub relative_paths: bool,
    /// Whether tools and arguments have only names that every framework accepts: letters, digits and `_`.
    pub portable_names: bool,
    /// Directories that tools may read but not change, besides the roots and regardless of the rules.
    pub read_roots: Vec<PathBuf>,
    /// The directory of the dialect `memory`, which is created if it is missing. It has its own fence, and other tools
    /// cannot reach it.
    pub memory: Option<PathBuf>,
    /// Whether changes are described instead of made.
    pub dry_run: bool,
    /// How much is flushed to the disk before a change is complete.
    pub durability: Durability,
    /// Whether a file must be read before it is changed; by dialect if not set.
    pub read_before_write: Option<ReadBeforeWrite>,
    /// How an edit finds the text that it replaces.
    pub matching: MatchMode,
    /// The largest file that can be edited, in bytes.
    pub max_edit_bytes: u64,
    /// Whether changes are journalled, so that they can be undone. If not set, the command line keeps a journal and
    /// the library does not.
    pub journal: Option<JournalSetting>,
    /// For how many days the journal keeps backups.
    pub journal_days: u64,
    /// How many bytes on disk the journal may take.
    pub max_journal_bytes: u64,
    /// Whether a change that cannot be journalled is refused, or made with a warning.
    pub journal_failure: JournalFailure,
    /// How many bytes of text one result may have; by dialect if not set.
    pub max_output_bytes: Option<usize>,
    /// How many characters of a line are shown.
    pub max_line_chars: usize,
    /// Whether the text of PDF files is extracted, or the files are refused.
    pub documents: Documents,
    /// Images with a longer side, in pixels, are scaled down; none if not set.
    pub max_image_side: Option<usize>,
    /// Images with more bytes are scaled down; none if not set.
    pub max_image_bytes: Option<u64>,
    /// How many files `Glob` lists.
    pub max_glob_files: usize,
    /// Whether searches cache the tree and an index of its content.
    pub index: IndexMode,
    /// Bytes of memory that the index may take, with the cached contents; by default 3 % of the memory, at most 256 MiB.
    pub max_index_bytes: Option<u64>,
    /// How much text a search reads after its page is full, to count the other matches, in bytes.
    pub max_count_bytes: u64,
    /// How long one call may take, in seconds. The time that the user takes to answer an approval request does not count.
    pub deadline_seconds: u64,
    /// The audit log: a file that gets a line for every call.
    pub audit: Option<PathBuf>,
    /// Whether changes are refused while the audit log cannot be written.
    pub audit_failure: AuditFailure,
    /// The permission mode and rules.
    pub permissions: Permissions,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            relative_paths: false,
            portable_names: false,
            read_roots: Vec::new(),
            memory: None,
            dry_run: false,
            durability: Durability::Data,
            read_before_write: None,
            matching: MatchMode::Lenient,
            max_edit_bytes: limits::DEFAULT_MAX_EDIT_BYTES,
            journal: None,
            journal_days: limits::DEFAULT_JOURNAL_DAYS,
            max_journal_bytes: limits::DEFAULT_MAX_JOURNAL_BYTES,
            journal_failure: JournalFailure::Refuse,
            max_output_bytes: None,
            max_line_chars: limits::DEFAULT_MAX_LINE_CHARS,
            documents: Documents::Extract,
            max_image_side: None,
            max_image_bytes: None,
            max_glob_files: limits::DEFAULT_MAX_GLOB_FILES,
            index: IndexMode::Auto,
            max_index_bytes: None,
            max_count_bytes: limits::DEFAULT_MAX_COUNT_BYTES,
            deadline_seconds: limits::DEFAULT_DEADLINE_SECONDS,
            audit: None,
            audit_failure: AuditFailure::Refuse,
            permissions: Permissions::default(),
        }
    }
}

builder!(Settings {
    with_relative_paths(relative_paths: bool),
    with_portable_names(portable_names: bool),
    with_read_roots(read_roots: Vec<PathBuf>),
    with_memory(memory: Option<PathBuf>),
    with_dry_run(dry_run: bool),
    with_durability(durability: Durability),
    with_read_before_write(read_before_write: Option<ReadBeforeWrite>),
    with_matching(matching: MatchMode),
    with_max_edit_bytes(max_edit_bytes: u64),
    with_journal(journal: Option<JournalSetting>),
    with_journal_days(journal_days: u64),
    with_max_journal_bytes(max_journal_bytes: u64),
    with_journal_failure(journal_failure: JournalFailure),
    with_max_output_bytes(max_output_bytes: Option<usize>),
    with_max_line_chars(max_line_chars: usize),
    with_documents(documents: Documents),
    with_max_image_side(max_image_side: Option<usize>),
    with_max_image_bytes(max_image_bytes: Option<u64>),
    with_max_glob_files(max_glob_files: usize),
    with_index(index: IndexMode),
    with_max_index_bytes(max_index_bytes: Option<u64>),
    with_max_count_bytes(max_count_bytes: u64),
    with_deadline_seconds(deadline_seconds: u64),
    with_audit(audit: Option<PathBuf>),
    with_audit_failure(audit_failure: AuditFailure),
    with_permissions(permissions: Permissions),
});

impl Settings {
    /// The name of a setting that is 0 and must not be, since no call could answer then.
    #[doc(hidden)]
    pub fn zero(&self) -> Option<&'static str> {
        let at_least_one = [
            ("max_output_bytes", self.max_output_bytes != Some(0)),
            ("max_line_chars", self.max_line_chars != 0),
            ("max_glob_files", self.max_glob_files != 0),
            ("max_image_side", self.max_image_side != Some(0)),
            ("max_image_bytes", self.max_image_bytes != Some(0)),
            ("deadline_seconds", self.deadline_seconds != 0),
        ];
        at_least_one.into_iter().find(|(_, is_right)| !is_right).map(|(name, _)| name)
    }
}

/// Whether an existing file must have been read in the session before it is changed.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
pub enum ReadBeforeWrite {
    /// The session must have read the file, and the file must not have changed since.
    Require,
    /// Any file can be changed.
    Off,
}

/// The values of `audit_failure`.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
pub enum AuditFailure {
    /// Changes are refused.
    Refuse,
    /// Changes are made.
    Ignore,
}

/// The values of `journal`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(untagged, expecting = "expected true, false or a directory")]
pub enum JournalSetting {
    /// In the user's state directory, or not at all.
    Enabled(bool),
    /// In this directory.
    Directory(PathBuf),
}

impl JournalSetting {
    /// The journal's directory. Returns `None` if there is no journal.
    pub(crate) fn directory(&self) -> Option<PathBuf> {
        match self {
            Self::Enabled(false) => None,
            Self::Enabled(true) => {
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
    /// The change is made, and the result warns that it cannot be undone.
    Warn,
}

/// The values of `documents`.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
pub enum Documents {
    /// Their text is extracted.
    Extract,
    /// They are refused.
    Reject,
}

/// Settings that were renamed: the old key and the new one.
const RENAMED_KEYS: [(&str, &str); 9] = [
    ("seen", "read_before_write"),
    ("ladder", "matching"),
    ("edit_bytes", "max_edit_bytes"),
    ("output_bytes", "max_output_bytes"),
    ("glob_limit", "max_glob_files"),
    ("image_side", "max_image_side"),
    ("image_bytes", "max_image_bytes"),
    ("journal_bytes", "max_journal_bytes"),
    ("body_limit", "max_body_bytes"),
];

/// Values that were renamed: the key, the old value and the new one.
const RENAMED_VALUES: [(&str, &str, &str); 3] = [
    ("matching", "ladder", "lenient"),
    ("journal_failure", "say", "warn"),
    ("read_before_write", "required", "require"),
];

/// An unknown key, or a renamed value. Displays as a sentence with the right name, if there is one.
#[doc(hidden)]
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum BadName {
    /// The key was renamed.
    RenamedKey { old: String, new: &'static str },
    /// The value was renamed.
    RenamedValue { key: String, old: String, new: &'static str },
    /// There is no such key; `similar` is the name of a similar one.
    Unknown { key: String, similar: Option<String> },
}

impl fmt::Display for BadName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RenamedKey { old, new } => write!(out, "the setting `{old}` is now `{new}`"),
            Self::RenamedValue { key, old, new } => {
                write!(out, "the value `{old}` of `{key}` is now `{new}`")
            }
            Self::Unknown { key, similar: Some(similar) } => {
                write!(out, "there is no setting `{key}`; did you mean `{similar}`?")
            }
            Self::Unknown { key, similar: None } => write!(out, "there is no setting `{key}`"),
        }
    }
}

impl std::error::Error for BadName {}

impl BadName {
    /// The setting that had the name `old` in an earlier version.
    pub fn renamed_key(old: &str) -> Option<Self> {
        let (_, new) = RENAMED_KEYS.into_iter().find(|(name, _)| *name == old)?;
        Some(Self::RenamedKey { old: old.to_owned(), new })
    }

    /// The value of the setting `key` that had the name `old` in an earlier version.
    pub fn renamed_value(key: &str, old: &str) -> Option<Self> {
        let renamed = RENAMED_VALUES.into_iter().find(|(of, name, _)| (*of, *name) == (key, old));
        let (key, old, new) = renamed?;
        Some(Self::RenamedValue { key: key.to_owned(), old: old.to_owned(), new })
    }

    /// Checks that `key` is one of the settings in `known`.
    pub fn check_key(key: &str, known: &[&str]) -> Result<(), Self> {
        if known.contains(&key) {
            return Ok(());
        }
        Err(Self::renamed_key(key).unwrap_or_else(|| {
            let similar = similar_names(key, known.iter().copied(), 1).pop().map(str::to_owned);
            Self::Unknown { key: key.to_owned(), similar }
        }))
    }
}

/// The field names of a struct, or the variant names of an enum, as serde spells them.
#[doc(hidden)]
pub fn serde_names<T: DeserializeOwned>() -> &'static [&'static str] {
    let mut names: &[&str] = &[];
    // The deserializer fails on purpose, once it knows the names.
    let _ = T::deserialize(NameRecorder(&mut names));
    names
}

/// A deserializer without input. It records the names that a derived `Deserialize` passes to it.
struct NameRecorder<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for NameRecorder<'_> {
    type Error = value::Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, value::Error> {
        Err(serde::de::Error::custom("only structs and enums have names"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, value::Error> {
        *self.0 = fields;
        self.deserialize_any(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, value::Error> {
        *self.0 = variants;
        self.deserialize_any(visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_from_the_types() {
        assert_eq!(serde_names::<Permissions>(), ["mode", "allow", "ask", "deny"]);
        assert_eq!(serde_names::<Durability>(), ["none", "data", "full"]);
        assert_eq!(serde_names::<MatchMode>(), ["lenient", "exact"]);
        assert_eq!(serde_names::<ReadBeforeWrite>(), ["require", "off"]);
        assert_eq!(serde_names::<String>(), [""; 0]);
    }

    #[test]
    fn an_old_name_leads_to_a_name_that_exists() {
        let known = serde_names::<Settings>();
        for (old, new) in RENAMED_KEYS {
            let problem = BadName::check_key(old, known).unwrap_err();
            assert_eq!(problem.to_string(), format!("the setting `{old}` is now `{new}`"));
            // The command line tests the keys of `[http]`.
            assert!(known.contains(&new) || new == "max_body_bytes", "{new}");
        }
        for (key, old, new) in RENAMED_VALUES {
            let settings =
                |value| serde_json::from_value::<Settings>(serde_json::json!({key: value}));
            assert!(settings(new).is_ok() && settings(old).is_err(), "{key}");
            assert!(BadName::renamed_value(key, old).is_some());
        }
        assert_eq!(BadName::renamed_value("durability", "say"), None);
    }

    #[test]
    fn a_typo_leads_to_a_similar_name() {
        let problem = |key| BadName::check_key(key, serde_names::<Settings>()).unwrap_err();
        assert_eq!(
            problem("durabilty").to_string(),
            "there is no setting `durabilty`; did you mean `durability`?"
        );
        assert_eq!(problem("colour").to_string(), "there is no setting `colour`");
    }
}
