//! Pinfold as a server of the Model Context Protocol.
//!
//! It speaks version 2026-07-28 of the protocol, whose requests are stateless, and the versions before it, which
//! begin with `initialize`. A [`Service`] is served on [`stdio`] or, with the feature `http` (on by default), over
//! HTTP. The tools come from the dialects' tables: nothing about a single tool is decided here.
//!
//! ```no_run
//! use pinfold::Session;
//! use pinfold_dialects::{CLASSIC, Toolbox};
//! use pinfold_mcp::{Options, Service, serve_stdio};
//!
//! let tools = Toolbox::new(Session::open(["/path/to/project"])?, &[&CLASSIC]);
//! serve_stdio(&Service::new(tools, Options::default()))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The protocol's types and its rules are `rmcp`'s. This crate is the only one that names them.

#![forbid(unsafe_code)]
#![allow(
    deprecated,
    reason = "clients have roots and set log levels, though the newest protocol drops both"
)]

mod approve;
mod bad_message;
mod call;
mod caller;
mod conversation;
#[cfg(feature = "http")]
pub mod http;
pub mod limits;
mod line;
mod metrics;
mod options;
mod roots;
mod run;
mod server;
mod service;
pub mod stdio;
mod stop;
mod threads;
mod tool_result;
mod viewers;

pub use metrics::Metrics;
pub use options::{ClientRoots, Options, RequestStateKey, UsedStateStore};
#[cfg(feature = "http")]
pub use run::serve_http;
pub use run::serve_stdio;
pub use server::Server;
pub use service::Service;
pub use stop::Stop;
pub use tokio_util::sync::CancellationToken;
