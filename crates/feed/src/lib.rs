//! The feed of a server: tells viewers of the same user what the server does, and brings it their answers.
//!
//! A server has a [`Feed`], which listens at a Unix socket. A viewer has a [`Watcher`], which finds all running servers,
//! passes on each [`Event`] and sends each [`Command`]; both are JSON lines, which `docs/WATCHING.md` documents. A viewer
//! never holds up a call: what it does not read in time is dropped, and so is the viewer.

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
