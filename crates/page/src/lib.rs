//! `pinfold page`: shows the user's servers and the journal of their changes in a browser.
//!
//! [`serve`] serves one web page on a loopback address, to the browser that opened the link with the one-time key.
//! The page shows calls as they happen, answers approval requests, pauses changes, and undoes changes of the journal.
//! Everything that it shows comes from the feeds of the servers ([`pinfold_feed`]) and from the journal
//! ([`pinfold`]); this crate decides nothing.

#![forbid(unsafe_code)]

mod access;
mod api;
mod assets;
mod history;
mod http;
mod limits;
mod live;
mod undo;

pub use history::HistoryOptions;
pub use http::{Options, serve};
