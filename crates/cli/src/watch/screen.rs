//! The output of the live view: scrolling lines, and a prompt below them.

use std::io::{self, Write as _};

/// Standard output on a terminal.
#[derive(Debug)]
pub(super) struct Screen {
    /// Whether the terminal supports escape codes.
    escapes: bool,
    /// The prompt in the last line.
    prompt: Option<Prompt>,
}

#[derive(Debug)]
struct Prompt {
    text: String,
    /// Whether the terminal shows the user's input after it.
    echoes: bool,
}

impl Screen {
    pub(super) fn new(escapes: bool) -> Self {
        Self { escapes, prompt: None }
    }

    /// Prints lines above the prompt.
    pub(super) fn print(&mut self, lines: &[String]) -> io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        let prompt = self.prompt.take();
        let mut text = self.clearing(prompt.as_ref()).to_owned() + &lines.join("\n");
        text.push('\n');
        text.push_str(prompt.as_ref().map_or("", |prompt| &prompt.text));
        self.prompt = prompt;
        write_out(&text)
    }

    /// Shows a prompt, and replaces another one. It must fit on one line; otherwise it could not be cleared.
    pub(super) fn show_prompt(&mut self, text: String, echoes: bool) -> io::Result<()> {
        write_out(&format!("{}{text}", self.clearing(self.prompt.as_ref())))?;
        self.prompt = Some(Prompt { text, echoes });
        Ok(())
    }

    pub(super) fn clear_prompt(&mut self) -> io::Result<()> {
        let prompt = self.prompt.take();
        write_out(self.clearing(prompt.as_ref()))
    }

    /// Notes that the user has ended the line of the prompt.
    pub(super) fn line_ended(&mut self) {
        self.prompt = None;
    }

    /// Draws the user's attention to the prompt.
    pub(super) fn ring(&self) -> io::Result<()> {
        write_out("\x07")
    }

    /// The escape sequence that clears a prompt.
    fn clearing(&self, prompt: Option<&Prompt>) -> &'static str {
        match prompt {
            None => "",
            Some(prompt) if self.escapes && !prompt.echoes => "\r\x1b[K",
            // The user's input may take several lines.
            Some(_) => "\n",
        }
    }
}

fn write_out(text: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(text.as_bytes())?;
    output.flush()
}
