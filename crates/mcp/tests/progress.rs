//! A client that asks for it is told how far a search has come.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test makes real files")]

use std::time::Duration;

use pinfold::Session;
use pinfold_dialects::{CLASSIC, Toolbox};
use pinfold_mcp::{CancellationToken, Options, Service, stdio};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

#[tokio::test]
async fn a_search_says_how_far_it_has_come() {
    let dir = tempfile::tempdir().unwrap();
    for number in 0..5_000 {
        let parent = dir.path().join(format!("{}", number / 100));
        std::fs::create_dir_all(&parent).unwrap();
        std::fs::write(parent.join(format!("{number}.txt")), "text\n").unwrap();
    }
    let toolbox = Toolbox::new(Session::open([dir.path()]).unwrap(), &[&CLASSIC]);
    let options = Options { progress_every: Duration::ZERO, ..Options::default() };
    let service = Service::new(toolbox, options);
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let (input, output) = tokio::io::split(theirs);
    let served = tokio::spawn(async move {
        stdio::serve_on(&service, input, output, CancellationToken::new()).await
    });
    let (read, mut write) = tokio::io::split(ours);
    let mut lines = BufReader::new(read).lines();
    let client = json!({"name": "test", "version": "1"});
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    let call = |id: u64, meta: Value| {
        let arguments = json!({"pattern": "nowhere"});
        let params = json!({"name": "Grep", "arguments": arguments, "_meta": meta});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    };
    for message in [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
        call(2, json!({"progressToken": "p"})),
        call(3, json!({})),
    ] {
        write.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }
    let mut progress = Vec::new();
    let mut answered = 0;
    while answered < 3 {
        let line = lines.next_line().await.unwrap().unwrap();
        let message: Value = serde_json::from_str(&line).unwrap();
        match message.get("method") {
            Some(method) => {
                assert_eq!(method, "notifications/progress");
                assert_eq!(message["params"]["progressToken"], "p");
                progress.push(message["params"]["progress"].as_f64().unwrap());
            }
            None => answered += 1,
        }
    }
    assert!(!progress.is_empty());
    assert!(progress.is_sorted_by(|one, next| one < next), "{progress:?}");
    assert!(*progress.last().unwrap() <= 5_050.0);
    drop((lines, write));
    served.await.unwrap().unwrap();
}
