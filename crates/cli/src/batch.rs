//! `pinfold batch`

use std::io::{self, BufRead, Read as _, Write as _};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Args;
use pinfold::Error;
use pinfold_dialects::{Answer, Toolbox, core_dialects};
use pinfold_mcp::limits::MAX_MESSAGE_BYTES;
use serde_json::Value;

use crate::options::SessionOptions;

/// Call many tools in one session: one JSON object per line in, one result per line out
///
/// Each line of standard input is {"tool": NAME, "args": OBJECT}. Each result, including an error, is one line of
/// JSON on standard output, written before the next line is read. Without `--dialect`, the tools of `classic`,
/// `dotted` and `scoped` can be called. Exits with 0 at the end of the input, even if tools returned errors.
#[derive(Args)]
pub(crate) struct Batch {
    #[command(flatten)]
    options: SessionOptions,
}

impl Batch {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let toolbox = self.options.toolbox(self.options.configure()?.settings, &core_dialects())?;
        let mut input = io::stdin().lock();
        let mut line = Vec::new();
        loop {
            let read = read_line(&mut input, MAX_MESSAGE_BYTES, &mut line);
            let answer = match read.context("cannot read standard input")? {
                Line::End => return Ok(ExitCode::SUCCESS),
                Line::TooLong => refuse(
                    &toolbox,
                    format!(
                        "a line can have at most {MAX_MESSAGE_BYTES} bytes; make several calls"
                    ),
                ),
                Line::Whole if line.trim_ascii().is_empty() => continue,
                Line::Whole => answer(&toolbox, &line),
            };
            print_line(&answer.to_json_text())?;
        }
    }
}

/// How much of a line was read.
#[derive(Debug, Eq, PartialEq)]
enum Line {
    Whole,
    /// The rest was skipped.
    TooLong,
    /// The input has ended.
    End,
}

/// Reads a line of at most `max` bytes.
fn read_line(input: &mut impl BufRead, max: usize, line: &mut Vec<u8>) -> io::Result<Line> {
    line.clear();
    let read = input.by_ref().take(max as u64 + 1).read_until(b'\n', line)?;
    if read > max && line.last() != Some(&b'\n') {
        input.skip_until(b'\n')?;
        return Ok(Line::TooLong);
    }
    Ok(if read == 0 { Line::End } else { Line::Whole })
}

fn refuse(toolbox: &Toolbox, problem: String) -> Answer {
    toolbox.error_answer(&Error::InvalidArgument(problem))
}

fn answer(toolbox: &Toolbox, line: &[u8]) -> Answer {
    match parse(line) {
        Ok((tool, arguments)) => toolbox.call(&tool, arguments),
        Err(problem) => {
            let shape = "a line must be {\"tool\": NAME, \"args\": OBJECT}";
            refuse(toolbox, format!("{shape}: {problem}"))
        }
    }
}

fn parse(line: &[u8]) -> Result<(String, Value), String> {
    let request: Value = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let Value::Object(mut request) = request else { return Err("it is not an object".into()) };
    let tool = match request.remove("tool") {
        Some(Value::String(tool)) => tool,
        Some(_) => return Err("`tool` is not a string".into()),
        None => return Err("`tool` is missing".into()),
    };
    let arguments = request.remove("args").unwrap_or_default();
    match request.keys().next() {
        Some(unknown) => Err(format!("there is no `{unknown}`")),
        None => Ok((tool, arguments)),
    }
}

/// Prints a line and flushes it.
pub(crate) fn print_line(text: &str) -> Result<()> {
    let mut output = io::stdout().lock();
    let written = output.write_all(text.as_bytes()).and_then(|()| output.write_all(b"\n"));
    written.and_then(|()| output.flush()).context("cannot write to standard output")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_that_is_too_long_is_skipped_and_the_next_one_is_read() {
        let mut input = &b"1234\n12345\n123456789\n12\n12345"[..];
        let mut line = Vec::new();
        let mut next = || {
            let read = read_line(&mut input, 4, &mut line).unwrap();
            assert!(line.len() <= 5, "{line:?}");
            (read, line.clone())
        };
        assert_eq!(next(), (Line::Whole, b"1234\n".to_vec()));
        assert_eq!(next().0, Line::TooLong);
        assert_eq!(next().0, Line::TooLong);
        assert_eq!(next(), (Line::Whole, b"12\n".to_vec()));
        assert_eq!(next().0, Line::TooLong);
        assert_eq!(next().0, Line::End);
    }

    #[test]
    fn a_line_is_a_tool_and_its_arguments() {
        let parsed = parse(br#"{"tool": "Read", "args": {"a": 1}}"#).unwrap();
        assert_eq!(parsed, ("Read".into(), json!({"a": 1})));
        assert_eq!(parse(br#"{"tool": "Read"}"#).unwrap(), ("Read".into(), Value::Null));
        for (line, problem) in [
            (&b"[]"[..], "it is not an object"),
            (b"{}", "`tool` is missing"),
            (br#"{"tool": 1}"#, "`tool` is not a string"),
            (br#"{"tool": "Read", "arguments": {}}"#, "there is no `arguments`"),
            (b"\xFF", "expected value"),
            (b"{", "EOF"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(problem), "{error}");
        }
    }
}
