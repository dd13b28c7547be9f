//! Groups of options that change settings of a session: tools, permissions, changes, limits.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use pinfold::{
    AuditFailure, Documents, Durability, IndexMode, MatchMode, Mode, ReadBeforeWrite, Settings,
    serde_names,
};
use serde::de::DeserializeOwned;
use serde::de::value::{Error as ValueError, StrDeserializer};

use super::Group;

/// Options for the behaviour of tools.
#[derive(Args)]
#[command(next_help_heading = "Tools")]
pub(super) struct ToolOptions {
    /// Directory of the dialect `memory`; created if missing
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    memory: Option<PathBuf>,

    /// Accept relative paths in tools that require absolute ones
    #[arg(long, hide_short_help = true)]
    relative_paths: bool,

    /// Whether a file must be read before it is changed [default: by dialect; see docs/CONFIG.md]
    #[arg(long, value_name = "WHEN", hide_short_help = true, value_parser = values::<ReadBeforeWrite>())]
    read_before_write: Option<ReadBeforeWrite>,

    /// How an edit finds the text that it replaces [default: lenient]
    #[arg(long, value_name = "HOW", hide_short_help = true, value_parser = values::<MatchMode>())]
    matching: Option<MatchMode>,

    /// What to do with PDF files [default: extract]
    #[arg(long, value_name = "WHAT", hide_short_help = true, value_parser = values::<Documents>())]
    documents: Option<Documents>,
}

impl Group for ToolOptions {
    fn apply(&self, settings: &mut Settings) {
        settings.memory = self.memory.clone().or(settings.memory.take());
        settings.relative_paths |= self.relative_paths;
        settings.read_before_write = self.read_before_write.or(settings.read_before_write);
        settings.matching = self.matching.unwrap_or(settings.matching);
        settings.documents = self.documents.unwrap_or(settings.documents);
    }
}

/// Permissions, and the audit log.
#[derive(Args)]
#[command(next_help_heading = "Permissions")]
pub(crate) struct PermissionOptions {
    /// Permission mode for operations that no rule matches
    ///
    /// Default: secure-file-access.
    #[arg(long, value_name = "MODE", value_parser = modes())]
    mode: Option<Mode>,

    /// Deny all changes, regardless of the rules; the same as `--mode plan`
    #[arg(long, conflicts_with = "mode")]
    read_only: bool,

    /// Allow operations, such as `Edit(src/**)` or `Delete`; repeatable
    #[arg(long, value_name = "RULE")]
    allow: Vec<String>,

    /// Ask the user before operations; repeatable
    #[arg(long, value_name = "RULE")]
    ask: Vec<String>,

    /// Deny operations, such as `Read(secrets/**)`; repeatable
    #[arg(long, value_name = "RULE")]
    deny: Vec<String>,

    /// Audit log: append a line about every call to this file
    #[arg(long, value_name = "FILE")]
    audit: Option<PathBuf>,

    /// What to do with changes while the audit log cannot be written [default: refuse]
    #[arg(long, value_name = "WHAT", hide_short_help = true, value_parser = values::<AuditFailure>())]
    audit_failure: Option<AuditFailure>,
}

impl Group for PermissionOptions {
    fn apply(&self, settings: &mut Settings) {
        settings.audit = self.audit.clone().or(settings.audit.take());
        settings.audit_failure = self.audit_failure.unwrap_or(settings.audit_failure);
        let permissions = &mut settings.permissions;
        permissions.mode = self.mode.unwrap_or(permissions.mode);
        if self.read_only {
            permissions.mode = Mode::Plan;
        }
        permissions.allow.extend(self.allow.iter().cloned());
        permissions.ask.extend(self.ask.iter().cloned());
        permissions.deny.extend(self.deny.iter().cloned());
    }
}

/// Options for changes.
#[derive(Args)]
#[command(next_help_heading = "Changes")]
pub(crate) struct ChangeOptions {
    /// Describe changes instead of making them
    #[arg(long)]
    dry_run: bool,

    /// What to flush to the disk before a change is complete [default: data]
    #[arg(long, value_name = "WHAT", hide_short_help = true, value_parser = values::<Durability>())]
    durability: Option<Durability>,
}

impl Group for ChangeOptions {
    fn apply(&self, settings: &mut Settings) {
        settings.dry_run |= self.dry_run;
        settings.durability = self.durability.unwrap_or(settings.durability);
    }
}

/// Limits for time, memory and results.
#[derive(Args)]
#[command(next_help_heading = "Limits")]
pub(super) struct LimitOptions {
    /// Bytes of text in one result [default: by dialect; see docs/CONFIG.md]
    #[arg(long, value_name = "BYTES", hide_short_help = true)]
    max_output_bytes: Option<usize>,

    /// Characters of a line that are shown [default: 2000]
    #[arg(long, value_name = "CHARS", hide_short_help = true)]
    max_line_chars: Option<usize>,

    /// Files that `Glob` lists [default: 1000]
    #[arg(long, value_name = "FILES", hide_short_help = true)]
    max_glob_files: Option<usize>,

    /// Whether searches cache the tree and an index of its content [default: auto]
    ///
    /// With `auto`, searches cache the tree and an index of its content, and watch for changes. With `strict`, they
    /// also compare the tree with the disk each time. With `off`, they cache nothing.
    #[arg(long, value_name = "MODE", hide_short_help = true, value_parser = values::<IndexMode>())]
    index: Option<IndexMode>,

    /// Bytes of memory that the index may take, with the cached contents [default: 3 % of the memory, at most 268435456]
    #[arg(long, value_name = "BYTES", hide_short_help = true)]
    max_index_bytes: Option<u64>,

    /// Bytes of text that a search reads to count matches after its page is full [default: 268435456]
    #[arg(long, value_name = "BYTES", hide_short_help = true)]
    max_count_bytes: Option<u64>,

    /// Bytes of the largest file that can be edited [default: 104857600]
    #[arg(long, value_name = "BYTES", hide_short_help = true)]
    max_edit_bytes: Option<u64>,

    /// Scale down images whose longer side exceeds this [default: none is scaled, and one of more than 8000 pixels is refused]
    #[arg(long, value_name = "PIXELS", hide_short_help = true)]
    max_image_side: Option<usize>,

    /// Scale down images larger than this [default: none is scaled, and one of more than 20971520 is refused]
    #[arg(long, value_name = "BYTES", hide_short_help = true)]
    max_image_bytes: Option<u64>,

    /// Seconds that one call may take [default: 60]
    #[arg(long, value_name = "SECONDS", hide_short_help = true)]
    deadline_seconds: Option<u64>,
}

impl Group for LimitOptions {
    fn apply(&self, settings: &mut Settings) {
        settings.max_output_bytes = self.max_output_bytes.or(settings.max_output_bytes);
        settings.max_line_chars = self.max_line_chars.unwrap_or(settings.max_line_chars);
        settings.max_glob_files = self.max_glob_files.unwrap_or(settings.max_glob_files);
        settings.index = self.index.unwrap_or(settings.index);
        settings.max_index_bytes = self.max_index_bytes.or(settings.max_index_bytes);
        settings.max_count_bytes = self.max_count_bytes.unwrap_or(settings.max_count_bytes);
        settings.max_edit_bytes = self.max_edit_bytes.unwrap_or(settings.max_edit_bytes);
        settings.max_image_side = self.max_image_side.or(settings.max_image_side);
        settings.max_image_bytes = self.max_image_bytes.or(settings.max_image_bytes);
        settings.deadline_seconds = self.deadline_seconds.unwrap_or(settings.deadline_seconds);
    }
}

/// Parses the values of a setting in the same way as the configuration file, and lists them in help and completions.
pub(crate) fn values<T>() -> impl TypedValueParser<Value = T>
where
    T: DeserializeOwned + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(serde_names::<T>())
        .try_map(|name| T::deserialize(StrDeserializer::<ValueError>::new(&name)))
}

/// Parses permission modes, and explains them in help.
pub(crate) fn modes() -> impl TypedValueParser<Value = Mode> {
    let values = Mode::ALL.map(|mode| {
        PossibleValue::new(mode.name()).help(match mode {
            Mode::Ask => "reads are allowed, changes need your approval (Claude Code's name; not the default of Pinfold)",
            Mode::SecureFileAccess => {
                "reads and changes are allowed; protected paths need your approval"
            }
            Mode::AcceptEdits => "as secure-file-access, but deletes need your approval",
            Mode::Plan => "changes are denied",
            Mode::DontAsk => "operations that need approval are denied",
            Mode::BypassPermissions => "nothing needs approval; deny rules still apply",
        })
    });
    PossibleValuesParser::new(values).try_map(|name| name.parse::<Mode>())
}
