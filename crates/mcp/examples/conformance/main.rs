//! A server for the protocol's conformance suite, and for nothing else.
//!
//! It is reached through Pinfold's own HTTP layer, without a token, which the suite cannot send. It
//! has Pinfold's tools, and beside them what the suite looks for by name: tools, prompts and
//! resources that exercise what Pinfold itself has no use for.
//!
//! Which directory to serve is the only argument; the address is printed. With the suite, which is
//! `@modelcontextprotocol/conformance` for Node:
//!
//! ```text
//! cargo run -p pinfold-mcp --example conformance DIRECTORY
//! conformance server --url http://127.0.0.1:PORT/mcp --suite all --spec-version 2026-07-28
//! ```

#![allow(deprecated, reason = "the suite also checks what the newest protocol drops")]

mod changes;
mod content;
mod fixtures;
mod input_required;
mod prompts;
mod resources;
mod round;
mod talking;

use std::net::Ipv4Addr;
use std::sync::Arc;

use pinfold::Session;
use pinfold_dialects::{Toolbox, dialects};
use pinfold_mcp::http::{Guard, HttpOptions, serve_handler};
use pinfold_mcp::{CancellationToken, Options, Service};

use crate::fixtures::{Fixtures, Shared};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = std::env::args_os().nth(1).ok_or("which directory?")?;
    let toolbox = Toolbox::new(Session::open([root])?, &dialects());
    let service = Service::new(toolbox, Options::default());
    let shared = Arc::new(Shared::new()?);
    let new_handler = move || Fixtures::new(service.handler(), shared.clone());
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    println!("http://{}/mcp", listener.local_addr()?);
    let options = HttpOptions::new(Guard::without_token());
    serve_handler(new_handler, listener, options, CancellationToken::new()).await;
    Ok(())
}
