//! `list_directory`

use pinfold::operations::{Include, List, ListEntry, ListOrder};
use pinfold::{Done, Error, Kind, escaped};
use schemars::JsonSchema;
use serde::Deserialize;

use super::ignore_files;
use crate::limits;
use crate::phrases::{fit, unread};
use crate::tool_context::RelativePath;
use crate::{Tool, ToolContext};

/// Lists one directory: its subdirectories, then its files with their sizes. What ignore files leave
/// out is counted.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListDirectory {
    /// Absolute path, or relative to the workspace root.
    dir_path: RelativePath,
    /// Globs to leave out.
    ignore: Option<Vec<String>>,
    /// Which ignore files count.
    file_filtering_options: Option<Filtering>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Filtering {
    /// Leave out what `.gitignore` names; true if left out.
    respect_git_ignore: Option<bool>,
    /// Leave out what `.geminiignore` names; true if left out.
    respect_gemini_ignore: Option<bool>,
}

impl Tool for ListDirectory {
    const NAME: &'static str = "list_directory";
    const TITLE: &'static str = "List directory";
    const IDEMPOTENT: bool = true;
    type Op = List;
    type Reply = String;

    fn operation(&self, _: &ToolContext<'_>) -> Result<List, Error> {
        let usual = Filtering::default();
        let filtering = self.file_filtering_options.as_ref().unwrap_or(&usual);
        Ok(List::new(self.dir_path.raw()?)
            .with_ignore(self.ignore.clone().unwrap_or_default())
            .with_include(Include::NotIgnored)
            .with_ignore_files(ignore_files(
                filtering.respect_git_ignore,
                filtering.respect_gemini_ignore,
            ))
            .with_order(ListOrder::DirectoriesFirst)
            .with_max_entries(limits::MAX_LS_ENTRIES))
    }

    fn reply(&self, done: Done<List>, ctx: &ToolContext<'_>) -> String {
        let listed = done.outcome;
        let path = ctx.absolute(&listed.place);
        let ignored = listed.skipped.ignored;
        if listed.total == 0 && ignored + listed.skipped.withheld == 0 {
            return format!("Directory {path} is empty.");
        }
        let budget = ctx.budget(limits::DEFAULT_MAX_OUTPUT_BYTES);
        let lines = fit(budget, listed.entries.iter().map(line), |line| line.len() + 1);
        let mut text = format!("Directory listing for {path}:\n{}", lines.join("\n"));
        if ignored > 0 {
            text.push_str(&format!("\n\n({ignored} ignored)"));
        }
        if (lines.len() as u64) < listed.total {
            let (shown, total) = (lines.len(), listed.total);
            text.push_str(&format!(
                "\n\n(entries 1-{shown} of {total}; leave some out with ignore, or find them with glob)"
            ));
        }
        text.extend(unread(&listed.skipped).map(|note| format!("\n\n({note})")));
        text
    }

    fn error_text(&self, error: &Error, ctx: &ToolContext<'_>) -> Option<String> {
        let path = ctx.absolute_path(self.dir_path.as_str());
        match error {
            Error::NotFound { .. } | Error::DirectoryNotFound { .. } | Error::Dangling { .. } => {
                Some(format!("Error: Directory not found or inaccessible: {path}"))
            }
            Error::NotADirectory { .. } => Some(format!("Error: Path is not a directory: {path}")),
            _ => None,
        }
    }

    fn compact_params(&self, ctx: &ToolContext<'_>) -> String {
        ctx.short_path(self.dir_path.as_str())
    }
}

fn line(entry: &ListEntry) -> String {
    let name = entry.place.path.name().to_string();
    match entry.kind {
        Kind::Directory => format!("[DIR] {name}"),
        Kind::Symlink => {
            let target = entry.link_target.as_deref().unwrap_or_default();
            format!("{name} -> {}", escaped(target))
        }
        _ => format!("{name} ({} bytes)", entry.size),
    }
}
