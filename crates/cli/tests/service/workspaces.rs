//! Several workspaces: each is separate, and none reaches another.

use std::fs;

use pinfold_testkit::mcp::alone;
use serde_json::json;

use crate::{Place, called, exists, holder, read, structured};

#[test]
fn each_workspace_has_its_own_roots_rules_mode_and_journal() {
    let place = Place::new(&["one", "two"]);
    let rules = "[workspaces.two.permissions]\nmode = \"plan\"\ndeny = [\"Read(secret.txt)\"]";
    let tables = place.table("one", "") + &place.table("two", rules);
    place.configure(&format!("[permissions]\ndeny = [\"Read(never.txt)\"]\n{tables}"));
    for name in ["one", "two"] {
        for file in ["secret.txt", "never.txt"] {
            fs::write(place.file(name, file), "x\n").unwrap();
        }
    }
    let tokens = ["one", "two"].map(|name| place.token(name, "agent", &[]));
    let server = place.serve(&[]);
    let (one, two) = (holder(&server, "one", &tokens[0]), holder(&server, "two", &tokens[1]));
    let (in_one, in_two) = (one.session(), two.session());
    for (web, session, name) in [(&one, &in_one, "one"), (&two, &in_two, "two")] {
        let content = called(web, session, "file.read", &read("a.txt"))["content"].clone();
        assert_eq!(content, format!("     1\t{name}\n"));
        let never = called(web, session, "file.read", &read("never.txt"));
        assert_eq!(never["error"], "permission_denied", "{never}");
        let other = place.file(if name == "one" { "two" } else { "one" }, "a.txt");
        let outside = called(web, session, "file.read", &json!({"path": other}));
        assert_eq!(outside["error"], "path_outside_workspace", "{outside}");
        assert!(!outside.to_string().contains("workspaces"), "{outside}");
    }
    assert_eq!(called(&one, &in_one, "file.read", &read("secret.txt"))["content"], "     1\tx\n");
    let secret = called(&two, &in_two, "file.read", &read("secret.txt"));
    assert_eq!(secret["error"], "permission_denied");
    let write = json!({"path": "new.txt", "content": "new\n"});
    assert_eq!(called(&one, &in_one, "file.write", &write)["bytes_written"], 4);
    assert_eq!(called(&two, &in_two, "file.write", &write)["error"], "permission_denied");
    assert!(exists(place.file("one", "new.txt")) && !exists(place.file("two", "new.txt")));
    // The journals are separate, and the user's commands find them by the workspace's name.
    let undone = |name: &str| {
        let output = place.pinfold(&["undo", "--workspace", name]).output().unwrap();
        (output.status.code(), exists(place.file("one", "new.txt")))
    };
    assert!(undone("two").1);
    assert_eq!(undone("one"), (Some(0), false));
    assert!(exists(place.path("state/pinfold/journals/one/log.jsonl")));
    let output = place.pinfold(&["log", "--workspace", "none"]).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(printed.contains("no table `[workspaces.none]`"), "{printed}");
}

#[test]
fn a_token_of_one_workspace_never_reaches_another() {
    let place = Place::new(&["one", "two"]);
    let first = place.token("one", "agent", &[]);
    let second = place.token("two", "agent", &[]);
    let server = place.serve(&[]);
    let one = holder(&server, "one", &first);
    let session = one.session();
    let header = ("Mcp-Session-Id", session.as_str());
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    assert_eq!(one.post(&[header], &ping).status, 200);
    // The answer is the same for another token's workspace and for one that does not exist.
    let foreign = |workspace| {
        let reply = holder(&server, workspace, &first).post(&[header], &ping);
        (reply.status, reply.body)
    };
    let answer = "there is nothing here for this token; it is for /mcp/one\n";
    assert_eq!(foreign("two"), (404, answer.into()));
    assert_eq!(foreign("three"), (404, answer.into()));
    let stranger = |workspace| {
        let reply = holder(&server, workspace, &first.replace(['0', '1'], "2")).post(&[], &ping);
        assert!(!reply.body.contains("one") && !reply.body.contains("two"), "{reply:?}");
        (reply.status, reply.body)
    };
    assert_eq!(stranger("one").0, 401);
    assert_eq!(stranger("one"), stranger("two"));
    assert_eq!(stranger("one"), stranger("three"));
    // A session of one is not found in the other, by any method.
    let two = holder(&server, "two", &second);
    let bearer = format!("Bearer {second}");
    for method in ["GET", "DELETE"] {
        let accept = ("Accept", "text/event-stream");
        let headers = [("Authorization", bearer.as_str()), header, accept];
        assert_eq!(two.send(method, "/mcp/two", &headers, b"").status, 404, "{method}");
        assert_eq!(two.send(method, "/mcp/one", &headers, b"").status, 404, "{method}");
    }
    assert_eq!(two.post(&[header], &ping).status, 404);
    assert_eq!(one.post(&[header], &ping).status, 200);
    // There is no workspace without a name.
    assert_eq!(two.send("GET", "/mcp", &[("Authorization", &bearer)], b"").status, 404);
}

#[test]
fn a_session_is_the_tokens_that_began_it() {
    let place = Place::new(&["one"]);
    let [first, second] = ["a", "b"].map(|name| place.token("one", name, &[]));
    let server = place.serve(&["--dialect", "classic"]);
    let (first, second) = (holder(&server, "one", &first), holder(&server, "one", &second));
    let session = first.session();
    let file = json!({"file_path": place.file("one", "a.txt")});
    assert_eq!(called(&first, &session, "Read", &file)["success"], true);
    assert_eq!(second.call(&session, "Read", &file).status, 404);
    let bearer = format!("Bearer {}", second.token);
    let headers = [("Authorization", bearer.as_str()), ("Mcp-Session-Id", session.as_str())];
    assert_eq!(second.send("DELETE", "/mcp/one", &headers, b"").status, 404);
    assert_eq!(called(&first, &session, "Read", &file)["success"], true);
    // Stateless requests belong to the token's own conversations, even with the same name.
    let call = |web: &pinfold_testkit::mcp::Web, tool, arguments| {
        let mut meta = alone("same");
        meta.insert("pinfold/session".into(), json!("same"));
        structured(&web.alone("tools/call", json!({"name": tool, "arguments": arguments}), meta))
    };
    let mut write = file.clone();
    write["content"] = json!("changed\n");
    call(&first, "Read", file.clone());
    assert_eq!(call(&second, "Write", write.clone())["metadata"]["code"], "not_read");
    assert_eq!(call(&first, "Write", write)["success"], true);
}

#[test]
fn one_workspace_is_served_where_a_root_is_given_or_there_is_no_other() {
    let place = Place::new(&["one"]);
    let root = place.root("one");
    let server = place.serve(&["--dialect", "dotted", "--root", root.to_str().unwrap()]);
    assert_eq!(server.path, "/mcp");
    let session = server.session();
    assert_eq!(called(&server, &session, "file.read", &read("a.txt"))["content"], "     1\tone\n");
    // A workspace can be chosen, also on standard input and output.
    let mut lines = pinfold_testkit::mcp::Lines::initialized(
        place.pinfold(&["serve", "--workspace"]).arg("one"),
        json!({}),
    );
    let message = lines.call("file.read", &read("a.txt"));
    assert_eq!(message["structuredContent"]["content"], "     1\tone\n");
    let output = place
        .pinfold(&["serve", "--http", "127.0.0.1:0", "--token-file"])
        .arg(place.token_file("one"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("`token_file`"), "{output:?}");
}

#[test]
fn the_doctor_checks_every_workspace() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new(&["one", "two"]);
    place.token("one", "alice", &[]);
    place.token("one", "bob", &[]);
    // The current directory, which holds the state, is not to be served.
    let here = place.path("here");
    fs::create_dir(&here).unwrap();
    let doctor = |more: &[&str]| {
        let output = place.pinfold(&["doctor"]).args(more).current_dir(&here).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, printed) = doctor(&[]);
    assert_eq!(code, Some(0), "{printed}");
    for found in [
        format!("ok    workspace one: root {}: writable", place.root("one").display()),
        format!("ok    workspace one: tokens: 2 in {}\n", place.token_file("one").display()),
        "ok    workspace two: journal: ".into(),
        format!(
            "note  workspace two: tokens: {} does not exist; `serve` makes it",
            place.token_file("two").display()
        ),
    ] {
        assert!(printed.contains(&found), "{found}\n{printed}");
    }
    let (_, printed) = doctor(&["--workspace", "one"]);
    assert!(!printed.contains("workspace two"), "{printed}");

    let others_may_read = fs::Permissions::from_mode(0o644);
    fs::set_permissions(place.token_file("one"), others_may_read).unwrap();
    fs::remove_dir_all(place.root("two")).unwrap();
    let (code, printed) = doctor(&[]);
    assert_eq!(code, Some(1), "{printed}");
    let gone = format!("cannot use `{}` as a root: not found", place.root("two").display());
    for found in ["BAD   workspace one: tokens: ", "chmod 600", "BAD   workspace two: ", &gone] {
        assert!(printed.contains(found), "{found}\n{printed}");
    }
    // The server names the workspace, too.
    let output = place.pinfold(&["serve", "--http", "127.0.0.1:0"]).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2));
    assert!(printed.contains(&format!("workspace `two`: {gone}")), "{printed}");
}

#[test]
fn workspaces_do_not_share_a_journal() {
    let place = Place::new(&["one", "two"]);
    let more = "journal = \"/var/journal\"";
    place.configure(&(place.table("one", more) + &place.table("two", more)));
    let output = place.pinfold(&["serve", "--http", "127.0.0.1:0"]).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2));
    assert!(printed.contains("`one` and `two` share the journal /var/journal"), "{printed}");
}

#[test]
fn the_files_of_all_workspaces_are_out_of_reach_of_each() {
    let place = Place::new(&["one", "two"]);
    let root = place.root("one");
    // A careless configuration: everything is inside the root of `one`.
    let table = |name: &str| {
        let path = |what: &str| root.join(format!("{name}.{what}"));
        format!(
            "[workspaces.{name}]\nroots = [{:?}]\ndialects = [\"dotted\"]\n\
             token_file = {:?}\njournal = {:?}\naudit = {:?}\n",
            place.root(name),
            path("tokens"),
            path("journal"),
            path("audit"),
        )
    };
    place.configure(&(table("one") + &table("two")));
    let token = |name: &str| {
        let file = root.join(format!("{name}.tokens"));
        let output = place.pinfold(&["token", "new"]).arg(file).arg("agent").output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let (token, _) = (token("one"), token("two"));
    let key = root.join("state.key");
    let server = place.serve(&["--state-key-file", key.to_str().unwrap()]);
    let one = holder(&server, "one", &token);
    let session = one.session();
    let hidden = ["one.tokens", "two.tokens", "two.journal", "two.audit", "state.key"];
    for path in hidden {
        assert!(exists(root.join(path)) || path == "two.journal", "{path}");
        let refused = called(&one, &session, "file.read", &read(path));
        assert_eq!(refused["error"], "permission_denied", "{path}: {refused}");
    }
    let list = called(&one, &session, "file.list", &json!({"path": "."})).to_string();
    assert!(list.contains("a.txt") && hidden.iter().all(|name| !list.contains(name)), "{list}");
}
