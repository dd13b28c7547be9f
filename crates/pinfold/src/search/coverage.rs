//! Which texts of the index the files of one set are.

use std::cmp::Ordering;
use std::collections::HashMap;

use crate::search::content_index::IndexedText;
use crate::search::file_set::SetFile;

/// For each file of a set where its trigrams are, if they are known.
#[derive(Clone, Debug)]
pub(crate) struct Coverage {
    /// The generation of the index that says so.
    pub(crate) generation: u64,
    /// For each segment the number of the file that each of its texts is, or [`NO_FILE`].
    pub(crate) segments: Vec<Vec<u32>>,
    /// The files that nothing is known about.
    pub(crate) unknown: Vec<u32>,
    /// Those of the others that have a NUL byte.
    pub(crate) with_nul: Vec<u32>,
    /// The length of the longest file that is known, and that of the longest line.
    pub(crate) longest: u64,
    pub(crate) longest_line: u32,
}

/// The text is not one of the set's files, or not any more.
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

    /// Notes that a file is not what it was any more.
    pub(crate) fn forget(&mut self, number: u32, text: Option<&IndexedText>) {
        if let Some(text) = text {
            self.segments[text.segment as usize][text.text as usize] = NO_FILE;
            self.unknown.push(number);
        }
    }

    /// Makes room for a file with this number, of which nothing is known. Those from it on have other numbers now.
    pub(crate) fn insert(&mut self, number: u32) {
        self.renumber(|known| if known >= number { known + 1 } else { known });
        self.unknown.push(number);
    }

    /// Takes a file out. Those after it have other numbers now.
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
