//! `pinfold checkpoint`, and `pinfold undo --since` and `--session`, which undo many changes at once.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use pinfold::operations::{RevertedPath, Rewind};
use pinfold::{CallOptions, Done, Session};

use crate::TOOL_ERROR;
use crate::batch::print_line;
use crate::journal::below_root;
use crate::options::{JournalOptions, WorkspaceOptions};

/// Add a checkpoint for `pinfold undo --since`
#[derive(Args)]
pub(crate) struct Checkpoint {
    /// Label by which `pinfold undo --since` finds the checkpoint
    #[arg(default_value = "", hide_default_value = true)]
    label: String,

    #[command(flatten)]
    workspace: WorkspaceOptions,
    #[command(flatten)]
    journal: JournalOptions,
}

impl Checkpoint {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let session = self.workspace.open_for_user(&[&self.journal])?;
        if session.journal().is_none() {
            bail!("there is no journal, so there are no checkpoints");
        }
        match session.checkpoint(&self.label) {
            Ok(id) => {
                print_line(&format!(
                    "Checkpoint {id} (go back to it with `pinfold undo --since {id}`)"
                ))?;
                Ok(ExitCode::SUCCESS)
            }
            Err(error) => {
                eprintln!("pinfold: {}", error.with_hint());
                Ok(ExitCode::from(TOOL_ERROR))
            }
        }
    }
}

/// Undoes many changes at once, and prints the effect on each file.
pub(crate) fn rewind(session: &Session, rewind: &Rewind) -> Result<ExitCode> {
    let done = session.audited(
        &CallOptions::default().with_tool("rewind"),
        |call| session.perform_with(rewind, call),
        |done| (done.as_ref().map_or_else(pinfold_dialects::code, |_| "ok"), 0),
    );
    let done = match done {
        Ok(done) => done,
        Err(error) => {
            eprintln!("pinfold: {}", error.with_hint());
            return Ok(ExitCode::from(TOOL_ERROR));
        }
    };
    for conflict in &done.outcome.conflicts {
        let path = below_root(session, &conflict.path);
        eprintln!("pinfold: `{path}` is left as it is: {}", conflict.why);
    }
    for file in &done.outcome.files {
        print_line(&file_line(session, file))?;
    }
    if !done.outcome.conflicts.is_empty() && !rewind.leave_out_conflicts {
        eprintln!("pinfold: nothing was changed; `--leave-out-conflicts` undoes the rest");
        return Ok(ExitCode::from(TOOL_ERROR));
    }
    print_line(&summary(&done))?;
    Ok(ExitCode::SUCCESS)
}

fn file_line(session: &Session, file: &RevertedPath) -> String {
    let path = below_root(session, &file.path);
    let to = file.back_to.as_ref().map(|to| format!(" to {}", below_root(session, to)));
    let lines = file.lines.map(|(added, removed)| format!("  (+{added} -{removed} lines)"));
    format!("{:<13} {path}{}{}", file.what, to.unwrap_or_default(), lines.unwrap_or_default())
}

fn summary(done: &Done<Rewind>) -> String {
    let count = |number: usize, what: &str| match number {
        1 => format!("1 {what}"),
        more => format!("{more} {what}s"),
    };
    let changes = count(done.outcome.changes, "change");
    let paths = count(done.outcome.files.len(), "path");
    let lines = done.outcome.files.iter().filter_map(|file| file.lines);
    let (added, removed) =
        lines.fold((0, 0), |(all, gone), (added, removed)| (all + added, gone + removed));
    let what = format!("{changes}: {paths}, +{added} -{removed} lines");
    match (done.receipt.dry_run, &done.receipt.id) {
        _ if done.outcome.changes == 0 => "There was nothing to undo".into(),
        (true, _) => format!("[Dry Run] Would undo {what}"),
        (false, Some(id)) => format!("Undid {what} (undo that with `pinfold undo {id}`)"),
        (false, None) => format!("Undid {what}"),
    }
}
