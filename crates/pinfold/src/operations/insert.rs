//! `Insert`: inserts lines into a file.

use pinfold_confine::{Place, RawPath};
use pinfold_text::{
    Encoding, InsertError, PageRequest, Style, insert_lines, read_page, text_encoding,
};

use crate::change::Replace;
use crate::ledger::Freshness;
use crate::operations::edit::{changed_since_read, check_size, encoding_of};
use crate::{ChangeSet, Error, Operation, ReadBeforeWrite, View};

/// Inserts text as whole lines after a line of a file.
///
/// A line ending is added to the text unless it has one. The line endings become those of the line before.
///
/// ```
/// use pinfold::operations::{Insert, Read, Write};
/// use pinfold::Session;
///
/// # let dir = tempfile::tempdir()?;
/// # let workspace = dir.path();
/// let session = Session::open([workspace])?;
/// session.perform(&Write::new("a.txt", "one\nthree\n"))?;
/// let inserted = session.perform(&Insert::new("a.txt", 1, "two"))?.outcome;
/// assert_eq!(inserted.lines, (2, 2));
/// assert_eq!(session.perform(&Read::new("a.txt"))?.outcome.page.content, "one\ntwo\nthree\n");
///
/// // The file has three lines now.
/// assert!(session.perform(&Insert::new("a.txt", 4, "five")).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Insert {
    /// The file.
    pub path: RawPath,
    /// The number of lines before the text; 0 inserts at the top.
    pub after: u64,
    /// The text.
    pub text: String,
    /// Whether the file must have been read first. A line number is meaningless in a file that has changed.
    pub read_rule: ReadBeforeWrite,
    /// The number of lines of context in the outcome's snippet; `None` for no snippet.
    pub snippet: Option<u64>,
}

/// Inserted lines.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Inserted {
    /// The file's place.
    pub place: Place,
    /// The file's new size in bytes.
    pub bytes: u64,
    /// The first and the last of the new lines.
    pub lines: (u64, u64),
    /// The new lines and those around them, numbered, if the request asks for them.
    pub snippet: Option<String>,
    /// How many other hard links still have the old content.
    pub other_names: u64,
}

impl Insert {
    /// Inserts text after the first `after` lines of a file.
    pub fn new(path: impl Into<RawPath>, after: u64, text: impl Into<String>) -> Self {
        let (path, text) = (path.into(), text.into());
        Self { path, after, text, read_rule: ReadBeforeWrite::Off, snippet: None }
    }
}

builder!(Insert {
    with_read_rule(read_rule: ReadBeforeWrite),
    with_snippet(snippet: Option<u64>),
});

impl Operation for Insert {
    type Changes = ChangeSet;
    type Outcome = Inserted;

    fn edited_files(&self) -> Vec<&RawPath> {
        vec![&self.path]
    }

    fn plan(&self, view: &View<'_>) -> Result<(Inserted, ChangeSet), Error> {
        let mut target = view.target(&self.path)?;
        let meta = *target.meta().ok_or_else(|| view.not_found(&self.path))?;
        check_size(view, &self.path, meta.len)?;
        let before = target.content().map_err(|error| view.path_error(&self.path, error))?;
        let encoding = encoding_of(&self.path, &before)?;
        let freshness = view.freshness(&self.path, &target, self.read_rule)?;
        if let Freshness::Changed(then) = freshness {
            return Err(changed_since_read(view, &self.path, &target, (&before, &then), None));
        }
        let made = insert_lines(&before, encoding, self.after, &self.text);
        let made = made.map_err(|error| self.refusal(error, encoding.name()))?;
        check_size(view, &self.path, made.bytes.len() as u64)?;
        let inserted = Inserted {
            place: target.place().clone(),
            bytes: made.bytes.len() as u64,
            lines: made.lines,
            snippet: self.snippet.map(|context| snippet(view, &made.bytes, made.lines, context)),
            other_names: meta.links.saturating_sub(1),
        };
        let replace = Replace::new(self.path.clone(), target, made.bytes);
        let replace = Replace { before: Some(before), answers_with_diff: true, ..replace };
        Ok((inserted, ChangeSet::of(replace)))
    }
}

impl Insert {
    fn refusal(&self, error: InsertError, encoding: String) -> Error {
        match error {
            InsertError::OutOfRange { total } => {
                Error::OutOfRange { path: self.path.clone(), first: self.after, total }
            }
            InsertError::Unmappable(missing) => Error::Unmappable {
                number: None,
                encoding,
                character: missing.character.escape_debug().to_string(),
                line: missing.line,
            },
        }
    }
}

/// Some lines of a text with `context` lines before and after them, numbered like the output of `cat -n`.
pub(super) fn snippet(view: &View<'_>, text: &[u8], lines: (u64, u64), context: u64) -> String {
    let first = lines.0.saturating_sub(context).max(1);
    let last = lines.1.saturating_add(context);
    let request = PageRequest {
        first,
        lines: Some(last.saturating_sub(first).saturating_add(1)),
        style: Style::Numbered,
        budget: view.max_output_bytes(),
        max_line_chars: view.session().settings().max_line_chars,
        max_line_bytes: None,
        size_hint: text.len() as u64,
        encoding: Some(text_encoding(text).unwrap_or(Encoding::UTF_8)),
        count_all: false,
    };
    // Reading from memory does not fail.
    read_page(&mut &*text, &request).map(|page| page.content).unwrap_or_default()
}
