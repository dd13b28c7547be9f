//! The addresses that the server listens on, and the requests that it accepts.

use std::net::{SocketAddr, TcpListener, ToSocketAddrs as _};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use clap::Args;
use listenfd::ListenFd;
use pinfold_mcp::http::{self, Guard, TokenLimits};

use crate::config::HttpConfig;

/// Stands for the socket that systemd passes.
const SYSTEMD: &str = "systemd";

/// Options of the server over HTTP.
#[derive(Args)]
#[command(next_help_heading = "HTTP")]
pub(super) struct HttpOptions {
    /// Serve over HTTP at this address; port 0 chooses a free port
    ///
    /// `systemd` takes the socket that the service manager passes (LISTEN_FDS). The workspaces of the configuration file,
    /// `[workspaces.NAME]`, are served at /mcp/NAME; without any, or with a root, one workspace is served at /mcp.
    #[arg(long = "http", value_name = "ADDRESS")]
    pub(super) address: Option<String>,

    /// Allow an address that other machines can reach
    #[arg(long, requires = "address")]
    allow_remote: bool,

    /// File with the token that clients send; created if missing
    ///
    /// Default: the token in PINFOLD_TOKEN, else a new token in a file whose path is printed on standard error.
    /// `pinfold token` writes a file with the hashes of several tokens. The file is read again when it has changed.
    #[arg(long, value_name = "FILE", requires = "address")]
    pub(super) token_file: Option<PathBuf>,

    /// Accept requests for this host name, besides `localhost` and the server's addresses; repeatable
    #[arg(long = "allow-host", value_name = "HOST", requires = "address", hide_short_help = true)]
    allow_hosts: Vec<String>,

    /// Accept requests from web pages of this origin, besides those of this machine; repeatable
    #[arg(
        long = "allow-origin",
        value_name = "ORIGIN",
        requires = "address",
        hide_short_help = true
    )]
    allow_origins: Vec<String>,

    /// File with a key that replicas share, so that they accept each other's approvals; created if missing
    #[arg(long, value_name = "FILE", requires = "address", hide_short_help = true)]
    state_key_file: Option<PathBuf>,

    /// Serve metrics for Prometheus at this address, without a token
    #[arg(long, value_name = "ADDRESS", requires = "address", hide_short_help = true)]
    metrics: Option<String>,
}

/// The sockets of a server.
pub(super) struct Sockets {
    pub(super) clients: TcpListener,
    pub(super) metrics: Option<TcpListener>,
}

impl HttpOptions {
    /// Listens on the address, if there is one, and on that of the metrics.
    pub(super) fn listen(&self, config: &HttpConfig) -> Result<Option<Sockets>> {
        let Some(address) = &self.address else { return Ok(None) };
        let clients = match address.as_str() {
            SYSTEMD => self.passed()?,
            address => self.bind("--http", address)?,
        };
        let metrics = self.metrics.as_ref().or(config.metrics.as_ref());
        let metrics = metrics.map(|address| self.bind("--metrics", address)).transpose()?;
        Ok(Some(Sockets { clients, metrics }))
    }

    /// The socket from the service manager.
    fn passed(&self) -> Result<TcpListener> {
        let listener = ListenFd::from_env().take_tcp_listener(0);
        let listener = listener.context("the socket that systemd passed cannot be used")?;
        let listener = listener
            .context("systemd passed no socket (LISTEN_FDS); start this by its .socket unit")?;
        self.check(SYSTEMD, &[listener.local_addr()?])?;
        Ok(listener)
    }

    fn bind(&self, flag: &str, address: &str) -> Result<TcpListener> {
        let addresses = address.to_socket_addrs();
        let addresses = addresses.map_err(|error| {
            anyhow!("`{flag} {address}` is not an address ({error}); try `{flag} 127.0.0.1:0`")
        })?;
        let addresses: Vec<SocketAddr> = addresses.collect();
        self.check(address, &addresses)?;
        TcpListener::bind(&addresses[..])
            .map_err(|error| anyhow!("cannot listen at {address}: {error}"))
    }

    fn check(&self, address: &str, addresses: &[SocketAddr]) -> Result<()> {
        let remote = addresses.iter().any(|address| !address.ip().is_loopback());
        if remote && !self.allow_remote {
            bail!(
                "other machines can reach `{address}`; use an address such as 127.0.0.1:0, or \
                 `--allow-remote` if they may connect"
            );
        }
        Ok(())
    }

    /// The file with the key that servers share.
    pub(super) fn state_key_file(&self, config: &HttpConfig) -> Option<PathBuf> {
        self.state_key_file.clone().or_else(|| config.state_key_file.clone())
    }

    /// The options for requests, from the flags and the configuration.
    pub(super) fn options(&self, config: &HttpConfig) -> http::HttpOptions {
        let usual = http::HttpOptions::new(self.guard(config));
        let seconds = |seconds: Option<u64>| seconds.map(Duration::from_secs);
        http::HttpOptions {
            max_body_bytes: config.max_body_bytes.unwrap_or(usual.max_body_bytes),
            max_sessions: config.max_sessions.unwrap_or(usual.max_sessions),
            session_idle: seconds(config.idle_seconds).unwrap_or(usual.session_idle),
            max_connections: config.max_connections.unwrap_or(usual.max_connections),
            drain: seconds(config.drain_seconds).unwrap_or(usual.drain),
            ..usual
        }
    }

    fn guard(&self, config: &HttpConfig) -> Guard {
        let hosts = self.allow_hosts.iter().chain(&config.allow_hosts);
        let guard = hosts.fold(Guard::default(), |guard, host| guard.allow_host(host));
        let origins = self.allow_origins.iter().chain(&config.allow_origins);
        origins.fold(guard, |guard, origin| guard.allow_origin(origin))
    }
}

/// The limits of tokens without their own.
pub(super) fn token_limits(config: &HttpConfig) -> TokenLimits {
    TokenLimits {
        max_sessions: config.max_token_sessions,
        max_calls_per_second: config.max_token_calls_per_second,
        max_bytes_per_second: config.max_token_bytes_per_second,
    }
}
