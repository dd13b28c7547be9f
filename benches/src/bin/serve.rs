//! The server: from its start to its first answer, and what a call through it costs over the library.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot be set up has nothing to measure")]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use pinfold::Session;
use pinfold_benches::{compare, compare_slow};
use pinfold_dialects::{CLASSIC, Toolbox};
use pinfold_testkit::mcp::{Lines, Web, alone};
use serde_json::{Value, json};

const LINE: &str = "let total = items.iter().map(|item| item.price * item.count).sum();\n";

fn main() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    fs::write(&path, LINE.repeat(100)).unwrap();
    let cat = || {
        let output = Command::new("cat").arg(&path).output().unwrap();
        assert_eq!(output.stdout.len(), 100 * LINE.len());
    };
    let call = json!({"file_path": path});

    let start = || {
        let mut server = Lines::initialized(&mut serve(dir.path(), &[]), json!({}));
        assert_eq!(server.call("Read", &call)["isError"], false);
    };
    compare_slow("start, handshake, read 7 KB, end / cat", 100, start, cat);

    let mut server = Lines::initialized(&mut serve(dir.path(), &[]), json!({}));
    let mut through_stdio = || assert_eq!(server.call("Read", &call)["isError"], false);
    compare("read 7 KB, stdio / cat as a process", 50, &mut through_stdio, cat);
    let toolbox = Toolbox::new(Session::open([dir.path()]).unwrap(), &[&CLASSIC]);
    let in_library = || {
        let text = toolbox.call("Read", call.clone()).to_json_text();
        assert!(text.starts_with("{\"success\":true"));
    };
    compare("read 7 KB, stdio / the library, JSON to JSON", 100, &mut through_stdio, in_library);

    let web = Web::start(&mut serve(dir.path(), &["--http", "127.0.0.1:0"]));
    let mut connection = Kept::new(&web);
    let mut over_http = || assert_eq!(connection.call("Read", &call)["isError"], false);
    compare("read 7 KB, HTTP / cat as a process", 50, &mut over_http, cat);
    compare("read 7 KB, HTTP / the library, JSON to JSON", 100, &mut over_http, in_library);
}

fn serve(root: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(std::env::var("PINFOLD_BIN").unwrap());
    command.args(["serve", "--no-journal", "--root"]).arg(root).args(more);
    command
}

/// One connection over HTTP that is used again and again, for requests that stand alone.
struct Kept {
    stream: BufReader<TcpStream>,
    head: String,
}

impl Kept {
    fn new(web: &Web) -> Self {
        let stream = web.connect();
        stream.set_nodelay(true).unwrap();
        let head = [
            "POST /mcp HTTP/1.1".to_owned(),
            format!("Host: {}", web.address),
            format!("Authorization: Bearer {}", web.token),
            "Content-Type: application/json".to_owned(),
            "Accept: application/json, text/event-stream".to_owned(),
            "MCP-Protocol-Version: 2026-07-28".to_owned(),
            "Mcp-Method: tools/call".to_owned(),
        ];
        Self { stream: BufReader::new(stream), head: head.join("\r\n") }
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments, "_meta": alone("bench")});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let body = body.to_string();
        let request = format!(
            "{}\r\nMcp-Name: {tool}\r\nContent-Length: {}\r\n\r\n{body}",
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
