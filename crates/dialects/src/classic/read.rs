//! `Read`

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pinfold::media::{Extracted, Notebook, Picture};
use pinfold::operations::{self, Opened, PastEnd, Reading};
use pinfold::{Done, Error, Page, PageEnd, Place, Style};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::answer::Image;
use crate::limits;
use crate::phrases::{count, malformed, shortened, with_notices};
use crate::tool_context::AbsolutePath;
use crate::{Tool, ToolContext, ToolResult};

/// Reads a file: text with line numbers, as `cat -n` does (number and tab are not part of the file);
/// images; the text of PDFs; notebooks. A long one is shown in part, with a notice how to go on.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Read {
    /// Absolute path.
    pub(crate) file_path: AbsolutePath,
    /// First line, counting from 1.
    #[schemars(range(min = 1))]
    pub(crate) offset: Option<u64>,
    /// Most lines; 2000 if left out.
    #[schemars(range(min = 1, max = limits::MAX_READ_LINES))]
    pub(crate) limit: Option<u64>,
    /// Pages of a PDF, such as `3` or `2-5`.
    pub(crate) pages: Option<String>,
}

impl Tool for Read {
    const NAME: &'static str = "Read";
    const TITLE: &'static str = "Read file";
    const IDEMPOTENT: bool = true;
    type Op = operations::Open;
    type Reply = ToolResult;

    fn operation(&self, ctx: &ToolContext<'_>) -> Result<operations::Open, Error> {
        let read = operations::Read::new(self.file_path.raw("file_path", ctx)?)
            .with_first(self.offset())
            .with_lines(Some(self.limit()))
            .with_style(Style::Numbered)
            .with_budget(ctx.budget(limits::DEFAULT_MAX_OUTPUT_BYTES))
            .with_past_end(PastEnd::Refuse);
        Ok(operations::Open::from(read)
            .with_has_window(self.offset.is_some() || self.limit.is_some())
            .with_pages(self.pages.as_deref().map(page_range).transpose()?))
    }

    fn reply(&self, done: Done<operations::Open>, ctx: &ToolContext<'_>) -> ToolResult {
        let (place, mut result) = match done.outcome {
            Opened::Text { reading, not_a_notebook } => self.text(reading, not_a_notebook, ctx),
            Opened::Image { place, picture } => (place, image(picture)),
            Opened::Pdf { place, first_page, extracted } => {
                (place, self.pdf(first_page, extracted, ctx))
            }
            Opened::Notebook { reading, notebook } => self.notebook(reading, notebook, ctx),
        };
        result.success = true;
        result.file_path = Some(ctx.absolute(&place));
        result
    }

    fn compact_params(&self, ctx: &ToolContext<'_>) -> String {
        let path = ctx.short_path(self.file_path.as_str());
        match (&self.pages, self.offset, self.limit) {
            (Some(pages), ..) => format!("{path} pages {}", shortened(pages).escape_debug()),
            (None, None, None) => path,
            _ => format!("{path} {}:{}", self.offset(), self.limit()),
        }
    }
}

/// Parses `3` or `2-5`.
fn page_range(text: &str) -> Result<(u64, u64), Error> {
    let number = |text: &str| text.trim().parse::<u64>().ok().filter(|number| *number > 0);
    let range = match text.split_once('-') {
        None => number(text).map(|page| (page, page)),
        Some((first, last)) => {
            number(first).zip(number(last)).filter(|(first, last)| first <= last)
        }
    };
    range.ok_or_else(|| {
        let pages = shortened(text).escape_debug().to_string();
        Error::InvalidArgument(format!("`pages` must be like `3` or `2-5`, not `{pages}`"))
    })
}

impl Read {
    fn offset(&self) -> u64 {
        self.offset.unwrap_or(1)
    }

    fn limit(&self) -> u64 {
        self.limit.unwrap_or(limits::DEFAULT_READ_LINES)
    }

    /// The answer with the lines of a page, the notices, and the notice how to continue.
    fn lines(&self, page: Page, mut notices: Vec<String>, ctx: &ToolContext<'_>) -> ToolResult {
        if page.end != PageEnd::EndOfFile {
            let (first, next) = (self.offset(), self.offset() + page.shown);
            let total = if page.complete { "" } else { "at least " };
            let lines = format!("lines {first}-{} of {total}{}", next - 1, page.total);
            notices.push(format!("({lines}; {})", (ctx.names.read_on)(next)));
        }
        let mut metadata = Map::new();
        let mut fact = |name: &str, value: Value| metadata.insert(name.into(), value);
        fact("encoding", page.encoding.name().into());
        fact("line_ending", page.line_ending.name().into());
        fact("total_lines", page.total.into());
        fact("lines_read", page.shown.into());
        fact("offset", self.offset().into());
        fact("limit", self.limit().into());
        fact("truncated", json!(page.end != PageEnd::EndOfFile));
        ToolResult {
            short_result: Some(format!("Read {}", count(page.shown, "line"))),
            content: with_notices(page.content, &notices),
            metadata,
            ..ToolResult::default()
        }
    }

    fn text(
        &self,
        reading: Reading,
        problem: Option<String>,
        ctx: &ToolContext<'_>,
    ) -> (Place, ToolResult) {
        let Reading { place, page, .. } = reading;
        let mut notices = Vec::new();
        if page.total == 0 {
            notices.push("(the file is empty)".to_owned());
        }
        notices.extend(malformed(&page).map(|text| format!("({text})")));
        let problem =
            problem.map(|problem| format!("(shown as text, not as a notebook: {problem})"));
        notices.extend(problem);
        (place, self.lines(page, notices, ctx))
    }

    fn notebook(
        &self,
        reading: Reading,
        notebook: Notebook,
        ctx: &ToolContext<'_>,
    ) -> (Place, ToolResult) {
        let Reading { place, page, .. } = reading;
        // Only the images whose lines are shown.
        let shown = |number: usize| page.content.contains(&format!("[image {number}: "));
        let images = notebook.images.into_iter().zip(1..).filter(|(_, number)| shown(*number));
        let images = images.map(|((media_type, data), _)| Image { data, media_type }).collect();
        let empty = (notebook.cells == 0).then(|| "(the notebook has no cells)".to_owned());
        let mut result = self.lines(page, empty.into_iter().collect(), ctx);
        result.metadata.insert("is_notebook".into(), true.into());
        result.metadata.insert("cell_count".into(), notebook.cells.into());
        result.short_result = Some(format!("Read {}", count(notebook.cells as u64, "cell")));
        (place, ToolResult { images, ..result })
    }

    fn pdf(&self, first: u64, extracted: Extracted, ctx: &ToolContext<'_>) -> ToolResult {
        let total = extracted.page_count as u64;
        let shown = extracted.pages.len() as u64;
        let requested = self.pages.as_deref().and_then(|pages| page_range(pages).ok());
        let last_requested = requested.map_or(total, |(_, last)| last.min(total));
        let last = first + shown.saturating_sub(1);
        let pages = extracted.pages.iter().zip(first..);
        let pages: Vec<_> =
            pages.map(|(text, number)| format!("--- Page {number} ---\n{text}\n")).collect();
        let mut notices = Vec::new();
        if extracted.pages.iter().all(|text| text.trim().is_empty()) {
            notices
                .push("(there is no text on these pages; they may be scanned images)".to_owned());
        }
        if extracted.unmapped_glyphs * 20 > extracted.glyphs {
            let share = extracted.unmapped_glyphs * 100 / extracted.glyphs.max(1);
            notices.push(format!("({share} % of the letters are unknown and stand as U+FFFD)"));
        }
        if extracted.cut {
            notices.push(format!("(page {last} is cut: its text is too long for one answer)"));
        }
        if last < last_requested {
            let next = last + 1;
            let rest = if next == last_requested {
                next.to_string()
            } else {
                format!("{next}-{last_requested}")
            };
            let read_on = if ctx.names.pages {
                format!("continue with pages=\"{rest}\"")
            } else {
                "this tool cannot show the others".into()
            };
            notices.push(format!("(pages {first}-{last} of {total}; {read_on})"));
        }
        let metadata = Map::from_iter([
            ("is_pdf".into(), Value::from(true)),
            ("page_count".into(), total.into()),
            ("truncated".into(), (extracted.cut || last < last_requested).into()),
        ]);
        ToolResult {
            content: with_notices(pages.join("\n"), &notices),
            short_result: Some(format!("Read {} of {total}", count(shown, "page"))),
            metadata,
            ..ToolResult::default()
        }
    }
}

fn image(picture: Picture) -> ToolResult {
    let Picture { mime, data, width, height, shrunk_from } = picture;
    let shrunk = match shrunk_from {
        Some((width, height)) => format!(" (shrunk from {width} x {height})"),
        None => String::new(),
    };
    let metadata = Map::from_iter([
        ("is_image".into(), Value::from(true)),
        ("mime_type".into(), mime.into()),
        ("width".into(), width.into()),
        ("height".into(), height.into()),
    ]);
    ToolResult {
        content: format!(
            "{mime}, {width} x {height} pixels, {}{shrunk}",
            count(data.len() as u64, "byte")
        ),
        short_result: Some(format!("Read image ({width} x {height})")),
        images: vec![Image { data: STANDARD.encode(&data), media_type: mime.into() }],
        metadata,
        ..ToolResult::default()
    }
}
