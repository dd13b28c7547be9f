//! Where lines of large files begin: who pages through one need not have it counted each time.

use std::sync::{Mutex, PoisonError};

use pinfold_confine::{Metadata, Place};
use pinfold_text::{Known, LARGE, Mark, Page};

use crate::limits::POSITION_FILES;

/// The large files that a session has read last, as they were then.
#[derive(Debug, Default)]
pub(crate) struct LineIndexCache(Mutex<Vec<(Place, Metadata, Page)>>);

impl LineIndexCache {
    /// A whole file was read, and this is what was found out about it.
    pub(crate) fn learn(&self, place: &Place, meta: &Metadata, page: &Page) {
        if meta.len < LARGE || page.marks.is_empty() {
            return;
        }
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.retain(|(known, ..)| known != place);
        if files.len() >= POSITION_FILES {
            files.remove(0);
        }
        let page = Page { content: String::new(), ..page.clone() };
        files.push((place.clone(), *meta, page));
    }

    /// Where to go on from to find a line, if the file is surely as it was.
    pub(crate) fn before(&self, place: &Place, meta: &Metadata, line: u64) -> Option<Known> {
        if meta.len < LARGE {
            return None;
        }
        let files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, then, page) = files.iter().find(|(known, ..)| known == place)?;
        if !then.proven_unchanged(meta) {
            return None;
        }
        let after = page.marks.partition_point(|mark| mark.lines < line);
        let mark: Mark = *page.marks.get(after.checked_sub(1)?)?;
        let Page { total, encoding, line_ending, certain, .. } = *page;
        Some(Known { mark, total, encoding, line_ending, certain })
    }
}
