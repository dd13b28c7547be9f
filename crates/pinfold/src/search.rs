//! Searching the content of files: ripgrep's engine, fed through the fence.

mod needle;
mod page;
mod scan;

pub(crate) use needle::{Compiled, Needle, Needles};
pub(crate) use page::{Hit, Wish, page};
pub use scan::{BinaryNote, Line, Role};
pub(crate) use scan::{Hits, Keeping, Named, Scan, Scanner, Wanted};
