//! `pinfold serve --http` as a service: many workspaces and tokens, replicas, operation and monitoring.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

#[cfg(target_os = "linux")]
mod container;
mod ending;
mod image;
mod limits;
mod replicas;
mod tokens;
#[cfg(target_os = "linux")]
mod units;
mod workspaces;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use pinfold_testkit::mcp::{Reply, Web};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Workspaces, and a directory for the server's own files.
struct Place {
    dir: TempDir,
}

impl Place {
    /// Workspaces with a file `a.txt` that contains the workspace's name, and a token file each.
    fn new(names: &[&str]) -> Self {
        let place = Self { dir: TempDir::with_prefix("service-").unwrap() };
        for name in names {
            fs::create_dir_all(place.root(name)).unwrap();
            fs::write(place.file(name, "a.txt"), format!("{name}\n")).unwrap();
        }
        let tables: String = names.iter().map(|name| place.table(name, "")).collect();
        place.configure(&tables);
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn root(&self, workspace: &str) -> PathBuf {
        self.path("roots").join(workspace)
    }

    fn file(&self, workspace: &str, name: &str) -> PathBuf {
        self.root(workspace).join(name)
    }

    fn token_file(&self, workspace: &str) -> PathBuf {
        self.path("keys").join(workspace)
    }

    /// The table of a workspace in the configuration.
    fn table(&self, name: &str, more: &str) -> String {
        let (root, tokens) = (self.root(name), self.token_file(name));
        format!(
            "[workspaces.{name}]\nroots = [{root:?}]\ntoken_file = {tokens:?}\ndialects = [\"dotted\"]\n{more}\n"
        )
    }

    fn configure(&self, text: &str) {
        fs::create_dir_all(self.path("config/pinfold")).unwrap();
        fs::write(self.path("config/pinfold/config.toml"), text).unwrap();
    }

    fn pinfold(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pinfold"));
        command.args(arguments).env_remove("PINFOLD_TOKEN").env_remove("PINFOLD_LOG");
        command.env("XDG_STATE_HOME", self.path("state"));
        command.env("XDG_CONFIG_HOME", self.path("config")).current_dir(self.dir.path());
        command
    }

    fn serve(&self, more: &[&str]) -> Web {
        Web::start(self.pinfold(&["serve", "--http", "127.0.0.1:0"]).args(more))
    }

    /// Makes a token for a workspace.
    fn token(&self, workspace: &str, name: &str, more: &[&str]) -> String {
        let file = self.token_file(workspace);
        let output = self.pinfold(&["token", "new"]).arg(file).arg(name).args(more).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }
}

/// A client with a token, at the path of a workspace.
fn holder(server: &Web, workspace: &str, token: &str) -> Web {
    Web::opened(&server.address, token, &format!("/mcp/{workspace}"))
}

fn read(path: &str) -> Value {
    json!({"path": path})
}

/// The result of a call in a session.
fn called(web: &Web, session: &str, tool: &str, arguments: &Value) -> Value {
    structured(&web.call(session, tool, arguments))
}

fn structured(reply: &Reply) -> Value {
    assert_eq!(reply.status, 200, "{reply:?}");
    pinfold_testkit::mcp::answer(&reply.message())
}

/// Waits until a condition is true.
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let limit = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < limit, "{what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Whether a token is accepted.
fn is_let_in(web: &Web) -> bool {
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    // Without a session the request is refused, but not with the status for an unknown token.
    web.post(&[], &ping).status != 401
}

fn exists(path: impl AsRef<Path>) -> bool {
    path.as_ref().exists()
}

/// A file of `deploy`, which `docs/DEPLOY.md` explains.
fn recipe(name: &str) -> String {
    let files = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy");
    fs::read_to_string(Path::new(files).join(name)).unwrap()
}
