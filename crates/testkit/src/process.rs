//! A front end in another process, which reads one call per line and prints one result per line.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::FrontEnd;

/// A command that starts this test program again. Under emulation the kernel cannot do that, so the words of
/// `PINFOLD_EMULATOR` come first.
pub fn this_program() -> Command {
    let words = std::env::var("PINFOLD_EMULATOR").unwrap_or_default();
    let program = std::env::current_exe().unwrap();
    let mut words = words.split_whitespace();
    let Some(emulator) = words.next() else { return Command::new(program) };
    let mut command = Command::new(emulator);
    command.args(words).arg(program);
    command
}

/// A process that reads `{"tool", "args"}` lines and prints a result for each, until its input ends.
#[derive(Debug)]
pub struct Process {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Process {
    /// Starts it.
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, input, output }
    }
}

impl FrontEnd for Process {
    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let line = json!({"tool": tool, "args": arguments}).to_string();
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
        let mut answer = String::new();
        self.output.read_line(&mut answer).unwrap();
        serde_json::from_str(&answer).unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.input.take());
        let status = self.child.wait().unwrap();
        assert!(status.success() || std::thread::panicking(), "it ended with {status}");
    }
}
