//! `Edit` and `MultiEdit`

use pinfold::operations;
use pinfold::{Done, Error, Matching, Replacement, SeenRule};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::changed;
use crate::desk::AbsolutePath;
use crate::story::Story;
use crate::words::count;
use crate::{Desk, Tool, ToolResult};

/// Replaces text in a file that has been read before. `old_string` must be in it exactly once, or
/// set `replace_all`; give enough lines to make it unique, without the numbers that Read shows.
/// An empty `old_string` creates the file.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Edit {
    /// Absolute path.
    file_path: AbsolutePath,
    /// The text to replace, exactly as it is in the file.
    old_string: String,
    /// The text to put in its place.
    new_string: String,
    /// Replace every occurrence.
    replace_all: Option<bool>,
}

/// Makes several edits of one file, each as Edit does, in order, on the result of the one before: all
/// or none.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MultiEdit {
    /// Absolute path.
    file_path: AbsolutePath,
    /// The replacements, in order.
    edits: Vec<OneEdit>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OneEdit {
    // As in `Edit`, which says so; a model should not have to read it twice.
    old_string: String,
    new_string: String,
    replace_all: Option<bool>,
}

impl Tool for Edit {
    const NAME: &'static str = "Edit";
    const TITLE: &'static str = "Edit file";
    const IDEMPOTENT: bool = false;
    type Op = operations::Edit;
    type Reply = ToolResult;

    fn operation(&self, desk: &Desk<'_>) -> Result<operations::Edit, Error> {
        let Self { old_string, new_string, replace_all, .. } = self;
        let replacements = vec![replacement(old_string, new_string, *replace_all)];
        operation(&self.file_path, replacements, desk)
    }

    fn reply(&self, done: Done<operations::Edit>, desk: &Desk<'_>) -> ToolResult {
        reply(&done, desk)
    }

    fn compact(&self, desk: &Desk<'_>) -> String {
        desk.brief(self.file_path.as_str())
    }
}

impl Tool for MultiEdit {
    const NAME: &'static str = "MultiEdit";
    const TITLE: &'static str = "Edit file in several places";
    const IDEMPOTENT: bool = false;
    type Op = operations::Edit;
    type Reply = ToolResult;

    fn operation(&self, desk: &Desk<'_>) -> Result<operations::Edit, Error> {
        let one =
            |edit: &OneEdit| replacement(&edit.old_string, &edit.new_string, edit.replace_all);
        operation(&self.file_path, self.edits.iter().map(one).collect(), desk)
    }

    fn reply(&self, done: Done<operations::Edit>, desk: &Desk<'_>) -> ToolResult {
        reply(&done, desk)
    }

    fn compact(&self, desk: &Desk<'_>) -> String {
        let edits = count(self.edits.len() as u64, "edit");
        format!("{} {edits}", desk.brief(self.file_path.as_str()))
    }
}

fn replacement(old: &str, new: &str, all: Option<bool>) -> Replacement {
    Replacement { old: old.into(), new: new.into(), all: all.unwrap_or(false) }
}

fn operation(
    path: &AbsolutePath,
    replacements: Vec<Replacement>,
    desk: &Desk<'_>,
) -> Result<operations::Edit, Error> {
    Ok(operations::Edit {
        path: path.raw("file_path", desk)?,
        replacements,
        matching: Matching::Ladder,
        seen: desk.seen(SeenRule::Required),
    })
}

/// Replacements that are named by their lines; `replacements` has the number of all.
const MOST_LINES: usize = 100;

fn reply(done: &Done<operations::Edit>, desk: &Desk<'_>) -> ToolResult {
    let path = desk.absolute(&done.place);
    let story = Story::of_edit(done, &path);
    let facts = json!({
        "replacements": done.replacements,
        "match": done.reading.name(),
        "lines": done.lines.iter().take(MOST_LINES).collect::<Vec<_>>(),
        "start_line": done.lines.first().map(|lines| lines.0),
        "created": done.created,
    });
    changed(story, path, &done.receipt, facts)
}
