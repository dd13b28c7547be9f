//! `Open`: reads a file of any supported kind: text, image, PDF or notebook.

use std::io::Read as _;

use pinfold_confine::{Place, RawPath};
use pinfold_text::{Encoding, PageRequest, SNIFF_BYTES, Style, office_type, read_page};

use crate::limits::{MAX_NOTEBOOK_BYTES, MAX_PDF_BYTES};
use crate::media::{
    Extracted, NoPicture, Notebook, PdfRequest, Picture, Shrink, has_notebook_name, is_picture,
    notebook, picture, too_many_bytes,
};
use crate::operations::{PastEnd, Read, Reading};
use crate::settings::Documents;
use crate::view::TrackedFile;
use crate::{Error, NoChange, Operation, View};

/// Reads a file of any supported kind.
///
/// ```
/// use pinfold::operations::{Open, Opened, Write};
/// use pinfold::Session;
///
/// # let dir = tempfile::tempdir()?;
/// # let workspace = dir.path();
/// let session = Session::open([workspace])?;
/// session.perform(&Write::new("a.txt", "one\n"))?;
/// match session.perform(&Open::new("a.txt"))?.outcome {
///     Opened::Text { reading, .. } => assert_eq!(reading.page.content, "one\n"),
///     other => panic!("{other:?} is not text"),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Open {
    /// Which lines of a text file are shown, and how.
    pub read: Read,
    /// Whether the caller requested a window of lines, which only text has.
    pub has_window: bool,
    /// Which pages of a PDF are shown, counting from 1.
    pub pages: Option<(u64, u64)>,
}

/// The content of a file. A new kind is a new variant and a breaking change: every dialect has to handle it.
#[derive(Debug)]
pub enum Opened {
    /// Lines of text.
    Text {
        /// The lines.
        reading: Reading,
        /// If the name ends in `.ipynb`, the reason why the file is not a notebook.
        not_a_notebook: Option<String>,
    },
    /// An image.
    Image {
        /// The place of the file.
        place: Place,
        /// The image.
        picture: Picture,
    },
    /// Pages of a PDF.
    Pdf {
        /// The place of the file.
        place: Place,
        /// The number of the first page.
        first_page: u64,
        /// The text of the pages.
        extracted: Extracted,
    },
    /// A notebook.
    Notebook {
        /// Lines of the notebook, rendered as text.
        reading: Reading,
        /// Its images and the number of its cells.
        notebook: Notebook,
    },
}

impl Open {
    /// Reads a whole file, up to the budget.
    pub fn new(path: impl Into<RawPath>) -> Self {
        Read::new(path).into()
    }
}

impl From<Read> for Open {
    /// Reads a file; of a text file, the lines of `read`.
    fn from(read: Read) -> Self {
        Self { read, has_window: false, pages: None }
    }
}

builder!(Open {
    with_has_window(has_window: bool),
    with_pages(pages: Option<(u64, u64)>),
});

impl Operation for Open {
    type Changes = NoChange;
    type Outcome = Opened;

    const READS_ONE_FILE: bool = true;

    fn file_to_read(&self) -> Option<&RawPath> {
        Some(&self.read.path)
    }

    fn plan(&self, view: &View<'_>) -> Result<(Opened, NoChange), Error> {
        let opened = if has_notebook_name(&self.read.path) {
            self.notebook(view)?
        } else {
            match self.read.plan(view) {
                Ok((reading, NoChange)) => Opened::Text { reading, not_a_notebook: None },
                Err(Error::Binary { mime, size, .. }) => self.binary(view, mime, size)?,
                Err(other) => return Err(other),
            }
        };
        if self.pages.is_some() && !matches!(opened, Opened::Pdf { .. }) {
            return Err(Error::NoPages { path: self.path() });
        }
        Ok((opened, NoChange))
    }
}

impl Open {
    fn path(&self) -> RawPath {
        self.read.path.clone()
    }

    fn binary(&self, view: &View<'_>, mime: &'static str, size: u64) -> Result<Opened, Error> {
        if is_picture(mime) {
            return self.image(view, mime, size);
        }
        if mime == "application/pdf" {
            return self.pdf(view);
        }
        let mime = match mime {
            "application/zip" => self.office(view, size)?.unwrap_or(mime),
            other => other,
        };
        match document_name(mime) {
            Some(name) => Err(self.unsupported(format!("its format is {name}"))),
            None => Err(Error::Binary { path: self.path(), mime, size }),
        }
    }

    /// The media type of an office document, found by the names at the end of the archive.
    fn office(&self, view: &View<'_>, size: u64) -> Result<Option<&'static str>, Error> {
        let (_, mut file) = view.file(&self.read.path)?;
        file.seek_to(size.saturating_sub(SNIFF_BYTES as u64));
        let mut end = Vec::new();
        let read = file.by_ref().take(SNIFF_BYTES as u64).read_to_end(&mut end);
        read.map_err(|error| file.failure(&self.path(), error))?;
        Ok(office_type(&end))
    }

    fn unsupported(&self, problem: String) -> Error {
        Error::UnsupportedDocument { path: self.path(), problem }
    }

    /// Refuses a window of lines, which an image or a PDF does not have.
    fn refuse_window(&self, what: &'static str, has_pages: bool) -> Result<(), Error> {
        if self.has_window {
            return Err(Error::NoLines { path: self.path(), what, has_pages });
        }
        Ok(())
    }

    fn image(&self, view: &View<'_>, mime: &'static str, size: u64) -> Result<Opened, Error> {
        let too_large = |problem| Error::ImageTooLarge { path: self.path(), problem };
        self.refuse_window("an image", false)?;
        if let Some(problem) = too_many_bytes(size) {
            return Err(too_large(problem));
        }
        let shrink = Shrink::new(view.session().settings());
        let _answer = view.reserve_answer(size)?;
        let _permit = view.reserve_file(shrink.memory(size))?;
        let (place, content) = self.whole(view, size)?;
        match picture(mime, content, shrink, &|| view.check_time().is_ok()) {
            Err(NoPicture::TimedOut) => Err(view.timed_out(&self.path())),
            Ok(picture) => Ok(Opened::Image { place, picture }),
            Err(NoPicture::TooLarge(problem)) => Err(too_large(problem)),
            Err(NoPicture::Damaged) => Err(Error::Binary { path: self.path(), mime, size }),
        }
    }

    fn pdf(&self, view: &View<'_>) -> Result<Opened, Error> {
        if view.session().settings().documents == Documents::Reject {
            return Err(self.unsupported("it is a PDF, and the settings do not allow these".into()));
        }
        self.refuse_window("a PDF", true)?;
        let (place, mut file) = view.file(&self.read.path)?;
        if file.len() > MAX_PDF_BYTES {
            return Err(self.unsupported(format!("it has more than {MAX_PDF_BYTES} bytes")));
        }
        file.hash_rest().map_err(|error| file.failure(&self.path(), error))?;
        file.record_read(&place);
        let file = file.into_file();
        let (first, last) = self.pages.unwrap_or((1, u64::MAX));
        let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let request =
            PdfRequest { first: count(first), last: count(last), max_bytes: self.read.budget };
        let extracted = view.session().pdf_reader().read(file, request, &view.deadline());
        let extracted = extracted.map_err(|problem| match view.check_time() {
            Err(ended) => ended,
            Ok(()) => self.unsupported(problem),
        })?;
        if extracted.page_count == 0 {
            return Err(self.unsupported("it has no pages".into()));
        }
        if request.first > extracted.page_count {
            let total = extracted.page_count as u64;
            return Err(Error::PageOutOfRange { path: self.path(), first, total });
        }
        Ok(Opened::Pdf { place, first_page: first, extracted })
    }

    fn notebook(&self, view: &View<'_>) -> Result<Opened, Error> {
        let (place, mut file) = view.file(&self.read.path)?;
        let size = file.len();
        let problem = if size > MAX_NOTEBOOK_BYTES {
            format!("it has more than {MAX_NOTEBOOK_BYTES} bytes")
        } else {
            // Its images are in the answer.
            let _answer = view.reserve_answer(size)?;
            // The content, its values, the text of each, and all of it.
            let _permit = view.reserve_file(4 * size)?;
            let content = read_whole(&mut file, size).map_err(|e| file.failure(&self.path(), e))?;
            match notebook(&content) {
                Ok(notebook) => {
                    view.check_time()?;
                    file.record_read(&place);
                    return self.windowed(view, place, notebook);
                }
                Err(problem) => problem,
            }
        };
        let (reading, NoChange) = self.read.plan(view)?;
        Ok(Opened::Text { reading, not_a_notebook: Some(problem) })
    }

    /// The lines of a notebook that the caller requested.
    fn windowed(&self, view: &View<'_>, place: Place, notebook: Notebook) -> Result<Opened, Error> {
        let request = PageRequest {
            first: self.read.first.max(1),
            lines: self.read.lines,
            style: Style::Raw,
            budget: self.read.budget,
            max_line_chars: view.session().settings().max_line_chars,
            max_line_bytes: None,
            size_hint: notebook.text.len() as u64,
            encoding: Some(Encoding::UTF_8),
            count_all: true,
        };
        let page = read_page(&mut notebook.text.as_bytes(), &request);
        let page = page.map_err(|_| self.unsupported("its text is not text".into()))?;
        if self.read.first > page.total.max(1) && self.read.past_end == PastEnd::Refuse {
            let (path, total) = (self.path(), page.total);
            return Err(Error::OutOfRange { path, first: self.read.first, total });
        }
        let reading = Reading { place, first: Some(self.read.first.max(1)), page };
        Ok(Opened::Notebook { reading, notebook })
    }

    fn whole(&self, view: &View<'_>, size: u64) -> Result<(Place, Vec<u8>), Error> {
        let (place, mut file) = view.file(&self.read.path)?;
        let content = read_whole(&mut file, size).map_err(|e| file.failure(&self.path(), e))?;
        file.record_read(&place);
        Ok((place, content))
    }
}

/// Reads a whole file. Stops 1 MiB after `size`, in case the file grows.
fn read_whole(file: &mut TrackedFile<'_>, size: u64) -> std::io::Result<Vec<u8>> {
    let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or(0) + 1);
    file.take(size.saturating_add(1024 * 1024)).read_to_end(&mut content)?;
    Ok(content)
}

/// The names of document formats that are not supported.
fn document_name(mime: &str) -> Option<&'static str> {
    Some(match mime {
        "application/x-ole-storage" => "that of old office programs (DOC, XLS, PPT)",
        "application/msword" => "Word (DOC)",
        "application/vnd.ms-excel" => "Excel (XLS)",
        "application/vnd.ms-powerpoint" => "PowerPoint (PPT)",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document" => "Word (DOCX)",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" => "Excel (XLSX)",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation" => {
            "PowerPoint (PPTX)"
        }
        "application/vnd.oasis.opendocument.text" => "OpenDocument (ODT)",
        _ => return None,
    })
}
