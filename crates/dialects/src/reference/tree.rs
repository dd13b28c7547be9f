//! `directory_tree`

use std::fmt::Write as _;

use pinfold::operations::{Tree, TreeEntries};
use pinfold::{Error, Kind, RawPath};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::ToolContext;
use crate::limits;
use crate::phrases::{joined, unread};
use crate::reference::Text;
use crate::reference::error_text::SystemCall;
use crate::reference::path::ReferencePath;
use crate::tool::{Annotations, DispatchTool};

/// Lists all that is below a directory as JSON: `name`, `type` (`file` or `directory`), `children`.
/// At most 5,000 entries, from the top; `truncated` marks a directory that is cut.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct DirectoryTree {
    /// Absolute or relative path.
    path: ReferencePath,
    /// Globs to leave out; one without `*` matches at any depth.
    exclude_patterns: Option<Vec<String>>,
}

impl DispatchTool for DirectoryTree {
    const NAME: &'static str = "directory_tree";
    const TITLE: &'static str = "Directory Tree";
    const ANNOTATIONS: Annotations =
        Annotations { read_only: true, destructive: false, idempotent: true };
    type Reply = Text;

    fn perform(&self, ctx: &ToolContext<'_>) -> Result<Text, Error> {
        let exclude = self.exclude_patterns.iter().flatten().filter_map(|glob| exclude(glob));
        let exclude: Vec<_> = exclude.collect();
        let mut limit = limits::MAX_LIST_ENTRIES;
        loop {
            let tree = Tree::new(self.path.raw()).with_exclude(exclude.clone()).with_limit(limit);
            let tree = ctx.session.perform_with(&tree, ctx.call)?.outcome;
            let text = tree_json(&tree);
            // In deep directories an entry takes more room, so fewer of them may fit.
            if text.len() > ctx.budget(limits::DEFAULT_MAX_LIBRARY_OUTPUT_BYTES) && limit > 1 {
                limit = limit.min(tree.entries.len()) / 2;
                continue;
            }
            let shown = tree.entries.len();
            let cut = format!(
                "entries shown: {shown}; give a directory in it as `path`, or leave some out with `excludePatterns`"
            );
            let note = joined([tree.truncated.then_some(cut), unread(&tree.skipped)]);
            return Ok(Text { text, note });
        }
    }

    fn error_text(&self, error: &Error, ctx: &ToolContext<'_>) -> Option<String> {
        match error {
            // The error has the given pattern, not the converted one.
            Error::BadGlob { pattern, problem, .. } => {
                let mut given = self.exclude_patterns.iter().flatten();
                let given =
                    given.find(|glob| exclude(glob).as_deref() == Some(pattern.as_str()))?;
                let given = RawPath::from(given.as_str());
                Some(format!("`excludePatterns`: `{given}` is not a glob: {problem}"))
            }
            _ => SystemCall::Of("scandir", &self.path).error_text(error, ctx),
        }
    }

    fn compact_params(&self, ctx: &ToolContext<'_>) -> String {
        ctx.short_path(self.path.as_str())
    }
}

/// Converts a pattern to a glob of the engine.
fn exclude(pattern: &str) -> Option<String> {
    let name = pattern.trim_end_matches('/');
    match name {
        "" => None,
        _ if name.contains('*') => Some(name.to_owned()),
        _ => Some(format!("**/{name}")),
    }
}

/// The tree as JSON, indented by 2. It is written entry by entry, since recursion could overflow the stack.
fn tree_json(tree: &TreeEntries) -> String {
    const INFALLIBLE: &str = "a String takes anything";
    let top = tree.place.path.names().count();
    let mut out = String::from("[");
    // The open directories, and whether all entries of each are listed.
    let mut open: Vec<bool> = Vec::new();
    let mut has_children = false;
    for entry in &tree.entries {
        let depth = entry.place.path.names().count() - top - 1;
        while open.len() > depth {
            let listed = open.pop().expect("it is longer than the depth");
            close(&mut out, open.len(), has_children, listed);
            has_children = true;
        }
        out.push_str(if has_children { ",\n" } else { "\n" });
        let indent = indent(depth);
        let name = crate::answer::as_text(&entry.place.path.name().to_string());
        let is_directory = entry.kind == Kind::Directory;
        let kind = if is_directory { "directory" } else { "file" };
        write!(out, "{indent}{{\n{indent}  \"name\": {name},\n{indent}  \"type\": \"{kind}\"")
            .expect(INFALLIBLE);
        if is_directory {
            write!(out, ",\n{indent}  \"children\": [").expect(INFALLIBLE);
            open.push(entry.listed.is_complete());
        } else {
            write!(out, "\n{indent}}}").expect(INFALLIBLE);
        }
        has_children = !is_directory;
    }
    while let Some(listed) = open.pop() {
        close(&mut out, open.len(), has_children, listed);
        has_children = true;
    }
    out.push_str(if has_children { "\n]" } else { "]" });
    out
}

/// Writes the end of a directory.
fn close(out: &mut String, depth: usize, has_children: bool, listed: bool) {
    let indent = indent(depth);
    if has_children {
        out.push('\n');
        out.push_str(&indent);
        out.push_str("  ");
    }
    out.push(']');
    if !listed {
        out.push_str(",\n");
        out.push_str(&indent);
        out.push_str("  \"truncated\": true");
    }
    out.push('\n');
    out.push_str(&indent);
    out.push('}');
}

/// The indentation of an object: two levels for each directory around it.
fn indent(depth: usize) -> String {
    " ".repeat(2 + 4 * depth)
}

#[cfg(test)]
mod tests {
    use pinfold::Session;
    use pinfold::operations::{Mkdir, Write};
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_tree_is_pretty_json() {
        let dir = tempfile::tempdir().unwrap();
        let session = Session::open([dir.path()]).unwrap();
        let tree = |limit| session.perform(&Tree::new(".").with_limit(limit)).unwrap().outcome;
        assert_eq!(tree_json(&tree(9)), "[]");
        for path in ["a/b/c.txt", "a/b/d/e", "f", "g/\"h\""] {
            session.perform(&Write::new(path, "")).unwrap();
        }
        session.perform(&Mkdir::new("a/empty")).unwrap();
        for limit in [1, 3, 5, 9] {
            let text = tree_json(&tree(limit));
            let value: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(serde_json::to_string_pretty(&value).unwrap(), text);
        }
        let cut = json!([
            {"name": "a", "type": "directory", "children": [], "truncated": true},
            {"name": "f", "type": "file"},
            {"name": "g", "type": "directory", "children": [], "truncated": true},
        ]);
        let value: Value = serde_json::from_str(&tree_json(&tree(3))).unwrap();
        assert_eq!(value, cut);
    }

    #[test]
    fn a_pattern_without_a_star_matches_at_any_depth() {
        let globs = ["node_modules", "dir/", "*.md", "", "/"].map(exclude);
        let some = |glob: &str| Some(glob.to_owned());
        assert_eq!(globs, [some("**/node_modules"), some("**/dir"), some("*.md"), None, None]);
    }
}
