//! Approval requests in a browser: their display, the effect of answers, and access.

use std::collections::HashSet;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use pinfold_feed::{Event, connect};
use pinfold_testkit::mcp::answer;
use serde_json::json;

use crate::browser::Browser;
use crate::stage::{Stage, answered, write};

#[test]
fn the_user_allows_and_denies_and_the_model_is_told() {
    let Some(browser) = Browser::start() else { return };
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let (mut server, _page, tab) = stage.watched(&browser, "default");
    tab.assert_accessible();
    let id = server.ask("tools/call", write("a.txt", "two\n"));
    tab.wait("article.request.ready");
    assert_eq!(tab.title(), "(1) request waits · Pinfold");
    assert!(tab.text("pin-request h3").contains("Allow changing"));
    assert_eq!(tab.text("pin-request .line.removed .code"), "one");
    assert_eq!(tab.text("pin-request .line.added .code"), "two");
    tab.assert_accessible();
    tab.click("pin-request >> text=Allow once");
    assert_eq!(answered(&mut server, id)["success"], true);
    assert_eq!(stage.content("a.txt"), "two\n");
    tab.wait_gone("pin-request");
    assert_eq!(tab.title(), "Pinfold");
    tab.wait(".row.call >> text=+1");
    // An approval for once covers one call.
    let id = server.ask("tools/call", write("a.txt", "three\n"));
    tab.wait("article.request.ready");
    tab.press("m");
    tab.wait("pin-request textarea");
    tab.assert_accessible();
    tab.fill("pin-request textarea", "Use <b>b.txt</b> instead");
    tab.press("Enter");
    let refused = answered(&mut server, id);
    assert_eq!(refused["error"], "permission_denied");
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("the user said no: Use <b>b.txt</b> instead"), "{message}");
    tab.wait_gone("pin-request");
    assert_eq!(stage.content("a.txt"), "two\n");
    // For the session, and by the keyboard.
    let id = server.ask("tools/call", write("a.txt", "three\n"));
    tab.wait("article.request.ready");
    tab.press("s");
    assert_eq!(answered(&mut server, id)["success"], true);
    let done = answer(&server.request("tools/call", write("a.txt", "four\n")));
    assert_eq!(
        (done["success"].as_bool(), stage.content("a.txt").as_str()),
        (Some(true), "four\n")
    );
    tab.assert_no_problems();
}

#[test]
fn a_second_key_does_not_answer_the_request_that_moves_up() {
    let Some(browser) = Browser::start() else { return };
    let stage = Stage::new(&[]);
    let (mut server, _page, tab) = stage.watched(&browser, "default");
    let first = server.ask("tools/call", write("a.txt", "a\n"));
    tab.wait("article.request.ready >> text=a.txt");
    let second = server.ask("tools/call", write("b.txt", "b\n"));
    tab.wait("article.request.ready >> text=b.txt");
    assert_eq!(tab.title(), "(2) requests wait · Pinfold");
    // Clicks faster than any user: the first answer, and another one as soon as its request has ended.
    tab.run(
        "const press = () => document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'a', bubbles: true})); press(); \
         new Promise((done) => new MutationObserver(() => { \
         if (document.querySelectorAll('pin-request').length === 1) { press(); done(); } }) \
         .observe(document, {childList: true, subtree: true}))",
    );
    assert_eq!(answered(&mut server, first)["success"], true);
    tab.wait("article.request.ready >> text=b.txt");
    assert!(!stage.file("b.txt").exists());
    tab.press("y");
    assert_eq!(answered(&mut server, second)["success"], true);
}

#[test]
fn while_changes_are_paused_every_change_asks() {
    let Some(browser) = Browser::start() else { return };
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let (mut server, _page, tab) = stage.watched(&browser, "bypassPermissions");
    assert_eq!(answer(&server.request("tools/call", write("a.txt", "two\n")))["success"], true);
    tab.press("p");
    tab.wait(".banner.paused");
    tab.assert_accessible();
    let id = server.ask("tools/call", write("a.txt", "three\n"));
    tab.wait("article.request.ready");
    assert_eq!(stage.content("a.txt"), "two\n");
    tab.press("y");
    assert_eq!(answered(&mut server, id)["success"], true);
    tab.click("text=Resume changes");
    tab.wait_gone(".banner.paused");
    assert_eq!(answer(&server.request("tools/call", write("a.txt", "four\n")))["success"], true);
}

#[test]
fn of_several_viewers_one_answers_and_all_see_the_end() {
    let Some(browser) = Browser::start() else { return };
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let mut server = stage.serve(&["--mode", "default"]);
    let (one_page, other_page) = (stage.page(&[]), stage.page(&[]));
    let (one, other) = (browser.open_page(&one_page), browser.open_page(&other_page));
    let second_tab = one.another(one_page.link.split('?').next().unwrap());
    let viewer = connect(&stage.path("feed"), &HashSet::new(), true).remove(0).1;
    let mut events = viewer.events().unwrap().map(Result::unwrap);
    for tab in [&one, &other, &second_tab] {
        tab.wait("article.server");
    }
    let id = server.ask("tools/call", write("a.txt", "two\n"));
    for tab in [&one, &other, &second_tab] {
        tab.wait("article.request.ready");
    }
    other.press("a");
    assert_eq!(answered(&mut server, id)["success"], true);
    for tab in [&one, &other, &second_tab] {
        tab.wait_gone("pin-request");
        tab.wait(".notice >> text=Allowed once");
    }
    assert!(events.any(|event| matches!(event, Event::ApprovalEnded { .. })));
    // The first answer counts: a later one is refused.
    let late = "fetch('api/answer', {method: 'POST', headers: {'content-type': 'application/json'}, \
                body: JSON.stringify({server: document.querySelector('pin-app').live.servers.keys().next().value, \
                request: 1, answer: 'no', message: null})}).then((reply) => reply.status)";
    assert_eq!(one.run(late), 409);
}

#[test]
fn a_server_that_is_killed_while_it_asks_takes_its_request_along() {
    let Some(browser) = Browser::start() else { return };
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let (mut server, page, tab) = stage.watched(&browser, "default");
    server.ask("tools/call", write("a.txt", "two\n"));
    tab.wait("article.request.ready");
    server.process().kill().unwrap();
    tab.wait_gone("pin-request");
    tab.wait(".notice >> text=Its server has ended");
    tab.wait(".servers >> text=No server is running");
    tab.assert_accessible();
    // The page itself ends: it says so.
    drop(page);
    tab.wait(".banner >> text=Disconnected");
    assert_eq!(stage.content("a.txt"), "one\n");
}

#[test]
fn no_page_is_asked_after_the_last_one_is_closed() {
    let Some(browser) = Browser::start() else { return };
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let (mut server, page, tab) = stage.watched(&browser, "default");
    let id = server.ask("tools/call", write("a.txt", "two\n"));
    tab.wait("article.request.ready");
    tab.close();
    // The request does not wait for a page that nobody sees.
    let refused = answered(&mut server, id);
    assert_eq!(refused["error"], "permission_denied", "{refused}");
    // A page that opens again is asked again.
    let tab = browser.open(page.link.split('?').next().unwrap());
    assert!(tab.text("body").contains("open the link"), "it is another browser");
}

#[test]
fn a_page_of_another_site_can_neither_read_nor_answer() {
    let Some(browser) = Browser::start() else { return };
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let (mut server, page, tab) = stage.watched(&browser, "default");
    let id = server.ask("tools/call", write("a.txt", "two\n"));
    tab.wait("article.request.ready");
    let name = tab.run("document.querySelector('pin-app').live.servers.keys().next().value");
    let base = page.link.split('?').next().unwrap();
    // Another server on this machine has the same site, since sites ignore ports. It even knows the path.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            _ = stream.read(&mut [0; 4096]);
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n";
            _ = stream.write_all(format!("{head}<title>evil</title>").as_bytes());
        }
    });
    let evil = tab.another(&format!("http://{address}/"));
    let body = json!({"server": name, "request": 1, "answer": "once", "message": null});
    for attack in [
        format!(
            "fetch('{base}api/changes?%7B%7D', {{credentials: 'include'}}).then((reply) => reply.text())"
        ),
        format!(
            "fetch('{base}api/answer', {{method: 'POST', credentials: 'include', headers: {{'content-type': 'application/json'}}, body: '{body}'}}).then((reply) => reply.text())"
        ),
        format!(
            "fetch('{base}api/answer', {{method: 'POST', mode: 'no-cors', credentials: 'include', body: '{body}'}}).then((reply) => reply.type)"
        ),
        format!(
            "new Promise((done) => {{ const source = new EventSource('{base}events', {{withCredentials: true}}); source.onmessage = () => done('read'); source.onerror = () => done('refused'); }})"
        ),
    ] {
        let got = evil.run(&format!("({attack}).catch(() => 'refused')"));
        assert!(got == "refused" || got == "opaque", "{attack}: {got}");
    }
    // As a form, and as a window.
    evil.run(&format!(
        "document.body.innerHTML = `<form method=post enctype=text/plain action='{base}api/answer'><input name='{{\"server\":{name},\"request\":1,\"answer\":\"once\",\"message\":\"' value='\"}}'></form>`; document.forms[0].submit()"
    ));
    tab.wait("article.request.ready");
    assert_eq!(stage.content("a.txt"), "one\n");
    tab.click("pin-request >> text=Deny with a message…");
    tab.click("pin-request .denying >> text=Deny");
    assert_eq!(answered(&mut server, id)["error"], "permission_denied");
}
