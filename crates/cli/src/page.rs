//! `pinfold page`

use std::net::{Ipv4Addr, TcpListener};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Result, anyhow};
use clap::Args;
use pinfold_page::{HistoryOptions, Options};

use crate::batch::print_line;
use crate::options::{JournalDirectory, PermissionOptions};
use crate::viewer::ViewerOptions;

/// Watch servers, answer approval requests and undo changes, in a browser
///
/// Serves a page on 127.0.0.1, prints a link that works once, and opens it if there is a desktop. The page shows
/// calls as they happen, approval requests with their diffs, and the journal of all workspaces. It neither shows nor
/// restores files that a deny rule covers, and with `--read-only` undoes nothing. Ends with Ctrl+C.
#[derive(Args)]
pub(crate) struct Page {
    /// Port at 127.0.0.1; 0 chooses a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,

    /// Print the link without opening a browser
    #[arg(long)]
    no_open: bool,

    #[command(flatten)]
    servers: ViewerOptions,
    #[command(flatten)]
    permissions: PermissionOptions,
    #[command(flatten)]
    journal: JournalDirectory,
}

impl Page {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let Self { port, no_open, servers, permissions, journal } = self;
        // Invalid options are reported now, not when a page opens.
        servers.watch_options(true)?;
        let history = HistoryOptions {
            settings: servers.configure(&[&permissions, &journal])?.settings,
            own_files: servers.own_files(),
            roots: servers.real_roots()?,
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|error| {
            anyhow!("cannot listen at port {port}: {error}; `--port 0` chooses a free one")
        })?;
        let watch = move || {
            let watched = servers.watch_options(true);
            watched.unwrap_or_else(|_| pinfold_feed::WatchOptions::new(Vec::new(), true))
        };
        pinfold_page::serve(listener, Options { watch: Box::new(watch), history }, |link| {
            eprintln!("Open this link in your browser. It works once; Ctrl+C ends the page.");
            // The reader of the output may have closed its end.
            _ = print_line(link);
            if !no_open {
                open(link);
            }
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Opens a link in the user's browser, if there is a desktop.
fn open(link: &str) {
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let has_desktop =
        ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    if !cfg!(target_os = "macos") && !has_desktop {
        return;
    }
    let mut command = Command::new(opener);
    command.arg(link).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.spawn() {
        // It may run for as long as the browser does.
        Ok(mut child) => _ = std::thread::spawn(move || child.wait()),
        Err(error) => eprintln!("pinfold: cannot run {opener}: {error}"),
    }
}
