//! `pinfold serve`

use std::net::{SocketAddr, TcpListener, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use clap::Args;
use pinfold::{Mode, ParentReads, Session};
use pinfold_dialects::{CLASSIC, Dialect, REFERENCE, Toolbox};
use pinfold_feed::{Feed, Server};
use pinfold_mcp::http::{self, Guard};
use pinfold_mcp::{ClientRoots, Service, serve_http, serve_stdio};
use tracing_subscriber::EnvFilter;

use crate::config::{HttpConfig, ServeConfig};
use crate::door_hint::{door_hint, with_viewers};
use crate::options::{FeedDirectory, SessionOptions, values};
use crate::reference_server;
use crate::sandbox::SandboxOptions;
use crate::token::{Token, state_directory};

/// Serve the tools over the Model Context Protocol (MCP)
///
/// Serves on standard input and output, or over HTTP with `--http`. Each client has its own session. The environment
/// variable PINFOLD_LOG (`info` or `debug`) turns on logging to standard error; `debug` also logs file contents.
#[derive(Args)]
pub(crate) struct Serve {
    /// Root directories of the workspace, as with `--root`
    #[arg(value_name = "DIR")]
    directories: Vec<PathBuf>,

    #[command(flatten)]
    options: SessionOptions,

    /// Whether the roots of the client narrow the workspace [default: narrow]
    #[arg(
        long,
        value_name = "HOW",
        help_heading = "Workspace",
        hide_short_help = true,
        value_parser = values::<ClientRoots>()
    )]
    client_roots: Option<ClientRoots>,

    #[command(flatten)]
    sandbox: SandboxOptions,

    #[command(flatten)]
    feed: FeedOptions,

    #[command(flatten)]
    http: HttpOptions,
}

/// Where viewers find the server.
#[derive(Args)]
#[command(next_help_heading = "Permissions")]
pub(crate) struct FeedOptions {
    #[command(flatten)]
    directory: FeedDirectory,

    /// Let no viewer watch the server or answer approval requests
    #[arg(long, conflicts_with = "feed", hide_short_help = true)]
    no_feed: bool,
}

impl FeedOptions {
    /// The directory of the server's socket, if it has one. A flag beats the file.
    pub(crate) fn directory(&self, config: &ServeConfig) -> Option<PathBuf> {
        if self.no_feed {
            return None;
        }
        let given = self.directory.given();
        given.or_else(|| config.feed.clone().unwrap_or_default().directory())
    }
}

/// How clients reach the server over HTTP.
#[derive(Args)]
#[command(next_help_heading = "HTTP")]
struct HttpOptions {
    /// Serve over HTTP at this address; port 0 chooses a free port
    #[arg(long = "http", value_name = "ADDRESS")]
    address: Option<String>,

    /// Allow an address that other machines can reach
    #[arg(long, requires = "address")]
    allow_remote: bool,

    /// File with the token that clients send; created if missing
    ///
    /// Default: the token in PINFOLD_TOKEN, else a new token in a file that is named on standard error.
    #[arg(long, value_name = "FILE", requires = "address")]
    token_file: Option<PathBuf>,

    /// Host name of the server besides `localhost` and its addresses; repeatable
    #[arg(long = "allow-host", value_name = "HOST", requires = "address", hide_short_help = true)]
    allow_hosts: Vec<String>,

    /// Origin whose web pages may call the server besides those of this machine; repeatable
    #[arg(
        long = "allow-origin",
        value_name = "ORIGIN",
        requires = "address",
        hide_short_help = true
    )]
    allow_origins: Vec<String>,
}

impl Serve {
    pub(crate) fn run(mut self) -> Result<ExitCode> {
        start_logging()?;
        let dialects = self.options.dialects.or(&[&CLASSIC])?;
        if dialects.iter().any(|dialect| dialect.name == REFERENCE.name) {
            self.directories = match reference_server::existing(self.directories) {
                Ok(directories) => directories,
                Err(code) => return Ok(code),
            };
        }
        self.options.workspace.roots.append(&mut self.directories);
        let config = self.options.configure()?;
        let client_roots = self.client_roots.or(config.serve.client_roots).unwrap_or_default();
        let mut options = pinfold_mcp::Options { client_roots, ..Default::default() };
        options.sessions = config.http.max_sessions.unwrap_or(options.sessions);
        let idle = config.http.idle_seconds.map(Duration::from_secs);
        options.session_idle = idle.unwrap_or(options.session_idle);
        let token_file = self.http.token_file.clone();
        let feed_directory = self.feed.directory(&config.serve);
        let dialects = self.options.dialects.with_settings(&[&CLASSIC], &config.settings)?;
        let session = self.options.workspace.open(config.settings, token_file)?;
        let parent_reads = if self.http.address.is_some() { None } else { parent_reads() };
        let session = session.with_parent_reads(parent_reads.clone());
        // The usual directories are out of reach anyway.
        let mut session = session.keeping_out_of(feed_directory.clone());
        for (what, path) in self.options.workspace.files_in_use(&session) {
            tracing::info!("{what}: {path}");
        }
        let door = self.http.open()?;
        // What lies outside the server's own files is open now, and no thread has been started.
        self.sandbox.restrict(&config.serve, &session, feed_directory.as_deref());
        if let Some(directory) = feed_directory {
            let transport = if door.is_some() { "http" } else { "stdio" };
            let feed = Arc::new(Feed::new(served(&session, &dialects, transport)));
            feed.listen(directory);
            session = session.with_observer(feed.clone());
            options.feed = Some(feed);
        }
        // In that mode nobody is asked, whoever watches.
        let asks = session.settings().permissions.mode != Mode::DontAsk;
        let hint = if options.feed.is_some() && asks { with_viewers } else { door_hint };
        let toolbox = Toolbox::new(session, &dialects).with_door_hint(hint);
        let service = Service::new(toolbox, options.clone());
        let served = self.serve(&service, door, &config.http, &options);
        if let Some(feed) = &options.feed {
            feed.close();
        }
        if let Some(Err(error)) = parent_reads.map(|reads| reads.save()) {
            tracing::warn!("what was read is not known to later servers: {error}");
        }
        served?;
        Ok(ExitCode::SUCCESS)
    }

    /// Serves until the client or a signal ends it.
    fn serve(
        &self,
        service: &Service,
        door: Option<(TcpListener, Token)>,
        config: &HttpConfig,
        options: &pinfold_mcp::Options,
    ) -> Result<()> {
        match door {
            None => serve_stdio(service)?,
            Some((listener, token)) => {
                let at = listener.local_addr()?;
                let guard = self.http.guard(config, token.text());
                let mut http = http::HttpOptions::new(guard);
                http.max_body_bytes = config.max_body_bytes.unwrap_or(http.max_body_bytes);
                http.sessions = options.sessions;
                http.session_idle = options.session_idle;
                serve_http(service, listener, http, || {
                    eprintln!("listening on http://{at}/mcp");
                    eprintln!("{}", token.location());
                })?;
            }
        }
        Ok(())
    }
}

/// What viewers are told about the server.
fn served(session: &Session, dialects: &[&'static Dialect], transport: &str) -> Server {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    Server {
        transport: transport.into(),
        roots: session.real_roots().map(|root| text(&root)).collect(),
        dialects: dialects.iter().map(|dialect| dialect.name.to_owned()).collect(),
        mode: session.settings().permissions.mode.name().into(),
        journal: session.journal().map(|journal| text(journal.directory())),
        ..Server::default()
    }
}

impl HttpOptions {
    /// Listens at the address, if there is one, and gets the token.
    fn open(&self) -> Result<Option<(TcpListener, Token)>> {
        let Some(address) = &self.address else { return Ok(None) };
        let listener = self.listen(address)?;
        let token = Token::get(self.token_file.as_deref(), listener.local_addr()?)?;
        Ok(Some((listener, token)))
    }

    fn listen(&self, address: &str) -> Result<TcpListener> {
        let addresses = address.to_socket_addrs();
        let addresses = addresses.map_err(|error| {
            anyhow!("`--http {address}` is not an address ({error}); try `--http 127.0.0.1:0`")
        })?;
        let addresses: Vec<SocketAddr> = addresses.collect();
        let remote = addresses.iter().any(|address| !address.ip().is_loopback());
        if remote && !self.allow_remote {
            bail!(
                "other machines can reach `{address}`; use an address such as 127.0.0.1:0, or \
                 `--allow-remote` if they may connect"
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

/// What earlier servers of the same parent process have read: some frameworks start one for each call.
fn parent_reads() -> Option<Arc<ParentReads>> {
    let directory = state_directory().ok()?.join("reads");
    ParentReads::new(&directory).map(Arc::new)
}

/// Starts logging to standard error, if PINFOLD_LOG is set.
fn start_logging() -> Result<()> {
    let Ok(level) = std::env::var("PINFOLD_LOG") else { return Ok(()) };
    let filter = EnvFilter::try_new(&level);
    let filter =
        filter.with_context(|| format!("PINFOLD_LOG is `{level}`; try `info` or `debug`"))?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
    Ok(())
}
