//! Pinfold on the command line.
//!
//! Parses options, passes calls to the dialects and prints the results. The engine makes all decisions.

#![forbid(unsafe_code)]

mod apply;
mod batch;
mod call;
mod config;
mod doctor;
mod front_end_hint;
mod journal;
mod options;
mod page;
mod prompt;
mod read_pdf;
mod reference_server;
mod rewind;
mod sandbox;
mod serve;
mod shell;
mod token;
mod tools;
mod viewer;
mod watch;

use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, Parser, Subcommand};
use pinfold::BadName;

/// File tools for AI agents, fenced to a workspace.
///
/// Every tool works below the roots of the workspace and nowhere else. Results are JSON.
#[derive(Parser)]
#[command(name = "pinfold", version, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  pinfold serve /srv/project
  pinfold call file.read '{\"path\": \"README.md\", \"limit\": 5}'
  pinfold call --root /srv/project Write '{\"file_path\": \"/srv/project/a.txt\", \"content\": \"hi\\n\"}'
  pinfold tools --dialect all --format openai
  git diff | pinfold apply --root /srv/copy
  pinfold watch";

#[derive(Subcommand)]
enum Command {
    Serve(serve::Serve),
    Call(call::Call),
    Apply(apply::Apply),
    Batch(batch::Batch),
    Tools(tools::Tools),
    Log(journal::Log),
    Show(journal::Show),
    Undo(journal::Undo),
    Checkpoint(rewind::Checkpoint),
    Watch(watch::Watch),
    Page(page::Page),
    Token(token::TokenCommand),
    Doctor(doctor::Doctor),
    Completions(shell::Completions),
    Man(shell::Man),
    #[command(hide = true)]
    ReadPdf(read_pdf::ReadPdf),
}

/// The command line of `pinfold serve` only. Building the parser for all other commands takes as long as starting the
/// server.
#[derive(Parser)]
#[command(name = "pinfold", disable_help_flag = true, disable_help_subcommand = true)]
enum ServeOnly {
    Serve(serve::Serve),
}

fn main() -> ExitCode {
    let command_line = match reference_server::command_line(std::env::args_os()) {
        Ok(command_line) => command_line,
        Err(code) => return code,
    };
    let serves = command_line.get(1).is_some_and(|command| command == "serve");
    let command = match serves.then(|| ServeOnly::try_parse_from(&command_line)) {
        Some(Ok(ServeOnly::Serve(serve))) => Command::Serve(serve),
        // The parser with all commands reports mistakes and prints help.
        Some(Err(_)) | None => {
            let cli = Cli::try_parse_from(command_line);
            cli.unwrap_or_else(|error| renamed(&error).unwrap_or(error).exit()).command
        }
    };
    let result = match command {
        Command::Serve(command) => command.run(),
        Command::Call(command) => command.run(),
        Command::Apply(command) => command.run(),
        Command::Batch(command) => command.run(),
        Command::Tools(command) => command.run(),
        Command::Log(command) => command.run(),
        Command::Show(command) => command.run(),
        Command::Undo(command) => command.run(),
        Command::Checkpoint(command) => command.run(),
        Command::Watch(command) => command.run(),
        Command::Page(command) => command.run(),
        Command::Token(command) => command.run(),
        Command::Doctor(command) => command.run(),
        Command::Completions(command) => command.run(),
        Command::Man(command) => command.run(),
        Command::ReadPdf(command) => command.run(),
    };
    result.unwrap_or_else(|error| {
        let io_error = error.downcast_ref::<std::io::Error>();
        // The reader has closed its end of the pipe, as in `pinfold tools | head -1`.
        if io_error.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe) {
            return ExitCode::SUCCESS;
        }
        serve::print_error(&format!("{error:#}"));
        ExitCode::from(if io_error.is_some() { TOOL_ERROR } else { USAGE })
    })
}

/// The error for a renamed flag or value.
fn renamed(error: &clap::Error) -> Option<clap::Error> {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    // `--journal-failure <WHAT>` or `--glob-limit=5`
    let flag = context(ContextKind::InvalidArg)?.split([' ', '=']).next()?;
    let key = flag.strip_prefix("--")?.replace('-', "_");
    let message = match error.kind() {
        ErrorKind::UnknownArgument => match BadName::renamed_key(&key)? {
            BadName::RenamedKey { new: "max_body_bytes", .. } => return None,
            BadName::RenamedKey { new, .. } => {
                format!("`{flag}` is now `--{}`", new.replace('_', "-"))
            }
            _ => return None,
        },
        ErrorKind::InvalidValue => {
            match BadName::renamed_value(&key, context(ContextKind::InvalidValue)?)? {
                BadName::RenamedValue { old, new, .. } => {
                    format!("`{flag} {old}` is now `{flag} {new}`")
                }
                _ => return None,
            }
        }
        _ => return None,
    };
    Some(Cli::command().error(error.kind(), message))
}

/// The exit code if a tool returned an error, or if reading or writing failed.
const TOOL_ERROR: u8 = 1;

/// The exit code for an invalid command line, configuration or input.
const USAGE: u8 = 2;
