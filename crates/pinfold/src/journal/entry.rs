//! Entries of the journal: a change, and the states before and after it.

use blake3::Hash;
use pinfold_confine::{Error as ConfineError, Metadata};
use serde::{Deserialize, Serialize};

/// A change in the journal.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Entry {
    /// Its id.
    pub id: String,
    /// When it was made, in milliseconds since 1970.
    pub time: u64,
    /// The session that made it.
    pub session: String,
    /// The tool that made it.
    pub tool: String,
    /// The file's real path.
    pub path: String,
    /// The real paths of the workspace's roots, without read roots.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roots: Vec<String>,
    /// The state before the change.
    pub before: State,
    /// The state after the change.
    pub after: State,
    /// The real path that the file was moved to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<String>,
    /// How many directories it created above the file, or above the path that the file was moved to.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub made_parents: usize,
    /// The change that it undid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undoes: Option<String>,
    /// Other changes that it also undid: older ones of the same file, and those that cancel each other out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also_undoes: Vec<String>,
    /// The id of the first change of its set. The changes of a set were made together, and are undone together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The label of a checkpoint. Such an entry is not a change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<String>,
}

impl Entry {
    /// The kind of change: `created`, `changed`, `deleted` or `moved`; or `checkpoint`.
    pub fn kind(&self) -> &'static str {
        match (&self.before, &self.after) {
            _ if self.checkpoint.is_some() => "checkpoint",
            _ if self.moved_to.is_some() => "moved",
            (State::Absent, _) => "created",
            (_, State::Absent) => "deleted",
            _ => "changed",
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// An entry of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedEntry {
    /// The entry.
    pub entry: Entry,
    /// Whether the log confirms the change. If not, the process was killed just before or after it.
    pub confirmed: bool,
    /// Whether a later change undid it, and that change was not undone itself.
    pub undone: bool,
}

/// The state of a path.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum State {
    /// Nothing is there.
    Absent,
    /// A file.
    File {
        /// The hash of its content.
        hash: String,
        /// Its size in bytes.
        bytes: u64,
        /// Its permission bits, if they were known before the change.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<u32>,
    },
    /// A directory, regardless of its entries.
    Directory {
        /// Its permission bits, if they were known before the change.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<u32>,
    },
    /// A symbolic link.
    Link {
        /// Its target.
        target: String,
    },
}

impl State {
    /// A file with this content.
    pub(crate) fn file(hash: Hash, bytes: u64, mode: Option<u32>) -> Self {
        Self::File { hash: hash.to_hex().to_string(), bytes, mode }
    }

    /// Whether the log cannot represent it exactly, since it is not UTF-8.
    pub(crate) fn is_lossy(&self) -> bool {
        matches!(self, Self::Link { target } if target.contains(char::REPLACEMENT_CHARACTER))
    }

    /// A file with this metadata and content.
    pub(crate) fn of(meta: &Metadata, hash: Hash) -> Self {
        Self::file(hash, meta.len, Some(meta.mode))
    }
}

/// The alphabet of ids, and their length.
pub(super) const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
pub(super) const ID_CHARS: usize = 10;

/// A random id for a change or a session, short enough to type.
pub(crate) fn fresh_id() -> Result<String, ConfineError> {
    let mut number = pinfold_confine::random_number()?;
    let mut id = String::with_capacity(ID_CHARS);
    for _ in 0..ID_CHARS {
        id.push(char::from(LETTERS[(number % 32) as usize]));
        number /= 32;
    }
    Ok(id)
}
