//! The feed of a server: sends events to viewers of the same user, and receives their answers.
//!
//! A server has a [`Feed`], which listens on a Unix socket. A viewer has a [`Watcher`], which finds all running
//! servers, passes on each [`Event`] and sends each [`Command`]. Both are JSON lines, which `docs/WATCHING.md`
//! documents. A viewer never blocks a call: if it does not read in time, it is dropped.

#![forbid(unsafe_code)]

mod connection;
mod feed;
mod limits;
mod message;
mod socket_directory;
mod update;
mod viewer;
mod watcher;

pub use connection::{Connection, connect};
pub use feed::{Feed, ViewerRequest};
pub use message::{
    Answer, AnswerKind, Approval, CallEnded, CallStarted, Change, Command, Event, RequestEnd,
    Server, VERSION,
};
pub use socket_directory::{FeedSetting, directories};
pub use update::{ServerId, Update};
pub use watcher::{WatchOptions, Watcher};
