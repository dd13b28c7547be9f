//! Draws pages and returns their text.

use hayro_font::kurbo::Affine;
use hayro_syntax::object::Dict;
use hayro_syntax::page::Page;
use hayro_syntax::{LoadPdfError, Pdf};

use crate::budget::{Interrupt, Meter, page_content};
use crate::content::{Fonts, Interpreter};
use crate::lines::{self, Lines};
use crate::{Budget, ExtractError, Extracted, PdfRequest};

/// The size of the heading above a page, which counts towards the returned text.
const HEADING_BYTES: usize = "--- Page 100 ---\n\n\n".len();

/// Extracts the text of some pages of a PDF.
///
/// `keep_going` is asked while pages are drawn. Once it returns false, the extraction ends with
/// [`ExtractError::Interrupted`].
///
/// ```
/// use pinfold_pdf::{Budget, ExtractError, PdfRequest, extract};
///
/// let request = PdfRequest { first: 1, last: 1, max_bytes: 1_000 };
/// let extracted = extract(b"%PDF-".to_vec(), request, Budget::default(), &|| true);
/// assert_eq!(extracted, Err(ExtractError::Damaged));
/// ```
pub fn extract(
    content: Vec<u8>,
    request: PdfRequest,
    budget: Budget,
    keep_going: &dyn Fn() -> bool,
) -> Result<Extracted, ExtractError> {
    let pdf = Pdf::new(content).map_err(|error| match error {
        LoadPdfError::Decryption(_) => ExtractError::Encrypted,
        LoadPdfError::Invalid => ExtractError::Damaged,
    })?;
    let pages = pdf.pages();
    let mut extracted = Extracted { page_count: pages.len(), ..Extracted::default() };
    let fonts = Fonts::new();
    let mut room = request.max_bytes.saturating_sub(HEADING_BYTES);
    let mut meter = Meter::new(budget, keep_going);
    for number in request.first.max(1)..=request.last.min(pages.len()) {
        let Some(page) = pages.get(number - 1) else { break };
        meter.start_page();
        let mut lines = Lines::new(room, meter);
        let drawn = draw(page, &pdf, &fonts, &mut lines);
        let Lines { is_full, glyphs, unmapped_glyphs, .. } = lines;
        meter = lines.meter;
        let is_first = extracted.pages.is_empty();
        match drawn {
            Err(Interrupt::Stopped) => return Err(ExtractError::Interrupted),
            Err(Interrupt::OverBudget) if is_first => return Err(ExtractError::TooComplex(number)),
            // The next call can start at this page, with its own budget.
            Err(Interrupt::OverBudget) => break,
            Ok(()) | Err(Interrupt::Full) if is_full && !is_first => break,
            Ok(()) | Err(Interrupt::Full) => {}
        }
        extracted.glyphs += glyphs;
        extracted.unmapped_glyphs += unmapped_glyphs;
        extracted.cut = is_full;
        let text = lines::trimmed(&lines.text);
        room = room.saturating_sub(text.len() + HEADING_BYTES);
        extracted.pages.push(text);
        if extracted.cut || room == 0 {
            break;
        }
    }
    Ok(extracted)
}

/// Draws a page into `lines`, unless the page is interrupted.
fn draw<'a>(
    page: &Page<'a>,
    pdf: &'a Pdf,
    fonts: &Fonts<'a>,
    lines: &mut Lines<'_>,
) -> Result<(), Interrupt> {
    let content = page_content(page, &mut lines.meter)?;
    let catalog = pdf.xref().get::<Dict<'_>>(pdf.xref().root_id());
    // The page as a reader sees it: from its upper left corner, rotated as displayed.
    let transform = Affine::new(page.initial_transform(true).as_coeffs());
    Interpreter::new(transform, catalog.as_ref(), fonts, lines).run(&content, page.resources())
}
