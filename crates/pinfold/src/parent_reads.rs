//! The files that earlier processes of the same parent process have read.
//!
//! Some frameworks start a server for each call, so one process reads a file and the next changes it. When a process
//! ends, it appends its ledger to a file in the state directory. A session that does not know a file looks it up
//! there, and opens that file only then.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

use blake3::Hash;
use pinfold_confine::ParentFile;
use pinfold_text::LineHashes;
use serde::{Deserialize, Serialize};

use crate::ledger::{Fingerprint, Ledger};
use crate::limits::{MAX_SAVED_LINES, MAX_SAVED_READS};

/// The files that processes of one parent process have read or written.
#[derive(Debug)]
pub struct ParentReads {
    file: ParentFile,
    earlier: OnceLock<HashMap<Vec<u8>, Fingerprint>>,
    own: Mutex<Ledger>,
}

/// A line of the file.
#[derive(Deserialize, Serialize)]
struct SavedRead {
    path: String,
    hash: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lines: Option<Vec<u32>>,
}

impl ParentReads {
    /// Opens the record of files that processes of the same parent have read, in Pinfold's state directory. Returns
    /// `None` if the parent cannot be identified. Must be called before the process is restricted.
    pub fn new(directory: &Path) -> Option<Self> {
        let file = ParentFile::new(directory)?;
        Some(Self { file, earlier: OnceLock::new(), own: Mutex::default() })
    }

    /// Saves the fingerprints of this process for later ones.
    pub fn save(&self) -> std::io::Result<()> {
        let own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lines = String::new();
        for (path, fingerprint) in own.newest(MAX_SAVED_READS) {
            // A path that is not UTF-8 has to be read again.
            let Ok(path) = str::from_utf8(path) else { continue };
            let hashes = fingerprint.lines.as_ref().map(LineHashes::as_slice);
            let read = SavedRead {
                path: path.to_owned(),
                hash: fingerprint.hash.to_hex().to_string(),
                lines: hashes.filter(|lines| lines.len() <= MAX_SAVED_LINES).map(Into::into),
            };
            lines.extend(serde_json::to_string(&read));
            lines.push('\n');
        }
        if lines.is_empty() { Ok(()) } else { self.file.append(&lines) }
    }

    pub(crate) fn record_read(&self, path: Vec<u8>, fingerprint: Fingerprint) {
        self.own.lock().unwrap_or_else(PoisonError::into_inner).record_read(path, fingerprint);
    }

    pub(crate) fn forget(&self, path: &[u8]) {
        self.own.lock().unwrap_or_else(PoisonError::into_inner).forget(path);
    }

    /// The fingerprint of a file when an earlier process read or wrote it.
    pub(crate) fn last_fingerprint(&self, path: &[u8]) -> Option<Fingerprint> {
        self.earlier.get_or_init(|| self.load()).get(path).cloned()
    }

    fn load(&self) -> HashMap<Vec<u8>, Fingerprint> {
        let text = self.file.read().unwrap_or_default();
        let reads = text.lines().filter_map(|line| serde_json::from_str::<SavedRead>(line).ok());
        let known = reads.filter_map(|read| {
            let hash = Hash::from_hex(&read.hash).ok()?;
            let lines = read.lines.map(LineHashes::from_iter);
            Some((read.path.into_bytes(), Fingerprint { hash, meta: None, lines }))
        });
        known.collect()
    }
}
