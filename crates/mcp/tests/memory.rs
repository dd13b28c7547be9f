//! The memory of requests and answers over HTTP: what is large waits for others, but not for ever.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test makes real files")]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use pinfold::Session;
use pinfold::limits::MAX_READ_BYTES;
use pinfold_dialects::{REFERENCE, Toolbox};
use pinfold_mcp::http::{self, Guard, HttpOptions, Listeners, ServedWorkspace};
use pinfold_mcp::limits::MAX_MESSAGE_BYTES;
use pinfold_mcp::{Options, Service, Stop};
use pinfold_testkit::mcp::Web;
use serde_json::json;
use tempfile::TempDir;
use tokio::runtime::Runtime;

struct Served {
    web: Web,
    _runtime: Runtime,
    _dir: TempDir,
}

impl Served {
    fn new(answer_wait: Duration) -> Self {
        Self::with(HttpOptions { answer_wait, ..HttpOptions::new(Guard::default()) })
    }

    fn with(options: HttpOptions) -> Self {
        let dir = TempDir::with_prefix("memory-").unwrap();
        std::fs::write(dir.path().join("a.bin"), vec![7; MAX_READ_BYTES as usize]).unwrap();
        let toolbox = Toolbox::new(Session::open([dir.path()]).unwrap(), &[&REFERENCE]);
        let service = Service::new(toolbox, Options::default());
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let web = Web::at(listener.local_addr().unwrap());
        runtime.spawn(async move {
            let workspaces = [ServedWorkspace::without_token(service)];
            let listeners = Listeners { clients: listener, metrics: None };
            http::serve(&workspaces, listeners, options, Stop::default()).await;
        });
        Self { web, _runtime: runtime, _dir: dir }
    }
}

#[test]
fn a_client_that_does_not_read_its_answers_makes_room_for_others() {
    let served = Served::new(Duration::from_millis(10));
    let Served { web, .. } = &served;
    let session = web.session();
    let call = |id: u64| {
        let params = json!({"name": "read_media_file", "arguments": {"path": "a.bin"}});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
    };
    // One after the other, so that the last call alone waits: a client whose answer is being sent counts as not reading
    // it if others wait for longer than `answer_wait`.
    let unread: Vec<TcpStream> = (0..3)
        .map(|number| {
            let (body, mut stream) = (call(1_000 + number), web.connect());
            let length = format!("Content-Length: {}", body.len());
            let head = web.head(&[&format!("Mcp-Session-Id: {session}"), &length]);
            write!(stream, "{head}\r\n{body}").unwrap();
            // So much is sent only after the file was read.
            stream.read_exact(&mut [0; 64 * 1024]).unwrap();
            stream
        })
        .collect();
    let reply = web.call(&session, "read_media_file", &json!({"path": "a.bin"}));
    let message = reply.message();
    let blob = &message["result"]["content"][0]["resource"]["blob"];
    assert!(blob.as_str().is_some_and(|blob| blob.len() as u64 > MAX_READ_BYTES), "{reply:.200?}");
    drop(unread);
}

#[test]
fn a_long_body_waits_until_there_is_memory_for_it() {
    let served = Served::new(Duration::MAX);
    let Served { web, .. } = &served;
    let begin = |header: &str| {
        let mut stream = web.connect();
        let head = web.head(&["Expect: 100-continue", header]);
        write!(stream, "{head}\r\n").unwrap();
        stream
    };
    // The server asks for the body when it begins to read it.
    let is_read = |stream: &mut TcpStream| {
        let mut answer = [0; 25];
        match stream.read_exact(&mut answer) {
            Ok(()) => assert_eq!(&answer, b"HTTP/1.1 100 Continue\r\n\r\n"),
            Err(_) => return false,
        }
        true
    };
    let long = format!("Content-Length: {MAX_MESSAGE_BYTES}");
    let mut first = begin(&long);
    assert!(is_read(&mut first));
    let mut second = begin(&long);
    assert!(is_read(&mut second));
    let mut third = begin(&long);
    third.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    assert!(!is_read(&mut third), "there is no memory for it");
    // Short ones do not wait, even if their length is unknown.
    assert!(is_read(&mut begin("Content-Length: 1000")));
    assert!(is_read(&mut begin("Transfer-Encoding: chunked")));
    web.session();
    drop(first);
    third.set_read_timeout(None).unwrap();
    assert!(is_read(&mut third));
}

#[test]
fn a_client_that_is_refused_can_send_its_whole_body_and_read_why() {
    let options = HttpOptions::new(Guard::default());
    let served = Served::with(HttpOptions { body_memory_wait: Duration::ZERO, ..options });
    let Served { web, .. } = &served;
    let refused = |web: &Web, bytes: usize| {
        let mut stream = web.connect();
        write!(stream, "{}\r\n", web.head(&[&format!("Content-Length: {bytes}")])).unwrap();
        // Sockets buffer less than this. Most clients report an error here, and do not read the answer.
        stream.write_all(&vec![b' '; bytes]).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, why) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains("\r\nconnection: close"), "{head}");
        (head["HTTP/1.1 ".len()..][..3].to_owned(), why.to_owned())
    };
    let (status, why) = refused(web, MAX_MESSAGE_BYTES + 1);
    assert!(status == "413" && why.contains("max_body_bytes"), "{status} {why}");
    let elsewhere = Web::opened(&web.address, "", "/elsewhere");
    assert_eq!(refused(&elsewhere, MAX_MESSAGE_BYTES / 4).0, "404");
    // Two others take all the memory, and send nothing.
    let others = [0, 1].map(|_| {
        let mut stream = web.connect();
        let length = format!("Content-Length: {MAX_MESSAGE_BYTES}");
        write!(stream, "{}\r\n", web.head(&["Expect: 100-continue", &length])).unwrap();
        stream.read_exact(&mut [0; 25]).unwrap();
        stream
    });
    let (status, why) = refused(web, MAX_MESSAGE_BYTES / 4);
    assert!(status == "503" && why.contains("send the request again later"), "{status} {why}");
    drop(others);
}
