//! Searches the first files of a tree during the walk, so that a full page does not wait for the end of the walk.

use std::ops::ControlFlow;
use std::time::SystemTime;

use pinfold_confine::{Error as ConfineError, Kind, Place, Skipped, WalkEntry};

use crate::search::memo::QueryMemo;
use crate::search::ordered::rows;
use crate::search::set_walk::FilterBy;
use crate::search::{FileHits, Named, Scan, Scanner};
use crate::view::WalkOptions;
use crate::{Error, View};

/// The maximum number of these files. More are searched after the walk, on several threads.
const MAX_FILES: u64 = 64;
const MAX_BYTES: u64 = 1024 * 1024;

/// The results in the first files of a tree, in the order of their paths.
#[derive(Debug, Default)]
pub(crate) struct Front {
    pub(crate) hits: Vec<(FileHits, SystemTime)>,
    /// The number and the size of the searched files.
    pub(crate) searched: u64,
    pub(crate) bytes: u64,
    /// The skipped entries.
    pub(crate) skipped: Skipped,
}

impl Front {
    /// Searches the first files. Returns `None` if they do not have more rows than `end`.
    pub(crate) fn search(
        view: &View<'_>,
        starts: &[Place],
        options: WalkOptions,
        filter_decision: FilterBy<'_>,
        scan: &Scan<'_>,
        end: u64,
        memo: Option<&QueryMemo>,
    ) -> Result<Option<Self>, Error> {
        let mut scanner = Scanner::new(scan);
        let mut front = Self::default();
        let mut found_rows = 0;
        let mut visit = |found: &WalkEntry<'_>| -> Result<ControlFlow<()>, ConfineError> {
            if found.kind != Kind::File {
                return Ok(ControlFlow::Continue(()));
            }
            // The version is taken before the file is read, so a later change gives another version.
            let (version, meta) = found.version_and_meta()?;
            let mut opened = found.open()?;
            let hits = scanner.search(&mut opened, Named::No)?;
            if let Some(memo) = memo {
                memo.put([(version, &hits)].into_iter());
            }
            front.searched += 1;
            front.bytes += meta.len;
            if hits.count > 0 {
                let hit = FileHits { place: found.place(), hits };
                found_rows += rows(scan.mode, &hit);
                front.hits.push((hit, opened.meta().modified));
            }
            let is_enough =
                found_rows > end || front.searched >= MAX_FILES || front.bytes >= MAX_BYTES;
            Ok(if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        };
        let skipped = view.walk_in_order(starts, options, filter_decision, &mut visit)?;
        Ok((found_rows > end).then_some(Self { skipped, ..front }))
    }
}
