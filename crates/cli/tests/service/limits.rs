//! Limits of each token: calls, bytes and sessions. They apply to that token only.

use std::fs;

use pinfold_testkit::mcp::{Reply, Web, initialize};
use serde_json::json;

use crate::{Place, called, holder, read};

/// Checks a refusal for a limit, and returns its `Retry-After` in seconds.
fn refused(reply: &Reply, id: i64, limit: &str) -> u64 {
    assert_eq!(reply.status, 429, "{reply:?}");
    let message = reply.message();
    let error = &message["error"];
    assert_eq!((&message["id"], &error["code"]), (&json!(id), &json!(-32029)), "{message}");
    assert_eq!(error["data"]["limit"], limit);
    reply.header("retry-after").unwrap().parse().unwrap()
}

#[test]
fn more_calls_than_a_token_may_make_are_refused() {
    let place = Place::new(&["one"]);
    let few = place.token("one", "few", &["--max-calls-per-second", "1"]);
    let many = place.token("one", "many", &[]);
    let server = place.serve(&[]);
    let (few, many) = (holder(&server, "one", &few), holder(&server, "one", &many));
    let ping = json!({"jsonrpc": "2.0", "id": 7, "method": "ping"});
    let post = |web: &Web| web.post(&[], &ping);
    // More at once than a second's worth.
    let replies: Vec<Reply> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..50).map(|_| scope.spawn(|| post(&few))).collect();
        all.into_iter().map(|reply| reply.join().unwrap()).collect()
    });
    let over: Vec<&Reply> = replies.iter().filter(|reply| reply.status == 429).collect();
    assert!(!over.is_empty() && over.len() < 50, "{}", over.len());
    for reply in over {
        assert_eq!(refused(reply, 7, "1 calls a second"), 1);
    }
    // Other tokens are not affected.
    assert!((0..50).all(|_| post(&many).status != 429));
}

#[test]
fn more_bytes_than_a_token_may_have_are_waited_for() {
    let place = Place::new(&["one"]);
    place.configure(&format!(
        "{}[http]\nmax_token_bytes_per_second = 10000\n",
        place.table("one", "max_output_bytes = 2000000")
    ));
    fs::write(place.file("one", "large.txt"), "0123456789\n".repeat(100_000)).unwrap();
    let usual = place.token("one", "usual", &[]);
    let more = place.token("one", "more", &["--max-bytes-per-second", "1000000000"]);
    let server = place.serve(&[]);
    for (token, limit) in [(usual, Some("10000 bytes a second")), (more, None)] {
        let web = holder(&server, "one", &token);
        let session = web.session();
        // A running call is answered as a whole.
        let answer = called(&web, &session, "file.read", &read("large.txt"));
        assert!(answer["content"].as_str().unwrap().len() > 1_000_000);
        let ping = json!({"jsonrpc": "2.0", "id": 3, "method": "ping"});
        let reply = web.post(&[("Mcp-Session-Id", &session)], &ping);
        match limit {
            Some(limit) => {
                let seconds = refused(&reply, 3, limit);
                assert!((60..=600).contains(&seconds), "{seconds}");
            }
            None => assert_eq!(reply.status, 200),
        }
    }
}

#[test]
fn more_sessions_than_a_token_may_have_are_refused() {
    let place = Place::new(&["one"]);
    let few = place.token("one", "few", &["--max-sessions", "2"]);
    let many = place.token("one", "many", &[]);
    let server = place.serve(&[]);
    let (few, many) = (holder(&server, "one", &few), holder(&server, "one", &many));
    let sessions = [few.session(), few.session()];
    let params = initialize(json!({}));
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    let reply = few.post(&[], &hello);
    assert_eq!((reply.status, reply.header("retry-after").is_some()), (429, true), "{reply:?}");
    assert!(reply.body.contains("sessions (2)"), "{reply:?}");
    many.session();
    let bearer = format!("Bearer {}", few.token);
    let headers = [("Authorization", bearer.as_str()), ("Mcp-Session-Id", sessions[0].as_str())];
    assert_eq!(few.send("DELETE", "/mcp/one", &headers, b"").status, 204);
    few.session();
}

#[test]
#[cfg(target_os = "linux")]
fn searches_have_a_lower_priority_than_other_calls() {
    let place = Place::new(&["one"]);
    let token = place.token("one", "agent", &[]);
    let mut server = place.serve(&[]);
    let process = server.process().id();
    let client = holder(&server, "one", &token);
    let session = client.session();
    // A thread stays for some seconds after its call.
    let threads = || -> Vec<i32> {
        let threads = fs::read_dir(format!("/proc/{process}/task")).unwrap().map_while(Result::ok);
        let lines = threads.filter_map(|it| fs::read_to_string(it.path().join("stat")).ok());
        // The name, in parentheses, may have spaces.
        let nice = |line: String| line.rsplit_once(')')?.1.split(' ').nth(17)?.parse().ok();
        lines.filter_map(nice).collect()
    };
    let own = rustix::process::getpriority_process(None).unwrap();
    let is_low = |nice: &i32| *nice > own;
    called(&client, &session, "file.write", &json!({"path": "new.txt", "content": "new\n"}));
    called(&client, &session, "file.read", &read("new.txt"));
    let nices = threads();
    assert!(nices.len() > 1 && !nices.iter().any(is_low), "{nices:?}");
    crate::eventually("a search has the priority of other calls", || {
        called(&client, &session, "file.search", &json!({"pattern": "one"}));
        threads().iter().any(is_low)
    });
}
