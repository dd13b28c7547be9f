//! `Edit`: replaces text in a file, once or several times.

use pinfold_confine::{Place, RawPath, Target};
use pinfold_text::{
    Content, DiffFormat, Encoding, FailedReplacement, MatchKind, MatchMode, ReplaceError,
    ReplacedInOrder, Replacement, nearest, replace_in_order, sniff_content,
};

use crate::change::Replace;
use crate::ledger::{Fingerprint, Freshness};
use crate::limits::MAX_CHANGED_BYTES;
use crate::media::{check_notebook, has_notebook_name};
use crate::operations::insert::snippet;
use crate::{ChangeSet, Error, Operation, ReadBeforeWrite, View};

/// Makes replacements in a file in order, each on the result of the one before: all of them, or none.
///
/// If the first one replaces an empty text, it creates the file, or fills an empty one.
///
/// ```
/// use pinfold::operations::{Edit, Write};
/// use pinfold::Session;
///
/// # let dir = tempfile::tempdir()?;
/// # let workspace = dir.path();
/// let session = Session::open([workspace])?;
/// session.perform(&Write::new("a.txt", "buy milk\nbuy bread\n"))?;
/// let edited = session.perform(&Edit::new("a.txt", "milk", "tea"))?.outcome;
/// assert_eq!(edited.lines, [(1, 1)]);
///
/// // The text occurs twice, so it is not clear which of them is meant.
/// assert!(session.perform(&Edit::new("a.txt", "buy", "sell")).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Edit {
    /// The file.
    pub path: RawPath,
    /// The replacements, in order.
    pub replacements: Vec<Replacement>,
    /// How leniently the texts are matched. The session's setting may be stricter.
    pub matching: MatchMode,
    /// Whether an existing file must have been read first.
    pub read_rule: ReadBeforeWrite,
    /// Whether an empty text to replace in the first replacement may create the file.
    pub may_create: bool,
    /// The notation of the diff in the receipt.
    pub diff_format: DiffFormat,
    /// The maximum size of that diff in bytes; `None` for the session's setting.
    pub max_diff_bytes: Option<usize>,
    /// The number of lines of context in the outcome's snippet; `None` for no snippet.
    pub snippet: Option<u64>,
}

/// The outcome of an edit.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Edited {
    /// The place of the file.
    pub place: Place,
    /// The file's new size in bytes.
    pub bytes: u64,
    /// Whether the file was created.
    pub created: bool,
    /// How many occurrences were replaced.
    pub replacements: usize,
    /// The most lenient way in which one of the texts was found.
    pub match_kind: MatchKind,
    /// The first and last line of each replacement, in the new file.
    pub lines: Vec<(u64, u64)>,
    /// The lines around the first replacement, numbered, if the request asks for them.
    pub snippet: Option<String>,
    /// Whether the file had changed elsewhere since the session last read it.
    pub changed_elsewhere: bool,
    /// How many other hard links still have the old content.
    pub other_names: u64,
}

impl Edit {
    /// Replaces the one occurrence of a text.
    pub fn new(path: impl Into<RawPath>, old: impl Into<String>, new: impl Into<String>) -> Self {
        Self::all(path, vec![Replacement { old: old.into(), new: new.into(), all: false }])
    }

    /// Makes several replacements, in order.
    pub fn all(path: impl Into<RawPath>, replacements: Vec<Replacement>) -> Self {
        Self {
            path: path.into(),
            replacements,
            matching: MatchMode::Lenient,
            read_rule: ReadBeforeWrite::Off,
            may_create: true,
            diff_format: DiffFormat::Git,
            max_diff_bytes: None,
            snippet: None,
        }
    }
}

builder!(Edit {
    with_may_create(may_create: bool),
    with_diff_format(diff_format: DiffFormat),
    with_max_diff_bytes(max_diff_bytes: Option<usize>),
    with_snippet(snippet: Option<u64>),
    with_matching(matching: MatchMode),
    with_read_rule(read_rule: ReadBeforeWrite),
});

impl Operation for Edit {
    type Changes = ChangeSet;
    type Outcome = Edited;

    fn edited_files(&self) -> Vec<&RawPath> {
        vec![&self.path]
    }

    fn plan(&self, view: &View<'_>) -> Result<(Edited, ChangeSet), Error> {
        let creates = self.check_arguments()?;
        let mut target = view.target(&self.path)?;
        let before = match target.meta() {
            None if creates && self.may_create => None,
            None => return Err(view.not_found(&self.path)),
            Some(meta) => {
                check_size(view, &self.path, meta.len)?;
                let bytes = target.content();
                Some(bytes.map_err(|error| view.path_error(&self.path, error))?)
            }
        };
        let (edited, changed_elsewhere) = match &before {
            None => (self.create(view)?, false),
            Some(bytes) => self.edit(view, &target, bytes, creates)?,
        };
        if let Some(before) = before.as_ref().filter(|_| has_notebook_name(&self.path)) {
            check_notebook(&self.path, before, &edited.bytes)?;
        }
        let snippet = self.snippet.zip(edited.lines.first()).map(|(context, (first, _))| {
            let ends = self.replacements[0].new.matches('\n').count() as u64;
            snippet(view, &edited.bytes, (*first, first + ends), context)
        });
        let outcome = Edited {
            snippet,
            place: target.place().clone(),
            bytes: edited.bytes.len() as u64,
            created: target.meta().is_none(),
            replacements: edited.counts.iter().sum(),
            match_kind: edited.match_kind,
            lines: edited.lines,
            changed_elsewhere,
            other_names: target.meta().map_or(0, |meta| meta.links.saturating_sub(1)),
        };
        let replace = Replace {
            before,
            lines_before: view.lines_before(&target),
            answers_with_diff: true,
            diff_format: self.diff_format,
            max_diff_bytes: self.max_diff_bytes,
            ..Replace::new(self.path.clone(), target, edited.bytes)
        };
        Ok((outcome, ChangeSet::of(replace)))
    }
}

impl Edit {
    /// Whether the first replacement creates the file.
    fn check_arguments(&self) -> Result<bool, Error> {
        let empty = |replacement: &Replacement| replacement.old.is_empty();
        if self.replacements.is_empty() {
            return Err(Error::InvalidArgument("there is no edit to make".into()));
        }
        if let Some(number) = self.replacements.iter().skip(1).position(empty) {
            return Err(Error::EmptyOld { path: self.path.clone(), number: Some(number + 2) });
        }
        Ok(empty(&self.replacements[0]))
    }

    /// The content of a new file: the first replacement's text, with the other replacements applied.
    fn create(&self, view: &View<'_>) -> Result<ReplacedInOrder, Error> {
        let (first, rest) = self.replacements.split_first().expect("checked: there is one");
        let content = &first.new;
        if content.is_empty() {
            return Err(Error::NoChange { number: self.number(1) });
        }
        let ends = content.matches('\n').count() as u64;
        let last = if content.ends_with('\n') { ends } else { ends + 1 };
        let (content, utf8, limit) = (content.as_bytes(), Encoding::UTF_8, max_edit_bytes(view));
        let made =
            replace_in_order(content, utf8, rest, self.matching(view), limit, &keep_going(view));
        let made = made.map_err(|failed| {
            self.refusal(view, &FailedReplacement { number: failed.number + 1, ..failed }, utf8)
        })?;
        let lines = std::iter::once((1, last.max(1))).chain(made.lines).collect();
        let counts = std::iter::once(1).chain(made.counts).collect();
        Ok(ReplacedInOrder { counts, lines, ..made })
    }

    /// Applies the replacements to the existing content. Also returns whether the file had changed elsewhere.
    fn edit(
        &self,
        view: &View<'_>,
        target: &Target,
        bytes: &[u8],
        creates: bool,
    ) -> Result<(ReplacedInOrder, bool), Error> {
        let freshness = view.freshness(&self.path, target, self.read_rule)?;
        if creates {
            if !bytes.is_empty() {
                return Err(Error::EmptyOld { path: self.path.clone(), number: self.number(1) });
            }
            return Ok((self.create(view)?, matches!(freshness, Freshness::Changed(_))));
        }
        let encoding = encoding_of(&self.path, bytes)?;
        let limit = max_edit_bytes(view);
        let replace = |matching| {
            replace_in_order(
                bytes,
                encoding,
                &self.replacements,
                matching,
                limit,
                &keep_going(view),
            )
        };
        let Freshness::Changed(then) = freshness else {
            let made = replace(self.matching(view));
            return Ok((made.map_err(|failed| self.refusal(view, &failed, encoding))?, false));
        };
        let (region, number) = match replace(MatchMode::Exact) {
            // The session has not seen all places that `replace_all` changes.
            Ok(made) => match made.counts.iter().position(|count| *count > 1) {
                Some(several) => (self.nearest(view, bytes, encoding, several + 1), several + 1),
                None => return Ok((made, true)),
            },
            Err(failed)
                if matches!(failed.why, ReplaceError::NotFound | ReplaceError::Many { .. }) =>
            {
                let region = self.nearest(view, &failed.bytes, encoding, failed.number);
                (region, failed.number)
            }
            Err(failed) => return Err(self.refusal(view, &failed, encoding)),
        };
        let region = match self.number(number) {
            Some(number) => region.map(|region| format!("edit {number}: {region}")),
            None => region,
        };
        Err(changed_since_read(view, &self.path, target, (bytes, &then), region))
    }

    fn matching(&self, view: &View<'_>) -> MatchMode {
        match_mode(view, self.matching)
    }

    /// The number of an edit, if there are several.
    fn number(&self, number: usize) -> Option<usize> {
        (self.replacements.len() > 1).then_some(number)
    }

    fn refusal(&self, view: &View<'_>, failed: &FailedReplacement, encoding: Encoding) -> Error {
        let path = self.path.clone();
        let number = self.number(failed.number);
        match &failed.why {
            ReplaceError::NotFound => {
                let nearest = self.nearest(view, &failed.bytes, encoding, failed.number);
                Error::NoMatch { path, number, nearest }
            }
            ReplaceError::Many { count, or_more, lines, match_kind } => Error::ManyMatches {
                path,
                number,
                count: *count,
                or_more: *or_more,
                lines: lines.clone(),
                match_kind: *match_kind,
            },
            ReplaceError::Same => Error::NoChange { number },
            ReplaceError::TimedOut => view.timed_out(&path),
            ReplaceError::TooLarge { size } => {
                Error::TooLarge { path, size: *size, limit: max_edit_bytes(view) }
            }
            ReplaceError::Unmappable(missing) => Error::Unmappable {
                number,
                encoding: encoding.name(),
                character: missing.character.escape_debug().to_string(),
                line: missing.line,
            },
        }
    }

    fn nearest(
        &self,
        view: &View<'_>,
        bytes: &[u8],
        encoding: Encoding,
        number: usize,
    ) -> Option<String> {
        let Replacement { old, new, .. } = self.replacements.get(number - 1)?;
        nearest(bytes, encoding, old, new, &keep_going(view))
    }
}

/// The error for a file that changed since the session read it. If it shows every change, or the region that the edit
/// tried to change, it counts as a read, so that the next edit can succeed.
pub(super) fn changed_since_read(
    view: &View<'_>,
    path: &RawPath,
    target: &Target,
    (bytes, then): (&[u8], &Fingerprint),
    region: Option<String>,
) -> Error {
    let taken = region.as_ref().map_or(0, String::len);
    let changed = then.changed_lines(bytes, MAX_CHANGED_BYTES.saturating_sub(taken));
    let complete = changed.as_ref().is_some_and(|changed| changed.complete);
    let shows_enough = region.is_some() || complete;
    let read_again = !shows_enough || !view.session().writes_count_as_read();
    if !read_again {
        view.record_content(target, bytes);
    }
    let parts = changed.map(|changed| changed.shown).into_iter().chain(region);
    let now = parts.reduce(|all, next| format!("{all}\n{next}"));
    Error::Changed { path: path.clone(), now, read_again }
}

/// Refuses a file that is too large to edit.
pub(super) fn check_size(view: &View<'_>, path: &RawPath, size: u64) -> Result<(), Error> {
    match max_edit_bytes(view) {
        limit if size > limit => Err(Error::TooLarge { path: path.clone(), size, limit }),
        _ => Ok(()),
    }
}

/// The encoding of a text file. Refuses a binary file.
pub(super) fn encoding_of(path: &RawPath, bytes: &[u8]) -> Result<Encoding, Error> {
    match sniff_content(bytes) {
        Content::Text(encoding) => Ok(encoding),
        Content::Binary(binary) => {
            let size = bytes.len() as u64;
            Err(Error::Binary { path: path.clone(), mime: binary.mime, size })
        }
    }
}

/// The match mode of the tool, or the setting if that is stricter.
pub(super) fn match_mode(view: &View<'_>, tools: MatchMode) -> MatchMode {
    match view.session().settings().matching {
        MatchMode::Exact => MatchMode::Exact,
        MatchMode::Lenient => tools,
    }
}

/// The maximum size of a file before and after an edit.
pub(super) fn max_edit_bytes(view: &View<'_>) -> u64 {
    view.session().settings().max_edit_bytes
}

/// Returns a function that checks the deadline.
pub(super) fn keep_going(view: &View<'_>) -> impl Fn() -> bool {
    move || view.check_time().is_ok()
}
