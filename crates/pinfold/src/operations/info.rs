//! `Info`: describes a path by its metadata, media type and number of lines, without its content.

use pinfold_confine::{Kind, Metadata, Place, RawPath, Stat, Times};
use pinfold_text::{PageError, count_lines, text_type};

use crate::{Error, NoChange, Operation, View};

/// Describes a file, directory or other entry. A symlink is not followed.
///
/// ```
/// use pinfold::operations::{Info, Write};
/// use pinfold::Session;
///
/// # let dir = tempfile::tempdir()?;
/// # let workspace = dir.path();
/// let session = Session::open([workspace])?;
/// session.perform(&Write::new("a.txt", "one\ntwo\n"))?;
/// let described = session.perform(&Info::new("a.txt"))?.outcome;
/// assert_eq!(described.meta.len, 8);
/// assert_eq!(described.lines, Some(2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Info {
    /// The path.
    pub path: RawPath,
    /// Whether a symlink is followed.
    pub follow: bool,
    /// Whether the file is read to find its media type and number of lines.
    pub content: bool,
}

/// The description of an entry.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Described {
    /// The place of the entry.
    pub place: Place,
    /// Its metadata.
    pub meta: Metadata,
    /// The times of its creation and last access.
    pub times: Times,
    /// Its media type.
    pub mime: &'static str,
    /// How many lines it has, if it is text.
    pub lines: Option<u64>,
    /// The target of a symlink, as the link stores it.
    pub link_target: Option<Vec<u8>>,
}

impl Info {
    /// Describes the entry at a path.
    pub fn new(path: impl Into<RawPath>) -> Self {
        Self { path: path.into(), follow: false, content: true }
    }
}

builder!(Info {
    with_follow(follow: bool),
    with_content(content: bool),
});

impl Operation for Info {
    type Changes = NoChange;
    type Outcome = Described;

    const READS_ONE_FILE: bool = true;

    fn file_to_read(&self) -> Option<&RawPath> {
        Some(&self.path)
    }

    fn plan(&self, view: &View<'_>) -> Result<(Described, NoChange), Error> {
        let seen = if self.follow { view.stat(&self.path)? } else { view.lstat(&self.path)? };
        let (mime, lines) = match seen.meta.kind {
            Kind::File if !self.content => ("application/octet-stream", None),
            Kind::File => self.content(view, &seen.place)?,
            Kind::Directory => ("inode/directory", None),
            Kind::Symlink => ("inode/symlink", None),
            Kind::Fifo => ("inode/fifo", None),
            Kind::Socket => ("inode/socket", None),
            Kind::Device => ("inode/device", None),
        };
        let Stat { place, meta, times, link_target } = seen;
        Ok((Described { place, meta, times, mime, lines, link_target }, NoChange))
    }
}

impl Info {
    fn content(
        &self,
        view: &View<'_>,
        place: &Place,
    ) -> Result<(&'static str, Option<u64>), Error> {
        let mut file = match view.file(&self.path) {
            // The content may not be read, but the metadata is known.
            Err(Error::AccessDenied { .. }) => return Ok(("application/octet-stream", None)),
            other => other?.1,
        };
        // The lines are counted but not shown, so this does not count as a read.
        file.skip_recording();
        let size = file.len();
        let name = place.path.name().to_string();
        match count_lines(&mut file, size) {
            Ok((count, _)) => Ok((text_type(&name), Some(count.total()))),
            Err(PageError::Binary(binary)) => Ok((binary.mime, None)),
            Err(PageError::Encoding(_)) => {
                Err(Error::Internal { what: "a count has no window".into() })
            }
            Err(PageError::Io(cause)) => Err(file.failure(&self.path, cause)),
        }
    }
}
