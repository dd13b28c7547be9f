//! A call is answered at its deadline, or when it is cancelled, even if its thread hangs.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test makes real files")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use pinfold::media::{Deadline, Extracted, File, PdfReader, PdfRequest};
use pinfold::{Session, Settings};
use pinfold_dialects::{CLASSIC, DOTTED, Toolbox};
use pinfold_mcp::{Options, Service, Stop, stdio};
use pinfold_testkit::mcp::{answer, initialize};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines};
use tokio::io::{ReadHalf, WriteHalf};

/// Hangs without checking the deadline, like a read of a file system that hangs.
#[derive(Debug)]
struct Hangs;

static HANGING: Mutex<bool> = Mutex::new(true);
static RELEASED: Condvar = Condvar::new();
/// How many threads have begun to hang.
static HUNG: AtomicUsize = AtomicUsize::new(0);

/// Lets the threads end, even if the test fails, since the runtime waits for them.
struct Release;

impl Drop for Release {
    fn drop(&mut self) {
        *HANGING.lock().unwrap() = false;
        RELEASED.notify_all();
    }
}

impl PdfReader for Hangs {
    fn read(&self, _: File, _: PdfRequest, _: &Deadline) -> Result<Extracted, String> {
        let hanging = HANGING.lock().unwrap();
        HUNG.fetch_add(1, Ordering::Relaxed);
        drop(RELEASED.wait_while(hanging, |hanging| *hanging).unwrap());
        Err("it hangs no more".into())
    }
}

struct Client {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    write: WriteHalf<DuplexStream>,
    dir: TempDir,
    audit: TempDir,
    next: u64,
}

impl Client {
    async fn start(deadline_seconds: u64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.pdf"), "%PDF-1.7\n\0").unwrap();
        std::fs::write(dir.path().join("a.txt"), "one\n").unwrap();
        let audit = tempfile::tempdir().unwrap();
        let mut settings = Settings::default().with_deadline_seconds(deadline_seconds);
        settings.audit = Some(audit.path().join("log"));
        let session = Session::with_settings([dir.path()], settings).unwrap();
        let toolbox = Toolbox::new(session.with_pdf_reader(Hangs), &[&CLASSIC, &DOTTED]);
        let service = Service::new(toolbox, Options::default());
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (input, output) = tokio::io::split(theirs);
        tokio::spawn(
            async move { stdio::serve_on(&service, input, output, Stop::default()).await },
        );
        let (read, write) = tokio::io::split(ours);
        let lines = BufReader::new(read).lines();
        let mut client = Self { lines, write, dir, audit, next: 0 };
        client.request("initialize", initialize(json!({}))).await;
        client.read().await;
        client
    }

    async fn send(&mut self, message: Value) {
        self.write.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn request(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        let id = self.next;
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        id
    }

    async fn hang(&mut self) -> u64 {
        let arguments = json!({"file_path": self.dir.path().join("a.pdf")});
        self.request("tools/call", json!({"name": "Read", "arguments": arguments})).await
    }

    async fn hang_and_cancel(&mut self, calls: usize) {
        for _ in 0..calls {
            let hung = HUNG.load(Ordering::Relaxed);
            let cancelled = json!({"requestId": self.hang().await});
            // A call that is cancelled before its thread hangs just ends.
            while HUNG.load(Ordering::Relaxed) == hung {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            let method = "notifications/cancelled";
            self.send(json!({"jsonrpc": "2.0", "method": method, "params": cancelled})).await;
        }
    }

    /// The lines of the audit log about calls that hung.
    fn audited(&self) -> Vec<Value> {
        let log = std::fs::read_to_string(self.audit.path().join("log")).unwrap();
        let lines = log.lines().map(|line| serde_json::from_str(line).unwrap());
        lines.filter(|line: &Value| line["tool"] == "Read").collect()
    }

    async fn read(&mut self) -> Value {
        // Far longer than the test takes; without a limit it could wait forever.
        let line = tokio::time::timeout(Duration::from_secs(60), self.lines.next_line()).await;
        serde_json::from_str(&line.unwrap().unwrap().unwrap()).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_that_hangs_holds_up_no_answer_and_no_other_call() {
    let release = Release;
    let mut client = Client::start(1).await;
    let begin = Instant::now();
    let id = client.hang().await;
    let message = client.read().await;
    assert_eq!(message["id"], id);
    assert_eq!(answer(&message)["metadata"]["code"], "timeout", "{message}");
    assert!(begin.elapsed() >= Duration::from_secs(1));
    // The line was written before the answer, with what the thread had noted.
    let [line] = &client.audited()[..] else { panic!("{:?}", client.audited()) };
    assert_eq!(
        (&line["outcome"], &line["decision"]),
        (&json!("timeout"), &json!("allow")),
        "{line}"
    );
    client.hang_and_cancel(20).await;
    let write = json!({"name": "file.write", "arguments": {"path": "a.txt", "content": "two\n"}});
    let id = client.request("tools/call", write.clone()).await;
    let message = client.read().await;
    assert_eq!((message["id"].as_u64(), &answer(&message)["success"]), (Some(id), &json!(true)));
    // Once the maximum number of threads hang, every call that needs a thread is refused.
    client.hang_and_cancel(43).await;
    loop {
        client.request("tools/call", write.clone()).await;
        let refused = answer(&client.read().await);
        if refused["error"] == "timeout" {
            assert!(refused["message"].as_str().unwrap().contains("earlier calls hang"));
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // After they have ended, calls work again.
    drop(release);
    loop {
        client.request("tools/call", write.clone()).await;
        if answer(&client.read().await)["success"] == true {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(std::fs::read_to_string(client.dir.path().join("a.txt")).unwrap(), "two\n");
    // A thread that ends later writes no second line.
    assert_eq!(client.audited().len(), 1 + 20 + 43);
}
