//! The options of the commands, in groups, and functions that open sessions with them.
//!
//! A command flattens the groups that apply to it. A flag overrides the configuration file; lists of rules are
//! joined.

mod groups;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use clap::Args;
use clap::builder::PossibleValuesParser;
use pinfold::{JournalFailure, JournalSetting, Mode, Session, Settings};
use pinfold_confine::device_and_inode;
use pinfold_dialects::{CLASSIC, Dialect, Toolbox, check_settings, every_dialect, named_dialects};

use crate::config::{self, Config};
use crate::prompt::Terminal;
use crate::token;
pub(crate) use groups::{ChangeOptions, PermissionOptions, modes, values};
use groups::{LimitOptions, ToolOptions};

/// A group of options that change settings.
pub(crate) trait Group {
    /// Applies the given flags to the settings.
    fn apply(&self, settings: &mut Settings);
}

/// The roots and the configuration file. Every command has these.
#[derive(Args)]
#[command(next_help_heading = "Workspace")]
pub(crate) struct WorkspaceOptions {
    /// Root directory of the workspace; repeatable [default: .]
    ///
    /// Relative paths start at the first root.
    #[arg(long = "root", value_name = "DIR")]
    pub(crate) roots: Vec<PathBuf>,

    /// Workspace of the configuration file: its roots, rules and journal
    ///
    /// The table `[workspaces.NAME]`, which a server over HTTP serves at /mcp/NAME.
    #[arg(long, value_name = "NAME", conflicts_with = "roots", hide_short_help = true)]
    pub(crate) workspace: Option<String>,

    /// Another directory, which tools may read and never change; repeatable
    #[arg(long = "read-root", value_name = "DIR")]
    read_roots: Vec<PathBuf>,

    /// Configuration file
    ///
    /// Default: the file in PINFOLD_CONFIG, else pinfold/config.toml in the user's configuration directory.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl WorkspaceOptions {
    /// Reads the configuration file and applies the flags.
    pub(crate) fn configure(&self, groups: &[&dyn Group]) -> Result<Config> {
        let mut config = configure(self.config.as_deref(), groups)?;
        if let Some(name) = &self.workspace {
            let named = config.workspaces.get(name);
            config.settings = named.with_context(|| unknown(name))?.settings.clone();
        }
        let named = config.workspaces.values_mut().map(|named| &mut named.settings);
        for settings in named.chain([&mut config.settings]) {
            settings.read_roots.extend(self.read_roots.iter().cloned());
        }
        Ok(config)
    }

    /// The root directories: the given ones, those of the named workspace, or the current directory.
    fn roots(&self) -> Result<Vec<PathBuf>> {
        if let Some(name) = &self.workspace {
            let named = config::load(self.config.as_deref())?.workspaces.remove(name);
            return Ok(named.with_context(|| unknown(name))?.keys.roots);
        }
        Ok(self.roots_or_current())
    }

    /// The given root directories, or the current directory.
    pub(crate) fn roots_or_current(&self) -> Vec<PathBuf> {
        if self.roots.is_empty() { vec![PathBuf::from(".")] } else { self.roots.clone() }
    }

    /// The path of the configuration file. It may not exist.
    pub(crate) fn config_file(&self) -> Option<PathBuf> {
        config::path(self.config.as_deref()).map(|(path, _)| path)
    }

    /// Pinfold's own files that this command uses, each with its purpose and path.
    pub(crate) fn files_in_use(&self, session: &Session) -> [(&'static str, String); 4] {
        let shown =
            |path: Option<&Path>| path.map_or("none".into(), |path| path.display().to_string());
        let config = self.config_file();
        let missing = config.as_ref().is_some_and(|path| device_and_inode(path).is_none());
        let journal = session.journal();
        [
            (
                "configuration",
                shown(config.as_deref()) + if missing { " (does not exist)" } else { "" },
            ),
            ("journal", shown(journal.as_ref().map(|journal| journal.directory()))),
            ("state", shown(token::state_directory().ok().as_deref())),
            ("audit log", shown(session.settings().audit.as_deref())),
        ]
    }

    /// Opens a session whose tools cannot reach Pinfold's own files.
    pub(crate) fn open(&self, settings: Settings) -> Result<Session> {
        self.open_on(&self.roots()?, settings, [])
    }

    /// Opens a session on some roots. Its tools can reach neither Pinfold's own files nor `own`.
    pub(crate) fn open_on(
        &self,
        roots: &[PathBuf],
        settings: Settings,
        own: impl IntoIterator<Item = PathBuf>,
    ) -> Result<Session> {
        let own_files = own_files(self.config.as_deref()).chain(own);
        let session = Session::with_settings(roots, settings)?.with_denied_files(own_files);
        Ok(match crate::read_pdf::reader() {
            Some(reader) => session.with_pdf_reader(reader),
            None => session,
        })
    }

    /// Opens a session with the tools of some dialects. If there is a terminal, the session asks there for approval.
    pub(crate) fn toolbox(
        &self,
        settings: Settings,
        dialects: &[&'static Dialect],
    ) -> Result<Toolbox> {
        let mut session = self.open(settings)?;
        if let Some(terminal) = Terminal::if_present() {
            session = session.with_approver(terminal);
        }
        let toolbox = Toolbox::new(session, dialects);
        Ok(toolbox.with_front_end_hint(crate::front_end_hint::front_end_hint))
    }

    /// Opens a session for a command of the user, who approves its operations by running it. Deny rules and
    /// `--read-only` still apply.
    pub(crate) fn open_for_user(&self, groups: &[&dyn Group]) -> Result<Session> {
        let mut settings = self.configure(groups)?.settings;
        if settings.permissions.mode != Mode::Plan {
            settings.permissions.mode = Mode::BypassPermissions;
        }
        self.open(settings)
    }
}

/// Reads the configuration file and applies the flags.
pub(crate) fn configure(file: Option<&Path>, groups: &[&dyn Group]) -> Result<Config> {
    let mut config = config::load(file)?;
    let named = config.workspaces.values_mut().map(|named| &mut named.settings);
    for settings in named.chain([&mut config.settings]) {
        groups.iter().for_each(|group| group.apply(settings));
        // On the command line, changes can be undone unless the user turns the journal off.
        settings.journal.get_or_insert(JournalSetting::Enabled(true));
        if let Some(name) = settings.zero() {
            bail!("the setting `{name}` must be at least 1");
        }
    }
    if !config.workspaces.is_empty() {
        let state = token::state_directory()?;
        config.workspaces.iter_mut().for_each(|(name, it)| it.separate_journal(name, &state));
    }
    Ok(config)
}

fn unknown(workspace: &str) -> String {
    format!("the configuration file has no table `[workspaces.{workspace}]`")
}

/// Pinfold's own files, which no tool may reach.
pub(crate) fn own_files(config_file: Option<&Path>) -> impl Iterator<Item = PathBuf> {
    let configs = config::path(config_file).map(|(path, _)| path).into_iter();
    let configs = configs.chain(config::default_path());
    configs.chain(token::state_directory()).chain(pinfold_feed::directories())
}

/// The options of commands that serve or call tools.
#[derive(Args)]
pub(crate) struct SessionOptions {
    #[command(flatten)]
    pub(crate) workspace: WorkspaceOptions,
    #[command(flatten)]
    pub(crate) dialects: DialectOptions,
    #[command(flatten)]
    tools: ToolOptions,
    #[command(flatten)]
    permissions: PermissionOptions,
    #[command(flatten)]
    changes: ChangeOptions,
    #[command(flatten)]
    journal: JournalOptions,
    #[command(flatten)]
    limits: LimitOptions,
}

impl SessionOptions {
    /// Reads the configuration file and applies the flags.
    pub(crate) fn configure(&self) -> Result<Config> {
        self.workspace.configure(&self.groups())
    }

    /// Opens a session for a command of the user.
    pub(crate) fn open_for_user(&self) -> Result<Session> {
        self.workspace.open_for_user(&self.groups())
    }

    /// As [`WorkspaceOptions::toolbox`], with the tools of the chosen dialects, or of `default`.
    pub(crate) fn toolbox(
        &self,
        settings: Settings,
        default: &[&'static Dialect],
    ) -> Result<Toolbox> {
        let dialects = self.dialects.with_settings(default, &settings)?;
        self.workspace.toolbox(settings, &dialects)
    }

    fn groups(&self) -> [&dyn Group; 6] {
        [&self.dialects, &self.tools, &self.permissions, &self.changes, &self.journal, &self.limits]
    }
}

/// The choice of tools.
#[derive(Args)]
#[command(next_help_heading = "Tools")]
pub(crate) struct DialectOptions {
    /// Tool dialects, separated by commas
    ///
    /// Default: `classic`; for `call` and `batch`, `all`, which is `classic`, `dotted` and `scoped`.
    #[arg(long = "dialect", value_name = "NAME", value_delimiter = ',', value_parser = dialect_names())]
    names: Vec<String>,

    /// Use only letters, digits and `_` in names of tools and arguments, such as `file_read` and `ignore_case`
    #[arg(long, hide_short_help = true)]
    portable_names: bool,
}

impl Group for DialectOptions {
    fn apply(&self, settings: &mut Settings) {
        settings.portable_names |= self.portable_names;
    }
}

impl DialectOptions {
    /// The chosen dialects, or `default`.
    pub(crate) fn or(&self, default: &[&'static Dialect]) -> Result<Vec<&'static Dialect>> {
        let chosen = named_dialects(self.names.iter().map(String::as_str));
        let chosen = chosen.map_err(anyhow::Error::msg)?;
        Ok(if chosen.is_empty() { default.to_vec() } else { chosen })
    }

    /// The chosen dialects, or those with the names, or `classic`.
    pub(crate) fn or_named(&self, names: &[String]) -> Result<Vec<&'static Dialect>> {
        let names = names.iter().map(String::as_str);
        let mut named = named_dialects(names).map_err(anyhow::Error::msg)?;
        if named.is_empty() {
            named.push(&CLASSIC);
        }
        self.or(&named)
    }

    /// As [`Self::or`]. Refuses a dialect if a setting that it needs is missing.
    pub(crate) fn with_settings(
        &self,
        default: &[&'static Dialect],
        settings: &Settings,
    ) -> Result<Vec<&'static Dialect>> {
        let dialects = self.or(default)?;
        check_settings(&dialects, settings)
            .map_err(|problem| anyhow!("{problem}, or give `--memory DIR`"))?;
        Ok(dialects)
    }
}

/// The directory of the journal.
#[derive(Args)]
#[command(next_help_heading = "Journal")]
pub(crate) struct JournalDirectory {
    /// Directory of the journal; `false` keeps none
    ///
    /// Default: pinfold/journal in the user's state directory.
    #[arg(long, value_name = "DIR")]
    journal: Option<PathBuf>,
}

impl Group for JournalDirectory {
    fn apply(&self, settings: &mut Settings) {
        // As in the configuration file. A directory with such a name is `./false`.
        let setting = |journal: &PathBuf| match journal.to_str() {
            Some("true") => JournalSetting::Enabled(true),
            Some("false") => JournalSetting::Enabled(false),
            _ => JournalSetting::Directory(journal.clone()),
        };
        if let Some(journal) = &self.journal {
            settings.journal = Some(setting(journal));
        }
    }
}

/// The directory of servers' sockets.
#[derive(Args)]
pub(crate) struct FeedDirectory {
    /// Directory of the sockets by which viewers find servers
    ///
    /// Default: pinfold in the user's directory below /run/user, else .local/state/pinfold/feed in the home
    /// directory.
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    feed: Option<PathBuf>,
}

impl FeedDirectory {
    /// The directory, if the flag was given.
    pub(crate) fn given(&self) -> Option<PathBuf> {
        self.feed.clone()
    }
}

/// Options of the journal.
#[derive(Args)]
#[command(next_help_heading = "Journal")]
pub(crate) struct JournalOptions {
    #[command(flatten)]
    directory: JournalDirectory,

    /// Keep no journal, so that changes cannot be undone
    #[arg(long, conflicts_with = "journal")]
    no_journal: bool,

    /// Days that the journal keeps backups [default: 30]
    #[arg(long, value_name = "DAYS", hide_short_help = true)]
    journal_days: Option<u64>,

    /// Bytes on disk that the journal may take [default: 1073741824]
    #[arg(long, value_name = "BYTES", hide_short_help = true)]
    max_journal_bytes: Option<u64>,

    /// What to do with a change that cannot be journalled [default: refuse]
    #[arg(long, value_name = "WHAT", hide_short_help = true, value_parser = values::<JournalFailure>())]
    journal_failure: Option<JournalFailure>,
}

impl Group for JournalOptions {
    fn apply(&self, settings: &mut Settings) {
        self.directory.apply(settings);
        if self.no_journal {
            settings.journal = Some(JournalSetting::Enabled(false));
        }
        settings.journal_days = self.journal_days.unwrap_or(settings.journal_days);
        settings.max_journal_bytes = self.max_journal_bytes.unwrap_or(settings.max_journal_bytes);
        settings.journal_failure = self.journal_failure.unwrap_or(settings.journal_failure);
    }
}

fn dialect_names() -> PossibleValuesParser {
    PossibleValuesParser::new(every_dialect().iter().map(|dialect| dialect.name).chain(["all"]))
}
