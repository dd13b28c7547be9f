//! A client on a server's standard input and output.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use serde_json::{Value, json};

/// A server that runs as a child process, with one message per line.
#[derive(Debug)]
pub struct Lines {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    requests: u64,
}

impl Lines {
    /// Starts the server.
    pub fn start(command: &mut Command) -> Self {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = process.stdin.take();
        let output = BufReader::new(process.stdout.take().unwrap());
        Self { process, input, output, requests: 0 }
    }

    /// Starts the server and a conversation with a protocol version before 2026-07-28.
    pub fn initialized(command: &mut Command, capabilities: Value) -> Self {
        let mut lines = Self::start(command);
        lines.request("initialize", super::initialize(capabilities));
        lines.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        lines
    }

    /// Sends a line unchanged.
    pub fn send_raw(&mut self, line: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line).and_then(|()| input.write_all(b"\n")).unwrap();
    }

    /// Sends a message.
    pub fn send(&mut self, message: &Value) {
        self.send_raw(message.to_string().as_bytes());
    }

    /// The next message from the server. Returns `None` after the last one.
    pub fn read(&mut self) -> Option<Value> {
        let mut line = String::new();
        let read = self.output.read_line(&mut line).unwrap();
        (read > 0)
            .then(|| serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line}")))
    }

    /// Sends a request and does not wait. Returns its id.
    pub fn ask(&mut self, method: &str, params: Value) -> u64 {
        self.requests += 1;
        let id = self.requests;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Sends a request and waits for its response. Other messages are dropped.
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        loop {
            let message = self.read().expect("the server sends no more");
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }

    /// Calls a tool, and returns the result.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let answer = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        answer.get("result").unwrap_or_else(|| panic!("{answer}")).clone()
    }

    /// Closes the input, and waits until the server has ended. Returns the messages that it sent meanwhile.
    pub fn end(mut self) -> (ExitStatus, Vec<Value>) {
        drop(self.input.take());
        let mut rest = Vec::new();
        while let Some(message) = self.read() {
            rest.push(message);
        }
        (self.process.wait().unwrap(), rest)
    }

    /// The server's process.
    pub fn process(&mut self) -> &mut Child {
        &mut self.process
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        drop(self.input.take());
        _ = self.process.wait();
    }
}
