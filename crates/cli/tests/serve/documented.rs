//! The statements of the documentation and the registry about the server.

use std::fs;
use std::path::Path;
use std::process::Command;

use pinfold_testkit::mcp::Lines;
use serde_json::{Value, json};

use crate::served::workspace;

/// The commands in the documentation, with a real workspace as the path.
#[test]
fn the_documented_configurations_start_a_server() {
    let dir = workspace(&[]);
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/CLIENTS.md");
    let docs = fs::read_to_string(docs).unwrap();
    let mut blocks = docs.split("```").skip(1).step_by(2);
    let configurations: Vec<Value> = blocks
        .by_ref()
        .filter_map(|block| {
            let (kind, text) = block.split_once('\n').unwrap();
            match kind {
                "json" => Some(serde_json::from_str(text).unwrap()),
                "toml" => Some(serde_json::to_value(text.parse::<toml::Table>().unwrap()).unwrap()),
                _ => None,
            }
        })
        .collect();
    let mut commands = Vec::new();
    configurations.iter().for_each(|value| find_commands(value, &mut commands));
    assert_eq!(commands.len(), 5, "{commands:?}");
    for (command, arguments) in commands {
        assert_eq!(command, "pinfold");
        let root = dir.path().to_str().unwrap();
        let arguments = arguments.iter().map(|it| match it.as_str() {
            "/path/to/project" | "${workspaceFolder}" => root,
            other => other,
        });
        let mut process = Command::new(env!("CARGO_BIN_EXE_pinfold"));
        process.args(arguments).env("XDG_CONFIG_HOME", root).env("XDG_STATE_HOME", root);
        let mut server = Lines::initialized(&mut process, json!({}));
        assert_eq!(server.call("LS", &json!({"path": root}))["isError"], false);
    }
}

fn find_commands(value: &Value, found: &mut Vec<(String, Vec<String>)>) {
    let Value::Object(object) = value else { return };
    if let (Some(command), Some(arguments)) = (value["command"].as_str(), value["args"].as_array())
    {
        let arguments = arguments.iter().map(|it| it.as_str().unwrap().to_owned());
        found.push((command.to_owned(), arguments.collect()));
    }
    object.values().for_each(|value| find_commands(value, found));
}

#[test]
fn the_registry_is_told_the_truth() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let server: Value =
        serde_json::from_str(&fs::read_to_string(root.join("server.json")).unwrap()).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(server["version"], version);
    let packages = server["packages"].as_array().unwrap();
    let kinds: Vec<_> = packages.iter().map(|package| &package["registryType"]).collect();
    assert_eq!(kinds, ["cargo", "npm", "pypi"]);
    for package in packages {
        assert_eq!(package["version"], version);
        assert_eq!(package["packageArguments"], packages[0]["packageArguments"]);
    }
    assert_eq!(packages[0]["identifier"], env!("CARGO_PKG_NAME"));
    assert!(server["description"].as_str().unwrap().len() <= 100);
    // A published package names its server.
    let name = server["name"].as_str().unwrap();
    for readme in ["README.md", "packages/python/README.md"] {
        let text = fs::read_to_string(root.join(readme)).unwrap();
        assert!(text.contains(&format!("mcp-name: {name}`")), "{readme}");
    }
    let node = fs::read_to_string(root.join("packages/node/package.json")).unwrap();
    let node: Value = serde_json::from_str(&node).unwrap();
    assert_eq!((&node["mcpName"], &node["version"]), (&json!(name), &json!(version)));
    assert_eq!(node["name"], packages[1]["identifier"]);
}
