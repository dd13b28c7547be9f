//! The log of a server on standard error, and its messages to the service manager.

use std::os::unix::net::UnixDatagram;
use std::sync::OnceLock;

use anyhow::{Context as _, Result};
use chrono::{SecondsFormat, Utc};
use serde_json::json;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::config::LogFormat;

static FORMAT: OnceLock<LogFormat> = OnceLock::new();

/// Starts logging to standard error, if PINFOLD_LOG is set.
pub(super) fn start(format: LogFormat) -> Result<()> {
    _ = FORMAT.set(format);
    let Ok(level) = std::env::var("PINFOLD_LOG") else { return Ok(()) };
    let filter = level.parse::<Targets>();
    let mut filter =
        filter.with_context(|| format!("PINFOLD_LOG is `{level}`; try `info` or `debug`"))?;
    if level.eq_ignore_ascii_case("info") {
        // At `info`, `rmcp` logs the beginning and the end of each request. The line of the call says the same.
        filter = filter.with_target("rmcp", LevelFilter::WARN);
    }
    let log = fmt::layer().with_writer(std::io::stderr).with_ansi(false);
    let log = match format {
        LogFormat::Text => log.boxed(),
        LogFormat::Json => log.json().flatten_event(true).with_current_span(false).boxed(),
    };
    tracing_subscriber::registry().with(log.with_filter(filter)).init();
    Ok(())
}

/// Prints a line for the user, in the format of the log.
pub(crate) fn print_notice(text: &str) {
    if !print_json("INFO", text) {
        eprintln!("{text}");
    }
}

/// Prints why the program ends, in the form of the log if it is a server.
pub(crate) fn print_error(text: &str) {
    if !print_json("ERROR", text) {
        eprintln!("pinfold: {text}");
    }
}

/// Prints a line as JSON if the log has that form. Returns whether it has.
fn print_json(level: &str, text: &str) -> bool {
    let is_json = matches!(FORMAT.get(), Some(LogFormat::Json));
    if is_json {
        let timestamp = Utc::now().to_rfc3339_opts(SecondsFormat::Micros, true);
        eprintln!("{}", json!({"timestamp": timestamp, "level": level, "message": text}));
    }
    is_json
}

/// The socket of the service manager, systemd for example, if this is a service that reports its state.
pub(super) struct ServiceManager(Option<UnixDatagram>);

impl ServiceManager {
    /// Connects to the socket in NOTIFY_SOCKET. Must be called before the process is restricted.
    pub(super) fn connect() -> Self {
        let Ok(path) = std::env::var("NOTIFY_SOCKET") else { return Self(None) };
        let connected = UnixDatagram::unbound().and_then(|socket| {
            match path.strip_prefix('@') {
                #[cfg(target_os = "linux")]
                Some(name) => {
                    use std::os::linux::net::SocketAddrExt as _;
                    use std::os::unix::net::SocketAddr;
                    socket.connect_addr(&SocketAddr::from_abstract_name(name)?)?;
                }
                _ => socket.connect(&path)?,
            }
            Ok(socket)
        });
        if let Err(error) = &connected {
            tracing::warn!("NOTIFY_SOCKET is {path}: {error}");
        }
        Self(connected.ok())
    }

    /// Sends a state to the manager, such as `READY=1`.
    pub(super) fn tell(&self, state: &str) {
        if let Some(Err(error)) = self.0.as_ref().map(|socket| socket.send(state.as_bytes())) {
            tracing::warn!("cannot notify the service manager of `{state}`: {error}");
        }
    }
}
