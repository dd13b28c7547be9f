//! The client's roots narrow the workspace.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

mod served;

use std::path::Path;

use pinfold_testkit::mcp::{Lines, alone, answer};
use serde_json::{Value, json};

use served::{error_code, serve, text, workspace};

/// Answers the server's request for the roots, and returns the answer to the call that caused it.
fn call_with_roots(server: &mut Lines, roots: &[&str], call: Value) -> Value {
    let id = server.ask("tools/call", call);
    let question = server.read().unwrap();
    assert_eq!(question["method"], "roots/list", "{question}");
    let roots: Vec<Value> = roots.iter().map(|uri| json!({"uri": uri})).collect();
    server.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": roots}}));
    let message = server.read().unwrap();
    assert_eq!(message["id"], id);
    answer(&message)
}

#[test]
fn the_clients_roots_narrow_the_workspace_and_never_widen_it() {
    let dir = workspace(&[
        ("in/a.txt", "inside\n"),
        ("in/deep er/c.txt", "deep\n"),
        ("b.txt", "beside\n"),
    ]);
    let elsewhere = workspace(&[("d.txt", "elsewhere\n")]);
    let uri = |path: &Path| format!("file://{}", path.display());
    let read = |path: &Path| json!({"name": "Read", "arguments": {"file_path": path}});
    let (inside, beside) = (dir.path().join("in/a.txt"), dir.path().join("b.txt"));
    let outside = elsewhere.path().join("d.txt");
    let capabilities = json!({"roots": {"listChanged": true}});
    let mut server = Lines::initialized(&mut serve(dir.path(), &[]), capabilities.clone());
    let roots = [&uri(&dir.path().join("in"))[..], &uri(elsewhere.path())];
    let first = call_with_roots(&mut server, &roots, read(&inside));
    assert_eq!(first["content"], "     1\tinside\n");
    // The client is asked once.
    for (path, code) in [(&beside, "path_outside_workspace"), (&outside, "path_outside_workspace")]
    {
        let refused = answer(&server.request("tools/call", read(path)));
        assert_eq!(refused["metadata"]["code"], code, "{refused}");
    }
    let found = server.call("Glob", &json!({"pattern": "**/*.txt"}));
    assert!(!text(&found).contains("b.txt") && text(&found).contains("a.txt"), "{found}");
    // A change takes effect.
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"});
    server.send(&changed);
    let deep = uri(dir.path()) + "/in/deep%20er";
    let refused = call_with_roots(&mut server, &[&deep], read(&inside));
    assert_eq!(refused["metadata"]["code"], "path_outside_workspace");
    // If the client does not answer, the last roots apply.
    for reply in [json!({"error": {"code": -1, "message": "no"}}), json!({"result": {"roots": 3}})]
    {
        server.send(&changed);
        let id = server.ask("tools/call", read(&inside));
        let question = server.read().unwrap();
        let mut reply = reply;
        reply["jsonrpc"] = "2.0".into();
        reply["id"] = question["id"].clone();
        server.send(&reply);
        let message = server.read().unwrap();
        assert_eq!(message["id"], id);
        assert_eq!(answer(&message)["metadata"]["code"], "path_outside_workspace");
    }
    // The roots have nothing in common with the workspace, so every call fails, with a hint.
    server.send(&changed);
    let nothing = call_with_roots(&mut server, &[&uri(elsewhere.path())], read(&inside));
    assert_eq!(nothing["metadata"]["code"], "path_outside_workspace");
    assert!(nothing["error"].as_str().unwrap().contains("--client-roots ignore"), "{nothing}");
    // A directory that contains the workspace changes nothing, and neither does an empty list.
    for roots in [&["file:///"][..], &[]] {
        server.send(&changed);
        let whole = call_with_roots(&mut server, roots, read(&beside));
        assert_eq!(whole["content"], "     1\tbeside\n");
        let refused = answer(&server.request("tools/call", read(&outside)));
        assert_eq!(refused["metadata"]["code"], "path_outside_workspace");
    }
    // The user can change that.
    let mut server =
        Lines::initialized(&mut serve(dir.path(), &["--client-roots", "ignore"]), capabilities);
    assert_eq!(text(&server.call("Read", &json!({"file_path": beside}))), "     1\tbeside\n");
}

#[test]
fn a_client_that_does_not_say_its_roots_has_the_whole_workspace() {
    let dir = workspace(&[("a.txt", "one\n")]);
    let mut server = Lines::initialized(&mut serve(dir.path(), &[]), json!({"roots": {}}));
    let path = dir.path().join("a.txt");
    server.ask("tools/call", json!({"name": "Read", "arguments": {"file_path": path}}));
    let question = server.read().unwrap();
    let refusal = json!({"code": -32601, "message": "no"});
    server.send(&json!({"jsonrpc": "2.0", "id": question["id"], "error": refusal}));
    assert_eq!(answer(&server.read().unwrap())["content"], "     1\tone\n");
}

#[test]
fn a_narrowed_workspace_is_called_as_before() {
    let dir = workspace(&[("pkg/x.txt", "one\n"), ("q/y.txt", "two\n")]);
    let mut command = serve(dir.path(), &["--dialect", "dotted,classic"]);
    let mut server = Lines::initialized(&mut command, json!({"roots": {"listChanged": true}}));
    let uri = |name: &str| format!("file://{}/{name}", dir.path().display());
    let read = json!({"name": "file.read", "arguments": {"path": "pkg/x.txt"}});
    let done = call_with_roots(&mut server, &[&uri("pkg")], read);
    assert_eq!(done["total_lines"], 1, "{done}");
    let write = json!({"path": "pkg/new.txt", "content": "x"});
    assert_eq!(server.call("file.write", &write)["isError"], false);
    assert!(dir.path().join("pkg/new.txt").exists());
    let listed =
        answer(&server.request("tools/call", json!({"name": "file.list", "arguments": {}})));
    assert_eq!(listed["files"][0]["path"], "pkg/new.txt", "{listed}");
    for path in ["q/y.txt", "x.txt", "../x"] {
        let read = server.call("file.read", &json!({"path": path}));
        assert!(text(&read).contains("path_outside_workspace"), "{read}");
    }
    let path = dir.path().join("pkg/x.txt");
    let refused = server.call("Read", &json!({"file_path": "pkg/x.txt"}));
    assert!(text(&refused).contains(path.to_str().unwrap()), "{refused}");
    // Files stay read when the client opens one more directory.
    server.call("Read", &json!({"file_path": path}));
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}));
    let edit = json!({"file_path": path, "old_string": "one", "new_string": "three"});
    let edit = json!({"name": "Edit", "arguments": edit});
    let done = call_with_roots(&mut server, &[&uri("pkg"), &uri("q")], edit);
    assert_eq!(done["success"], true, "{done}");
}

#[test]
fn what_was_seen_stays_seen_when_the_roots_stay_the_same() {
    let dir = workspace(&[("a.txt", "one\n")]);
    let mut server = Lines::initialized(&mut serve(dir.path(), &[]), json!({"roots": {}}));
    let path = dir.path().join("a.txt");
    let root = format!("file://{}", dir.path().display());
    let read = json!({"name": "Read", "arguments": {"file_path": path}});
    call_with_roots(&mut server, &[&root], read);
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}));
    let write = json!({"name": "Write", "arguments": {"file_path": path, "content": "two\n"}});
    assert_eq!(call_with_roots(&mut server, &[&root], write)["success"], true);
}

#[test]
fn a_client_without_a_connection_is_asked_for_its_roots_by_the_answer() {
    let dir = workspace(&[("in/a.txt", "inside\n"), ("b.txt", "beside\n")]);
    let mut server = Lines::start(&mut serve(dir.path(), &[]));
    let mut meta = alone("a");
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({"roots": {}});
    let arguments = json!({"file_path": dir.path().join("b.txt")});
    let mut params = json!({"name": "Read", "arguments": arguments, "_meta": meta});
    let asked = server.request("tools/call", params.clone());
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    assert_eq!(asked["result"]["inputRequests"]["roots"]["method"], "roots/list");
    let wrong = server.request("tools/call", {
        let mut params = params.clone();
        params["inputResponses"] = json!({"roots": {"roots": 3}});
        params
    });
    assert_eq!(error_code(&wrong), -32602);
    let inside = format!("file://{}/in", dir.path().display());
    params["inputResponses"] = json!({"roots": {"roots": [{"uri": inside}]}});
    let refused = answer(&server.request("tools/call", params));
    assert_eq!(refused["metadata"]["code"], "path_outside_workspace");
    // From then on the roots are known.
    let arguments = json!({"file_path": dir.path().join("in/a.txt")});
    let params = json!({"name": "Read", "arguments": arguments, "_meta": meta});
    assert_eq!(answer(&server.request("tools/call", params))["success"], true);
}
