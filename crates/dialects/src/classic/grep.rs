//! `Grep`

use pinfold::operations::{self, AnswerWith, Matched, Searched};
use pinfold::{BinaryNote, Done, Error, PageLine, Role};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::limits;
use crate::matches::{self, compact_params, matching, nothing_found};
use crate::phrases::{count, fit, shortened, skipped, unread, withheld};
use crate::tool_context::{AbsolutePath, RelativePath};
use crate::{Tool, ToolContext, ToolResult};

/// Searches file contents with ripgrep's regex engine. Git-ignored files only where `path` or `glob`
/// names them.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Grep {
    /// Regex, matched line by line unless multiline.
    pattern: String,
    /// Absolute path: file or directory; all if left out.
    path: Option<AbsolutePath>,
    /// Files to search, such as `*.ts,!*.test.ts`.
    glob: Option<String>,
    /// Ripgrep file type, such as `py`.
    r#type: Option<String>,
    /// Paths, newest first (default); lines; or matches by file.
    output_mode: Option<Mode>,
    /// Ignore case.
    #[serde(rename = "-i")]
    ignore_case: Option<bool>,
    /// Line numbers; true if left out.
    #[serde(rename = "-n")]
    numbers: Option<bool>,
    /// Lines after a match.
    #[serde(rename = "-A")]
    #[schemars(range(max = limits::MAX_CONTEXT))]
    after: Option<u64>,
    /// Lines before a match.
    #[serde(rename = "-B")]
    #[schemars(range(max = limits::MAX_CONTEXT))]
    before: Option<u64>,
    /// Lines around a match.
    #[serde(rename = "-C")]
    #[schemars(range(max = limits::MAX_CONTEXT))]
    context: Option<u64>,
    /// Matches span lines, `.` matches line ends.
    multiline: Option<bool>,
    /// The pattern is plain text.
    literal: Option<bool>,
    /// Most lines (content) or files; 250 if left out, 0 for all.
    head_limit: Option<u64>,
    /// How many to skip.
    offset: Option<u64>,
}

#[derive(Clone, Copy, Deserialize, Eq, JsonSchema, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mode {
    FilesWithMatches,
    Content,
    Count,
}

impl Tool for Grep {
    const NAME: &'static str = "Grep";
    const TITLE: &'static str = "Search in files";
    const IDEMPOTENT: bool = true;
    type Op = operations::Search;
    type Reply = ToolResult;

    fn operation(&self, ctx: &ToolContext<'_>) -> Result<operations::Search, Error> {
        let max_results = self.head_limit.unwrap_or(limits::DEFAULT_GREP_MATCHES);
        Ok(operations::Search::new(self.pattern.as_str())
            .with_literal(self.literal.unwrap_or(false))
            .with_ignore_case(self.ignore_case.unwrap_or(false))
            .with_multiline(self.multiline.unwrap_or(false))
            .with_path(self.path.as_ref().map(|path| path.raw("path", ctx)).transpose()?)
            .with_glob(self.glob.clone())
            .with_file_type(self.r#type.clone())
            .with_answer(self.answer())
            .with_skip(self.offset.unwrap_or(0))
            .with_max_results((max_results > 0).then_some(max_results))
            .with_budget(ctx.budget(limits::DEFAULT_MAX_OUTPUT_BYTES))
            .with_max_count_bytes(Some(ctx.max_count_bytes()))
            .with_line_cost(if self.numbers.unwrap_or(true) { numbered_cost } else { plain_cost }))
    }

    fn reply(&self, done: Done<operations::Search>, ctx: &ToolContext<'_>) -> ToolResult {
        let mut searched = done.outcome;
        let mut content = match self.mode() {
            Mode::FilesWithMatches => self.rows(&mut searched, ctx, |_| String::new()),
            Mode::Count => self.rows(&mut searched, ctx, |file| format!(":{}", file.count)),
            Mode::Content => self.lines(&searched, ctx),
        };
        let offset = self.offset.unwrap_or(0);
        let truncated = !searched.counted_all || offset + searched.shown < searched.total;
        if searched.total == 0 {
            content.push_str(ctx.names.no_matches);
            let how = "name one in path to search it";
            let portable = ctx.session.settings().portable_names;
            let ignore_case = if portable { "set ignore_case" } else { ctx.names.ignore_case };
            let nothing = nothing_found(self.operation(ctx), &searched, ignore_case, ctx);
            content.extend(nothing.map(|text| format!("\n({text})")));
            content.extend(skipped(&searched.skipped, how).map(|text| format!("\n({text})")));
        } else if searched.shown == 0 {
            content.push_str(&format!("(offset {offset} is past the last of {})", searched.total));
        } else if truncated {
            let what = if self.mode() == Mode::Content { "matches" } else { "files" };
            let (first, last) = (offset + 1, offset + searched.shown);
            let window = format!("{what} {first}-{last} of {}", total(&searched));
            content.push_str(&format!("({window}; {})", (ctx.names.more_results)(last)));
        }
        if let Some(text) = unread(&searched.skipped) {
            let newline = if content.ends_with('\n') { "" } else { "\n" };
            content.push_str(&format!("{newline}({text})"));
        }
        ToolResult {
            success: true,
            content,
            short_result: Some(self.short(&searched)),
            metadata: self.facts(&searched, truncated),
            ..ToolResult::default()
        }
    }

    fn compact_params(&self, ctx: &ToolContext<'_>) -> String {
        let path = self.path.as_ref().map(AbsolutePath::as_str);
        let mut text = compact_params(&self.pattern, path, ctx);
        for filter in [&self.glob, &self.r#type].into_iter().flatten() {
            text.push_str(&format!(" {}", shortened(filter).escape_debug()));
        }
        text
    }
}

impl Grep {
    /// A search for files or lines, for dialects with fewer arguments.
    pub(crate) fn new(
        pattern: String,
        path: Option<RelativePath>,
        glob: Option<String>,
        output_mode: Mode,
    ) -> Self {
        let path = path.map(Into::into);
        Self { pattern, path, glob, output_mode: Some(output_mode), ..Self::default() }
    }

    /// The same search with at most `limit` results.
    pub(crate) fn with_limit(self, limit: u64) -> Self {
        Self { head_limit: Some(limit), ..self }
    }

    fn mode(&self) -> Mode {
        self.output_mode.unwrap_or(Mode::FilesWithMatches)
    }

    fn answer(&self) -> AnswerWith {
        let context = |side: Option<u64>| matches::context(side.or(self.context));
        match self.mode() {
            Mode::FilesWithMatches => AnswerWith::Files,
            Mode::Count => AnswerWith::Counts,
            Mode::Content => {
                AnswerWith::Lines { before: context(self.before), after: context(self.after) }
            }
        }
    }

    /// One row for each file, as many as fit into the budget. Removes the other files from `searched`.
    fn rows(
        &self,
        searched: &mut Searched,
        ctx: &ToolContext<'_>,
        more: impl Fn(&Matched) -> String,
    ) -> String {
        let row = |file: &Matched| format!("{}{}\n", ctx.absolute(&file.place), more(file));
        let budget = ctx.budget(limits::DEFAULT_MAX_OUTPUT_BYTES);
        let rows = fit(budget, searched.files.iter().map(row), String::len);
        searched.files.truncate(rows.len());
        searched.shown = rows.len() as u64;
        rows.concat()
    }

    /// The lines in ripgrep's format for pipes.
    fn lines(&self, searched: &Searched, ctx: &ToolContext<'_>) -> String {
        let has_context = self.answer() != AnswerWith::Lines { before: 0, after: 0 };
        let numbers = self.numbers.unwrap_or(true);
        let mut out = String::new();
        for file in &searched.files {
            let path = ctx.absolute(&file.place);
            let mut last = None;
            for line in &file.lines {
                if has_context && !out.is_empty() && last.map(|last| last + 1) != Some(line.number)
                {
                    out.push_str("--\n");
                }
                last = Some(line.number);
                let mark = if line.role == Role::Match { ':' } else { '-' };
                out.push_str(&path);
                out.push(mark);
                if numbers {
                    out.push_str(&line.number.to_string());
                    out.push(mark);
                }
                out.push_str(&String::from_utf8_lossy(&line.text));
                if !line.text.ends_with(b"\n") {
                    out.push('\n');
                }
            }
            match file.note {
                None => {}
                Some(BinaryNote::Stopped(offset)) => out.push_str(&format!(
                    "{path}: WARNING: stopped searching binary file after match (found \"\\0\" byte around offset {offset})\n"
                )),
                Some(BinaryNote::Matches(offset)) => out.push_str(&format!(
                    "{path}: binary file matches (found \"\\0\" byte around offset {offset})\n"
                )),
            }
        }
        out
    }

    fn short(&self, searched: &Searched) -> String {
        let files = count(searched.matching_files, "file");
        match self.mode() {
            _ if searched.total == 0 => "No matches found".into(),
            _ if !searched.counted_all => format!(
                "Found {} {}",
                total(searched),
                match self.mode() {
                    Mode::Content => "matching lines",
                    Mode::FilesWithMatches | Mode::Count => "files",
                }
            ),
            Mode::FilesWithMatches => format!("Found {files}"),
            Mode::Content => format!("Found {} in {files}", matching_lines(searched.total)),
            Mode::Count => format!("Found {} in {files}", matching(searched.matches)),
        }
    }

    fn facts(&self, searched: &Searched, truncated: bool) -> Map<String, Value> {
        let (total, returned) = match self.mode() {
            Mode::Count => {
                (searched.matches, searched.files.iter().map(|file| file.count).sum::<u64>())
            }
            Mode::Content | Mode::FilesWithMatches => (searched.total, searched.shown),
        };
        let mut facts = Map::new();
        facts.insert("total_matches".into(), total.into());
        facts.insert("returned_matches".into(), returned.into());
        facts.insert("files".into(), searched.matching_files.into());
        facts.insert("truncated".into(), truncated.into());
        if !searched.counted_all {
            facts.insert("counted_all".into(), false.into());
        }
        facts.extend(withheld(&searched.skipped).map(|number| ("withheld".into(), number.into())));
        facts
    }
}

/// The total number of results, or `more than N`.
fn total(searched: &Searched) -> String {
    let more_than = if searched.counted_all { "" } else { "more than " };
    format!("{more_than}{}", searched.total)
}

fn matching_lines(number: u64) -> String {
    count(number, "matching line")
}

/// How many bytes [`Grep::lines`] prints for a line without its number.
fn plain_cost(line: &PageLine<'_>) -> usize {
    let separator = if line.after_gap { "--\n".len() } else { 0 };
    let newline = usize::from(!line.text.ends_with(b"\n"));
    line.path.len() + 1 + String::from_utf8_lossy(line.text).len() + newline + separator
}

fn numbered_cost(line: &PageLine<'_>) -> usize {
    let digits = line.number.checked_ilog10().map_or(1, |log| log as usize + 1);
    plain_cost(line) + digits + 1
}
