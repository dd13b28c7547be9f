//! A server on standard input and output that is told to end finishes the calls under way.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

use pinfold::{Mode, Session, Settings};
use pinfold_dialects::{DOTTED, Toolbox};
use pinfold_mcp::{Options, Service, Stop, stdio};
use pinfold_testkit::mcp::{answer, initialize};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::io::{Lines, ReadHalf, WriteHalf, duplex, split};
use tokio::task::JoinHandle;

/// A client of a server that asks before it changes anything.
struct Client {
    dir: TempDir,
    stop: Stop,
    served: JoinHandle<std::io::Result<()>>,
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    write: WriteHalf<DuplexStream>,
}

impl Client {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut settings = Settings::default();
        settings.permissions.mode = Mode::Ask;
        let session = Session::with_settings([dir.path()], settings).unwrap();
        let service = Service::new(Toolbox::new(session, &[&DOTTED]), Options::default());
        let (ours, theirs) = duplex(1 << 20);
        let (input, output) = split(theirs);
        let stop = Stop::default();
        let stopped = stop.clone();
        let served =
            tokio::spawn(async move { stdio::serve_on(&service, input, output, stopped).await });
        let (read, write) = split(ours);
        Self { dir, stop, served, lines: BufReader::new(read).lines(), write }
    }

    async fn send(&mut self, message: Value) {
        self.write.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn request(&mut self, id: u64, method: &str, params: Value) {
        let head = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(head).await;
    }

    async fn next(&mut self) -> Option<Value> {
        let line = self.lines.next_line().await.unwrap();
        line.map(|line| serde_json::from_str(&line).unwrap())
    }

    /// Begins a change, and returns the id of the question whether to make it.
    async fn begin(&mut self) -> Value {
        self.request(1, "initialize", initialize(json!({"elicitation": {}}))).await;
        assert_eq!(self.next().await.unwrap()["id"], 1);
        self.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        let arguments = json!({"path": "a.txt", "content": "new\n"});
        let call = json!({"name": "file.write", "arguments": arguments});
        self.request(2, "tools/call", call).await;
        let question = self.next().await.unwrap();
        assert_eq!(question["method"], "elicitation/create", "{question}");
        question["id"].clone()
    }
}

#[tokio::test]
async fn a_call_under_way_is_finished_and_new_ones_are_refused() {
    let mut client = Client::new();
    let question = client.begin().await;
    client.stop.drain.cancel();
    client.request(3, "ping", json!({})).await;
    let refused = client.next().await.unwrap();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(3), &json!(-32030)));
    let result = json!({"action": "accept", "content": {"answer": "allow once"}});
    client.send(json!({"jsonrpc": "2.0", "id": question, "result": result})).await;
    let done = client.next().await.unwrap();
    assert_eq!(answer(&done)["bytes_written"], 4, "{done}");
    // The input is still open.
    client.served.await.unwrap().unwrap();
    assert!(client.dir.path().join("a.txt").exists());
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_cancelled() {
    let mut client = Client::new();
    client.begin().await;
    client.stop.drain.cancel();
    client.stop.now.cancel();
    client.served.await.unwrap().unwrap();
    assert!(!client.dir.path().join("a.txt").exists());
}

#[tokio::test]
async fn a_server_without_calls_ends_at_once() {
    for begun in [false, true] {
        let mut client = Client::new();
        if begun {
            client.request(1, "initialize", initialize(json!({}))).await;
            client.next().await.unwrap();
        }
        client.stop.drain.cancel();
        assert_eq!(client.next().await, None);
        client.served.await.unwrap().unwrap();
    }
}
