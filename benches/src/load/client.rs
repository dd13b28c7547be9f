//! A client with a session, over one persistent connection.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use pinfold_testkit::mcp::Web;
use serde_json::{Value, json};

/// A client with a session.
pub(crate) struct Client {
    stream: BufReader<TcpStream>,
    head: String,
    id: u64,
}

impl Client {
    /// Begins a session.
    pub(crate) fn new(web: &Web) -> Self {
        let session = web.session();
        let stream = web.connect();
        stream.set_nodelay(true).unwrap();
        let head =
            web.head(&["MCP-Protocol-Version: 2025-11-25", &format!("Mcp-Session-Id: {session}")]);
        Self { stream: BufReader::with_capacity(16 * 1024, stream), head, id: 0 }
    }

    /// Makes a call: a tool, its arguments, and whether it should succeed. Returns whether it did as expected.
    pub(crate) fn call(&mut self, (tool, arguments, succeeds): (&str, Value, bool)) -> bool {
        let (status, body) = self.ask(tool, &arguments);
        let error = format!("\"isError\":{}", !succeeds);
        let right = status == 200 && body.contains(&error);
        if !right {
            eprintln!("{tool} {arguments}: {status} {}", body.get(..300).unwrap_or(&body));
        }
        right
    }

    /// The status of the answer to a call.
    pub(crate) fn status(&mut self, (tool, arguments, _): (&str, Value, bool)) -> u16 {
        self.ask(tool, &arguments).0
    }

    fn ask(&mut self, tool: &str, arguments: &Value) -> (u16, String) {
        self.id += 1;
        let params = json!({"name": tool, "arguments": arguments});
        let call =
            json!({"jsonrpc": "2.0", "id": self.id, "method": "tools/call", "params": params});
        let body = call.to_string();
        let request = format!("{}Content-Length: {}\r\n\r\n{body}", self.head, body.len());
        self.stream.get_mut().write_all(request.as_bytes()).unwrap();
        let line = self.line();
        let status = line.split(' ').nth(1).unwrap_or_else(|| panic!("`{line}`")).parse().unwrap();
        let (mut length, mut chunked) = (0, false);
        loop {
            let line = self.line().to_ascii_lowercase();
            match line.split_once(": ") {
                Some(("content-length", value)) => length = value.parse().unwrap(),
                Some(("transfer-encoding", value)) => chunked = value == "chunked",
                None if line.is_empty() => break,
                _ => {}
            }
        }
        let mut body = Vec::new();
        if chunked {
            loop {
                let size = usize::from_str_radix(&self.line(), 16).unwrap();
                self.take(size, &mut body);
                assert_eq!(self.line(), "");
                if size == 0 {
                    break;
                }
            }
        } else {
            self.take(length, &mut body);
        }
        (status, String::from_utf8(body).unwrap())
    }

    fn take(&mut self, bytes: usize, body: &mut Vec<u8>) {
        let start = body.len();
        body.resize(start + bytes, 0);
        self.stream.read_exact(&mut body[start..]).unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}
