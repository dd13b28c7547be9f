//! Extracts the text of PDF files, page by page.
//!
//! A PDF is a program that draws glyphs. `hayro` parses the file and its fonts. This crate runs the part of the program
//! that places glyphs, and joins them into words and lines in the order in which they are drawn. That is the reading order of nearly all files that were not scanned.
//!
//! Any content gives text or an [`ExtractError`]. `Budget` limits the work for a page, but not the memory or the
//! stack that a hostile file takes, so callers should run it where these are limited.

#![forbid(unsafe_code)]

#[cfg(feature = "extract")]
mod budget;
#[cfg(feature = "extract")]
mod content;
#[cfg(feature = "extract")]
mod extract;
#[cfg(feature = "extract")]
mod lines;
#[cfg(feature = "extract")]
mod optional_content;

use serde::{Deserialize, Serialize};

#[cfg(feature = "extract")]
pub use crate::{budget::Budget, extract::extract};

/// Which pages to extract, counting from 1, and how much of them.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct PdfRequest {
    /// The first page.
    pub first: usize,
    /// The last page; the document's last one if it has fewer.
    pub last: usize,
    /// The maximum number of bytes of text.
    pub max_bytes: usize,
}

/// The text of some pages.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Extracted {
    /// The number of pages in the document.
    pub page_count: usize,
    /// The text of each page, from the first requested one. Has fewer pages if they were too long.
    pub pages: Vec<String>,
    /// Whether the last of these pages was cut.
    pub cut: bool,
    /// The number of glyphs on these pages.
    pub glyphs: usize,
    /// The number of those that the document maps to no character.
    pub unmapped_glyphs: usize,
}

/// The reason why no text can be extracted.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum ExtractError {
    /// A password is needed.
    Encrypted,
    /// It is not a PDF, or too damaged.
    Damaged,
    /// This page exceeds the budget.
    TooComplex(usize),
    /// The caller's `keep_going` returned false.
    Interrupted,
}
