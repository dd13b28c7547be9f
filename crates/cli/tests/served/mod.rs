//! A server on standard input and output, and the files that it serves.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

pub(crate) fn workspace(files: &[(&str, &str)]) -> TempDir {
    let dir = TempDir::with_prefix("serve-").unwrap();
    for (name, content) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    dir
}

pub(crate) fn serve(root: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pinfold"));
    command.args(["serve", "--no-journal", "--root"]).arg(root).args(more);
    command.env_remove("PINFOLD_LOG").env("XDG_CONFIG_HOME", root.join("no-config"));
    command
}

pub(crate) fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

pub(crate) fn error_code(message: &Value) -> i64 {
    message["error"]["code"].as_i64().unwrap_or_else(|| panic!("{message}"))
}
