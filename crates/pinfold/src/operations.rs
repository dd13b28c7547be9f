//! The operations of a session. Each is a struct with the arguments; [`Session::perform`](crate::Session::perform)
//! returns its outcome.
//!
//! | | |
//! |---|---|
//! | reading | [`Read`], [`ReadMany`] (text); [`Open`] (text, images, PDFs, notebooks); [`ReadBytes`]; [`Info`] |
//! | changing | [`Write`], [`Edit`], [`Insert`], [`EditNotebook`], [`Update`] (patches), [`Delete`], [`Move`], [`Mkdir`], [`RemoveTree`]; [`ChangeFiles`] changes several files, all or none |
//! | searching | [`List`], [`Tree`], [`Find`] (names), [`Search`] (contents) |
//! | the journal | [`Undo`], [`Rewind`], [`Show`], [`Compare`] |

// One file each: the request, its outcome, and `plan`.

mod change_files;
mod compare;
mod delete;
mod edit;
mod edit_notebook;
mod find;
mod info;
mod insert;
mod list;
mod mkdir;
mod r#move;
mod open;
mod read;
mod read_bytes;
mod read_many;
mod remove_tree;
mod revert;
mod rewind;
mod search;
mod show;
mod tree;
mod undo;
mod update;
mod write;

pub use change_files::{ChangeFiles, FileChange, FileOutcome, FilesChanged};
pub use compare::{Compare, Compared, Version};
pub use delete::{Delete, Deleted};
pub use edit::{Edit, Edited};
pub use edit_notebook::{EditNotebook, NotebookEdited};
pub use find::{Find, FindOrder, FoundFile, FoundFiles};
pub use info::{Described, Info};
pub use insert::{Insert, Inserted};
pub use list::{Include, List, ListEntry, ListOrder, Listed};
pub use mkdir::{DirectoryMade, Mkdir};
pub use r#move::{Move, Moved};
pub use open::{Open, Opened};
pub use read::{PastEnd, Read, Reading};
pub use read_bytes::{FileBytes, ReadBytes};
pub use read_many::ReadMany;
pub use remove_tree::{RemoveTree, TreeRemoved};
pub use revert::{Conflict, RevertedPath};
pub use rewind::{Rewind, RewindScope, Rewound};
pub use search::{AnswerWith, Matched, Search, Searched};
pub use show::{Show, Shown};
pub use tree::{ListedPart, Tree, TreeEntries, TreeEntry};
pub use undo::{Undo, Undone};
pub(crate) use undo::{current_state, state_matches};
pub use update::{AfterUpdate, Update, Updated};
pub use write::{Existing, Parents, Write, Written};
