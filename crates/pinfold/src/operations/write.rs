//! Creating a file, or replacing all of it.

use std::io::Read as _;

use pinfold_confine::{Error as ConfineError, Place, RawPath, Target};
use pinfold_text::{Encoding, SNIFF_BYTES, text_encoding};

use crate::change::{ChangeOrigin, Replace};
use crate::{ChangeSet, Error, Operation, ReadRule, View};

/// Creates a file, or replaces its whole content.
#[derive(Clone, Debug)]
pub struct Write {
    /// The file.
    pub path: RawPath,
    /// Its new text.
    pub content: String,
    /// The encoding that the text is stored in.
    pub encoding: Encoding,
    /// What to do if the file's directory does not exist.
    pub parents: Parents,
    /// Whether a file that is there must have been read first.
    pub seen: ReadRule,
}

/// What to do about directories that do not exist.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Parents {
    /// Make them.
    Make,
    /// Refuse to write.
    Refuse,
}

/// What was written.
#[derive(Clone, Debug)]
pub struct Written {
    /// Where the file is.
    pub place: Place,
    /// The file's size now.
    pub bytes: u64,
    /// Whether there was no file before.
    pub created: bool,
    /// Whether the content is another than before.
    pub changed: bool,
    /// The encoding that the file was in, if it is in another now.
    pub recoded_from: Option<Encoding>,
    /// How many other names the old content has; they keep it.
    pub other_names: u64,
}

impl Write {
    /// Stores text as UTF-8 and makes the directories that it needs.
    pub fn new(path: impl Into<RawPath>, content: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            content: content.into(),
            encoding: Encoding::UTF_8,
            parents: Parents::Make,
            seen: ReadRule::Off,
        }
    }
}

impl Operation for Write {
    type Changes = ChangeSet;
    type Outcome = Written;

    fn plan(&self, view: &View<'_>) -> Result<(Written, ChangeSet), Error> {
        let after = self.encoding.encode(&self.content).map_err(|missing| Error::Unmappable {
            number: None,
            encoding: self.encoding.name(),
            character: missing.character.escape_debug().to_string(),
            line: missing.line,
        })?;
        let mut target = view.target(&self.path)?;
        self.check_parents(&target, view)?;
        let before = Before::of(&mut target, &after)
            .map_err(|error| Error::looking(&self.path, ConfineError::Os(error)))?;
        let written = Written {
            place: target.place().clone(),
            bytes: after.len() as u64,
            created: target.meta().is_none(),
            changed: !before.same,
            recoded_from: before.encoding.filter(|it| Some(*it) != text_encoding(&after)),
            other_names: target.meta().map_or(0, |meta| meta.links.saturating_sub(1)),
        };
        if before.same {
            view.knows(&target, &after);
            return Ok((written, ChangeSet::nothing()));
        }
        let (path, seen) = (self.path.clone(), self.seen);
        Ok((
            written,
            ChangeSet::replace(Replace {
                path,
                target,
                before: None,
                after,
                seen,
                show: false,
                mode: None,
                origin: ChangeOrigin::New,
            }),
        ))
    }
}

impl Write {
    fn check_parents(&self, target: &Target, view: &View<'_>) -> Result<(), Error> {
        let missing = target.missing_parents();
        if missing.is_empty() || self.parents == Parents::Make {
            return Ok(());
        }
        let mut parent = target.place().clone();
        for _ in 0..missing.len() {
            parent.path = parent.path.split().map(|(above, _)| above).unwrap_or_default();
        }
        Err(Error::ParentMissing {
            path: self.path.clone(),
            parent: view.session().relative(&parent),
        })
    }
}

/// What the new content is compared with.
struct Before {
    same: bool,
    /// The encoding of what was there, if it was text.
    encoding: Option<Encoding>,
}

impl Before {
    fn of(target: &mut Target, after: &[u8]) -> std::io::Result<Self> {
        let Some(file) = target.file() else { return Ok(Self { same: false, encoding: None }) };
        let len = file.meta().len;
        // Content of another length is another content; only its beginning is of interest.
        let wanted = if len == after.len() as u64 { len } else { len.min(SNIFF_BYTES as u64) };
        let mut bytes = Vec::new();
        file.take(wanted + 1).read_to_end(&mut bytes)?;
        let encoding =
            text_encoding(&bytes[..bytes.len().min(usize::try_from(len).unwrap_or(usize::MAX))]);
        let same = len == after.len() as u64 && bytes == after;
        Ok(Self { same, encoding: encoding.filter(|_| len > 0) })
    }
}
