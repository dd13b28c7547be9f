//! A root on a file system that hangs blocks only its own calls, and those only until their deadline.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test makes real files")]

use std::ffi::CString;
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use pinfold::{Session, Settings};
use pinfold_dialects::{CLASSIC, Toolbox};
use pinfold_mcp::{Options, Service, Stop, stdio};
use pinfold_testkit::mcp::{answer, initialize};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

/// A FUSE mount whose server never answers. When this is dropped, everything that waits for it fails.
struct HungMount {
    at: PathBuf,
    server: Option<File>,
}

impl HungMount {
    fn new(at: &Path) -> Option<Self> {
        let server = File::options().read(true).write(true).open("/dev/fuse").ok()?;
        let fd = server.as_raw_fd();
        let options = format!("fd={fd},rootmode=40000,user_id=0,group_id=0,allow_other");
        let options = CString::new(options).unwrap();
        mount("hung", at, "fuse", MountFlags::empty(), options.as_c_str()).ok()?;
        Some(Self { at: at.to_owned(), server: Some(server) })
    }
}

impl Drop for HungMount {
    fn drop(&mut self) {
        // Closing it aborts the connection, so nothing waits for the mount any longer.
        self.server = None;
        _ = unmount(&self.at, UnmountFlags::DETACH);
    }
}

#[test]
fn a_mount_that_hangs_stops_only_its_own_calls() {
    let dir = tempfile::tempdir().unwrap();
    let [hung, fine] = ["hung", "fine"].map(|name| dir.path().join(name));
    for root in [&hung, &fine] {
        std::fs::create_dir(root).unwrap();
        std::fs::write(root.join("a.txt"), "one\n").unwrap();
    }
    let settings = Settings::default().with_deadline_seconds(1);
    let session = Session::with_settings([&hung, &fine], settings).unwrap();
    let Some(mounted) = HungMount::new(&hung) else {
        let why = "NOT TRIED: FUSE cannot be mounted here (that takes /dev/fuse and root)";
        return pinfold_testkit::skipped(why);
    };
    // If the server hangs, so does its runtime with every timer. The test must fail even then.
    let (done, is_done) = mpsc::channel::<()>();
    let watchdog = std::thread::spawn(move || {
        let hangs = is_done.recv_timeout(Duration::from_secs(60));
        drop(mounted);
        assert!(hangs != Err(mpsc::RecvTimeoutError::Timeout), "the server does not answer");
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let conversation = async {
        let service = Service::new(Toolbox::new(session, &[&CLASSIC]), Options::default());
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (input, output) = tokio::io::split(theirs);
        tokio::spawn(
            async move { stdio::serve_on(&service, input, output, Stop::default()).await },
        );
        let (read, mut write) = tokio::io::split(ours);
        let mut lines = BufReader::new(read).lines();
        let read = |id: u64, path: PathBuf| {
            let params = json!({"name": "Read", "arguments": {"file_path": path}});
            json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
        };
        let capabilities = json!({"roots": {"listChanged": true}});
        let params = initialize(capabilities);
        let roots = |path: &Path| json!([{"uri": format!("file://{}", path.display())}]);
        let messages = [
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            read(2, hung.join("a.txt")),
        ];
        for message in messages {
            write.write_all(format!("{message}\n").as_bytes()).await.unwrap();
        }
        // For call 2 the client has no roots, so the whole workspace is left; 3 and 4 come while it hangs. For call 5
        // it has a root that hangs; 6 comes meanwhile.
        let mut answers = Vec::new();
        let mut asked = [json!([]), roots(&hung)].into_iter();
        while answers.len() < 6 {
            let line = lines.next_line().await.unwrap().unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            let mut next = Vec::new();
            if message["method"] == "roots/list" {
                let roots = asked.next().unwrap();
                next.push(
                    json!({"jsonrpc": "2.0", "id": message["id"], "result": {"roots": roots}}),
                );
                next.push(if asked.len() == 1 {
                    read(3, fine.join("a.txt"))
                } else {
                    json!({"jsonrpc": "2.0", "id": 6, "method": "ping"})
                });
            } else if message["id"] == 3 {
                next.push(json!({"jsonrpc": "2.0", "id": 4, "method": "ping"}));
            } else if message["id"] == 2 {
                let method = "notifications/roots/list_changed";
                next.push(json!({"jsonrpc": "2.0", "method": method}));
                next.push(read(5, fine.join("a.txt")));
            }
            if message["method"].is_null() {
                answers.push(message);
            }
            for message in next {
                write.write_all(format!("{message}\n").as_bytes()).await.unwrap();
            }
        }
        answers
    };
    let answers = runtime.block_on(conversation);
    drop(done);
    watchdog.join().unwrap();
    let by_id = |id: u64| answers.iter().find(|message| message["id"] == id).unwrap();
    for id in [2, 5] {
        assert_eq!(answer(by_id(id))["metadata"]["code"], "timeout", "{answers:#?}");
    }
    assert!(by_id(3).to_string().contains("one"), "{}", by_id(3));
    for id in [4, 6] {
        assert_eq!(by_id(id)["result"], json!({}), "{answers:#?}");
    }
}
