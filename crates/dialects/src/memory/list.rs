//! The listing of a directory of the memory, with sizes.

use pinfold::operations::{Include, List, ListOrder};
use pinfold::{Error, Kind};

use crate::ToolContext;
use crate::file_commands::{CommandFile, DEPTH, MAX_ENTRIES};
use crate::phrases::unread;

/// The entries of a directory, two levels deep. The size of a directory is that of all files below it.
pub(super) fn list(directory: &CommandFile, ctx: &ToolContext<'_>) -> Result<String, Error> {
    let list = List::new(directory.path.clone())
        .with_depth(usize::MAX)
        .with_include(Include::All)
        .with_ignore([".*", "node_modules"].map(str::to_owned).to_vec())
        .with_order(ListOrder::PathTopKept)
        .with_max_entries(MAX_ENTRIES);
    let listed = ctx.session.perform_with(&list, ctx.call)?.outcome;
    let below: Vec<_> = listed
        .entries
        .iter()
        .map(|entry| (entry.place.path.below(&listed.place.path).to_string(), entry))
        .collect();
    let size_below = |prefix: &str| -> u64 {
        let files = below
            .iter()
            .filter(|(path, entry)| entry.kind != Kind::Directory && path.starts_with(prefix));
        files.map(|(_, entry)| entry.size).sum()
    };
    let top = directory.shown.trim_end_matches('/');
    let mut text = format!(
        "Here're the files and directories up to {DEPTH} levels deep in {top}, excluding hidden \
         items and node_modules:\n{}\t{top}\n",
        size(size_below(""))
    );
    for (path, entry) in below.iter().filter(|(path, _)| path.matches('/').count() < DEPTH) {
        let line = match entry.kind {
            Kind::Directory => {
                format!("{}\t{top}/{path}/\n", size(size_below(&format!("{path}/"))))
            }
            _ => format!("{}\t{top}/{path}\n", size(entry.size)),
        };
        text.push_str(&line);
    }
    if listed.total > MAX_ENTRIES as u64 {
        text.push_str(&format!(
            "<NOTE>Only {MAX_ENTRIES} entries were counted. View one of the directories.</NOTE>\n"
        ));
    }
    if let Some(unread) = unread(&listed.skipped) {
        text.push_str(&format!("<NOTE>{unread}</NOTE>\n"));
    }
    text.truncate(text.trim_end().len());
    Ok(text)
}

/// A size in units of 1,024, with one digit after the point unless it is 0: `512B`, `1.5K`, `2M`.
fn size(bytes: u64) -> String {
    let (mut size, mut unit) = (bytes as f64, "B");
    for larger in ["K", "M", "G"] {
        // 1023.95 would be rounded to 1024.
        if size < 1023.95 {
            break;
        }
        size /= 1024.0;
        unit = larger;
    }
    let number = format!("{size:.1}");
    format!("{}{unit}", number.strip_suffix(".0").unwrap_or(&number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        for (bytes, expected) in [
            (0, "0B"),
            (512, "512B"),
            (1023, "1023B"),
            (1024, "1K"),
            (1536, "1.5K"),
            (2 << 20, "2M"),
            (5 << 30, "5G"),
        ] {
            assert_eq!(size(bytes), expected);
        }
    }
}
