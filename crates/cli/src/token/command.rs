//! `pinfold token`

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use clap::{Args, Subcommand};
use pinfold::Mode;
use pinfold_confine::{lock_secret, random_secret};
use pinfold_mcp::http::TokenHash;

use super::file::{Entry, TokenFile};
use crate::batch::print_line;
use crate::config::check_name;
use crate::options::modes;

/// Create, list and remove tokens for `serve --http`
///
/// The file has hashes of tokens, so a reader of the file cannot use them. A server reads it again when it has changed. It is
/// the `token_file` of a workspace, or `--token-file`.
#[derive(Args)]
pub(crate) struct TokenCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    New(New),
    Remove(Remove),
    List(List),
}

/// Create a token and print it; it is not stored anywhere else
///
/// If the name already has a token, the new one replaces it and keeps its limits.
#[derive(Args)]
struct New {
    /// File with the hashes of tokens; created if missing
    file: PathBuf,

    /// Name of the token, for logs
    name: String,

    /// Keep the old token of this name valid until the next `new` or `remove`
    #[arg(long)]
    keep_old: bool,

    /// Permission mode of its calls, if it allows less than the workspace's
    #[arg(long, value_name = "MODE", value_parser = modes())]
    mode: Option<Mode>,

    /// Deny all changes; the same as `--mode plan`
    #[arg(long, conflicts_with = "mode")]
    read_only: bool,

    /// Maximum number of sessions at a time
    #[arg(long, value_name = "NUMBER")]
    max_sessions: Option<usize>,

    /// Maximum number of requests per second
    #[arg(long, value_name = "NUMBER")]
    max_calls_per_second: Option<u32>,

    /// Maximum number of bytes per second in requests and answers
    #[arg(long, value_name = "BYTES")]
    max_bytes_per_second: Option<u64>,
}

/// Remove a token, and end its sessions
#[derive(Args)]
struct Remove {
    /// File with the hashes of tokens
    file: PathBuf,

    /// Name of the token
    name: String,
}

/// List the names of the tokens, with their modes and limits
#[derive(Args)]
struct List {
    /// File with the hashes of tokens
    file: PathBuf,
}

impl TokenCommand {
    pub(crate) fn run(self) -> Result<ExitCode> {
        match self.action {
            Action::New(new) => new.run()?,
            Action::Remove(remove) => remove.run()?,
            Action::List(list) => list.run()?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl New {
    fn run(self) -> Result<()> {
        check_name(&self.name)?;
        let place = || self.file.display().to_string();
        // Another `pinfold token` waits, and then finds this token in the file.
        let _lock = lock_secret(&self.file).with_context(place)?;
        let mut tokens = TokenFile::read(&self.file).with_context(place)?.unwrap_or_default();
        let text = random_secret()?;
        let entry = tokens.tokens.entry(self.name.clone()).or_default();
        // Of several old tokens, only the newest stays valid.
        let kept = if self.keep_old { 1 } else { 0 };
        entry.hashes.drain(..entry.hashes.len().saturating_sub(kept));
        entry.hashes.push(TokenHash::of(text.as_bytes()).to_string());
        let mode = if self.read_only { Some(Mode::Plan) } else { self.mode };
        entry.mode = mode.or(entry.mode);
        entry.max_sessions = self.max_sessions.or(entry.max_sessions);
        entry.max_calls_per_second = self.max_calls_per_second.or(entry.max_calls_per_second);
        entry.max_bytes_per_second = self.max_bytes_per_second.or(entry.max_bytes_per_second);
        tokens.write(&self.file).with_context(place)?;
        print_line(&text)
    }
}

impl Remove {
    fn run(self) -> Result<()> {
        // Fails if there is no file, before the lock creates its directory.
        existing(&self.file)?;
        let _lock = lock_secret(&self.file).with_context(|| self.file.display().to_string())?;
        let mut tokens = existing(&self.file)?;
        if tokens.tokens.remove(&self.name).is_none() {
            bail!("{} has no token `{}`", self.file.display(), self.name);
        }
        tokens.write(&self.file).with_context(|| self.file.display().to_string())
    }
}

impl List {
    fn run(self) -> Result<()> {
        for (
            name,
            Entry { hashes, mode, max_sessions, max_calls_per_second, max_bytes_per_second },
        ) in existing(&self.file)?.tokens
        {
            let mut line = name;
            let more = hashes.len().saturating_sub(1);
            let facts = [
                mode.map(|mode| format!("mode {}", mode.name())),
                max_sessions.map(|max| format!("{max} sessions")),
                max_calls_per_second.map(|max| format!("{max} calls a second")),
                max_bytes_per_second.map(|max| format!("{max} bytes a second")),
                (more > 0).then(|| format!("{more} old valid")),
            ];
            let facts: Vec<String> = facts.into_iter().flatten().collect();
            if !facts.is_empty() {
                line += &format!(": {}", facts.join(", "));
            }
            print_line(&line)?;
        }
        Ok(())
    }
}

fn existing(file: &Path) -> Result<TokenFile> {
    let read = TokenFile::read(file).with_context(|| file.display().to_string())?;
    read.with_context(|| format!("there is no file {}", file.display()))
}
