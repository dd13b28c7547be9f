//! `grep_search`

use pinfold::operations::{AnswerWith, Search, Searched};
use pinfold::{Error, IgnoreFiles, PageLine, Role};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::ToolContext;
use crate::answer::Blocks;
use crate::limits;
use crate::matches::{compact_params, context, matching, nothing_found};
use crate::phrases::{fit, shortened, skipped, unread};
use crate::tool::{Annotations, DispatchTool};
use crate::tool_context::RelativePath;

/// Searches the content of files for a regex. Few matches are shown with the lines around them.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GrepSearch {
    /// Regular expression.
    pattern: String,
    /// File or directory to search; all if left out.
    dir_path: Option<RelativePath>,
    /// Glob for the files to search, such as `*.ts`.
    include_pattern: Option<String>,
    /// Regular expression: lines that match it too are left out.
    exclude_pattern: Option<String>,
    /// Show only the paths of the files.
    names_only: Option<bool>,
    /// Regard letter case; false if left out.
    case_sensitive: Option<bool>,
    /// The pattern is plain text.
    fixed_strings: Option<bool>,
    /// Lines to show around each match.
    #[schemars(range(min = 0, max = limits::MAX_CONTEXT))]
    context: Option<u64>,
    /// Lines to show after each match.
    #[schemars(range(min = 0, max = limits::MAX_CONTEXT))]
    after: Option<u64>,
    /// Lines to show before each match.
    #[schemars(range(min = 0, max = limits::MAX_CONTEXT))]
    before: Option<u64>,
    /// Search ignored files too.
    no_ignore: Option<bool>,
    /// Most matches in one file.
    #[schemars(range(min = 1))]
    max_matches_per_file: Option<u64>,
    /// Most matches; 100 if left out.
    #[schemars(range(min = 1, max = limits::MAX_SEARCH_RESULTS))]
    total_max_matches: Option<u64>,
}

/// How to see the other matches.
const SEE_MORE: &str = "raise total_max_matches, or narrow the search";

impl DispatchTool for GrepSearch {
    const NAME: &'static str = "grep_search";
    const TITLE: &'static str = "Search in files";
    const ANNOTATIONS: Annotations =
        Annotations { read_only: true, destructive: false, idempotent: true };
    type Reply = Blocks;

    fn perform(&self, ctx: &ToolContext<'_>) -> Result<Blocks, Error> {
        let perform = |search: Search| {
            let done = ctx.session.perform_with(&search, ctx.call);
            done.map(|done| done.outcome).map_err(|error| self.named_error(error))
        };
        let mut searched: Searched = perform(self.search(self.answer(), ctx)?)?;
        if let Some(lines) = self.automatic_context(&searched) {
            let answer = AnswerWith::Lines { before: lines, after: lines };
            searched = perform(self.search(answer, ctx)?)?;
        }
        Ok(Blocks::text(if searched.total == 0 {
            self.nothing(&searched, ctx)
        } else if self.names_only() {
            self.names(&searched, ctx)
        } else {
            self.lines(&searched, ctx)
        }))
    }

    fn error_text(&self, error: &Error, ctx: &ToolContext<'_>) -> Option<String> {
        match error {
            Error::BadRegex { problem, .. } => {
                Some(format!("Invalid regular expression pattern provided: {problem}"))
            }
            _ => super::search_problem(error, self.dir_path.as_ref(), ctx),
        }
    }

    fn compact_params(&self, ctx: &ToolContext<'_>) -> String {
        compact_params(&self.pattern, self.dir_path.as_ref().map(RelativePath::as_str), ctx)
    }
}

impl GrepSearch {
    /// Adds the name of the argument to an error about the second regex.
    fn named_error(&self, error: Error) -> Error {
        match error {
            Error::BadRegex { pattern, problem, .. }
                if Some(&pattern) == self.exclude_pattern.as_ref() =>
            {
                let next = "correct it, or leave it out";
                Error::InvalidArgument(format!(
                    "`exclude_pattern` is not a regex: {problem}; {next}"
                ))
            }
            other => other,
        }
    }

    fn names_only(&self) -> bool {
        self.names_only.unwrap_or(false)
    }

    fn max_matches(&self) -> u64 {
        self.total_max_matches.unwrap_or(limits::DEFAULT_SEARCH_RESULTS)
    }

    fn answer(&self) -> AnswerWith {
        if self.names_only() {
            return AnswerWith::Counts;
        }
        let lines = |side: Option<u64>| context(side.or(self.context));
        AnswerWith::Lines { before: lines(self.before), after: lines(self.after) }
    }

    /// How many lines of context a few matches get, if none were requested.
    fn automatic_context(&self, searched: &Searched) -> Option<usize> {
        if self.names_only() || [self.context, self.before, self.after].iter().any(Option::is_some)
        {
            return None;
        }
        match searched.total {
            1 => Some(50),
            2 | 3 => Some(15),
            _ => None,
        }
    }

    fn search(&self, answer: AnswerWith, ctx: &ToolContext<'_>) -> Result<Search, Error> {
        let no_ignore = self.no_ignore.unwrap_or(false);
        Ok(Search::new(self.pattern.as_str())
            .with_literal(self.fixed_strings.unwrap_or(false))
            .with_ignore_case(!self.case_sensitive.unwrap_or(false))
            .with_path(self.dir_path.as_ref().map(RelativePath::raw).transpose()?)
            .with_glob(self.include_pattern.clone())
            .with_exclude(self.exclude_pattern.clone())
            .with_ignore_files(if no_ignore { IgnoreFiles::NONE } else { IgnoreFiles::ALL })
            .with_max_per_file(self.max_matches_per_file)
            .with_answer(answer)
            .with_max_results(Some(self.max_matches()))
            .with_budget(ctx.budget(limits::DEFAULT_MAX_OUTPUT_BYTES))
            .with_max_count_bytes(Some(ctx.max_count_bytes()))
            .with_line_cost(line_cost))
    }

    /// `for pattern "p" in path "d" (filter: "g")`.
    fn request(&self, ctx: &ToolContext<'_>) -> String {
        let path = self.dir_path.as_ref().map_or(".".into(), |path| {
            if path.as_str().is_empty() { ".".into() } else { ctx.given(path.as_str()) }
        });
        let filter = self.include_pattern.as_ref();
        let filter = filter.map(|glob| format!(" (filter: \"{}\")", shortened(glob)));
        let filter = filter.unwrap_or_default();
        format!("for pattern \"{}\" in path \"{path}\"{filter}", shortened(&self.pattern))
    }

    /// The remark that there are more matches.
    fn limited(&self, shown: u64, total: u64, counted_all: bool) -> String {
        if counted_all && shown >= total {
            return String::new();
        }
        format!(" (results limited to {} matches for performance)", self.max_matches())
    }

    fn nothing(&self, searched: &Searched, ctx: &ToolContext<'_>) -> String {
        let mut text = format!("No matches found {}.", self.request(ctx));
        let search = self.search(self.answer(), ctx);
        let nothing = nothing_found(search, searched, "leave out case_sensitive", ctx);
        let skipped = skipped(&searched.skipped, "set no_ignore to search them");
        let notes = [nothing, skipped, unread(&searched.skipped)];
        notes.into_iter().flatten().for_each(|note| text.push_str(&format!("\n({note})")));
        text
    }

    fn names(&self, searched: &Searched, ctx: &ToolContext<'_>) -> String {
        let budget = ctx.budget(limits::DEFAULT_MAX_OUTPUT_BYTES);
        let paths = searched.files.iter().map(|file| ctx.relative(&file.place));
        let paths = fit(budget, paths, |path| path.len() + 1);
        let files = searched.matching_files;
        let (request, shown) = (self.request(ctx), paths.len() as u64);
        let limited = self.limited(shown, files, searched.counted_all);
        let mut text =
            format!("Found {files} files with matches {request}{limited}:\n{}", paths.join("\n"));
        if !limited.is_empty() {
            text.push_str(&format!("\n(files 1-{shown} of {files}; {SEE_MORE})"));
        }
        text.extend(unread(&searched.skipped).map(|note| format!("\n({note})")));
        text
    }

    fn lines(&self, searched: &Searched, ctx: &ToolContext<'_>) -> String {
        let (shown, total) = (searched.shown, searched.total);
        let limited = self.limited(shown, total, searched.counted_all);
        let found = matching(if limited.is_empty() { total } else { shown });
        let mut text = format!("Found {found} {}{limited}:\n---\n", self.request(ctx));
        for file in &searched.files {
            text.push_str(&format!("File: {}\n", ctx.relative(&file.place)));
            for line in &file.lines {
                let mark = if line.role == Role::Match { ':' } else { '-' };
                let shown = String::from_utf8_lossy(&line.text);
                text.push_str(&format!("L{}{mark} {}\n", line.number, shown.trim_end()));
            }
            if file.note.is_some() {
                text.push_str("(binary after this)\n");
            }
            text.push_str("---\n");
        }
        let mut text = text.trim_end().to_owned();
        if !limited.is_empty() {
            let more_than = if searched.counted_all { "" } else { "more than " };
            text.push_str(&format!("\n(matches 1-{shown} of {more_than}{total}; {SEE_MORE})"));
        }
        text.extend(unread(&searched.skipped).map(|note| format!("\n({note})")));
        text
    }
}

/// How many bytes [`GrepSearch::lines`] prints for a line, including the line that names its file.
fn line_cost(line: &PageLine<'_>) -> usize {
    let digits = line.number.checked_ilog10().map_or(1, |log| log as usize + 1);
    line.text.len() + digits + "L: \n".len()
}
