//! What a session can be asked to do.
//!
//! One file each: the request, what comes of it, and how it is planned.

mod delete;
mod edit;
mod find;
mod info;
mod list;
mod mkdir;
mod r#move;
mod open;
mod read;
mod search;
mod show;
mod undo;
mod write;

pub use delete::{Delete, Deleted};
pub use edit::{Edit, Edited};
pub use find::{Find, FindOrder, FoundFile, FoundFiles};
pub use info::{Described, Info};
pub use list::{Include, List, ListEntry, ListOrder, Listed};
pub use mkdir::{DirectoryMade, Mkdir};
pub use r#move::{Move, Moved};
pub use open::{Open, Opened};
pub use read::{PastEnd, Read, Reading};
pub use search::{AnswerWith, Matched, Search, Searched};
pub use show::{Show, Shown};
pub use undo::{Undo, Undone};
pub use write::{Parents, Write, Written};
