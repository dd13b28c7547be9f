//! `pinfold log`, `pinfold show` and `pinfold undo`

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, bail};
use clap::Args;
use jiff::Timestamp;
use pinfold::operations;
use pinfold::{ApprovalAnswer, ApprovalRequest, Approver, CallOptions, Entry, Session, State};

use crate::TOOL_ERROR;
use crate::batch::print_line;
use crate::options::Options;

/// List the changes that were made in the workspace, newest last
#[derive(Args)]
pub(crate) struct Log {
    /// Only changes to this file, or to files below this directory
    #[arg(long, value_name = "PATH")]
    path: Option<PathBuf>,

    /// One JSON object a line
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    options: Options,
}

/// Show what a change did, as a diff
///
/// Also to a file that the tools would ask about: whoever runs this is the one whom they would ask, and says
/// yes by it. What a rule denies is not shown, nor what would be asked about in the mode `dontAsk`.
#[derive(Args)]
pub(crate) struct Show {
    /// The change, as `pinfold log` names it
    id: String,

    #[command(flatten)]
    options: Options,
}

/// Take changes back: files become what they were, if they still are as the change left them
///
/// Without an id, the newest change in the workspace that was not taken back yet. Undoing is a change
/// too, and can be undone by its own id. Exits with 1 if a change could not be taken back.
#[derive(Args)]
pub(crate) struct Undo {
    /// The changes, as `pinfold log` names them; taken back in this order
    ids: Vec<String>,

    #[command(flatten)]
    options: Options,
}

impl Log {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let session = self.options.session()?;
        let path = self.path.as_deref().map(std::path::absolute).transpose()?;
        for entry in session.history()? {
            if path.as_ref().is_some_and(|path| !inside(&session, &entry, path)) {
                continue;
            }
            if self.json {
                print_line(&serde_json::to_string(&entry)?)?;
            } else {
                print_line(&line(&session, &entry))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Whether a change was to a path that the person named, by its real name or as below the root.
fn inside(session: &Session, entry: &Entry, path: &std::path::Path) -> bool {
    let real = std::path::Path::new(&entry.path);
    let given = session.workspace().roots().zip(session.real_roots());
    let named = given.filter_map(|(given, real)| Some(real.join(path.strip_prefix(given).ok()?)));
    real.starts_with(path) || named.into_iter().any(|path| real.starts_with(path))
}

fn line(session: &Session, entry: &Entry) -> String {
    let time =
        i64::try_from(entry.time).ok().and_then(|time| Timestamp::from_millisecond(time).ok());
    let time = time.unwrap_or(Timestamp::UNIX_EPOCH).strftime("%Y-%m-%d %H:%M:%SZ");
    let what = match (&entry.before, &entry.after) {
        (State::Absent, _) => "created",
        (_, State::Absent) => "deleted",
        _ => "changed",
    };
    let undo = entry.undoes.as_ref().map(|id| format!("  (undoes {id})")).unwrap_or_default();
    let tool = if entry.tool.is_empty() { "-" } else { &entry.tool };
    format!("{}  {time}  {tool:<11} {what}  {}{undo}", entry.id, shown(session, entry))
}

/// The path below the first root, if it is there.
fn shown(session: &Session, entry: &Entry) -> String {
    let root = session.real_roots().next();
    let below = root.and_then(|root| {
        std::path::Path::new(&entry.path).strip_prefix(root).ok().map(PathBuf::from)
    });
    let path = below.unwrap_or_else(|| PathBuf::from(&entry.path));
    pinfold::escaped(path.as_os_str().as_encoded_bytes()).to_string()
}

/// A diff as it is for programs, or as it is for the person at a terminal, which it must not talk to.
fn printed(diff: &str) -> String {
    match std::io::stdout().is_terminal() {
        true => pinfold::escaped_lines(diff),
        false => diff.to_owned(),
    }
}

/// The person who runs a command: to run it is to say yes.
#[derive(Debug)]
struct Themselves;

impl Approver for Themselves {
    fn ask(&self, _: &ApprovalRequest) -> ApprovalAnswer {
        ApprovalAnswer::Once
    }
}

impl Show {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let session = self.options.session_asking(Themselves)?;
        let shown = session.perform(&operations::Show { id: self.id })?;
        print_line(&line(&session, &shown.entry))?;
        match &shown.diff {
            Some(diff) => print_line(printed(diff).trim_end())?,
            None => print_line("(not text, or no longer to be had)")?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Undo {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let session = self.options.session()?;
        if session.journal().is_none() {
            bail!("there is no journal, so nothing can be undone");
        }
        let ids: Vec<_> = match self.ids.is_empty() {
            true => vec![None],
            false => self.ids.into_iter().map(Some).collect(),
        };
        let mut failed = false;
        for id in ids {
            let call = CallOptions { tool: "undo".into(), ..CallOptions::default() };
            let begin = Instant::now();
            let done = session.perform_with(&operations::Undo { id }, &call);
            let outcome = done.as_ref().map_or_else(pinfold_dialects::code, |_| "ok");
            session.record(&call, outcome, begin, 0);
            match done {
                Ok(done) => print_line(&told(&session, &done))?,
                Err(error) => {
                    failed = true;
                    eprintln!("pinfold: {}", error.with_hint());
                }
            }
        }
        Ok(if failed { ExitCode::from(TOOL_ERROR) } else { ExitCode::SUCCESS })
    }
}

fn told(session: &Session, done: &pinfold::Done<operations::Undo>) -> String {
    let entry = &done.entry;
    let path = shown(session, entry);
    let now = match &entry.before {
        State::Absent => format!("{path} is gone again"),
        _ => format!("{path} is as it was before"),
    };
    match (done.receipt.dry_run, &done.receipt.id) {
        (true, _) => {
            let diff = printed(done.receipt.diff.as_deref().unwrap_or_default());
            format!("[Dry Run] Would undo {}: {now}\n{diff}", entry.id).trim_end().to_owned()
        }
        (false, Some(id)) => {
            format!("Undid {}: {now} (undo that with `pinfold undo {id}`)", entry.id)
        }
        (false, None) => format!("Undid {}: {now}", entry.id),
    }
}
