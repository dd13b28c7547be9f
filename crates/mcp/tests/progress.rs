//! A client that sends a progress token gets progress notifications.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test makes real files")]

use std::time::Duration;

use pinfold::Session;
use pinfold_dialects::{CLASSIC, Toolbox};
use pinfold_mcp::{Options, Service, Stop, stdio};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

/// How many names the one large file has.
const NAMES: usize = 2_500;

#[tokio::test]
async fn a_search_says_how_far_it_has_come() {
    // Far more than can be searched before the first progress report, but quick to create. So the search runs until
    // it is cancelled.
    let dir = tempfile::tempdir().unwrap();
    let large = dir.path().join("0.txt");
    std::fs::write(&large, "nothing to be found in this line\n".repeat(1 << 20)).unwrap();
    for number in 1..NAMES {
        std::fs::hard_link(&large, dir.path().join(format!("{number}.txt"))).unwrap();
    }
    std::fs::create_dir(dir.path().join("small")).unwrap();
    let toolbox = Toolbox::new(Session::open([dir.path()]).unwrap(), &[&CLASSIC]);
    let options = Options { progress_every: Duration::ZERO, ..Options::default() };
    let service = Service::new(toolbox, options);
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let (input, output) = tokio::io::split(theirs);
    let served =
        tokio::spawn(
            async move { stdio::serve_on(&service, input, output, Stop::default()).await },
        );
    let (read, mut write) = tokio::io::split(ours);
    let mut lines = BufReader::new(read).lines();
    let client = json!({"name": "test", "version": "1"});
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    let call = |id: u64, path: &str, meta: Value| {
        let arguments = json!({"pattern": "nowhere", "path": dir.path().join(path)});
        let params = json!({"name": "Grep", "arguments": arguments, "_meta": meta});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    };
    for message in [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
        call(2, "", json!({"progressToken": "p"})),
        call(3, "small", json!({})),
    ] {
        write.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }
    let mut progress: Vec<f64> = Vec::new();
    let mut answered = Vec::new();
    // Progress ends when every entry was visited, although most files have not been searched yet.
    let is_complete = |progress: &[f64]| {
        progress.len() >= 3 || progress.last().is_some_and(|met| *met >= NAMES as f64)
    };
    while !is_complete(&progress) || answered.len() < 2 {
        let line = lines.next_line().await.unwrap().unwrap();
        let message: Value = serde_json::from_str(&line).unwrap();
        match message.get("method") {
            Some(method) => {
                assert_eq!(method, "notifications/progress");
                assert_eq!(message["params"]["progressToken"], "p");
                progress.push(message["params"]["progress"].as_f64().unwrap());
            }
            None => answered.push(message["id"].as_u64().unwrap()),
        }
        assert!(!answered.contains(&2), "it was over without a word: {line}");
    }
    assert!(progress.is_sorted_by(|one, next| one < next), "{progress:?}");
    assert!(*progress.last().unwrap() <= (NAMES + 1) as f64, "{progress:?}");
    let enough = json!({"requestId": 2});
    let enough = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": enough});
    write.write_all(format!("{enough}\n").as_bytes()).await.unwrap();
    drop((lines, write));
    served.await.unwrap().unwrap();
}
