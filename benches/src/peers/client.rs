//! A client that does as little as possible between a request and its answer.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use pinfold_testkit::mcp::initialize;
use serde_json::{Value, json};

pub(crate) struct Client {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    requests: u64,
}

impl Client {
    /// Starts a server, and a conversation with it.
    pub(crate) fn start(command: &mut Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().unwrap();
        let input = process.stdin.take().unwrap();
        let output = BufReader::with_capacity(1 << 20, process.stdout.take().unwrap());
        let mut client = Self { process, input, output, requests: 0 };
        let id = client.send("initialize", &initialize(json!({})));
        client.answer(id);
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        client.write(&ready.to_string());
        client
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> String {
        let id = self.ask(tool, arguments);
        self.answer(id)
    }

    /// The answer, and the time from the first byte of the request to the last byte of the answer.
    pub(crate) fn timed(&mut self, tool: &str, arguments: &Value) -> (Duration, String) {
        self.requests += 1;
        let id = self.requests;
        let line = request(id, "tools/call", &json!({"name": tool, "arguments": arguments}));
        let begin = Instant::now();
        self.write(&line);
        let answer = self.answer(id);
        (begin.elapsed(), answer)
    }

    /// The number of answers per second for a while, with this many calls at once.
    pub(crate) fn rate(&mut self, at_once: usize, tool: &str, arguments: &Value) -> f64 {
        let begin = Instant::now();
        let mut rounds = 0_u32;
        while rounds < 8 || begin.elapsed() < Duration::from_millis(200) {
            self.together(at_once, tool, arguments);
            rounds += 1;
        }
        f64::from(rounds) * at_once as f64 / begin.elapsed().as_secs_f64()
    }

    /// Makes some calls at once, and waits for all answers.
    fn together(&mut self, count: usize, tool: &str, arguments: &Value) {
        for _ in 0..count {
            self.ask(tool, arguments);
        }
        let mut waiting = count;
        while waiting > 0 {
            let line = self.line();
            // Some servers send other messages while they work.
            if line.contains("\"result\"") {
                assert!(!line.contains("\"isError\":true"), "{line}");
                waiting -= 1;
            }
        }
    }

    /// The time of a quick call that is made right after a slow one.
    pub(crate) fn behind(&mut self, slow: (&str, &Value), quick: (&str, &Value)) -> Duration {
        let first = self.ask(slow.0, slow.1);
        let begin = Instant::now();
        let second = self.ask(quick.0, quick.1);
        let (mut took, mut waiting) = (None, 2);
        while waiting > 0 {
            let line = self.line();
            if is_answer(&line, second) {
                took = Some(begin.elapsed());
                waiting -= 1;
            } else if is_answer(&line, first) {
                waiting -= 1;
            }
        }
        took.unwrap()
    }

    /// Kilobytes, from a field of `/proc/PID/status`.
    pub(crate) fn memory(&self, field: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with(field)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    fn ask(&mut self, tool: &str, arguments: &Value) -> u64 {
        self.send("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.requests += 1;
        self.write(&request(self.requests, method, params));
        self.requests
    }

    fn write(&mut self, line: &str) {
        self.input.write_all(line.as_bytes()).and_then(|()| self.input.write_all(b"\n")).unwrap();
    }

    fn answer(&mut self, id: u64) -> String {
        loop {
            let line = self.line();
            if is_answer(&line, id) {
                return line;
            }
        }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        let read = self.output.read_line(&mut line).unwrap();
        assert!(read > 0, "the server has ended");
        line
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn request(id: u64, method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

/// Whether a message answers a request. Only the places where its id may be are checked, since a message may be long.
fn is_answer(line: &str, id: u64) -> bool {
    let bytes = line.trim_end().as_bytes();
    let (head, tail) = (&bytes[..bytes.len().min(80)], &bytes[bytes.len().saturating_sub(80)..]);
    let (head, tail) = (String::from_utf8_lossy(head), String::from_utf8_lossy(tail));
    let ends = [format!("\"id\":{id},"), format!("\"id\":{id}}}")];
    ends.iter().any(|end| head.contains(end) || tail.contains(end))
}

/// The time that a program takes, and its output.
pub(crate) fn program(name: &str, arguments: &Value) -> (Duration, String) {
    let arguments = arguments.as_array().into_iter().flatten().filter_map(Value::as_str);
    let mut command = Command::new(name);
    command.args(arguments).stdin(Stdio::null()).stderr(Stdio::null());
    let begin = Instant::now();
    let printed = command.output().unwrap().stdout;
    (begin.elapsed(), String::from_utf8_lossy(&printed).into_owned())
}

/// The text of an answer, and its media as they are sent; or the error message.
pub(crate) fn text(answer: &str) -> String {
    let answer: Value = serde_json::from_str(answer).unwrap();
    let blocks = answer["result"]["content"].as_array().cloned().unwrap_or_default();
    let content = |block: &Value| {
        ["text", "data"].iter().find_map(|key| Some(block[key].as_str()?.to_owned()))
    };
    let text: String = blocks.iter().filter_map(content).collect();
    if answer["result"]["isError"] == true || answer.get("error").is_some() {
        format!("ERROR {text} {}", answer["error"])
    } else {
        text
    }
}
