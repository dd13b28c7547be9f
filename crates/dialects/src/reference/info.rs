//! `get_file_info` and `list_allowed_directories`

use std::time::SystemTime;

use pinfold::operations;
use pinfold::{Done, Error, Kind};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::reference::Text;
use crate::reference::error_text::{SystemCall, roots};
use crate::reference::path::ReferencePath;
use crate::tool::{Annotations, DispatchTool};
use crate::{Tool, ToolContext};

/// Describes a file or directory: size, times, kind, permissions.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GetFileInfo {
    /// Absolute or relative path.
    path: ReferencePath,
}

impl Tool for GetFileInfo {
    const NAME: &'static str = "get_file_info";
    const TITLE: &'static str = "Get File Info";
    const IDEMPOTENT: bool = true;
    type Op = operations::Info;
    type Reply = Text;

    fn operation(&self, _: &ToolContext<'_>) -> Result<operations::Info, Error> {
        Ok(operations::Info::new(self.path.raw()).with_follow(true).with_content(false))
    }

    fn reply(&self, done: Done<operations::Info>, _: &ToolContext<'_>) -> Text {
        let (meta, times) = (done.outcome.meta, done.outcome.times);
        let lines = [
            format!("size: {}", meta.len),
            format!("created: {}", time(times.created.unwrap_or(meta.modified))),
            format!("modified: {}", time(meta.modified)),
            format!("accessed: {}", time(times.accessed)),
            format!("isDirectory: {}", meta.kind == Kind::Directory),
            format!("isFile: {}", meta.kind == Kind::File),
            format!("permissions: {:03o}", meta.mode & 0o777),
        ];
        lines.join("\n").into()
    }

    fn error_text(&self, error: &Error, ctx: &ToolContext<'_>) -> Option<String> {
        SystemCall::Of("stat", &self.path).error_text(error, ctx)
    }

    fn compact_params(&self, ctx: &ToolContext<'_>) -> String {
        ctx.short_path(self.path.as_str())
    }
}

/// A time in JavaScript's format, in UTC.
fn time(time: SystemTime) -> String {
    crate::phrases::utc_time(time)
        .format("%a %b %d %Y %H:%M:%S GMT+0000 (Coordinated Universal Time)")
        .to_string()
}

/// Lists the directories that the tools may work in. Relative paths start at the first.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListAllowedDirectories {}

impl DispatchTool for ListAllowedDirectories {
    const NAME: &'static str = "list_allowed_directories";
    const TITLE: &'static str = "List Allowed Directories";
    const ANNOTATIONS: Annotations =
        Annotations { read_only: true, destructive: false, idempotent: true };
    type Reply = Text;

    fn perform(&self, ctx: &ToolContext<'_>) -> Result<Text, Error> {
        Ok(format!("Allowed directories:\n{}", roots(ctx).join("\n")).into())
    }

    fn error_text(&self, _: &Error, _: &ToolContext<'_>) -> Option<String> {
        None
    }

    fn compact_params(&self, _: &ToolContext<'_>) -> String {
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn times_are_written_as_javascript_does() {
        let then = SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_900);
        let shown = "Tue Nov 14 2023 22:13:20 GMT+0000 (Coordinated Universal Time)";
        assert_eq!(time(then), shown);
    }
}
