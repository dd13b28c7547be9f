//! Pinfold on the command line.
//!
//! It decides nothing: it reads options, hands calls to the dialects, and prints what they answer.

#![forbid(unsafe_code)]

mod batch;
mod call;
mod config;
mod doctor;
mod journal;
mod options;
mod prompt;
mod read_pdf;
mod serve;
mod shell;
mod token;
mod tools;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// File tools for AI agents, fenced to a workspace.
///
/// Every tool works below the roots and nowhere else. The answers are JSON, one to a line.
#[derive(Parser)]
#[command(name = "pinfold", version, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  pinfold serve --root /srv/project
  pinfold call file.read '{\"path\": \"README.md\", \"limit\": 5}'
  pinfold call --root /srv/project Write '{\"file_path\": \"/srv/project/a.txt\", \"content\": \"hi\\n\"}'
  pinfold tools --dialect all --format openai";

#[derive(Subcommand)]
enum Command {
    Serve(serve::Serve),
    Call(call::Call),
    Batch(batch::Batch),
    Tools(tools::Tools),
    Log(journal::Log),
    Show(journal::Show),
    Undo(journal::Undo),
    Doctor(doctor::Doctor),
    Completions(shell::Completions),
    Man(shell::Man),
    #[command(hide = true)]
    ReadPdf(read_pdf::ReadPdf),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Serve(command) => command.run(),
        Command::Call(command) => command.run(),
        Command::Batch(command) => command.run(),
        Command::Tools(command) => command.run(),
        Command::Log(command) => command.run(),
        Command::Show(command) => command.run(),
        Command::Undo(command) => command.run(),
        Command::Doctor(command) => command.run(),
        Command::Completions(command) => command.run(),
        Command::Man(command) => command.run(),
        Command::ReadPdf(command) => command.run(),
    };
    result.unwrap_or_else(|error| {
        eprintln!("pinfold: {error:#}");
        // The command was understood; its input or output broke.
        let broken = error.downcast_ref::<std::io::Error>().is_some();
        ExitCode::from(if broken { TOOL_ERROR } else { USAGE })
    })
}

/// The exit code for a call that was understood and answered with an error.
const TOOL_ERROR: u8 = 1;

/// The exit code for a command line, configuration or input that cannot be understood.
const USAGE: u8 = 2;
