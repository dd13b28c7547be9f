//! Tells the user what searches have cached, and why they have not cached more.

use pinfold_confine::{IndexMode, TreeSummary};

use crate::Session;
use crate::limits::MIN_INDEXED_BYTES;

/// A sentence about each root that was searched, and one about the index.
pub(crate) fn status(session: &Session) -> Vec<String> {
    let mode = session.settings().index;
    if mode == IndexMode::Off {
        return vec!["searches cache nothing, because `index` is off".into()];
    }
    let summaries = session.workspace().tree_summaries();
    let trees = session.workspace().roots().zip(&summaries);
    let searched = trees.filter(|(_, summary)| summary.entries > 0);
    let mut sentences: Vec<_> = searched
        .map(|(root, summary)| format!("{}: {}", root.display(), tree(summary, mode)))
        .collect();
    if !sentences.is_empty() {
        sentences.push(index(session));
    }
    sentences
}

fn tree(summary: &TreeSummary, mode: IndexMode) -> String {
    let TreeSummary { directories, entries, watched, refused } = *summary;
    let all = format!("{entries} entries in {directories} directories");
    let compared = "compared with the disk on each search";
    match (mode, refused) {
        (IndexMode::Strict, _) => format!("{all}, {compared}, because `index` is strict"),
        _ if watched >= directories => format!("{all}, watched for changes"),
        (_, Some(why)) if watched == 0 => format!("{all}, {compared}, because {why}"),
        _ if watched == 0 => {
            format!("{all}, {compared}, because it is small or on a file system that is not local")
        }
        (_, why) => {
            let why = why.unwrap_or("they were not searched since, or cannot be watched");
            format!("{all}, {watched} of these watched; the others are {compared}, because {why}")
        }
    }
}

fn index(session: &Session) -> String {
    let summary = session.index_summary();
    let mebibytes = |bytes: usize| bytes as f64 / 1_048_576.0;
    let size = format!("{} files in {:.1} MiB", summary.files, mebibytes(summary.bytes));
    match (summary.files, summary.is_building) {
        (_, true) => format!("the index is being built: {size} so far"),
        (0, false) if session.settings().max_index_bytes == Some(0) => {
            "no index, because `max_index_bytes` is 0".into()
        }
        (0, false) => format!(
            "no index: it is built from the second search on, of {} MB of text or more",
            MIN_INDEXED_BYTES / 1_000_000
        ),
        (_, false) => {
            let contents = mebibytes(summary.content_bytes);
            format!("the index has {size}; {contents:.1} MiB of text are cached")
        }
    }
}
