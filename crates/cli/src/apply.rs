//! `pinfold apply`

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Args;
use pinfold::{CallOptions, ReadBeforeWrite};
use pinfold_confine::read_user_file;
use pinfold_dialects::{APPLY, Answer};
use serde_json::json;

use crate::TOOL_ERROR;
use crate::options::{ChangeOptions, Group, JournalOptions, PermissionOptions, WorkspaceOptions};

/// Apply a patch to the workspace: codex's notation, or unified diffs as `git diff` prints them
///
/// All files are changed, or none; `pinfold undo` undoes all of them. Paths in the patch are relative to the first
/// root. Exits with 0 if the patch was applied, 1 if it was refused, and 2 for a usage error.
#[derive(Args)]
pub(crate) struct Apply {
    /// File with the patch, or `-` for standard input [default: -]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    /// Only check whether the patch can be applied; print nothing if it can
    #[arg(long)]
    check: bool,

    #[command(flatten)]
    workspace: WorkspaceOptions,
    #[command(flatten)]
    permissions: PermissionOptions,
    #[command(flatten)]
    changes: ChangeOptions,
    #[command(flatten)]
    journal: JournalOptions,
}

impl Apply {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let patch = self.patch()?;
        let groups: [&dyn Group; 3] = [&self.permissions, &self.changes, &self.journal];
        let mut settings = self.workspace.configure(&groups)?.settings;
        // A patch has the lines that it expects, so the file need not have been read.
        settings.read_before_write = Some(ReadBeforeWrite::Off);
        let toolbox = self.workspace.toolbox(settings, &[&APPLY])?;
        let call = CallOptions::default().with_dry_run(self.check.then_some(true));
        let answer = toolbox.call_with("apply", json!({ "patch": patch }), &call);
        let failed = answer.failed();
        let Answer::Blocks(blocks) = answer else { return Ok(ExitCode::from(TOOL_ERROR)) };
        let text = blocks.texts();
        if failed {
            eprintln!("pinfold: {text}");
            return Ok(ExitCode::from(TOOL_ERROR));
        }
        if !self.check {
            let mut out = std::io::stdout().lock();
            out.write_all(text.as_bytes())?;
            out.flush()?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// The text of the patch.
    fn patch(&self) -> Result<String> {
        match &self.file {
            Some(file) if file != Path::new("-") => {
                read_user_file(file).with_context(|| format!("cannot read {}", file.display()))
            }
            _ => {
                let mut text = String::new();
                let read = std::io::stdin().read_to_string(&mut text);
                read.context("cannot read standard input as UTF-8")?;
                Ok(text)
            }
        }
    }
}
