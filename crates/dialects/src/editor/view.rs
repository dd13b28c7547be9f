//! `view`: shows a file with line numbers, or the entries of a directory.

use pinfold::Error;
use pinfold::operations::Tree;

use crate::ToolContext;
use crate::editor::commands::{Arguments, heading};
use crate::file_commands::{DEPTH, MAX_ENTRIES};
use crate::phrases::unread;

impl Arguments {
    pub(super) fn view(&self, ctx: &ToolContext<'_>) -> Result<String, Error> {
        let file = self.file()?;
        match file.view(&heading(&file), self.view_range.as_deref(), ctx) {
            Err(Error::IsDirectory { .. }) if self.view_range.is_none() => self.view_directory(ctx),
            Err(Error::IsDirectory { .. }) => Err(Error::InvalidArgument(
                "The `view_range` parameter is not allowed when `path` points to a directory."
                    .into(),
            )),
            other => other,
        }
    }

    fn view_directory(&self, ctx: &ToolContext<'_>) -> Result<String, Error> {
        let file = self.file()?;
        let tree = Tree::new(file.path)
            .with_depth(DEPTH)
            .with_exclude(["**/.*", "**/node_modules"].map(str::to_owned).to_vec())
            .with_limit(MAX_ENTRIES);
        let tree = ctx.session.perform_with(&tree, ctx.call)?.outcome;
        let path = file.shown;
        let mut text = format!(
            "Here's the files and directories up to {DEPTH} levels deep in {path}, excluding \
             hidden items:\n{path}\n"
        );
        let top = path.trim_end_matches('/');
        for entry in &tree.entries {
            text.push_str(&format!("{top}/{}\n", entry.place.path.below(&tree.place.path)));
        }
        if tree.truncated {
            text.push_str(&format!(
                "<NOTE>Only {MAX_ENTRIES} entries are shown. View one of the directories.</NOTE>\n"
            ));
        }
        if let Some(unread) = unread(&tree.skipped) {
            text.push_str(&format!("<NOTE>{unread}</NOTE>\n"));
        }
        Ok(text)
    }
}
