//! `view`: a file with line numbers, or what is in a directory.

use pinfold::operations::{PastEnd, Read, Tree};
use pinfold::{Error, PageEnd, Style};

use crate::ToolContext;
use crate::editor::commands::Arguments;
use crate::words::{malformed, unread};

/// Characters of one answer, unless the settings say otherwise: as many as the vendor's own implementation shows.
pub(super) const MAX_CHARACTERS: usize = 16_000;

/// Entries of a directory that are shown.
const MAX_ENTRIES: usize = 1_000;

/// Levels of a directory that are shown.
const DEPTH: usize = 2;

impl Arguments {
    pub(super) fn view(&self, ctx: &ToolContext<'_>) -> Result<String, Error> {
        match self.view_file(ctx) {
            Err(Error::IsDirectory { .. }) if self.view_range.is_none() => self.view_directory(ctx),
            Err(Error::IsDirectory { .. }) => Err(Error::InvalidArgument(
                "The `view_range` parameter is not allowed when `path` points to a directory."
                    .into(),
            )),
            other => other,
        }
    }

    /// The whole file, whatever `view_range` says.
    pub(super) fn whole_file(&self, ctx: &ToolContext<'_>) -> Result<String, Error> {
        self.lines(ctx, None)
    }

    fn view_file(&self, ctx: &ToolContext<'_>) -> Result<String, Error> {
        let range = match self.view_range.as_deref() {
            None => None,
            Some([first, last]) => Some((*first, *last)),
            Some(_) => {
                let problem = "Invalid `view_range`. It should be a list of two integers.";
                return Err(Error::InvalidArgument(problem.into()));
            }
        };
        self.lines(ctx, range)
    }

    fn lines(&self, ctx: &ToolContext<'_>, range: Option<(i64, i64)>) -> Result<String, Error> {
        let (first, last) = range.unwrap_or((1, -1));
        let start = u64::try_from(first).unwrap_or(0).max(1);
        let read = Read::new(self.path.raw()?)
            .with_first(start)
            .with_lines(u64::try_from(last).ok().map(|last| (last + 1).saturating_sub(start)))
            .with_style(Style::Numbered)
            .with_budget(ctx.budget(MAX_CHARACTERS))
            .with_past_end(PastEnd::Empty);
        let page = ctx.session.perform_with(&read, ctx.call)?.outcome.page;
        let total = page.total;
        let wrong = |problem: String| {
            let problem = format!("Invalid `view_range`: [{first}, {last}]. {problem}");
            Err(Error::InvalidArgument(problem))
        };
        if first < 1 || start > total.max(1) {
            return wrong(format!(
                "Its first element `{first}` should be within the range of lines of the file: \
                 [1, {total}]"
            ));
        }
        if last != -1 && last < first {
            return wrong(format!(
                "Its second element `{last}` should be larger or equal than its first `{first}`"
            ));
        }
        let path = self.shown_path()?;
        let mut text =
            format!("Here's the result of running `cat -n` on {path}:\n{}", page.content);
        if !text.ends_with('\n') {
            text.push('\n');
        }
        let mut note = |note: String| text.push_str(&format!("<NOTE>{note}</NOTE>\n"));
        if total == 0 {
            note("The file is empty.".into());
        }
        if let Some(last) = u64::try_from(last).ok().filter(|last| *last > total && total > 0) {
            note(format!("Line {last} is past the end; the file has {total} lines."));
        }
        if let Some(malformed) = malformed(&page) {
            note(malformed);
        }
        if page.end == PageEnd::ByteBudget {
            let next = start + page.shown;
            let end = u64::try_from(last).map_or(-1, |last| last.min(total) as i64);
            text.push_str(&format!(
                "<response clipped><NOTE>Lines {start}-{} of {total} are shown. Continue with \
                 view_range=[{next}, {end}].</NOTE>",
                next - 1
            ));
        }
        Ok(text)
    }

    fn view_directory(&self, ctx: &ToolContext<'_>) -> Result<String, Error> {
        let tree = Tree::new(self.path.raw()?)
            .with_depth(DEPTH)
            .with_exclude(["**/.*", "**/node_modules"].map(str::to_owned).to_vec())
            .with_limit(MAX_ENTRIES);
        let tree = ctx.session.perform_with(&tree, ctx.call)?.outcome;
        let path = self.shown_path()?;
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
