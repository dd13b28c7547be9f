//! The text of PDF files, page by page.
//!
//! A PDF is a program that puts glyphs somewhere. `hayro` runs it, and what it draws is put together
//! to lines and words here, in the order in which it is drawn, which is the order of reading in nearly
//! all files that were not scanned.
//!
//! PDFs come from anywhere. This crate panics on none that it should know of, but a file can be made
//! to take any amount of time, memory or stack: run it where that can be ended.

#![forbid(unsafe_code)]

mod lines;

use hayro_interpret::hayro_syntax::page::Page;
use hayro_interpret::hayro_syntax::{LoadPdfError, Pdf};
use hayro_interpret::{
    Context, InterpreterCache, InterpreterSettings, RenderContent, interpret_page,
};
use kurbo::{Affine, Rect};
use serde::{Deserialize, Serialize};

use crate::lines::Lines;

/// The pages that are wanted, counting from 1, and how much of them.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Wanted {
    /// The first page.
    pub first: usize,
    /// The last page; the document's last one if there are fewer.
    pub last: usize,
    /// How many bytes of text are enough.
    pub most_bytes: usize,
}

/// The text of some pages.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Extracted {
    /// How many pages the document has.
    pub page_count: usize,
    /// The text of the pages, from the first that was wanted; fewer if they were too long.
    pub pages: Vec<String>,
    /// Whether the last of these pages was cut.
    pub cut: bool,
    /// How many glyphs were drawn.
    pub glyphs: usize,
    /// How many of them have no letters that anybody knows.
    pub unknown: usize,
}

/// Why there is no text.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Failure {
    /// A password is needed.
    Encrypted,
    /// It is not a PDF, or too damaged.
    Damaged,
}

/// What a page takes besides its text: a line that says which one it is.
const HEADING: usize = "--- Page 100 ---\n\n\n".len();

/// The text of some pages of a PDF.
pub fn extract(content: Vec<u8>, wanted: Wanted) -> Result<Extracted, Failure> {
    let pdf = Pdf::new(content).map_err(|error| match error {
        LoadPdfError::Decryption(_) => Failure::Encrypted,
        LoadPdfError::Invalid => Failure::Damaged,
    })?;
    let pages = pdf.pages();
    let mut extracted = Extracted { page_count: pages.len(), ..Extracted::default() };
    let cache = InterpreterCache::new();
    let mut room = wanted.most_bytes.saturating_sub(HEADING);
    let range = wanted.first.saturating_sub(1)..wanted.last.min(pages.len());
    for page in range.filter_map(|number| pages.get(number)) {
        let mut lines = Lines::new(room);
        draw(page, &pdf, &cache, &mut lines);
        if lines.full && !extracted.pages.is_empty() {
            // It can have an answer of its own.
            break;
        }
        extracted.glyphs += lines.glyphs;
        extracted.unknown += lines.unknown;
        extracted.cut = lines.full;
        let text = lines.finish();
        room = room.saturating_sub(text.len() + HEADING);
        extracted.pages.push(text);
        if extracted.cut || room == 0 {
            break;
        }
    }
    Ok(extracted)
}

fn draw<'a>(page: &Page<'a>, pdf: &'a Pdf, cache: &InterpreterCache<'a>, lines: &mut Lines) {
    let settings = InterpreterSettings {
        render_content: RenderContent::PAGE,
        ..InterpreterSettings::default()
    };
    // As the page is looked at: from its upper left corner, turned the way it is shown.
    let transform = Affine::new(page.initial_transform(true).as_coeffs());
    let (width, height) = page.render_dimensions();
    let area = Rect::new(0.0, 0.0, width.into(), height.into());
    let mut context = Context::new(transform, area, cache, pdf.xref(), settings);
    interpret_page(page, &mut context, lines);
}
