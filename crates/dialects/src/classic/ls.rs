//! `LS`

use pinfold::operations::{self, Include, ListEntry, ListOrder};
use pinfold::{Done, Error, Kind, escaped};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::limits;
use crate::phrases::{count, fit, human_size, unread, withheld};
use crate::tool_context::AbsolutePath;
use crate::{Tool, ToolContext, ToolResult};

/// Lists one directory: kind, name and size of each entry, hidden ones too, directories first.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    /// Absolute path.
    path: AbsolutePath,
    /// Globs to leave out.
    ignore: Option<Vec<String>>,
}

impl Tool for List {
    const NAME: &'static str = "LS";
    const TITLE: &'static str = "List directory";
    const IDEMPOTENT: bool = true;
    type Op = operations::List;
    type Reply = ToolResult;

    fn operation(&self, ctx: &ToolContext<'_>) -> Result<operations::List, Error> {
        Ok(operations::List::new(self.path.raw("path", ctx)?)
            .with_ignore(self.ignore.clone().unwrap_or_default())
            .with_include(Include::All)
            .with_sniff(true)
            .with_order(ListOrder::DirectoriesFirst)
            .with_max_entries(limits::MAX_LS_ENTRIES))
    }

    fn reply(&self, done: Done<operations::List>, ctx: &ToolContext<'_>) -> ToolResult {
        let listed = done.outcome;
        let path = ctx.absolute(&listed.place);
        let budget = ctx.budget(limits::DEFAULT_MAX_OUTPUT_BYTES);
        let lines = fit(budget, listed.entries.iter().map(line), String::len);
        let shown = lines.len() as u64;
        let lines = lines.concat();
        let total = listed.total;
        let mut content = match total {
            0 if self.ignore.is_some() => format!("{path} has no entries but those in ignore"),
            0 if listed.skipped.withheld + listed.skipped.unreadable > 0 => {
                format!("{path} has no entries to show")
            }
            0 => format!("{path} is empty"),
            _ => format!("{path}:\n{}", lines.trim_end()),
        };
        if shown < total {
            let rest = "leave some out with ignore, or find them with Glob";
            content.push_str(&format!("\n(entries 1-{shown} of {total}; {rest})"));
        }
        content.extend(unread(&listed.skipped).map(|text| format!("\n({text})")));
        let mut metadata = Map::new();
        metadata.insert("count".into(), shown.into());
        metadata.insert("total".into(), total.into());
        metadata.insert("truncated".into(), Value::from(shown < total));
        metadata.extend(withheld(&listed.skipped).map(|number| ("withheld".into(), number.into())));
        let entries = if total == 1 { "1 entry".into() } else { format!("{total} entries") };
        ToolResult {
            success: true,
            content,
            short_result: Some(format!("Listed {entries}")),
            file_path: Some(path),
            metadata,
            ..ToolResult::default()
        }
    }

    fn compact_params(&self, ctx: &ToolContext<'_>) -> String {
        let path = ctx.short_path(self.path.as_str());
        match self.ignore.as_deref() {
            None | Some([]) => path,
            Some(globs) => format!("{path} without {}", count(globs.len() as u64, "glob")),
        }
    }
}

fn line(entry: &ListEntry) -> String {
    let name = entry.place.path.name().to_string();
    match entry.kind {
        Kind::Directory => format!("directory {name}/\n"),
        Kind::Symlink => {
            let target = entry.link_target.as_deref().unwrap_or_default();
            format!("symlink {name} -> {}\n", escaped(target))
        }
        Kind::File => {
            let binary = if entry.binary { " [binary]" } else { "" };
            format!("file {name} ({}){binary}\n", human_size(entry.size))
        }
        other => format!("{} {name}\n", other.name()),
    }
}
