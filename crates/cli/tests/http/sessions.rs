//! Sessions, named conversations, and many clients at once.

use std::fs;
use std::io::{Read as _, Write as _};

use pinfold_testkit::mcp::{alone, answer};
use serde_json::{Value, json};

use crate::{Place, read};

#[test]
fn sessions_do_not_share_what_they_have_read() {
    let place = Place::new(&[("a.txt", "one\n")]);
    let web = place.serve(&[]);
    let path = place.file("a.txt");
    let (one, two) = (web.session(), web.session());
    web.call(&one, "Read", &read(&path));
    let write = json!({"file_path": path, "content": "two\n"});
    let refused = answer(&web.call(&two, "Write", &write).message());
    assert_eq!(refused["metadata"]["code"], "not_read");
    let error = refused["error"].as_str().unwrap();
    assert!(error.contains("`read_before_write = \"off\"`"), "{error}");
    assert_eq!(answer(&web.call(&one, "Write", &write).message())["success"], true);
}

#[test]
fn sessions_end() {
    let place = Place::new(&[("a.txt", "one\n")]);
    let web = place.serve(&[]);
    let session = web.session();
    let path = place.file("a.txt");
    assert_eq!(web.call(&session, "Read", &read(&path)).status, 200);
    let bearer = format!("Bearer {}", web.token);
    let headers = [("Authorization", bearer.as_str()), ("Mcp-Session-Id", session.as_str())];
    assert_eq!(web.send("DELETE", "/mcp", &headers, b"").status, 204);
    assert_eq!(web.call(&session, "Read", &read(&path)).status, 404);
    assert_eq!(web.call("no-such-session", "Read", &read(&path)).status, 404);
    assert_eq!(web.send("DELETE", "/mcp", &headers, b"").status, 404);
}

#[test]
fn idle_sessions_end() {
    let place = Place::new(&[("a.txt", "one\n")]);
    place.configure("[http]\nidle_seconds = 1\n");
    let web = place.serve(&[]);
    let session = web.session();
    let path = place.file("a.txt");
    let limit = std::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        std::thread::sleep(std::time::Duration::from_secs(2));
        if web.call(&session, "Read", &read(&path)).status == 404 {
            break;
        }
        assert!(std::time::Instant::now() < limit, "the session does not end");
    }
}

#[test]
fn there_is_a_limit_on_sessions() {
    let place = Place::new(&[]);
    place.configure("[http]\nmax_sessions = 2\n");
    let web = place.serve(&[]);
    let (one, _two) = (web.session(), web.session());
    let params = pinfold_testkit::mcp::initialize(json!({}));
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    let reply = web.post(&[], &hello);
    assert_eq!(reply.status, 503, "{reply:?}");
    assert_eq!(web.post(&[("Mcp-Session-Id", "\u{ff}")], &hello).status, 503);
    assert!(reply.header("retry-after").is_some());
    let bearer = format!("Bearer {}", web.token);
    let headers = [("Authorization", bearer.as_str()), ("Mcp-Session-Id", one.as_str())];
    web.send("DELETE", "/mcp", &headers, b"");
    web.session();
}

#[test]
fn requests_that_stand_alone_belong_to_the_conversation_that_they_name() {
    let place = Place::new(&[("a.txt", "one\n")]);
    let web = place.serve(&[]);
    let path = place.file("a.txt");
    let call = |client: &str, session: Option<Value>, tool: &str, arguments: Value| {
        let mut meta = alone(client);
        meta.extend(session.map(|session| ("pinfold/session".to_owned(), session)));
        web.alone("tools/call", json!({"name": tool, "arguments": arguments}), meta).message()
    };
    let write = |number: u32| json!({"file_path": path, "content": format!("{number}\n")});
    let code = |message: Value| answer(&message)["metadata"]["code"].clone();
    call("a", None, "Read", read(&path));
    assert_eq!(code(call("b", None, "Write", write(1))), "not_read");
    assert_eq!(code(call("a", Some(json!("x")), "Write", write(1))), "not_read");
    assert_eq!(code(call("a", None, "Write", write(1))), Value::Null);
    // Only the name counts, whichever client sends it.
    call("a", Some(json!("x")), "Read", read(&path));
    assert_eq!(code(call("b", Some(json!("x")), "Write", write(2))), Value::Null);
    for wrong in [json!(""), json!(3), json!("x".repeat(201))] {
        let refused = call("a", Some(wrong), "Read", read(&path));
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    // Requests without a conversation are answered, too.
    let list = web.alone("tools/list", json!({}), alone("a"));
    assert_eq!(list.header("content-type"), Some("application/json"));
    assert_eq!(list.message()["result"]["tools"].as_array().unwrap().len(), 10);
}

#[test]
fn of_two_clients_with_one_name_none_overwrites_the_other() {
    let place = Place::new(&[("a.txt", "one\n")]);
    let web = place.serve(&[]);
    let path = place.file("a.txt");
    let call = |tool: &str, arguments: Value| {
        let params = json!({"name": tool, "arguments": arguments});
        answer(&web.alone("tools/call", params, alone("same")).message())
    };
    let write = |content: &str| json!({"file_path": path, "content": content});
    // The first client reads, then the second.
    call("Read", read(&path));
    call("Read", read(&path));
    assert_eq!(call("Write", write("of the second\n"))["success"], true);
    assert_eq!(call("Write", write("of the first\n"))["metadata"]["code"], "not_read");
    call("Read", read(&path));
    let edit = |old: &str| json!({"file_path": path, "old_string": old, "new_string": "x"});
    assert_eq!(call("Edit", edit("second"))["success"], true);
    assert_eq!(call("Edit", edit("of the"))["metadata"]["code"], "not_read");
}

#[test]
fn of_too_many_conversations_the_oldest_is_forgotten() {
    let place = Place::new(&[("a.txt", "one\n")]);
    place.configure("[http]\nmax_sessions = 2\n");
    let web = place.serve(&[]);
    let path = place.file("a.txt");
    let call = |client: &str, tool: &str, arguments: Value| {
        let params = json!({"name": tool, "arguments": arguments});
        answer(&web.alone("tools/call", params, alone(client)).message())
    };
    for client in ["a", "b", "c"] {
        call(client, "Read", read(&path));
    }
    let write = |content: &str| json!({"file_path": path, "content": content});
    assert_eq!(call("a", "Write", write("two\n"))["metadata"]["code"], "not_read");
    assert_eq!(call("c", "Write", write("three\n"))["success"], true);
}

#[test]
fn sixty_four_clients_at_once_get_right_answers() {
    const CLIENTS: usize = 64;
    const CALLS: usize = 50;
    let place = Place::new(&[]);
    for client in 0..CLIENTS {
        fs::write(place.file(&format!("{client}.txt")), format!("client {client}\n")).unwrap();
    }
    let web = place.serve(&["--dialect", "all"]);
    // Connections that send nothing do not block others.
    let stalled: Vec<_> = (0..32)
        .map(|number| {
            let mut stream = web.connect();
            if number % 2 == 0 {
                let head = format!("POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Length: 100\r\n\r\n{{", web.address, web.token);
                stream.write_all(head.as_bytes()).unwrap();
            } else {
                stream.write_all(b"POST /mcp HT").unwrap();
            }
            stream
        })
        .collect();
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (web, place) = (&web, &place);
            scope.spawn(move || {
                let name = format!("{client}.txt");
                let session = (client % 2 == 0).then(|| web.session());
                for number in 0..CALLS {
                    // Half of them have sessions, and half of the requests are stateless.
                    let call = |tool: &str, arguments: Value| {
                        let reply = match &session {
                            Some(session) => web.call(session, tool, &arguments),
                            None => {
                                let params = json!({"name": tool, "arguments": arguments});
                                web.alone("tools/call", params, alone(&format!("client {client}")))
                            }
                        };
                        answer(&reply.message())
                    };
                    let path = place.file(&name);
                    match number % 5 {
                        0 => {
                            let content = call("Read", read(&path))["content"].clone();
                            assert!(content.as_str().unwrap().contains(&format!("client {client}\n")));
                        }
                        1 => {
                            let old = format!("client {client}");
                            let edit = json!({"file_path": path, "old_string": old, "new_string": format!("{number} {old}")});
                            assert_eq!(call("Edit", edit)["success"], true);
                        }
                        2 => {
                            let found = call("file.search", json!({"pattern": format!("client {client}$")}));
                            assert_eq!(found["matches"][0]["path"], name, "{found}");
                        }
                        3 => assert_eq!(call("get_file_info", json!({"path": name}))["name"], name),
                        _ => assert_eq!(call("file.read", json!({"path": "none"}))["error"], "file_not_found"),
                    }
                }
            });
        }
    });
    for client in 0..CLIENTS {
        let content = fs::read_to_string(place.file(&format!("{client}.txt"))).unwrap();
        let edits: String = (0..CALLS)
            .filter(|number| number % 5 == 1)
            .map(|number| format!("{number} "))
            .collect();
        assert_eq!(content, format!("{edits}client {client}\n"));
    }
    drop(stalled);
}

#[test]
fn a_stalled_reader_holds_nobody_up() {
    let place = Place::new(&[("a.txt", "one\n")]);
    fs::write(place.file("large.txt"), "0123456789\n".repeat(100_000)).unwrap();
    let web = place.serve(&["--dialect", "dotted"]);
    let session = web.session();
    // Requests large results several times, and reads nothing.
    let stalled: Vec<_> = (0..20)
        .map(|number| {
            let params = json!({"name": "file.read", "arguments": {"path": "large.txt"}});
            let id = format!("stalled {number}");
            let ask = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
            let body = ask.to_string();
            let head = web.head(&[
                &format!("Mcp-Session-Id: {session}"),
                &format!("Content-Length: {}", body.len()),
            ]);
            let mut stream = web.connect();
            write!(stream, "{head}\r\n{body}").unwrap();
            stream
        })
        .collect();
    for session in [session, web.session()] {
        let reply = web.call(&session, "file.read", &json!({"path": "a.txt"}));
        assert_eq!(answer(&reply.message())["total_lines"], 1);
    }
    let mut first = [0; 15];
    let mut stream = &stalled[0];
    stream.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200 OK");
}
