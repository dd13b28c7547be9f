//! Caches of facts about files: the line offsets of large files, and which files are binary. The metadata of a file
//! proves that an entry is current.

use std::collections::HashMap;
use std::io::Read as _;
use std::sync::{Mutex, PoisonError};

use pinfold_confine::{File, Identity, Metadata, Place};
use pinfold_text::{Content, LARGE_FILE_BYTES, LineOffset, Page, ResumePoint, SNIFF_BYTES, sniff};

use crate::limits::{MAX_BINARY_MARKS, MAX_INDEXED_FILES};

/// The line offsets of the large files that the session has read last, so that paging through a file does not count
/// its lines each time.
#[derive(Debug, Default)]
pub(crate) struct LineIndexCache(Mutex<Vec<(Place, Metadata, Page)>>);

impl LineIndexCache {
    /// Caches the line offsets of a file that was read to its end.
    pub(crate) fn insert(&self, place: &Place, meta: &Metadata, page: &Page) {
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

    /// The nearest known offset before a line, if the metadata prove that the file did not change.
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
        let beginning = LineOffset { lines: 0, bytes: page.encoding.mark_len() as u64 };
        let mark = after.checked_sub(1).map_or(beginning, |before| page.line_offsets[before]);
        let Page { total, encoding, line_ending, encoding_certain, .. } = *page;
        Some(ResumePoint { mark, total, encoding, line_ending, encoding_certain })
    }
}

/// Whether each file is binary, with its metadata at that time. With it, listing a directory again opens no file.
#[derive(Debug, Default)]
pub(crate) struct BinaryMarks(Mutex<HashMap<Identity, (Metadata, bool)>>);

impl BinaryMarks {
    /// Whether a file is binary, if the cache has it and its metadata prove that it did not change.
    pub(crate) fn get(&self, now: &Metadata) -> Option<bool> {
        let marks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (then, is_binary) = marks.get(&now.identity)?;
        then.proven_unchanged(now).then_some(*is_binary)
    }

    /// Reads the beginning of a file, and caches whether it is binary. Returns false if it cannot be read.
    pub(crate) fn sniff(&self, file: File, buffer: &mut Vec<u8>) -> bool {
        // From before the read, so that a change meanwhile shows.
        let meta = *file.meta();
        let Ok(is_binary) = has_binary_beginning(file, buffer) else { return false };
        let mut marks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if marks.len() >= MAX_BINARY_MARKS {
            marks.clear();
        }
        marks.insert(meta.identity, (meta, is_binary));
        is_binary
    }
}

fn has_binary_beginning(mut file: File, buffer: &mut Vec<u8>) -> std::io::Result<bool> {
    let len = usize::try_from(file.meta().len).unwrap_or(usize::MAX);
    let wanted = len.saturating_add(1).min(SNIFF_BYTES);
    if buffer.len() < wanted {
        buffer.resize(wanted, 0);
    }
    let start = &mut buffer[..wanted];
    let mut filled = 0;
    while filled < start.len() {
        match file.read(&mut start[filled..])? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(matches!(sniff(&start[..filled], filled < start.len()), Content::Binary(_)))
}
