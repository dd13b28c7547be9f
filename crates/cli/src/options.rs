//! The options that all commands have.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueEnum};
use pinfold::{
    Approver, AuditFailure, DocumentsSetting, DurabilitySetting, JournalFailure, JournalSetting,
    MatchingSetting, Mode, Permissions, SeenSetting, Session, Settings,
};
use pinfold_dialects::{Dialect, Toolbox, named_dialects};

use crate::config::{self, Config};
use crate::prompt::Terminal;
use crate::token;

#[derive(Args)]
pub(crate) struct Options {
    /// A directory that the tools may work in; can be given several times, the first is where
    /// relative paths start [default: the current directory]
    #[arg(long = "root", value_name = "DIR")]
    roots: Vec<PathBuf>,

    /// The tools to serve: `classic`, `dotted`, `scoped`, several with commas, or `all`
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = dialect_name)]
    dialect: Vec<String>,

    /// A configuration file [default: pinfold/config.toml in the user's configuration directory]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Describe changes, and make none
    #[arg(long)]
    dry_run: bool,

    /// Let tools that want absolute paths take relative ones, as below the first root
    #[arg(long)]
    relative_paths: bool,

    /// Whether a file must be read before it is changed [default: `require` in `classic`]
    #[arg(long, value_name = "WHEN")]
    seen: Option<SeenOption>,

    /// How the text that an edit replaces is looked for [default: ladder]
    #[arg(long, value_name = "HOW")]
    matching: Option<MatchingOption>,

    /// The largest file that can be edited, in bytes [default: 104857600]
    #[arg(long, value_name = "BYTES")]
    edit_bytes: Option<u64>,

    /// Where to keep what changes displace, so that `pinfold undo` can bring it back [default:
    /// pinfold/journal in the user's state directory]
    #[arg(long, value_name = "DIR", conflicts_with = "no_journal")]
    journal: Option<PathBuf>,

    /// Keep no journal: changes cannot be undone
    #[arg(long)]
    no_journal: bool,

    /// For how many days the journal keeps what was displaced [default: 30]
    #[arg(long, value_name = "DAYS")]
    journal_days: Option<u64>,

    /// How many bytes of displaced files the journal keeps [default: 1073741824]
    #[arg(long, value_name = "BYTES")]
    journal_bytes: Option<u64>,

    /// What becomes of a change that cannot be journalled [default: refuse]
    #[arg(long, value_name = "WHAT")]
    journal_failure: Option<JournalFailureOption>,

    /// What is flushed to the disk before a change counts as made [default: data]
    #[arg(long, value_name = "WHAT")]
    durability: Option<DurabilityOption>,

    /// How many bytes of text one answer may hold [default: 102400 in `classic`, else 1048576]
    #[arg(long, value_name = "BYTES")]
    output_bytes: Option<usize>,

    /// Where a long line is cut, in characters [default: 2000]
    #[arg(long, value_name = "CHARS")]
    max_line_chars: Option<usize>,

    /// How many files `Glob` names [default: 1000]
    #[arg(long, value_name = "FILES")]
    glob_limit: Option<usize>,

    /// Shrink images with a longer side than this [default: shrink none]
    #[arg(long, value_name = "PIXELS")]
    image_side: Option<usize>,

    /// Shrink images with more bytes than this [default: shrink none]
    #[arg(long, value_name = "BYTES")]
    image_bytes: Option<u64>,

    /// What becomes of PDF files [default: extract]
    #[arg(long, value_name = "WHAT")]
    documents: Option<DocumentsOption>,

    /// What holds where no rule says otherwise [default: secure-file-access]
    #[arg(long, value_name = "MODE", value_parser = str::parse::<Mode>)]
    mode: Option<Mode>,

    /// Change nothing, whatever the rules say: the mode `plan`
    #[arg(long, conflicts_with = "mode")]
    read_only: bool,

    /// Allow something, such as `Edit(src/**)` or `Delete`; can be given several times
    #[arg(long, value_name = "RULE")]
    allow: Vec<String>,

    /// Have a person asked about something
    #[arg(long, value_name = "RULE")]
    ask: Vec<String>,

    /// Refuse something, such as `Read(secrets/**)`
    #[arg(long, value_name = "RULE")]
    deny: Vec<String>,

    /// Append a line about every call to this file
    #[arg(long, value_name = "FILE")]
    audit: Option<PathBuf>,

    /// What becomes of changes while the audit log cannot be written [default: refuse]
    #[arg(long, value_name = "WHAT")]
    audit_failure: Option<AuditFailureOption>,

    /// How long one call may take, in seconds [default: 60]
    #[arg(long, value_name = "SECONDS")]
    deadline_seconds: Option<u64>,
}

#[derive(Clone, Copy, ValueEnum)]
enum SeenOption {
    Require,
    Off,
}

#[derive(Clone, Copy, ValueEnum)]
enum MatchingOption {
    Ladder,
    Exact,
}

#[derive(Clone, Copy, ValueEnum)]
enum JournalFailureOption {
    Refuse,
    Say,
}

#[derive(Clone, Copy, ValueEnum)]
enum AuditFailureOption {
    Refuse,
    Ignore,
}

#[derive(Clone, Copy, ValueEnum)]
enum DocumentsOption {
    Extract,
    Reject,
}

#[derive(Clone, Copy, ValueEnum)]
enum DurabilityOption {
    None,
    Data,
    Full,
}

fn dialect_name(name: &str) -> Result<String, String> {
    named_dialects([name]).map(|_| name.to_owned())
}

impl Options {
    /// A session for the person's own commands, who is not asked whether they mean it. Rules that refuse
    /// hold, and so does `--read-only`.
    pub(crate) fn session(&self) -> Result<Session> {
        let mut settings = self.config()?.settings;
        let Permissions { mode, .. } = &mut settings.permissions;
        if *mode != Mode::Plan {
            *mode = Mode::BypassPermissions;
        }
        self.session_with(settings, None)
    }

    /// A session in the mode that was chosen, with somebody who can be asked.
    pub(crate) fn session_asking(&self, approver: impl Approver + 'static) -> Result<Session> {
        Ok(self.session_with(self.config()?.settings, None)?.with_approver(approver))
    }

    /// `own` is one more file that the tools may not reach.
    fn session_with(&self, settings: Settings, own: Option<PathBuf>) -> Result<Session> {
        let here = [PathBuf::from(".")];
        let roots = if self.roots.is_empty() { &here[..] } else { &self.roots };
        let config = self.config.clone().into_iter().chain(config::default_path());
        let own = config.chain(token::state_directory()).chain(own);
        let session = Session::with_settings(roots, settings)?.keeping_out_of(own);
        Ok(match crate::read_pdf::reader() {
            Some(reader) => session.with_pdf_reader(reader),
            None => session,
        })
    }

    /// The tools, on a session of their own. `default` is served where no dialect was chosen.
    pub(crate) fn toolbox(
        &self,
        default: &[&'static Dialect],
        adjust: impl FnOnce(&mut Settings),
    ) -> Result<Toolbox> {
        let mut settings = self.config()?.settings;
        adjust(&mut settings);
        self.toolbox_with(settings, default, Terminal::there(), None)
    }

    /// The tools, with settings that have been read, somebody who can be asked, and one more file
    /// that is out of reach.
    pub(crate) fn toolbox_with(
        &self,
        settings: Settings,
        default: &[&'static Dialect],
        approver: Option<Terminal>,
        own: Option<PathBuf>,
    ) -> Result<Toolbox> {
        let mut session = self.session_with(settings, own)?;
        if let Some(approver) = approver {
            session = session.with_approver(approver);
        }
        let chosen = named_dialects(self.dialect.iter().map(String::as_str));
        let chosen = chosen.map_err(anyhow::Error::msg)?;
        Ok(Toolbox::new(session, if chosen.is_empty() { default } else { &chosen }))
    }

    /// The configuration file that was named.
    pub(crate) fn config_file(&self) -> Option<PathBuf> {
        self.config.clone()
    }

    /// What the configuration file says, and over it the command line.
    pub(crate) fn config(&self) -> Result<Config> {
        let mut config = config::load(self.config.as_deref())?;
        let settings = &mut config.settings;
        settings.dry_run |= self.dry_run;
        settings.relative_paths |= self.relative_paths;
        if let Some(seen) = self.seen {
            settings.seen = Some(match seen {
                SeenOption::Require => SeenSetting::Require,
                SeenOption::Off => SeenSetting::Off,
            });
        }
        if let Some(durability) = self.durability {
            settings.durability = match durability {
                DurabilityOption::None => DurabilitySetting::None,
                DurabilityOption::Data => DurabilitySetting::Data,
                DurabilityOption::Full => DurabilitySetting::Full,
            };
        }
        if let Some(documents) = self.documents {
            settings.documents = match documents {
                DocumentsOption::Extract => DocumentsSetting::Extract,
                DocumentsOption::Reject => DocumentsSetting::Reject,
            };
        }
        if let Some(matching) = self.matching {
            settings.matching = match matching {
                MatchingOption::Ladder => MatchingSetting::Ladder,
                MatchingOption::Exact => MatchingSetting::Exact,
            };
        }
        if let Some(directory) = &self.journal {
            settings.journal = Some(JournalSetting::Directory(directory.clone()));
        }
        if self.no_journal {
            settings.journal = Some(JournalSetting::Usual(false));
        }
        // A person who runs tools wants to be able to take back what they did.
        settings.journal.get_or_insert(JournalSetting::Usual(true));
        settings.journal_days = self.journal_days.unwrap_or(settings.journal_days);
        settings.journal_bytes = self.journal_bytes.unwrap_or(settings.journal_bytes);
        if let Some(failure) = self.journal_failure {
            settings.journal_failure = match failure {
                JournalFailureOption::Refuse => JournalFailure::Refuse,
                JournalFailureOption::Say => JournalFailure::Say,
            };
        }
        settings.edit_bytes = self.edit_bytes.unwrap_or(settings.edit_bytes);
        settings.output_bytes = self.output_bytes.or(settings.output_bytes);
        settings.max_line_chars = self.max_line_chars.unwrap_or(settings.max_line_chars);
        settings.image_side = self.image_side.or(settings.image_side);
        settings.image_bytes = self.image_bytes.or(settings.image_bytes);
        settings.glob_limit = self.glob_limit.unwrap_or(settings.glob_limit);
        settings.deadline_seconds = self.deadline_seconds.unwrap_or(settings.deadline_seconds);
        settings.audit = self.audit.clone().or(settings.audit.take());
        if let Some(failure) = self.audit_failure {
            settings.audit_failure = match failure {
                AuditFailureOption::Refuse => AuditFailure::Refuse,
                AuditFailureOption::Ignore => AuditFailure::Ignore,
            };
        }
        let permissions = &mut settings.permissions;
        permissions.mode = self.mode.unwrap_or(permissions.mode);
        if self.read_only {
            permissions.mode = Mode::Plan;
        }
        permissions.allow.extend(self.allow.iter().cloned());
        permissions.ask.extend(self.ask.iter().cloned());
        permissions.deny.extend(self.deny.iter().cloned());
        Ok(config)
    }
}
