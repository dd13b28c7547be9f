//! The workspaces of a server: one without a name, or those of the configuration file.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use pinfold::{JournalSetting, Mode, ParentReads, Session, Settings};
use pinfold_confine::create_marker_file;
use pinfold_dialects::{CLASSIC, Dialect, Toolbox, check_settings};
use pinfold_feed::{Feed, Server};
use pinfold_mcp::{ClientRoots, Options, Service, UsedStateStore};

use super::Serve;
use crate::config::Config;
use crate::front_end_hint::{front_end_hint, with_viewers};
use crate::token::state_directory;

/// A workspace to serve.
pub(super) struct WorkspacePlan {
    /// The name, or an empty string.
    pub(super) name: String,
    roots: Vec<PathBuf>,
    settings: Settings,
    dialects: Vec<&'static Dialect>,
    client_roots: ClientRoots,
    pub(super) token_file: Option<PathBuf>,
}

/// A workspace with open roots.
pub(super) struct OpenWorkspace {
    pub(super) plan: WorkspacePlan,
    pub(super) session: Session,
}

impl Serve {
    /// The workspaces to serve. On standard input and output there is one.
    pub(super) fn plan(&self, config: &Config) -> Result<Vec<WorkspacePlan>> {
        let workspace = &self.options.workspace;
        let (over_http, chosen) = (self.http.address.is_some(), workspace.workspace.as_deref());
        let mut plans = Vec::new();
        let serves_named = over_http && chosen.is_none() && workspace.roots.is_empty();
        let is_named = |name: &str| chosen == Some(name) || serves_named;
        for (name, named) in config.workspaces.iter().filter(|(name, _)| is_named(name)) {
            let settings = named.settings.clone();
            let dialects = self.options.dialects.or_named(&named.keys.dialects)?;
            check_settings(&dialects, &settings).map_err(anyhow::Error::msg)?;
            let client_roots = self.client_roots.or(named.keys.client_roots);
            plans.push(WorkspacePlan {
                // On standard input and output it is alone, and needs no name.
                name: if over_http { name.clone() } else { String::new() },
                roots: named.keys.roots.clone(),
                settings,
                dialects,
                client_roots: client_roots.or(config.serve.client_roots).unwrap_or_default(),
                token_file: named.keys.token_file.clone(),
            });
        }
        if plans.is_empty() {
            let settings = config.settings.clone();
            plans.push(WorkspacePlan {
                name: String::new(),
                roots: workspace.roots_or_current(),
                dialects: self.options.dialects.with_settings(&[&CLASSIC], &settings)?,
                settings,
                client_roots: self.client_roots.or(config.serve.client_roots).unwrap_or_default(),
                token_file: self.http.token_file.clone(),
            });
        } else if self.http.token_file.is_some() {
            bail!(
                "`--token-file` is for a workspace without a name; those of the configuration have `token_file`"
            );
        }
        check_journals(&plans)?;
        Ok(plans)
    }

    /// Opens the workspaces. Tools of one cannot reach Pinfold's own files for another.
    pub(super) fn open(
        &self,
        plans: Vec<WorkspacePlan>,
        own: &[PathBuf],
    ) -> Result<Vec<OpenWorkspace>> {
        let journals = plans.iter().filter_map(|plan| match &plan.settings.journal {
            Some(JournalSetting::Directory(directory)) => Some(directory.clone()),
            _ => None,
        });
        let audits = plans.iter().filter_map(|plan| plan.settings.audit.clone());
        let tokens = plans.iter().filter_map(|plan| plan.token_file.clone());
        let own: Vec<PathBuf> =
            journals.chain(audits).chain(tokens).chain(own.iter().cloned()).collect();
        let open = |plan: WorkspacePlan| {
            let workspace = &self.options.workspace;
            let opened = workspace.open_on(&plan.roots, plan.settings.clone(), own.clone());
            let session = match plan.name.as_str() {
                "" => opened?,
                name => opened.with_context(|| format!("workspace `{name}`"))?,
            };
            Ok(OpenWorkspace { plan, session })
        };
        plans.into_iter().map(open).collect()
    }
}

/// Refuses workspaces with the same journal, since each has its own history.
fn check_journals(plans: &[WorkspacePlan]) -> Result<()> {
    for (number, plan) in plans.iter().enumerate() {
        let Some(JournalSetting::Directory(directory)) = &plan.settings.journal else { continue };
        let same = |other: &&WorkspacePlan| other.settings.journal == plan.settings.journal;
        if let Some(other) = plans[..number].iter().find(same) {
            let (one, two) = (&other.name, &plan.name);
            bail!("the workspaces `{one}` and `{two}` share the journal {}", directory.display());
        }
    }
    Ok(())
}

impl OpenWorkspace {
    /// The tools on the workspace. Viewers find it in `feed`.
    pub(super) fn service(
        mut self,
        mut options: Options,
        feed: Option<&Path>,
        transport: &str,
    ) -> Service {
        options.workspace.clone_from(&self.plan.name);
        options.client_roots = self.plan.client_roots;
        if let Some(directory) = feed {
            let feed = Arc::new(Feed::new(self.description(transport)));
            feed.listen(directory.to_owned());
            self.session = self.session.with_observer(feed.clone());
            options.feed = Some(feed);
        }
        // In that mode the user is never asked, even if a viewer is open.
        let asks = self.session.settings().permissions.mode != Mode::DontAsk;
        let hint = if options.feed.is_some() && asks { with_viewers } else { front_end_hint };
        let toolbox = Toolbox::new(self.session, &self.plan.dialects).with_front_end_hint(hint);
        Service::new(toolbox, options)
    }

    /// The description of the server for viewers.
    fn description(&self, transport: &str) -> Server {
        let (session, text) = (&self.session, |path: &Path| path.to_string_lossy().into_owned());
        Server {
            transport: transport.into(),
            roots: session.real_roots().map(|root| text(&root)).collect(),
            dialects: self.plan.dialects.iter().map(|dialect| dialect.name.to_owned()).collect(),
            mode: session.settings().permissions.mode.name().into(),
            journal: session.journal().map(|journal| text(journal.directory())),
            ..Server::default()
        }
    }
}

/// Marks answered states in the state directory, which servers on one machine share.
#[derive(Debug)]
pub(super) struct UsedStateDirectory(PathBuf);

impl UsedStateDirectory {
    pub(super) fn new() -> Result<Self> {
        Ok(Self(state_directory()?.join("answered")))
    }
}

impl UsedStateStore for UsedStateDirectory {
    fn is_first_use(&self, name: &str) -> std::io::Result<bool> {
        // Twice the time for which a state is valid.
        create_marker_file(&self.0, name, Duration::from_secs(10 * 60))
    }
}

/// The files that earlier servers of the same parent process have read. Some frameworks start a server for each call.
pub(super) fn parent_reads() -> Option<Arc<ParentReads>> {
    let directory = state_directory().ok()?.join("reads");
    ParentReads::new(&directory).map(Arc::new)
}
