//! Asks for approval on the terminal.
//!
//! Input that was typed before a question is discarded, so it does not answer the question.

use std::io::{BufRead as _, BufReader, IsTerminal as _, Write as _};

use pinfold::{ApprovalAnswer, ApprovalRequest, Approver};
use pinfold_confine::terminal;
use rustix::termios::{QueueSelector, tcflush};

/// A few screens, so that the beginning of the question stays in the scroll-back.
const MAX_PREVIEW_CHARS: usize = 20_000;

/// Asks on the controlling terminal, even if standard input and output are redirected.
#[derive(Debug)]
pub(crate) struct Terminal;

impl Terminal {
    /// The controlling terminal, if there is one and standard error is shown on it.
    pub(crate) fn if_present() -> Option<Self> {
        (std::io::stderr().is_terminal() && terminal().is_ok()).then_some(Self)
    }
}

impl Approver for Terminal {
    fn ask(&self, request: &ApprovalRequest) -> ApprovalAnswer {
        ask(request).unwrap_or(ApprovalAnswer::Unavailable)
    }
}

fn ask(request: &ApprovalRequest) -> std::io::Result<ApprovalAnswer> {
    let terminal = terminal()?;
    let mut input = BufReader::new(&terminal);
    let mut output = &terminal;
    let preview = request.preview(MAX_PREVIEW_CHARS);
    if !preview.is_empty() {
        writeln!(output, "{preview}")?;
    }
    loop {
        tcflush(&terminal, QueueSelector::IFlush)?;
        write!(output, "{} [y]es, [s]ession, [N]o: ", request.headline())?;
        output.flush()?;
        let mut answer = String::new();
        if input.read_line(&mut answer)? == 0 {
            return Ok(ApprovalAnswer::Unavailable);
        }
        match answer.trim().to_lowercase().as_str() {
            "y" | "yes" => return Ok(ApprovalAnswer::Once),
            "s" | "session" => return Ok(ApprovalAnswer::Session),
            "" | "n" | "no" => return Ok(ApprovalAnswer::Denied(None)),
            // A denial with a message for the agent.
            other if other.starts_with("no ") || other.starts_with("no,") => {
                let message = answer.trim()["no".len()..].trim_start_matches([',', ' ']);
                return Ok(ApprovalAnswer::Denied(Some(message.to_owned())));
            }
            _ => {}
        }
    }
}
