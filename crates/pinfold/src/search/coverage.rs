//! Maps the texts of the index to the files of one set.

use std::cmp::Ordering;
use std::collections::HashMap;

use crate::search::content_index::IndexedText;
use crate::search::file_set::SetFile;

/// The positions of the trigrams of a set's files, as far as they are indexed.
#[derive(Clone, Debug)]
pub(crate) struct Coverage {
    /// The generation of the index that this is valid for.
    pub(crate) generation: u64,
    /// For each segment, the index of the file for each of its texts, or [`NO_FILE`].
    pub(crate) segments: Vec<Vec<u32>>,
    /// The files that are not indexed.
    pub(crate) unknown: Vec<u32>,
    /// The indexed files with a NUL byte.
    pub(crate) with_nul: Vec<u32>,
    /// The length of the longest indexed file, and of the longest line.
    pub(crate) longest: u64,
    pub(crate) longest_line: u32,
}

/// The text does not belong to a file of the set, or no longer does.
pub(crate) const NO_FILE: u32 = u32::MAX;

impl Coverage {
    pub(crate) fn new(
        generation: u64,
        texts: &HashMap<u64, IndexedText>,
        segment_texts: &[usize],
        files: &[SetFile],
    ) -> Self {
        let segments = segment_texts.iter().map(|texts| vec![NO_FILE; *texts]).collect();
        let (unknown, with_nul) = (Vec::new(), Vec::new());
        let (longest, longest_line) = (0, 0);
        let mut coverage = Self { generation, segments, unknown, with_nul, longest, longest_line };
        for (file, number) in files.iter().zip(0..) {
            let Some(text) = texts.get(&file.version) else {
                coverage.unknown.push(number);
                continue;
            };
            coverage.segments[text.segment as usize][text.text as usize] = number;
            coverage.longest = coverage.longest.max(file.len);
            coverage.longest_line = coverage.longest_line.max(text.longest_line);
            if text.has_nul {
                coverage.with_nul.push(number);
            }
        }
        coverage
    }

    /// Records that a file has changed.
    pub(crate) fn forget(&mut self, number: u32, text: Option<&IndexedText>) {
        if let Some(text) = text {
            self.segments[text.segment as usize][text.text as usize] = NO_FILE;
            self.unknown.push(number);
        }
    }

    /// Inserts a file that is not indexed. The indexes of the files after it change.
    pub(crate) fn insert(&mut self, number: u32) {
        self.renumber(|known| if known >= number { known + 1 } else { known });
        self.unknown.push(number);
    }

    /// Removes a file. The indexes of the files after it change.
    pub(crate) fn remove(&mut self, number: u32) {
        self.unknown.retain(|known| *known != number);
        self.with_nul.retain(|known| *known != number);
        self.renumber(|known| match known.cmp(&number) {
            Ordering::Less => known,
            Ordering::Equal => NO_FILE,
            Ordering::Greater => known - 1,
        });
    }

    fn renumber(&mut self, new: impl Fn(u32) -> u32) {
        let texts = self.segments.iter_mut().flatten().filter(|number| **number != NO_FILE);
        texts
            .chain(&mut self.unknown)
            .chain(&mut self.with_nul)
            .for_each(|number| *number = new(*number));
    }
}
