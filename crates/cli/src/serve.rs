//! `pinfold serve`

mod listen;
mod log;
mod workspaces;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use pinfold_dialects::{CLASSIC, REFERENCE};
use pinfold_mcp::http::ServedWorkspace;
use pinfold_mcp::{
    ClientRoots, Metrics, Options, Service, UsedStateStore, serve_http, serve_stdio,
};
use pinfold_sandbox::set_up_allocator;

use crate::config::{Config, LogFormat, ServeConfig};
use crate::options::{FeedDirectory, SessionOptions, values};
use crate::reference_server;
use crate::sandbox::SandboxOptions;
use crate::token::{self, TokenSource};
use listen::{HttpOptions, Sockets, token_limits};
use log::ServiceManager;
pub(crate) use log::{print_error, print_notice};
use workspaces::{OpenWorkspace, UsedStateDirectory, parent_reads};

/// Serve the tools over the Model Context Protocol (MCP)
///
/// Serves on standard input and output, or over HTTP with `--http`. Each client has its own session. The environment
/// variable PINFOLD_LOG (`info` or `debug`) turns on logging to standard error; `debug` also logs file contents.
#[derive(Args)]
pub(crate) struct Serve {
    /// Root directories of the workspace, as with `--root`
    #[arg(value_name = "DIR", conflicts_with = "workspace")]
    directories: Vec<PathBuf>,

    #[command(flatten)]
    options: SessionOptions,

    /// Whether the client's roots narrow the workspace [default: narrow]
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

    /// Format of the log on standard error [default: text]
    #[arg(
        long,
        value_name = "FORMAT",
        help_heading = "Logging",
        hide_short_help = true,
        value_parser = values::<LogFormat>()
    )]
    log_format: Option<LogFormat>,
}

/// Options for the socket by which viewers find the server.
#[derive(Args)]
#[command(next_help_heading = "Watching")]
pub(crate) struct FeedOptions {
    #[command(flatten)]
    directory: FeedDirectory,

    /// Let no viewer watch the server or answer approval requests
    #[arg(long, conflicts_with = "feed", hide_short_help = true)]
    no_feed: bool,
}

impl FeedOptions {
    /// The directory of the server's socket, if it has one. A flag overrides the file.
    pub(crate) fn directory(&self, config: &ServeConfig) -> Option<PathBuf> {
        if self.no_feed {
            return None;
        }
        let given = self.directory.given();
        given.or_else(|| config.feed.clone().unwrap_or_default().directory())
    }
}

impl Serve {
    pub(crate) fn run(mut self) -> Result<ExitCode> {
        set_up_allocator();
        let dialects = self.options.dialects.or(&[&CLASSIC])?;
        if dialects.iter().any(|dialect| dialect.name == REFERENCE.name) {
            self.directories = match reference_server::existing(self.directories) {
                Ok(directories) => directories,
                Err(code) => return Ok(code),
            };
        }
        self.options.workspace.roots.append(&mut self.directories);
        let config = self.options.configure()?;
        log::start(self.log_format.or(config.serve.log_format).unwrap_or_default())?;
        let feed = self.feed.directory(&config.serve);
        let key_file = self.http.state_key_file(&config.http);
        // The default directories are denied anyway.
        let own: Vec<PathBuf> = feed.iter().chain(&key_file).cloned().collect();
        let mut workspaces = self.open(self.plan(&config)?, &own)?;
        for (what, path) in
            workspaces.iter().flat_map(|it| self.options.workspace.files_in_use(&it.session))
        {
            tracing::info!("{what}: {path}");
        }
        let Some(sockets) = self.http.listen(&config.http)? else {
            return self.serve_stdio(workspaces.swap_remove(0), &config);
        };
        self.serve_http(workspaces, sockets, &config)
    }

    fn serve_stdio(&self, mut workspace: OpenWorkspace, config: &Config) -> Result<ExitCode> {
        let feed = self.feed.directory(&config.serve);
        let reads = parent_reads();
        workspace.session = workspace.session.with_parent_reads(reads.clone());
        // By now all other files are open, and no thread has been started.
        self.sandbox.restrict(&config.serve, [&workspace.session], feed.as_deref(), &[]);
        let service = workspace.service(Options::default(), feed.as_deref(), "stdio");
        let served = serve_stdio(&service);
        service.close_feed();
        if let Some(Err(error)) = reads.map(|reads| reads.save()) {
            tracing::warn!("cannot save the files that were read for later servers: {error}");
        }
        served?;
        Ok(ExitCode::SUCCESS)
    }

    fn serve_http(
        &self,
        workspaces: Vec<OpenWorkspace>,
        sockets: Sockets,
        config: &Config,
    ) -> Result<ExitCode> {
        let at = sockets.clients.local_addr()?;
        let (limits, feed) = (token_limits(&config.http), self.feed.directory(&config.serve));
        let tokens = workspaces.iter().map(|OpenWorkspace { plan, .. }| {
            TokenSource::get(plan.token_file.as_deref(), (at, &plan.name), limits)
        });
        let tokens: Vec<TokenSource> = tokens.collect::<Result<_>>()?;
        let mut http = self.http.options(&config.http);
        let metrics = sockets.metrics.is_some().then(|| Arc::new(Metrics::default()));
        http.metrics.clone_from(&metrics);
        let mut options = Vec::new();
        for OpenWorkspace { plan, .. } in &workspaces {
            let key = self.http.state_key_file(&config.http);
            let key = key.map(|file| token::state_key(&file, &plan.name)).transpose()?;
            let marks: Option<Arc<dyn UsedStateStore>> = match &key {
                Some(_) => Some(Arc::new(UsedStateDirectory::new()?)),
                None => None,
            };
            options.push(Options {
                max_conversations: http.max_sessions,
                conversation_idle: http.session_idle,
                metrics: metrics.clone(),
                state_key: key,
                state_marks: marks,
                ..Options::default()
            });
        }
        let manager = ServiceManager::connect();
        let watched = tokens.iter().filter_map(TokenSource::watched_file);
        let watched: Vec<PathBuf> = watched.map(ToOwned::to_owned).collect();
        let sessions = workspaces.iter().map(|workspace| &workspace.session);
        // By now all other files are open, and no thread has been started.
        self.sandbox.restrict(&config.serve, sessions, feed.as_deref(), &watched);
        TokenSource::watch(&tokens)?;
        let names: Vec<String> = workspaces.iter().map(|it| it.plan.name.clone()).collect();
        let services: Vec<Service> = workspaces
            .into_iter()
            .zip(options)
            .map(|(workspace, options)| workspace.service(options, feed.as_deref(), "http"))
            .collect();
        let served = services.iter().zip(&tokens).map(|(service, tokens)| ServedWorkspace {
            service: service.clone(),
            tokens: tokens.subscribe(),
        });
        let served: Vec<ServedWorkspace> = served.collect();
        let metrics_at = sockets.metrics.as_ref().map(|socket| socket.local_addr()).transpose()?;
        let manager = Arc::new(manager);
        let ending = manager.clone();
        let ended = serve_http(
            &served,
            (sockets.clients, sockets.metrics),
            http,
            &mut || {
                for (name, tokens) in names.iter().zip(&tokens) {
                    let path = if name.is_empty() { String::new() } else { format!("/{name}") };
                    print_notice(&format!("listening on http://{at}/mcp{path}"));
                    print_notice(&tokens.location());
                }
                if let Some(at) = metrics_at {
                    print_notice(&format!("metrics are at http://{at}/metrics"));
                }
                manager.tell("READY=1");
            },
            Box::new(move || ending.tell("STOPPING=1")),
        );
        services.iter().for_each(Service::close_feed);
        ended?;
        Ok(ExitCode::SUCCESS)
    }
}
