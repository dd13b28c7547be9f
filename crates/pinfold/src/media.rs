//! Files that hold more than lines of text.

mod image;
mod notebook;
mod pdf;

pub use image::Picture;
pub(crate) use image::{NoPicture, Shrink, is_picture, picture, too_many_bytes};
pub use notebook::Notebook;
pub(crate) use notebook::notebook;
pub use pdf::{InChild, InThread, PdfReader, answer};
pub use pinfold_pdf::{Extracted, Wanted};
