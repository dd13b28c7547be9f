//! Calls with JSON text, as the packages make them.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

use std::fs;

use pinfold_embed::{Host, NameStyle, Request, Tools, describe, schemas};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A host that always makes the same decision.
struct Always(&'static str);

impl Host for Always {
    fn ask(&self, question: &str) -> String {
        let question: Value = serde_json::from_str(question).unwrap();
        assert!(question["question"].as_str().unwrap().starts_with("Allow "), "{question}");
        self.0.to_owned()
    }
}

const NO_HOST: Option<Always> = None;

fn stage(options: Value) -> (TempDir, Tools) {
    let dir = TempDir::new().unwrap();
    fs::create_dir(dir.path().join("sub")).unwrap();
    fs::write(dir.path().join("sub/a.txt"), "one\n").unwrap();
    let mut all = json!({ "root": dir.path() });
    all.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
    let tools = Tools::open(&all.to_string(), NameStyle::Snake).unwrap();
    (dir, tools)
}

fn request(tool: &str, arguments: Value, context: Value) -> Request {
    let (arguments, context) = (arguments.to_string(), context.to_string());
    Request { tool: tool.into(), arguments, context, ..Request::default() }
}

fn call(tools: &Tools, tool: &str, arguments: Value, context: Value) -> Value {
    serde_json::from_str(&tools.call(&request(tool, arguments, context), NO_HOST)).unwrap()
}

#[test]
fn answers_have_one_shape() {
    let (_dir, tools) = stage(json!({"dialect": "all", "relative_paths": true}));
    let classic = call(&tools, "Read", json!({"file_path": "sub/a.txt"}), json!({}));
    assert_eq!(classic["content"], "     1\tone\n");
    assert_eq!(classic["data"], Value::Null);
    let dotted = call(&tools, "file.read", json!({"path": "sub/a.txt"}), json!({}));
    assert_eq!(dotted["success"], true);
    assert_eq!(dotted["data"]["total_lines"], 1);
    let scoped = call(&tools, "read_file", json!({"path": "none"}), json!({}));
    assert_eq!(scoped["success"], false);
    assert_eq!(scoped["metadata"]["code"], "FILESYSTEM_ERROR");
    assert_eq!(scoped["error"], scoped["data"]["message"]);
}

#[test]
fn a_hosted_patch_needs_no_dialect_and_no_model_can_name_it() {
    let (dir, tools) = stage(json!({"dialect": "dotted"}));
    let operation = json!({"type": "update_file", "path": "sub/a.txt", "diff": "@@\n-one\n+two"});
    assert_eq!(
        call(&tools, "hosted_patch", operation.clone(), json!({}))["metadata"]["code"],
        "unknown_tool"
    );
    let hosted =
        |item: Value| call(&tools, "apply_patch", item, json!({"operation": "hosted_patch"}));
    assert_eq!(
        hosted(json!({"call_id": "1", "operation": operation}))["content"],
        "Success. Updated the following files:\nM sub/a.txt\n"
    );
    assert_eq!(fs::read_to_string(dir.path().join("sub/a.txt")).unwrap(), "two\n");
    assert_eq!(hosted(operation)["metadata"]["code"], "find_not_found");
    assert_eq!(hosted(json!({"path": "sub/a.txt"}))["metadata"]["code"], "invalid_argument");
}

#[test]
fn a_context_holds_for_its_call_alone() {
    let (dir, tools) = stage(json!({"relative_paths": true}));
    let sub = dir.path().join("sub");
    let read = |context| call(&tools, "Read", json!({"file_path": "a.txt"}), context);
    assert_eq!(read(json!({"workdir": sub}))["success"], true);
    assert_eq!(read(json!({}))["metadata"]["code"], "file_not_found");
    let write = |name: &str, context| {
        call(&tools, "Write", json!({"file_path": name, "content": ""}), context)
    };
    assert_eq!(
        write("b", json!({"permission_mode": "plan"}))["metadata"]["code"],
        "permission_denied"
    );
    assert_eq!(write("b", json!({"dry_run": true}))["metadata"]["dry_run"], true);
    assert!(!dir.path().join("b").exists());
    assert_eq!(write("b", json!({}))["success"], true);
}

#[test]
fn a_context_that_is_wrong_is_refused_by_name() {
    let (dir, tools) = stage(json!({}));
    for (context, named) in [
        (json!({"workdir": "/"}), "not a directory in the workspace"),
        (json!({"workdir": dir.path().join("sub/a.txt")}), "not a directory in the workspace"),
        (json!({"workdir": dir.path().join("none")}), "not a directory in the workspace"),
        (json!({"workdir": 1}), "context"),
        (json!({"permission_mode": "careful"}), "no permission mode `careful`"),
        (json!({"problem": "it is too deep"}), "it is too deep"),
    ] {
        let answer = call(&tools, "LS", json!({"path": dir.path()}), context);
        assert_eq!(answer["metadata"]["code"], "invalid_argument", "{answer}");
        assert!(answer["error"].as_str().unwrap().contains(named), "{answer}");
    }
}

#[test]
fn a_working_directory_does_not_move_rules() {
    let options = json!({"permissions": {"deny": ["Read(/sub/a.txt)"]}, "relative_paths": true});
    let (dir, tools) = stage(options);
    let context = json!({"workdir": dir.path().join("sub")});
    let read = call(&tools, "Read", json!({"file_path": "a.txt"}), context.clone());
    assert_eq!(read["metadata"]["code"], "permission_denied");
    let found = call(&tools, "Glob", json!({"pattern": "*.txt"}), context);
    assert!(found["content"].as_str().unwrap().contains("1 withheld by policy"), "{found}");
}

#[test]
fn the_approver_is_asked() {
    let (dir, tools) = stage(json!({"permissions": {"mode": "default"}}));
    let arguments = json!({"file_path": dir.path().join("new"), "content": "x"});
    let request = request("Write", arguments, json!({}));
    let no = tools.call(&request, Some(Always(r#"{"behavior":"deny","message":"not now"}"#)));
    assert!(no.contains("not now"), "{no}");
    assert!(!dir.path().join("new").exists());
    let yes: Value = serde_json::from_str(&tools.call(&request, Some(Always("true")))).unwrap();
    assert_eq!(yes["success"], true, "{yes}");
}

#[test]
fn many_directories_are_many_sessions_of_one_conversation() {
    let (dir, tools) = stage(json!({"relative_paths": true}));
    for number in 0..200 {
        let sub = dir.path().join(format!("d{number}"));
        fs::create_dir(&sub).unwrap();
        fs::write(sub.join("f"), "x\n").unwrap();
        let context = json!({ "workdir": sub });
        let read = call(&tools, "Read", json!({"file_path": "f"}), context.clone());
        assert_eq!(read["success"], true, "{read}");
        let edit = json!({"file_path": "f", "old_string": "x", "new_string": "y"});
        assert_eq!(call(&tools, "Edit", edit, context)["success"], true);
    }
    // Read in one directory, changed from the first.
    let edit = json!({"file_path": "d0/f", "old_string": "y", "new_string": "z"});
    assert_eq!(call(&tools, "Edit", edit, json!({}))["success"], true);
}

#[test]
fn lists_need_no_session() {
    let described: Value = serde_json::from_str(&describe(&["scoped"]).unwrap()).unwrap();
    assert_eq!(described[0]["name"], "read_file");
    assert_eq!(described[0]["read_only"], true);
    assert!(schemas("openai", &["dotted"]).unwrap().contains("file_read"));
    assert!(schemas("morse", &[]).unwrap_err().contains("the formats are mcp, openai"));
    assert!(describe(&["old"]).unwrap_err().contains("the dialects are"));
}

#[test]
fn a_rewind_is_performed_and_no_tool_has_its_name() {
    let journal = TempDir::new().unwrap();
    let (dir, tools) = stage(json!({"dialect": "dotted", "journal": journal.path()}));
    let perform = |operation: &str, arguments: Value| {
        call(&tools, operation, arguments, json!({"operation": operation}))
    };
    let id = perform("checkpoint", json!({"label": "turn 1"}))["data"]["id"].clone();
    assert!(id.is_string());
    call(&tools, "file.write", json!({"path": "sub/a.txt", "content": "two\nthree\n"}), json!({}));
    call(&tools, "file.write", json!({"path": "new.txt", "content": "new\n"}), json!({}));
    let dry = json!({"operation": "rewind", "dry_run": true});
    let preview = call(&tools, "rewind", json!({"to": "turn 1"}), dry);
    let data = &preview["data"];
    assert_eq!((&data["done"], &data["changes"]), (&json!(false), &json!(2)), "{preview}");
    let lines = [&data["files"][1]["lines_added"], &data["files"][1]["lines_removed"]];
    assert_eq!(lines, [&json!(1), &json!(2)], "{preview}");
    // A model may call any name.
    let named = call(&tools, "rewind", json!({"to": "turn 1"}), json!({}));
    assert_eq!(named["metadata"]["code"], "unknown_tool", "{named}");
    fs::write(dir.path().join("sub/a.txt"), "theirs\n").unwrap();
    let refused = perform("rewind", json!({"to": id}));
    assert_eq!(refused["data"]["done"], false);
    assert_eq!(refused["data"]["conflicts"][0]["why"], "its content has changed since");
    assert!(dir.path().join("new.txt").exists());
    let rest = perform("rewind", json!({"to": id, "leave_out_conflicts": true}));
    assert_eq!(rest["data"]["done"], true, "{rest}");
    assert!(!dir.path().join("new.txt").exists());
    let unknown = perform("rewind", json!({"to": "none"}));
    assert_eq!(unknown["success"], false);
    let wrong = perform("rewind", json!({"to": "turn 1", "all": true}));
    assert!(wrong["error"].as_str().unwrap().contains("`all`"), "{wrong}");
    let (_dir, without) = stage(json!({}));
    for (name, arguments) in [("checkpoint", json!({})), ("rewind", json!({"to": "turn 1"}))] {
        let none = call(&without, name, arguments, json!({"operation": name}));
        let problem = "there is no journal, so there are no checkpoints; set `journal`";
        assert_eq!(none["error"], problem, "{none}");
    }
}
