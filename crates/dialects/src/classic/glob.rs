//! `Glob`

use pinfold::operations;
use pinfold::{Done, Error};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::limits;
use crate::phrases::{brackets, count, skipped, unread, withheld};
use crate::tool_context::AbsolutePath;
use crate::{Tool, ToolContext, ToolResult};

/// Finds files by name, newest first, such as `**/*.ts` or `src/*.{c,h}`. Hidden and git-ignored
/// ones only where the pattern or path names them.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Glob {
    /// Glob with `**`, `*`, `?`, `[abc]`, `{a,b}`.
    pub(crate) pattern: String,
    /// Absolute path to start from; all if left out.
    pub(crate) path: Option<AbsolutePath>,
}

impl Tool for Glob {
    const NAME: &'static str = "Glob";
    const TITLE: &'static str = "Find files";
    const IDEMPOTENT: bool = true;
    type Op = operations::Find;
    type Reply = ToolResult;

    fn operation(&self, ctx: &ToolContext<'_>) -> Result<operations::Find, Error> {
        Ok(operations::Find::new(self.pattern.as_str())
            .with_path(self.path.as_ref().map(|path| path.raw("path", ctx)).transpose()?)
            .with_max_files(ctx.session.settings().max_glob_files))
    }

    fn reply(&self, done: Done<operations::Find>, ctx: &ToolContext<'_>) -> ToolResult {
        let found = done.outcome;
        let budget = ctx.budget(limits::DEFAULT_MAX_OUTPUT_BYTES);
        let (mut content, mut shown) = (String::new(), 0_u64);
        for file in &found.files {
            let end = content.len();
            content.extend((shown > 0).then_some('\n'));
            ctx.session.push_absolute(&file.place, &mut content);
            // The first file is always shown.
            if content.len() > budget && shown > 0 {
                content.truncate(end);
                break;
            }
            shown += 1;
        }
        let mut lines = Vec::new();
        if found.total == 0 {
            lines.push("No files found".into());
            let how = "name one in path or pattern to look inside";
            lines.extend(skipped(&found.skipped, how).map(|text| format!("({text})")));
            if !self.pattern.contains(['/', '{']) && !self.pattern.contains("**") {
                lines.push(format!("(`**/{}` looks at all levels)", ctx.short_path(&self.pattern)));
            }
            lines.extend(brackets(&self.pattern).map(|text| format!("({text})")));
        }
        if shown < found.total {
            let narrow = "narrow the pattern or path to see the others";
            lines.push(format!("(files 1-{shown} of {}; {narrow})", found.total));
        }
        lines.extend(unread(&found.skipped).map(|text| format!("({text})")));
        for line in &lines {
            content.extend((!content.is_empty()).then_some('\n'));
            content.push_str(line);
        }
        let mut metadata = Map::new();
        metadata.insert("count".into(), shown.into());
        metadata.insert("total".into(), found.total.into());
        metadata.insert("truncated".into(), Value::from(shown < found.total));
        metadata.extend(withheld(&found.skipped).map(|number| ("withheld".into(), number.into())));
        let short = match found.total {
            0 => "No files found".into(),
            total => format!("Found {}", count(total, "file")),
        };
        ToolResult {
            success: true,
            content,
            short_result: Some(short),
            metadata,
            ..ToolResult::default()
        }
    }

    fn compact_params(&self, ctx: &ToolContext<'_>) -> String {
        let pattern = ctx.short_path(&self.pattern);
        match &self.path {
            None => pattern,
            Some(path) => format!("{pattern} in {}", ctx.short_path(path.as_str())),
        }
    }
}
