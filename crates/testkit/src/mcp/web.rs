//! A client of a server over HTTP.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Map, Value, json};

/// A server over HTTP, usually a child process.
#[derive(Debug)]
pub struct Web {
    process: Option<Child>,
    /// Its address.
    pub address: String,
    /// Its token.
    pub token: String,
    /// The line with the path of the token file.
    pub token_line: String,
    /// The path of the workspace for messages: `/mcp`, or `/mcp/NAME`.
    pub path: String,
}

/// A response.
#[derive(Debug)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// The headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

impl Reply {
    /// The first header with a name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The messages in the body: one as JSON, or several as events.
    pub fn messages(&self) -> Vec<Value> {
        if self.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream")) {
            let data = self.body.lines().filter_map(|line| line.strip_prefix("data:"));
            let data = data.map(str::trim).filter(|data| !data.is_empty());
            return data.map(|data| serde_json::from_str(data).unwrap()).collect();
        }
        vec![serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{self:?}"))]
    }

    /// The last message: the response to the request.
    pub fn message(&self) -> Value {
        self.messages().pop().unwrap_or_else(|| panic!("{self:?}"))
    }
}

impl Web {
    /// Starts the server, which is `pinfold serve --http …`, and waits until it listens.
    pub fn start(command: &mut Command) -> Self {
        let mut process = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(process.stderr.take().unwrap()).lines();
        let mut line = || output.next().expect("it prints its address").unwrap();
        let first = line();
        let place = first.strip_prefix("listening on http://").and_then(|it| it.split_once('/'));
        let (address, path) = place.unwrap_or_else(|| panic!("{first}"));
        let (address, path) = (address.to_owned(), format!("/{path}"));
        let token_line = line();
        let token = match token_line.strip_prefix("the token is in ") {
            Some(file) => std::fs::read_to_string(file).unwrap().trim().to_owned(),
            None => String::new(),
        };
        // Reads the rest of the output, so that the server does not block.
        std::thread::spawn(move || {
            output.for_each(|line| eprintln!("{}", line.unwrap_or_default()))
        });
        Self { process: Some(process), address, token, token_line, path }
    }

    /// A running server that needs no token.
    pub fn at(address: impl ToString) -> Self {
        Self::opened(address, "", "/mcp")
    }

    /// A running server, with the token and path of a workspace.
    pub fn opened(address: impl ToString, token: &str, path: &str) -> Self {
        let (token, path, token_line) = (token.to_owned(), path.to_owned(), String::new());
        Self { process: None, address: address.to_string(), token, token_line, path }
    }

    /// A connection to it.
    pub fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.address).unwrap()
    }

    /// Sends a request with these headers and a few that HTTP needs.
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            head += &format!("Host: {}\r\n", self.address);
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += &format!("Content-Length: {}\r\n\r\n", body.len());
        let mut stream = self.connect();
        stream.write_all(head.as_bytes()).unwrap();
        // The server may answer before it has read everything.
        _ = stream.write_all(body);
        read_reply(stream)
    }

    /// Sends a message with the token and the usual headers, and more headers.
    pub fn post(&self, headers: &[(&str, &str)], message: &Value) -> Reply {
        let bearer = format!("Bearer {}", self.token);
        let mut all = vec![
            ("Authorization", bearer.as_str()),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ];
        all.extend(headers);
        self.send("POST", &self.path, &all, message.to_string().as_bytes())
    }

    /// The head of a request with the token, the usual headers and more, for tests that write to a connection
    /// themselves. It lacks the empty line at its end, so that headers can be added.
    pub fn head(&self, more: &[&str]) -> String {
        let mut head = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n",
            self.path, self.address, self.token
        );
        more.iter().for_each(|header| head += &format!("{header}\r\n"));
        head
    }

    /// Begins a session with a protocol version before 2026-07-28. Returns its id.
    pub fn session(&self) -> String {
        let params = super::initialize(json!({}));
        let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let reply = self.post(&[], &message);
        assert_eq!(reply.status, 200, "{reply:?}");
        let session = reply.header("mcp-session-id").unwrap().to_owned();
        let done = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(self.post(&[("Mcp-Session-Id", &session)], &done).status, 202);
        session
    }

    /// Calls a tool in a session.
    pub fn call(&self, session: &str, tool: &str, arguments: &Value) -> Reply {
        let params = json!({"name": tool, "arguments": arguments});
        // Ids are unique within a session.
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let message = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        let headers = [("Mcp-Session-Id", session), ("MCP-Protocol-Version", "2025-11-25")];
        self.post(&headers, &message)
    }

    /// Sends a stateless request.
    pub fn alone(&self, method: &str, mut params: Value, meta: Map<String, Value>) -> Reply {
        params["_meta"] = meta.into();
        let name = params["name"].as_str().unwrap_or_default().to_owned();
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let mut headers = vec![("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method)];
        if !name.is_empty() {
            headers.push(("Mcp-Name", &name));
        }
        self.post(&headers, &message)
    }

    /// The server's process.
    pub fn process(&mut self) -> &mut Child {
        self.process.as_mut().expect("it was started here")
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            _ = process.kill();
            _ = process.wait();
        }
    }
}

fn read_reply(stream: TcpStream) -> Reply {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    let status = line.split(' ').nth(1).unwrap_or_else(|| panic!("no status in `{line}`"));
    let status = status.parse().unwrap();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let chunked =
        headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
    let mut body = Vec::new();
    if chunked {
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).unwrap();
            let size = usize::from_str_radix(line.trim(), 16).unwrap();
            let mut chunk = vec![0; size + 2];
            stream.read_exact(&mut chunk).unwrap();
            body.extend_from_slice(&chunk[..size]);
            if size == 0 {
                break;
            }
        }
    } else {
        _ = stream.read_to_end(&mut body);
    }
    Reply { status, headers, body: String::from_utf8(body).unwrap() }
}
