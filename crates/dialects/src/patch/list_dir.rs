//! `list_dir`

use pinfold::operations::{Tree, TreeEntry};
use pinfold::{Error, Kind};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::ToolContext;
use crate::limits;
use crate::phrases::{fit, unread};
use crate::tool::{Annotations, DispatchTool};
use crate::tool_context::RelativePath;

/// Lists a directory and what is below it: `/` marks directories, `@` symlinks, `?` what is neither of
/// these nor a file.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListDir {
    /// Absolute path, or relative to the workspace root.
    dir_path: RelativePath,
    /// First entry, counting from 1; 1 if left out.
    #[schemars(range(min = 1))]
    offset: Option<u64>,
    /// Most entries; 25 if left out.
    #[schemars(range(min = 1, max = limits::MAX_LIST_ENTRIES as u64))]
    limit: Option<u64>,
    /// Levels; 2 if left out.
    #[schemars(range(min = 1))]
    depth: Option<u64>,
}

impl DispatchTool for ListDir {
    const NAME: &'static str = "list_dir";
    const TITLE: &'static str = "List directory";
    const ANNOTATIONS: Annotations =
        Annotations { read_only: true, destructive: false, idempotent: true };
    type Reply = String;

    fn perform(&self, ctx: &ToolContext<'_>) -> Result<String, Error> {
        let depth = usize::try_from(self.depth.unwrap_or(2)).unwrap_or(usize::MAX);
        let path = self.dir_path.raw()?;
        let tree = Tree::new(path.clone()).with_depth(depth).with_limit(limits::MAX_LIST_ENTRIES);
        let tree = ctx.session.perform_with(&tree, ctx.call)?.outcome;
        let (offset, total) = (self.offset.unwrap_or(1), tree.entries.len() as u64);
        if offset > total.max(1) {
            return Err(Error::OutOfRange { path, first: offset, total });
        }
        let limit = usize::try_from(self.limit.unwrap_or(25)).unwrap_or(usize::MAX);
        let entries = tree.entries.iter().skip(offset as usize - 1).take(limit);
        let lines = entries.map(|entry| {
            let below = entry.place.path.below(&tree.place.path);
            let depth = below.to_string().matches('/').count();
            format!("\n{}{}", "  ".repeat(depth), name(entry))
        });
        let lines = fit(ctx.budget(limits::DEFAULT_MAX_OUTPUT_BYTES), lines, String::len);
        let (shown, next) = (lines.len() as u64, offset + lines.len() as u64);
        let mut text = format!("Absolute path: {}{}", ctx.absolute(&tree.place), lines.concat());
        if next <= total || tree.truncated {
            let more = if tree.truncated { "at least " } else { "" };
            text.push_str(&format!(
                "\nMore than {shown} entries found\n(entries {offset}-{} of {more}{total}; continue \
                 with offset={next})",
                next - 1
            ));
        }
        text.extend(unread(&tree.skipped).map(|text| format!("\n({text})")));
        Ok(text)
    }

    fn error_text(&self, error: &Error, _: &ToolContext<'_>) -> Option<String> {
        match error {
            Error::OutOfRange { total, .. } => {
                Some(format!("offset exceeds directory entry count; there are {total}"))
            }
            _ => None,
        }
    }

    fn compact_params(&self, ctx: &ToolContext<'_>) -> String {
        ctx.short_path(self.dir_path.as_str())
    }
}

/// The name of an entry, with a mark for its kind.
fn name(entry: &TreeEntry) -> String {
    let mark = match entry.kind {
        Kind::File => "",
        Kind::Directory => "/",
        Kind::Symlink => "@",
        Kind::Fifo | Kind::Socket | Kind::Device => "?",
    };
    format!("{}{mark}", entry.place.path.name())
}
