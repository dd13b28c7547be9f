//! The feed of a server: tells viewers of the same user what the server does, and brings it their answers.
//!
//! A server has a [`Feed`], which listens at a Unix socket. A viewer finds the sockets of all running servers
//! ([`directories`], [`connect`]), reads an [`Event`] a line and sends a [`Command`] a line; `docs/WATCHING.md`
//! documents them. A viewer never holds up a call: what it does not read in time is dropped, and so is the viewer.

#![forbid(unsafe_code)]

mod connection;
mod feed;
mod limits;
mod message;
mod place;
mod viewer;

pub use connection::{Connection, connect};
pub use feed::{Feed, Question};
pub use message::{
    Answer, AnswerKind, Approval, CallEnded, CallStarted, Change, Command, Event, RequestEnd,
    Server, VERSION,
};
pub use place::{FeedSetting, directories};
