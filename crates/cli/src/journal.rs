//! `pinfold log`, `pinfold show` and `pinfold undo`

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use chrono::{DateTime, Utc};
use clap::Args;
use pinfold::operations::{self, RewindScope};
use pinfold::{
    ApprovalAnswer, ApprovalRequest, Approver, CallOptions, Entry, FoundState, LoggedEntry,
    Session, State,
};
use serde::Serialize;

use crate::TOOL_ERROR;
use crate::batch::print_line;
use crate::options::{
    ChangeOptions, JournalDirectory, JournalOptions, PermissionOptions, WorkspaceOptions,
};

/// List the changes in the workspace, newest last
///
/// A line has the id of the change, its time, the session and the tool that made it, and what it did. For a set of
/// changes that was interrupted, it also has the state of each file: as before, as after, or changed since.
#[derive(Args)]
pub(crate) struct Log {
    /// Only changes to this file, or to files below this directory
    #[arg(long, value_name = "PATH")]
    path: Option<PathBuf>,

    /// Only changes of this session
    #[arg(long, value_name = "ID")]
    session: Option<String>,

    /// Print one JSON object per line
    #[arg(long)]
    json: bool,

    /// Print at most this many changes, the newest ones
    #[arg(long, value_name = "N", default_value_t = 1000)]
    limit: usize,

    #[command(flatten)]
    options: LogOptions,
}

/// The options of commands that read the journal.
#[derive(Args)]
struct LogOptions {
    #[command(flatten)]
    workspace: WorkspaceOptions,
    #[command(flatten)]
    permissions: PermissionOptions,
    #[command(flatten)]
    journal: JournalDirectory,
}

/// Show a change as a diff
///
/// Also shows files that a tool needs approval to read, since running this command approves it. Does not show files
/// that a rule denies, nor, in the mode `dontAsk`, files that need approval.
#[derive(Args)]
pub(crate) struct Show {
    /// Id of the change, as `pinfold log` prints it
    id: String,

    #[command(flatten)]
    options: LogOptions,
}

/// Undo changes. Refuses a file that was modified since
///
/// Without an id, undoes the newest change in the workspace that was not undone yet. An undo is a change too, and can
/// be undone by its own id. With `--since` or `--session`, undoes many changes: all of them, or none if
/// somebody else has changed one of the files since. Exits with 1 if a change could not be undone.
#[derive(Args)]
pub(crate) struct Undo {
    /// Ids of the changes, as `pinfold log` prints them, in the order in which to undo them
    #[arg(value_name = "ID", conflicts_with_all = ["since", "session", "leave_out_conflicts"])]
    ids: Vec<String>,

    /// Undo all changes since a checkpoint, by its id or label, or after a change, by its id
    #[arg(long, value_name = "ID|CHECKPOINT")]
    since: Option<String>,

    /// Undo only the changes of this session; without `--since`, all of them
    #[arg(long, value_name = "ID")]
    session: Option<String>,

    /// With `--since` or `--session`: skip files that somebody else has changed, and undo the rest
    #[arg(long)]
    leave_out_conflicts: bool,

    #[command(flatten)]
    workspace: WorkspaceOptions,
    #[command(flatten)]
    permissions: PermissionOptions,
    #[command(flatten)]
    changes: ChangeOptions,
    #[command(flatten)]
    journal: JournalOptions,
}

impl Log {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let LogOptions { workspace, permissions, journal } = &self.options;
        let session = workspace.open_for_user(&[permissions, journal])?;
        let Some(journal) = session.journal() else {
            eprintln!("pinfold: there is no journal, so there is no log");
            return Ok(ExitCode::SUCCESS);
        };
        let path = self.path.as_deref().map(std::path::absolute).transpose()?;
        let asked_for = |entry: &Entry| {
            path.as_ref().is_none_or(|path| inside(&session, entry, path))
                && self.session.as_ref().is_none_or(|session| entry.session == *session)
        };
        let mut entries = Vec::new();
        let mut left_out = false;
        for logged in session.history()? {
            let logged = logged?;
            if !asked_for(&logged.entry) {
                continue;
            }
            left_out = entries.len() == self.limit;
            if left_out {
                break;
            }
            entries.push(logged);
        }
        let place = pinfold::escaped(journal.directory().as_os_str().as_encoded_bytes());
        if left_out {
            eprintln!("pinfold: older changes are left out; list them with a larger `--limit`");
        } else if entries.is_empty() {
            let filtered = self.path.is_some() || self.session.is_some();
            let changes = if filtered { "such changes" } else { "changes" };
            eprintln!("pinfold: there are no {changes} in this workspace in the journal {place}");
        }
        for logged in entries.iter().rev() {
            let state = interrupted(&session, logged);
            let line =
                if self.json { json_line(logged, state)? } else { line(&session, logged, state) };
            print_line(&line)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The state of a file whose change was part of an interrupted set.
fn interrupted(session: &Session, logged: &LoggedEntry) -> Option<&'static str> {
    let LoggedEntry { entry, confirmed, undone } = logged;
    let is_torn = !confirmed && !undone && entry.group.is_some();
    is_torn.then(|| match session.found_state(entry) {
        FoundState::Before => "as before",
        FoundState::After => "as after",
        FoundState::Other => "changed since",
    })
}

/// An entry in the format of `--json`. Times are as in the audit log.
fn json_line(logged: &LoggedEntry, torn: Option<&str>) -> Result<String> {
    #[derive(Serialize)]
    struct Line<'e> {
        id: &'e str,
        time: String,
        session: &'e str,
        tool: &'e str,
        path: &'e str,
        before: &'e State,
        after: &'e State,
        #[serde(skip_serializing_if = "Option::is_none")]
        moved_to: Option<&'e str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        undoes: Option<&'e str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        group: Option<&'e str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        checkpoint: Option<&'e str>,
        confirmed: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        torn: Option<&'e str>,
    }
    let LoggedEntry { entry, confirmed, .. } = logged;
    Ok(serde_json::to_string(&Line {
        id: &entry.id,
        time: time(entry).format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string(),
        session: &entry.session,
        tool: &entry.tool,
        path: &entry.path,
        before: &entry.before,
        after: &entry.after,
        moved_to: entry.moved_to.as_deref(),
        undoes: entry.undoes.as_deref(),
        group: entry.group.as_deref(),
        checkpoint: entry.checkpoint.as_deref(),
        confirmed: *confirmed,
        torn,
    })?)
}

fn time(entry: &Entry) -> DateTime<Utc> {
    let time = i64::try_from(entry.time).ok();
    time.and_then(DateTime::from_timestamp_millis).unwrap_or_default()
}

/// Whether the file is or was at `path` or below it. `path` may have a symlink to a root.
fn inside(session: &Session, entry: &Entry, path: &std::path::Path) -> bool {
    let given = session.roots().zip(session.real_roots());
    let named = given.filter_map(|(given, real)| Some(real.join(path.strip_prefix(given).ok()?)));
    let named: Vec<_> = named.chain([path.to_owned()]).collect();
    let mut changed = [&entry.path].into_iter().chain(&entry.moved_to);
    changed.any(|real| named.iter().any(|path| std::path::Path::new(real).starts_with(path)))
}

fn line(session: &Session, logged: &LoggedEntry, torn: Option<&str>) -> String {
    let LoggedEntry { entry, confirmed, undone } = logged;
    let interrupted = match (torn, &entry.group) {
        (Some(state), Some(group)) => format!("  (torn, one of {group}: {state})"),
        _ if *confirmed || *undone => String::new(),
        _ => "  (interrupted: perhaps not made)".into(),
    };
    entry_line(session, entry) + &interrupted
}

fn entry_line(session: &Session, entry: &Entry) -> String {
    let time = time(entry).format("%Y-%m-%d %H:%M:%SZ");
    let by = &entry.session;
    let what = entry.kind();
    let to = entry.moved_to.as_ref().map(|to| format!(" to {}", below_root(session, to)));
    let to = to.unwrap_or_default();
    if let Some(label) = &entry.checkpoint {
        let label = pinfold::escaped(label.as_bytes());
        return format!("{}  {time}  {by}  {what}  {label}", entry.id).trim_end().to_owned();
    }
    let undo = entry.undoes.as_ref().map(|id| format!("  (undoes {id})")).unwrap_or_default();
    let tool = if entry.tool.is_empty() { "-" } else { &entry.tool };
    let path = shown(session, entry);
    format!("{}  {time}  {by}  {tool:<11} {what}  {path}{to}{undo}", entry.id)
}

/// The path relative to the first root, if the file is there.
fn shown(session: &Session, entry: &Entry) -> String {
    below_root(session, &entry.path)
}

pub(crate) fn below_root(session: &Session, path: &str) -> String {
    let root = session.real_roots().next();
    let below =
        root.and_then(|root| std::path::Path::new(path).strip_prefix(root).ok().map(PathBuf::from));
    let path = below.unwrap_or_else(|| PathBuf::from(path));
    pinfold::escaped(path.as_os_str().as_encoded_bytes()).to_string()
}

/// A diff for printing. On a terminal, control characters are escaped.
fn printable(diff: &str) -> String {
    if std::io::stdout().is_terminal() {
        return pinfold::escaped_text(diff.as_bytes());
    }
    diff.to_owned()
}

/// Approves everything, because the user approves a command by running it.
#[derive(Debug)]
struct ApproveAll;

impl Approver for ApproveAll {
    fn ask(&self, _: &ApprovalRequest) -> ApprovalAnswer {
        ApprovalAnswer::Once
    }
}

impl Show {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let LogOptions { workspace, permissions, journal } = &self.options;
        let settings = workspace.configure(&[permissions, journal])?.settings;
        let session = workspace.open(settings)?.with_approver(ApproveAll);
        let shown = session.perform(&operations::Show::new(self.id))?;
        print_line(&entry_line(&session, &shown.outcome.entry))?;
        match &shown.outcome.diff {
            Some(diff) => print_line(printable(diff).trim_end())?,
            None => print_line("(not text, or its backup is gone)")?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Undo {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let session =
            self.workspace.open_for_user(&[&self.permissions, &self.changes, &self.journal])?;
        let Some(journal) = session.journal() else {
            bail!("there is no journal, so nothing can be undone");
        };
        if self.since.is_some() || self.session.is_some() {
            let all = operations::Rewind::all().with_leave_out_conflicts(self.leave_out_conflicts);
            let rewind =
                all.with_scope(self.session.map_or(RewindScope::AllSessions, RewindScope::Session));
            return crate::rewind::rewind(&session, &rewind.with_to(self.since));
        }
        if self.leave_out_conflicts {
            bail!("`--leave-out-conflicts` needs `--since` or `--session`");
        }
        let mut ids: Vec<_> = self.ids.into_iter().map(Some).collect();
        if ids.is_empty() {
            // Undoes the newest change.
            ids.push(None);
        }
        let mut failed = false;
        for id in ids {
            let undo = id.map_or_else(operations::Undo::newest, operations::Undo::change);
            let done = session.audited(
                &CallOptions::default().with_tool("undo"),
                |call| session.perform_with(&undo, call),
                |done| (done.as_ref().map_or_else(pinfold_dialects::code, |_| "ok"), 0),
            );
            match done {
                Ok(done) => print_line(&undone(&session, &done))?,
                Err(error) => {
                    failed = true;
                    eprintln!("pinfold: {}", error.with_hint());
                }
            }
        }
        if failed {
            let place = pinfold::escaped(journal.directory().as_os_str().as_encoded_bytes());
            eprintln!("pinfold: the journal is {place}");
            return Ok(ExitCode::from(TOOL_ERROR));
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn undone(session: &Session, done: &pinfold::Done<operations::Undo>) -> String {
    let entry = &done.outcome.entry;
    let others = match done.outcome.others {
        0 => String::new(),
        1 => " and 1 more path".into(),
        others => format!(" and {others} more paths"),
    };
    let path = shown(session, entry) + &others;
    let (done_to, would_do) = match &entry.before {
        _ if entry.moved_to.is_some() => ("moved back", "move back"),
        State::Absent => ("removed", "remove"),
        _ => ("restored", "restore"),
    };
    match (done.receipt.dry_run, &done.receipt.id) {
        (true, _) => {
            let diff = printable(done.receipt.diff.as_deref().unwrap_or_default());
            format!("[Dry Run] Would undo {} and {would_do} {path}\n{diff}", entry.id)
                .trim_end()
                .to_owned()
        }
        (false, Some(id)) => {
            format!("Undid {}: {done_to} {path} (undo that with `pinfold undo {id}`)", entry.id)
        }
        (false, None) => format!("Undid {}: {done_to} {path}", entry.id),
    }
}
