//! Files that hold more than lines of text.

mod cells;
mod image;
mod notebook;
mod pdf;

pub use cells::{CellEdit, CellKind};
pub(crate) use cells::{CellProblem, edit_cell};
pub use image::Picture;
pub(crate) use image::{NoPicture, Shrink, is_picture, picture, too_many_bytes};
pub use notebook::Notebook;
pub(crate) use notebook::{check_notebook, has_notebook_name, notebook};
#[cfg(not(feature = "pdf"))]
pub(crate) use pdf::NoPdfReader;
#[cfg(feature = "pdf")]
pub use pdf::{PDF_STACK_BYTES, ThreadPdfReader, extract_to_json};
pub use pdf::{PdfReader, ProcessPdfReader};
pub use pinfold_confine::{Deadline, File};
pub use pinfold_pdf::{Extracted, PdfRequest};
