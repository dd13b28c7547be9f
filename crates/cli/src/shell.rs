//! `pinfold completions` and `pinfold man`, which are generated from the definitions of the commands.

use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use clap::{Args, CommandFactory as _};
use clap_complete::Shell;
use clap_mangen::Man as Page;

use crate::Cli;

/// Print shell completions
///
/// For example: pinfold completions bash > ~/.local/share/bash-completion/completions/pinfold
#[derive(Args)]
pub(crate) struct Completions {
    /// Shell
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "pinfold", &mut text);
        print(&text)
    }
}

/// Print the manual page of pinfold or of a command
///
/// For example: pinfold man serve | man -l -
#[derive(Args)]
pub(crate) struct Man {
    /// Command
    command: Option<String>,
}

impl Man {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let mut whole = Cli::command();
        whole.build();
        let command = match self.command {
            None => whole,
            Some(name) => match whole.find_subcommand(&name) {
                Some(found) => found.clone(),
                None => bail!("there is no command `{name}`"),
            },
        };
        // `clap_mangen` omits the help of options that the short help hides.
        let page = Page::new(command.mut_args(|option| option.hide_short_help(false)));
        let mut text = Vec::new();
        page.render(&mut text).context("cannot render the page")?;
        // `clap_mangen` has no heading for the examples, and would join their lines.
        let text = String::from_utf8_lossy(&text);
        print(text.replace(".SH EXTRA\nExamples:\n", ".SH EXAMPLES\n.nf\n").as_bytes())
    }
}

fn print(text: &[u8]) -> Result<ExitCode> {
    crate::batch::print_line(String::from_utf8_lossy(text).trim_end())?;
    Ok(ExitCode::SUCCESS)
}
