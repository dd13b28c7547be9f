//! `pinfold watch`

mod lines;
mod live;
mod screen;
mod terminal;

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::sync::mpsc::sync_channel;

use anyhow::Result;
use clap::Args;
use pinfold_feed::{Update, Watcher};

use crate::batch::print_line;
use crate::viewer::ViewerOptions;
use lines::Lines;
use screen::Screen;
use terminal::Terminal;

/// Watch running servers: calls and changes as they happen, and approval requests to answer
///
/// Shows all running servers of this user, including those that start later. Asks for approval if standard output is
/// a terminal; otherwise it only prints. Keys: `y` allows once, `s` for the session, `n` denies, `m` denies with a
/// message for the agent, `d` shows the whole diff, `p` pauses changes or resumes them, `q` quits.
#[derive(Args)]
pub(crate) struct Watch {
    /// Print events as JSON, one object per line, and do not answer requests
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    servers: ViewerOptions,
}

/// The maximum number of updates that wait to be printed. After that, servers queue them.
const MAX_WAITING: usize = 1_000;

impl Watch {
    pub(crate) fn run(self) -> Result<ExitCode> {
        if self.json {
            return self.print(|update| vec![update.to_json()]);
        }
        let on_terminal = std::io::stdout().is_terminal();
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let escapes = on_terminal && std::env::var_os("TERM").is_none_or(|kind| kind != "dumb");
        let mut lines = Lines::new(escapes && !no_color, !self.servers.roots.is_empty());
        match on_terminal.then(Terminal::open) {
            Some(Ok(terminal)) => live::run(&self.servers, lines, terminal, Screen::new(escapes)),
            Some(Err(_)) | None => self.print(move |update| lines.of(update, usize::MAX)),
        }
    }

    /// Prints updates, and does not ask for approval.
    fn print(&self, mut lines: impl FnMut(&Update) -> Vec<String>) -> Result<ExitCode> {
        let (sender, updates) = sync_channel(MAX_WAITING);
        let options = self.servers.watch_options(false)?;
        let _watcher = Watcher::start(options, move |update| _ = sender.send(update))?;
        for update in updates {
            lines(&update).iter().try_for_each(|line| print_line(line))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
