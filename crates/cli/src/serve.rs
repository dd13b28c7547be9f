//! `pinfold serve`

use std::net::{SocketAddr, TcpListener, ToSocketAddrs as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use clap::Args;
use pinfold_dialects::CLASSIC;
use pinfold_mcp::http::{Guard, HttpOptions};
use pinfold_mcp::{ClientRoots, Service, serve_http, serve_stdio};
use tracing_subscriber::EnvFilter;

use crate::config::{ClientRootsSetting, HttpConfig};
use crate::options::Options;
use crate::token::Token;

/// Serve the tools over the Model Context Protocol
///
/// On standard input and output, or over HTTP with `--http`. Each client has a session of its own.
/// Standard error stays empty but for what a person has to know; PINFOLD_LOG=info or =debug says
/// more, and with =debug also what is in files.
#[derive(Args)]
pub(crate) struct Serve {
    /// Serve over HTTP at this address instead; port 0 takes one that is free
    #[arg(long, value_name = "ADDRESS")]
    http: Option<String>,

    /// Let other machines connect, if ADDRESS is one that they can reach
    #[arg(long, requires = "http")]
    allow_remote: bool,

    /// The file with the token that clients must send; made if it is not there [default: the token in
    /// PINFOLD_TOKEN, or else a new one in a file that is named on standard error]
    #[arg(long, value_name = "FILE", requires = "http")]
    token_file: Option<PathBuf>,

    /// A name that the server may be reached by, besides `localhost` and addresses
    #[arg(long = "allow-host", value_name = "HOST", requires = "http")]
    allow_hosts: Vec<String>,

    /// An origin whose web pages may talk to the server, besides those of this machine
    #[arg(long = "allow-origin", value_name = "ORIGIN", requires = "http")]
    allow_origins: Vec<String>,

    /// What becomes of the directories that the client has open [default: narrow]
    #[arg(long, value_name = "WHAT")]
    client_roots: Option<ClientRootsSetting>,

    #[command(flatten)]
    options: Options,
}

impl Serve {
    pub(crate) fn run(self) -> Result<ExitCode> {
        log()?;
        let config = self.options.config()?;
        let client_roots = match self.client_roots.or(config.serve.client_roots) {
            None | Some(ClientRootsSetting::Narrow) => ClientRoots::Narrow,
            Some(ClientRootsSetting::Ignore) => ClientRoots::Ignore,
        };
        let mut options = pinfold_mcp::Options { client_roots, ..Default::default() };
        options.sessions = config.http.max_sessions.unwrap_or(options.sessions);
        let idle = config.http.idle_seconds.map(Duration::from_secs);
        options.session_idle = idle.unwrap_or(options.session_idle);
        let toolbox = self.options.toolbox_with(
            config.settings,
            &[&CLASSIC],
            None,
            self.token_file.clone(),
        )?;
        let service = Service::new(toolbox, options.clone());
        match &self.http {
            None => serve_stdio(&service)?,
            Some(address) => {
                let listener = self.listen(address)?;
                let at = listener.local_addr()?;
                let token = Token::get(self.token_file.as_deref(), at)?;
                let mut http = HttpOptions::new(self.guard(&config.http, token.text()));
                http.body_limit = config.http.body_limit.unwrap_or(http.body_limit);
                http.sessions = options.sessions;
                http.session_idle = options.session_idle;
                serve_http(&service, listener, http, || {
                    eprintln!("listening on http://{at}/mcp");
                    eprintln!("{}", token.whence());
                })?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn listen(&self, address: &str) -> Result<TcpListener> {
        let addresses = address.to_socket_addrs();
        let addresses = addresses.map_err(|error| {
            anyhow!("`--http {address}` is no address ({error}); try `--http 127.0.0.1:0`")
        })?;
        let addresses: Vec<SocketAddr> = addresses.collect();
        let remote = addresses.iter().any(|address| !address.ip().is_loopback());
        if remote && !self.allow_remote {
            bail!(
                "other machines can reach `{address}`; use an address such as 127.0.0.1:0, or say \
                 `--allow-remote` if they may"
            );
        }
        TcpListener::bind(&addresses[..])
            .map_err(|error| anyhow!("cannot listen at {address}: {error}"))
    }

    fn guard(&self, config: &HttpConfig, token: &str) -> Guard {
        let hosts = self.allow_hosts.iter().chain(&config.allow_hosts);
        let guard = hosts.fold(Guard::new(token), |guard, host| guard.allow_host(host));
        let origins = self.allow_origins.iter().chain(&config.allow_origins);
        origins.fold(guard, |guard, origin| guard.allow_origin(origin))
    }
}

/// Standard error says nothing, unless it was asked to.
fn log() -> Result<()> {
    let Ok(wanted) = std::env::var("PINFOLD_LOG") else { return Ok(()) };
    let filter = EnvFilter::try_new(&wanted);
    let filter =
        filter.with_context(|| format!("PINFOLD_LOG is `{wanted}`; try `info` or `debug`"))?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
    Ok(())
}
