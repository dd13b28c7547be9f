//! What a session can be asked to do.
//!
//! One file each: the request, what comes of it, and how it is planned.

mod change_files;
mod delete;
mod edit;
mod find;
mod info;
mod list;
mod mkdir;
mod r#move;
mod open;
mod read;
mod rewind;
mod search;
mod show;
mod take_back;
mod undo;
mod write;

pub use change_files::{ChangeFiles, FileChange, FilesChanged};
pub use delete::{Delete, Deleted};
pub use edit::{Edit, Edited};
pub use find::{Find, FindOrder, FoundFile, FoundFiles};
pub use info::{Described, Info};
pub use list::{Include, List, ListEntry, ListOrder, Listed};
pub use mkdir::{DirectoryMade, Mkdir};
pub use r#move::{Move, Moved};
pub use open::{Open, Opened};
pub use read::{PastEnd, Read, Reading};
pub use rewind::{Rewind, Rewound, Whose};
pub use search::{AnswerWith, Matched, Search, Searched};
pub use show::{Show, Shown};
pub use take_back::{Conflict, TakenBack};
pub use undo::{Undo, Undone};
pub use write::{Parents, Write, Written};
