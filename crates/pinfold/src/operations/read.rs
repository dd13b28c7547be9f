//! Reads lines of a text file.

use pinfold_confine::{Place, RawPath};
use pinfold_text::{Encoding, Page, PageError, PageRequest, Style, read_page, read_page_from};

use crate::{Error, NoChange, Operation, View, limits};

/// Reads a window of lines, or the last lines.
///
/// ```
/// use pinfold::operations::{Read, Write};
/// use pinfold::Session;
///
/// # let dir = tempfile::tempdir()?;
/// # let workspace = dir.path();
/// let session = Session::open([workspace])?;
/// session.perform(&Write::new("a.txt", "one\ntwo\nthree\n"))?;
/// let done = session.perform(&Read::new("a.txt").with_first(2).with_lines(Some(1)))?;
/// assert_eq!(done.outcome.page.content, "two\n");
/// assert_eq!(done.outcome.page.total, 3);
///
/// let done = session.perform(&Read::new("a.txt").with_tail(Some(2)))?;
/// assert_eq!(done.outcome.page.content, "two\nthree\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Read {
    /// The file.
    pub path: RawPath,
    /// The first line to show, counting from 1.
    pub first: u64,
    /// How many lines to show at the most; `None` for all.
    pub lines: Option<u64>,
    /// The number of lines to show from the end of the file, instead of `first` and `lines`.
    pub tail: Option<u64>,
    /// How lines are written.
    pub style: Style,
    /// How many bytes the lines may take in all.
    pub budget: usize,
    /// How many characters of a line are shown; `None` for the session's setting.
    pub max_line_chars: Option<usize>,
    /// Whether a binary file is read as UTF-8, with U+FFFD for what is not, and not refused.
    pub binary_as_text: bool,
    /// What to do if the file has fewer lines than `first`.
    pub past_end: PastEnd,
    /// How many bytes of a line are shown; `None` for as many as the settings allow.
    pub max_line_bytes: Option<usize>,
}

/// What a window after the last line gives.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PastEnd {
    /// A page without lines.
    Empty,
    /// An error with the number of lines.
    Refuse,
}

/// Lines of a file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Reading {
    /// The place of the file.
    pub place: Place,
    /// The number of the first line that is shown, counting from 1.
    pub first: u64,
    /// The lines, and their total number, encoding and line ending.
    pub page: Page,
}

impl Read {
    /// Reads a whole file without line numbers, up to the budget.
    pub fn new(path: impl Into<RawPath>) -> Self {
        Self {
            path: path.into(),
            first: 1,
            lines: None,
            tail: None,
            style: Style::Raw,
            budget: limits::MAX_OUTPUT_BYTES,
            max_line_chars: None,
            binary_as_text: false,
            past_end: PastEnd::Empty,
            max_line_bytes: None,
        }
    }
}

builder!(Read {
    with_first(first: u64),
    with_lines(lines: Option<u64>),
    with_tail(tail: Option<u64>),
    with_style(style: Style),
    with_budget(budget: usize),
    with_max_line_chars(max_line_chars: Option<usize>),
    with_binary_as_text(binary_as_text: bool),
    with_past_end(past_end: PastEnd),
    with_max_line_bytes(max_line_bytes: Option<usize>),
});

impl Operation for Read {
    type Changes = NoChange;
    type Outcome = Reading;

    const READS: bool = true;

    fn reads(&self) -> Option<&RawPath> {
        Some(&self.path)
    }

    fn plan(&self, view: &View<'_>) -> Result<(Reading, NoChange), Error> {
        match self.tail {
            Some(lines) => Ok((self.read_tail(view, lines)?, NoChange)),
            None => Ok((self.read_window(view)?, NoChange)),
        }
    }
}

impl Read {
    /// Counts the lines, then reads the last of them: neither holds more of the file than a page.
    fn read_tail(&self, view: &View<'_>, lines: u64) -> Result<Reading, Error> {
        let count =
            Self { first: u64::MAX, lines: Some(0), past_end: PastEnd::Empty, ..self.clone() };
        let page = count.read_window(view)?.page;
        if !page.complete {
            view.check_time()?;
        }
        let first = page.total.saturating_sub(lines) + 1;
        Self { first, lines: Some(lines), ..self.clone() }.read_window(view)
    }

    fn read_window(&self, view: &View<'_>) -> Result<Reading, Error> {
        let (place, mut file) = view.file(&self.path)?;
        let request = PageRequest {
            first: self.first.max(1),
            lines: self.lines,
            style: self.style,
            budget: self.budget,
            max_line_chars: self
                .max_line_chars
                .unwrap_or_else(|| view.session().settings().max_line_chars),
            max_line_bytes: self.max_line_bytes,
            size_hint: file.len(),
            encoding: None,
        };
        let known = view.session().line_indexes().before(&place, file.meta(), request.first);
        // Resume from the line index only if the ledger already has this version: a read from the middle does
        // not hash the whole file, so it cannot record the file as read.
        let mut known = known.filter(|_| view.is_unchanged_since_read(&place, file.meta()));
        let read = match known {
            Some(known) => {
                file.seek_to(known.mark.bytes);
                read_page_from(&mut file, known, &request)
            }
            None => read_page(&mut file, &request),
        };
        let encoding = match &read {
            Err(PageError::Encoding(encoding)) => Some(*encoding),
            Err(PageError::Binary(_)) if self.binary_as_text => Some(Encoding::UTF_8),
            _ => None,
        };
        let read = match encoding {
            Some(_) => {
                file.rewind();
                known = None;
                read_page(&mut file, &PageRequest { encoding, ..request })
            }
            None => read,
        };
        let page = read.map_err(|error| match error {
            PageError::Encoding(_) => Error::Internal { what: "an encoding changed".into() },
            PageError::Io(cause) => file.failure(&self.path, cause),
            PageError::Binary(binary) => {
                Error::Binary { path: self.path.clone(), mime: binary.mime, size: file.len() }
            }
        })?;
        let past_end = self.first > page.total && !(self.first == 1 && page.total == 0);
        if past_end && self.past_end == PastEnd::Refuse {
            let path = self.path.clone();
            return Err(Error::OutOfRange { path, first: self.first, total: page.total });
        }
        if page.complete && known.is_none() {
            view.session().line_indexes().learn(&place, file.meta(), &page);
            file.record_read(&place);
        }
        Ok(Reading { place, first: self.first.max(1), page })
    }
}
