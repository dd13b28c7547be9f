//! The lines around a change, as an answer shows them.

use pinfold_text::{Encoding, PageRequest, Style, read_page, text_encoding};

use crate::View;

/// Some lines of a text with `context` lines before and after them, numbered as `cat -n` does.
pub(super) fn snippet(view: &View<'_>, text: &[u8], lines: (u64, u64), context: u64) -> String {
    let first = lines.0.saturating_sub(context).max(1);
    let last = lines.1.saturating_add(context);
    let request = PageRequest {
        first,
        lines: Some(last.saturating_sub(first).saturating_add(1)),
        style: Style::Numbered,
        budget: view.output_bytes(),
        max_line_chars: view.session().settings().max_line_chars,
        max_line_bytes: None,
        size_hint: text.len() as u64,
        encoding: Some(text_encoding(text).unwrap_or(Encoding::UTF_8)),
    };
    // Only reading from a disk can fail.
    read_page(&mut &*text, &request).map(|page| page.content).unwrap_or_default()
}
