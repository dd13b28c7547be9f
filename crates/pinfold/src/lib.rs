//! File tools for AI agents, fenced to a workspace.
//!
//! A [`Session`] gives one agent access to the files below some root directories. It performs
//! [operations], which are plain structs. Nothing outside the roots is read or changed,
//! and every change is atomic.
//!
//! ```
//! use pinfold::operations::{Read, Write};
//! use pinfold::Session;
//!
//! # let dir = tempfile::tempdir()?;
//! # let workspace = dir.path();
//! let session = Session::open([workspace])?;
//! session.perform(&Write::new("notes/todo.txt", "buy milk\n"))?;
//! let read = session.perform(&Read::new("notes/todo.txt"))?;
//! assert_eq!(read.outcome.page.content, "buy milk\n");
//!
//! let refused = session.perform(&Read::new("../secret.txt")).unwrap_err();
//! assert_eq!(refused.to_string(), "`../secret.txt` is outside the workspace");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | you want to | see |
//! |---|---|
//! | read, change or search files | [`operations`]; patches: [`patch`] |
//! | limit what an agent may do | [`Permissions`] in the [`Settings`] of [`Session::with_settings`] |
//! | ask the user before a change, with its diff | [`Approver`], [`Session::with_approver`] |
//! | undo changes | [`JournalSetting`], [`operations::Undo`], [`operations::Rewind`] |
//! | see what a call would change, cancel it, or show its progress | [`CallOptions`], [`Session::perform_with`] |
//! | tell an agent what to do after an error | [`Error::with_hint`] |
//!
//! The default features are `images`, which scales images down, and `pdf`, which reads the text of PDFs.
//!
//! Agents speak JSON instead; the crate `pinfold-dialects` has the tools that they call by name.

#![forbid(unsafe_code)]

#[macro_use]
mod builder;

mod approval;
mod audit;
mod cached_file;
mod call;
mod change;
mod commit;
mod error;
mod file_caches;
mod glob;
mod journal;
mod ledger;
pub mod limits;
pub mod media;
mod memory;
mod memory_budget;
mod observer;
mod operation;
pub mod operations;
mod parent_reads;
mod permit;
mod policy;
mod preview;
mod search;
mod session;
mod settings;
mod similar_names;
mod view;

pub use approval::{ApprovalAnswer, ApprovalRequest, Approver};
#[doc(hidden)]
pub use audit::{AuditLine, AuditedPath, SharedAuditLine};
#[doc(hidden)]
pub use cached_file::CachedFile;
pub use call::{CallOptions, Cancel, Progress};
pub use change::ChangeSet;
pub use commit::Receipt;
pub use error::{Denial, Error, GlobUsage, RegexMistake};
pub use journal::{Entry, Journal, LoggedEntry, NewestFirst, State};
#[doc(hidden)]
pub use memory_budget::{AnswerMemory, WeakAnswerMemory};
pub use observer::{CallStart, ChangeEvent, Observer};
pub use operation::{Changes, Done, NoChange, Operation};
#[doc(hidden)]
pub use parent_reads::ParentReads;
pub use pinfold_confine::{
    Durability, Error as ConfineError, IgnoreFiles, IndexMode, Kind, Metadata, Place, RawPath,
    RelPath, Skipped, Times, escaped,
};
pub use pinfold_text::{
    DiffFormat, Encoding, LineEnding, MatchKind, MatchMode, Page, PageEnd, Replacement, Style,
    patch,
};
#[doc(hidden)]
pub use pinfold_text::{
    cut_to_chars, escape_json, escape_json_bytes, exceeds_json_values, unescape_json,
};
pub use policy::{Access, BadRule, Mode, Permissions, Reason};
pub use preview::{escaped_line, escaped_text};
pub use search::{BinaryNote, IndexSummary, Line, PageLine, Role};
pub use session::{FoundState, OpenError, Session};
pub use settings::{
    AuditFailure, BadName, Documents, JournalFailure, JournalSetting, ReadBeforeWrite, Settings,
    serde_names,
};
#[doc(hidden)]
pub use similar_names::similar_names;
pub use view::View;
