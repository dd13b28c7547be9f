//! Offsets of lines of large files, so that paging through one does not count its lines each time.

use std::sync::{Mutex, PoisonError};

use pinfold_confine::{Metadata, Place};
use pinfold_text::{LARGE_FILE_BYTES, LineOffset, Page, ResumePoint};

use crate::limits::MAX_INDEXED_FILES;

/// The large files that a session has read last, as they were then.
#[derive(Debug, Default)]
pub(crate) struct LineIndexCache(Mutex<Vec<(Place, Metadata, Page)>>);

impl LineIndexCache {
    /// Keeps the line offsets of a file that was read to its end.
    pub(crate) fn learn(&self, place: &Place, meta: &Metadata, page: &Page) {
        if meta.len < LARGE_FILE_BYTES || page.line_offsets.is_empty() {
            return;
        }
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.retain(|(known, ..)| known != place);
        if files.len() >= MAX_INDEXED_FILES {
            files.remove(0);
        }
        let page = Page { content: String::new(), ..page.clone() };
        files.push((place.clone(), *meta, page));
    }

    /// Where to go on from to find a line, if the file is surely as it was.
    pub(crate) fn before(&self, place: &Place, meta: &Metadata, line: u64) -> Option<ResumePoint> {
        if meta.len < LARGE_FILE_BYTES {
            return None;
        }
        let files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, then, page) = files.iter().find(|(known, ..)| known == place)?;
        if !then.proven_unchanged(meta) {
            return None;
        }
        let after = page.line_offsets.partition_point(|mark| mark.lines < line);
        let mark: LineOffset = *page.line_offsets.get(after.checked_sub(1)?)?;
        let Page { total, encoding, line_ending, encoding_certain, .. } = *page;
        Some(ResumePoint { mark, total, encoding, line_ending, encoding_certain })
    }
}
