//! The requests of the page, without a browser.

use std::io::{BufRead as _, BufReader, Write as _};

use pinfold_testkit::mcp::answer;
use serde_json::{Value, json};

use crate::access::enter;
use crate::stage::{Page, Stage, write};

/// A page whose client has the cookie.
struct Entered<'p> {
    page: &'p Page,
    cookie: String,
}

impl<'p> Entered<'p> {
    fn new(page: &'p Page) -> Self {
        Self { page, cookie: enter(page) }
    }

    fn get(&self, name: &str, query: &Value) -> (u16, Value) {
        // Every byte is percent-encoded, which is always valid.
        let query: String = query.to_string().bytes().map(|byte| format!("%{byte:02x}")).collect();
        let path = format!("{}api/{name}?{query}", self.page.base_and_query().0);
        let reply = self.page.web().send("GET", &path, &[("Cookie", &self.cookie)], b"");
        (reply.status, serde_json::from_str(&reply.body).unwrap())
    }

    fn undo(&self, request: &Value) -> (u16, Value) {
        let path = format!("{}api/undo", self.page.base_and_query().0);
        let origin = format!("http://{}", self.page.address());
        let headers = [
            ("Cookie", self.cookie.as_str()),
            ("Origin", &origin),
            ("Content-Type", "application/json"),
        ];
        let body = request.to_string();
        let reply = self.page.web().send("POST", &path, &headers, body.as_bytes());
        (reply.status, serde_json::from_str(&reply.body).unwrap())
    }

    fn changes(&self, query: &Value) -> Vec<Value> {
        let (status, listed) = self.get("changes", query);
        assert_eq!(status, 200, "{listed}");
        listed["changes"].as_array().unwrap().clone()
    }
}

#[test]
fn changes_are_listed_in_parts_shown_and_undone() {
    let stage = Stage::new(&[]);
    let mut server = stage.serve(&[]);
    for number in 0..7 {
        let done = server.request("tools/call", write("a.txt", &format!("{number}\n")));
        assert_eq!(answer(&done)["success"], true);
    }
    let page = stage.page(&[]);
    let page = Entered::new(&page);
    let all = page.changes(&json!({}));
    assert_eq!(all.len(), 7);
    assert_eq!((&all[0]["kind"], &all[6]["kind"]), (&json!("changed"), &json!("created")));
    // In parts, each after the one before.
    let (_, first) = page.get("changes", &json!({"limit": 4}));
    assert_eq!((first["changes"].as_array().unwrap().len(), &first["more"]), (4, &json!(true)));
    let (_, rest) = page.get("changes", &json!({"limit": 4, "before": all[3]["id"]}));
    assert_eq!(
        (rest["changes"].as_array().unwrap(), &rest["more"]),
        (&all[4..].to_vec(), &json!(false))
    );
    // In a time.
    let (since, until) = (&all[4]["time"], &all[1]["time"]);
    let between = page.changes(&json!({"since": since, "until": until}));
    assert!(between.iter().all(|change| all[2..=4].contains(change)), "{between:?}");
    let id = all[0]["id"].as_str().unwrap();
    let (_, shown) = page.get("change", &json!({"id": id}));
    assert!(shown["diff"]["diff"].as_str().unwrap().ends_with("-5\n+6\n"), "{shown}");
    let compare =
        json!({"path": stage.file("a.txt"), "from": {"after": all[6]["id"]}, "to": "now"});
    let (_, compared) = page.get("compare", &compare);
    assert!(compared["diff"].as_str().unwrap().ends_with("-0\n+6\n"), "{compared}");
    // A preview changes nothing.
    let (_, preview) = page.undo(&json!({"what": {"change": id}, "preview": true}));
    assert_eq!(
        (&preview["files"][0]["what"], stage.content("a.txt").as_str()),
        (&json!("restored"), "6\n")
    );
    let (_, undone) = page.undo(&json!({"what": {"change": id}, "preview": false}));
    assert_eq!(
        (undone["refused"].as_array().unwrap().len(), stage.content("a.txt").as_str()),
        (0, "5\n")
    );
    let newest = page.changes(&json!({"limit": 2}));
    assert_eq!((&newest[0]["undoes"], &newest[1]["undone"]), (&json!(id), &json!(true)));
    // An older change cannot be undone before the later ones, and the answer says why.
    let older = json!({"what": {"change": all[3]["id"]}, "preview": true});
    let (status, refused) = page.undo(&older);
    assert_eq!(
        (status, &refused["refused"][0]["why"]),
        (200, &json!("its content has changed since"))
    );
    // All changes of the session. The page's undo belongs to another session.
    let session = json!({"session": all[0]["session"]});
    let (_, others) = page.undo(&json!({"what": session, "preview": true, "leave_out": true}));
    assert_eq!(others["refused"][0]["path"], json!(stage.file("a.txt")), "{others}");
    let (_, redone) = page.undo(&json!({"what": {"change": undone["id"]}, "preview": false}));
    assert_eq!((&redone["refused"], stage.content("a.txt").as_str()), (&json!([]), "6\n"));
}

#[test]
fn deny_rules_and_read_only_hold_on_the_page_too() {
    let stage = Stage::new(&[]);
    let mut server = stage.serve(&[]);
    server.request("tools/call", write("secret.txt", "secret\n"));
    server.request("tools/call", write("open.txt", "open\n"));
    let strict = stage.page(&["--deny", "*(secret.txt)"]);
    let strict = Entered::new(&strict);
    let [open, secret] = &strict.changes(&json!({}))[..] else { panic!() };
    let (status, shown) = strict.get("change", &json!({"id": secret["id"]}));
    assert!(status == 422 && !shown.to_string().contains("+secret"), "{shown}");
    let (_, refused) = strict.undo(&json!({"what": {"change": secret["id"]}, "preview": false}));
    assert_eq!(refused["files"], json!([]), "{refused}");
    assert!(stage.file("secret.txt").exists());
    let read_only = stage.page(&["--read-only"]);
    let read_only = Entered::new(&read_only);
    assert_eq!(read_only.get("change", &json!({"id": open["id"]})).0, 200);
    let (_, refused) = read_only.undo(&json!({"what": {"change": open["id"]}, "preview": false}));
    assert_eq!(refused["files"], json!([]), "{refused}");
    assert!(stage.file("open.txt").exists());
}

#[test]
fn events_begin_with_what_there_is_and_go_on_with_what_comes() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let mut server = stage.serve(&["--mode", "default"]);
    let page = stage.page(&[]);
    let entered = Entered::new(&page);
    let mut stream = page.web().connect();
    let (base, address) = (page.base_and_query().0, page.address());
    let cookie = &entered.cookie;
    write!(stream, "GET {base}events HTTP/1.1\r\nHost: {address}\r\nCookie: {cookie}\r\n\r\n")
        .unwrap();
    let mut lines = BufReader::new(stream).lines();
    let mut next = || loop {
        let line = lines.next().unwrap().unwrap();
        if let Some(data) = line.strip_prefix("data: ") {
            return serde_json::from_str::<Value>(data).unwrap();
        }
    };
    assert_eq!(next()["type"], "hello");
    let server_event = next();
    assert_eq!(
        (&server_event["type"], &server_event["clients"]),
        (&json!("server"), &json!(["testkit"]))
    );
    server.ask("tools/call", write("a.txt", "two\n"));
    assert_eq!(next()["type"], "call_started");
    let request = next();
    assert_eq!(
        (&request["type"], &request["server"]),
        (&json!("approval_request"), &server_event["server"])
    );
    assert!(request["preview"].as_str().unwrap().ends_with("-one\n+two"), "{request}");
}
