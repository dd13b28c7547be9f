//! What the packages for other languages share.
//!
//! A program in another language has [`Tools`]: JSON text in, JSON text out, so that a package is a thin
//! layer of that language's own shapes. Options, contexts and decisions are understood here, once.

#![forbid(unsafe_code)]

mod asking;
mod context;
mod options;
mod pool;
mod reply;
mod tools;

pub use asking::{Host, Mailbox};
pub use pool::hurry;
pub use tools::{Request, Tools, check, describe, schemas};
