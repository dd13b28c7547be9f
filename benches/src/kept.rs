//! A client over HTTP with a persistent connection.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use pinfold_testkit::mcp::{Web, alone};
use serde_json::{Value, json};

/// A persistent HTTP connection for stateless requests.
#[derive(Debug)]
pub(crate) struct Kept {
    stream: BufReader<TcpStream>,
    head: String,
}

impl Kept {
    /// Connects.
    pub(crate) fn new(web: &Web) -> Self {
        let stream = web.connect();
        stream.set_nodelay(true).unwrap();
        let head = web.head(&["MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call"]);
        Self { stream: BufReader::new(stream), head }
    }

    /// Calls a tool, and returns the result.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments, "_meta": alone("bench")});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let body = body.to_string();
        let request = format!(
            "{}Mcp-Name: {tool}\r\nContent-Length: {}\r\n\r\n{body}",
            self.head,
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes()).unwrap();
        let mut length = 0;
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).unwrap();
            match line.trim_end().split_once(": ") {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.parse().unwrap();
                }
                None if line.trim_end().is_empty() => break,
                _ => {}
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).unwrap();
        let answer: Value = serde_json::from_slice(&body).unwrap();
        answer["result"].clone()
    }
}
