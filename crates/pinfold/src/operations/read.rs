//! `Read`: reads lines of a text file.

use pinfold_confine::{Place, RawPath};
use pinfold_text::{
    Encoding, Page, PageError, PageRequest, Style, read_page, read_page_from, read_tail,
};

use crate::view::TrackedFile;
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
    /// The maximum number of lines; `None` for all.
    pub lines: Option<u64>,
    /// The number of lines to show from the end of the file, instead of `first` and `lines`.
    pub tail: Option<u64>,
    /// The format of lines.
    pub style: Style,
    /// The maximum size of all shown lines in bytes.
    pub budget: usize,
    /// The maximum number of characters of a line; `None` for the session's setting.
    pub max_line_chars: Option<usize>,
    /// Whether a binary file is read as UTF-8, with U+FFFD for invalid bytes. Otherwise it is refused.
    pub binary_as_text: bool,
    /// What to do if the file has fewer lines than `first`.
    pub past_end: PastEnd,
    /// The maximum number of bytes of a line; `None` for no other limit than the settings.
    pub max_line_bytes: Option<usize>,
    /// Whether the file is read to its end. Otherwise it does not count as read for a later change, and lines outside
    /// the window are counted only if they have to be read anyway: see [`Page::complete`].
    pub whole: bool,
}

/// The result of a window after the last line.
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
    /// The number of the first shown line, counting from 1. `None` if the lines before it were not counted.
    pub first: Option<u64>,
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
            budget: limits::DEFAULT_MAX_LIBRARY_OUTPUT_BYTES,
            max_line_chars: None,
            binary_as_text: false,
            past_end: PastEnd::Empty,
            max_line_bytes: None,
            whole: true,
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
    with_whole(whole: bool),
});

impl Operation for Read {
    type Changes = NoChange;
    type Outcome = Reading;

    const READS_ONE_FILE: bool = true;

    fn file_to_read(&self) -> Option<&RawPath> {
        Some(&self.path)
    }

    fn plan(&self, view: &View<'_>) -> Result<(Reading, NoChange), Error> {
        let (place, mut file) = view.file(&self.path)?;
        if !self.whole {
            file.skip_recording();
        }
        let max_line_chars = view.session().settings().max_line_chars;
        let mut request = PageRequest {
            first: self.first.max(1),
            lines: self.tail.or(self.lines),
            style: self.style,
            budget: self.budget,
            max_line_chars: self.max_line_chars.unwrap_or(max_line_chars),
            max_line_bytes: self.max_line_bytes,
            size_hint: file.len(),
            encoding: None,
            count_all: self.whole,
        };
        if let Some(lines) = self.tail {
            // Neither line numbers nor the rest of the file are needed.
            if !self.whole && self.style == Style::Raw {
                let tail = self.decoded(&mut file, |file, encoding| {
                    read_tail(file, &PageRequest { encoding, ..request })
                });
                if let Some(page) = tail? {
                    return Ok((Reading { place, first: None, page }, NoChange));
                }
            }
            // The first pass counts the lines, the second reads the last ones. Neither holds more than a page in
            // memory.
            request.count_all = true;
            let count = PageRequest { first: u64::MAX, lines: Some(0), ..request };
            let page = self.window(view, &place, &mut file, count)?;
            if !page.complete {
                view.check_time()?;
            }
            request.first = page.total.saturating_sub(lines) + 1;
        }
        let page = self.window(view, &place, &mut file, request)?;
        let first = request.first;
        let past_end = first > page.total && !(first == 1 && page.total == 0);
        if past_end && self.past_end == PastEnd::Refuse {
            let path = self.path.clone();
            return Err(Error::OutOfRange { path, first, total: page.total });
        }
        if page.complete {
            file.record_read(&place);
        }
        Ok((Reading { place, first: Some(first), page }, NoChange))
    }
}

impl Read {
    /// A window of lines. It uses and updates the cache of line offsets.
    fn window(
        &self,
        view: &View<'_>,
        place: &Place,
        file: &mut TrackedFile<'_>,
        request: PageRequest,
    ) -> Result<Page, Error> {
        let line_indexes = view.session().line_indexes();
        // The read may resume from a cached offset only if nothing has to be recorded, because a read from the middle
        // does not hash the whole file.
        let mut known = line_indexes.before(place, file.meta(), request.first);
        known = known.filter(|_| !file.is_recording());
        self.decoded(file, |file, encoding| match known.take() {
            Some(known) => {
                file.seek_to(known.mark.bytes);
                read_page_from(file, known, &request)
            }
            None => {
                file.rewind();
                let page = read_page(file, &PageRequest { encoding, ..request })?;
                if page.complete {
                    line_indexes.insert(place, file.meta(), &page);
                }
                Ok(page)
            }
        })
    }

    /// Calls `read`, and calls it again if the content shows another encoding than the file's beginning.
    fn decoded<T>(
        &self,
        file: &mut TrackedFile<'_>,
        mut read: impl FnMut(&mut TrackedFile<'_>, Option<Encoding>) -> Result<T, PageError>,
    ) -> Result<T, Error> {
        let mut done = read(file, None);
        let encoding = match &done {
            Err(PageError::Encoding(encoding)) => Some(*encoding),
            Err(PageError::Binary(_)) if self.binary_as_text => Some(Encoding::UTF_8),
            _ => None,
        };
        if encoding.is_some() {
            done = read(file, encoding);
        }
        done.map_err(|error| match error {
            PageError::Encoding(_) => Error::Internal { what: "an encoding changed".into() },
            PageError::Io(cause) => file.failure(&self.path, cause),
            PageError::Binary(binary) => {
                Error::Binary { path: self.path.clone(), mime: binary.mime, size: file.len() }
            }
        })
    }
}
