//! Asking the person at the terminal.

use std::io::{BufRead as _, BufReader, IsTerminal as _, Write as _};

use pinfold::{ApprovalAnswer, ApprovalRequest, Approver};
use pinfold_confine::terminal;

/// Asks on the terminal that the process belongs to, whatever its input and output are.
#[derive(Debug)]
pub(crate) struct Terminal;

impl Terminal {
    /// If there is one, and a person sees what is said on it.
    pub(crate) fn there() -> Option<Self> {
        (std::io::stderr().is_terminal() && terminal().is_ok()).then_some(Self)
    }
}

impl Approver for Terminal {
    fn ask(&self, question: &ApprovalRequest) -> ApprovalAnswer {
        converse(question).unwrap_or(ApprovalAnswer::Nobody)
    }
}

fn converse(question: &ApprovalRequest) -> std::io::Result<ApprovalAnswer> {
    let terminal = terminal()?;
    let mut input = BufReader::new(&terminal);
    let mut output = &terminal;
    if let Some(diff) = &question.diff {
        // What is in files must not be able to talk to the terminal.
        writeln!(output, "{}", pinfold::escaped_lines(diff))?;
    }
    loop {
        write!(output, "{} [y]es, [s]ession, [N]o: ", question.headline())?;
        output.flush()?;
        let mut answer = String::new();
        if input.read_line(&mut answer)? == 0 {
            return Ok(ApprovalAnswer::Nobody);
        }
        match answer.trim().to_lowercase().as_str() {
            "y" | "yes" => return Ok(ApprovalAnswer::Once),
            "s" | "session" => return Ok(ApprovalAnswer::Session),
            "" | "n" | "no" => return Ok(ApprovalAnswer::No(None)),
            // Words, then, but not a yes.
            other if other.starts_with("no ") || other.starts_with("no,") => {
                let words = answer.trim()["no".len()..].trim_start_matches([',', ' ']);
                return Ok(ApprovalAnswer::No(Some(words.to_owned())));
            }
            _ => {}
        }
    }
}
