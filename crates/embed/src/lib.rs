//! The common part of the packages for other languages.
//!
//! [`Tools`] takes and returns JSON text, so a package is a thin layer in its own language. Options, contexts and
//! decisions are parsed here.

#![forbid(unsafe_code)]

mod approval;
mod history;
mod options;
mod pool;
mod reply;
mod tools;

pub use approval::{DecisionSlot, Host};
pub use options::NameStyle;
pub use pool::answer_cancelled;
pub use tools::{Request, Tools, check, describe, schemas};
