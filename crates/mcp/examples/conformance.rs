//! Pinfold over HTTP without a token, for the conformance suite, which can send none.

use std::net::Ipv4Addr;

use pinfold::Session;
use pinfold_dialects::{Toolbox, dialects};
use pinfold_mcp::http::{Guard, HttpOptions, serve};
use pinfold_mcp::{CancellationToken, Options, Service};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = std::env::args_os().nth(1).ok_or("which directory?")?;
    let toolbox = Toolbox::new(Session::open([root])?, &dialects());
    let service = Service::new(toolbox, Options::default());
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    println!("http://{}/mcp", listener.local_addr()?);
    let options = HttpOptions::new(Guard::without_token());
    serve(&service, listener, options, CancellationToken::new()).await;
    Ok(())
}
