//! A workspace, a server that an agent works with, and the page.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use pinfold_testkit::mcp::{Lines, Web, answer};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::browser::{Browser, Tab};

pub(crate) struct Stage {
    pub(crate) dir: TempDir,
}

impl Stage {
    /// A workspace with these files.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let dir = TempDir::with_prefix("page-").unwrap();
        let stage = Self { dir };
        fs::create_dir(stage.path("ws")).unwrap();
        for (name, content) in files {
            fs::create_dir_all(stage.file(name).parent().unwrap()).unwrap();
            fs::write(stage.file(name), content).unwrap();
        }
        stage
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    /// A file of the workspace.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path("ws").join(name)
    }

    pub(crate) fn content(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap()
    }

    pub(crate) fn command(&self, name: &str, more: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pinfold"));
        command.arg(name).arg("--feed").arg(self.path("feed")).args(more);
        command.env("XDG_CONFIG_HOME", self.path("config"));
        command.env("XDG_STATE_HOME", self.path("state"));
        command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
        command
    }

    /// Starts a server, with an agent that cannot be asked itself.
    pub(crate) fn serve(&self, more: &[&str]) -> Lines {
        let mut command = self.command("serve", &["--dialect", "all", "--durability", "none"]);
        Lines::initialized(command.arg("--root").arg(self.path("ws")).args(more), json!({}))
    }

    /// Starts a server in a permission mode, and the page. Waits until a tab of the browser shows the server.
    pub(crate) fn watched<'b>(&self, browser: &'b Browser, mode: &str) -> (Lines, Page, Tab<'b>) {
        let (server, page) = (self.serve(&["--mode", mode]), self.page(&[]));
        let tab = browser.open_page(&page);
        tab.wait("article.server >> text=testkit");
        (server, page, tab)
    }

    /// Starts the page.
    pub(crate) fn page(&self, more: &[&str]) -> Page {
        let mut command = self.command("page", more);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut link = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut link).unwrap();
        Page { process, link: link.trim_end().to_owned() }
    }
}

/// A running `pinfold page`.
pub(crate) struct Page {
    process: Child,
    /// The link that it printed.
    pub(crate) link: String,
}

impl Page {
    /// Where it listens.
    pub(crate) fn address(&self) -> &str {
        self.link.strip_prefix("http://").unwrap().split('/').next().unwrap()
    }

    /// The path of the page, with a slash at both ends, and the query of the link.
    pub(crate) fn base_and_query(&self) -> (&str, &str) {
        let path = &self.link[self.link.find(self.address()).unwrap() + self.address().len()..];
        path.split_once('?').unwrap()
    }

    /// A client that sends the test's requests.
    pub(crate) fn web(&self) -> Web {
        Web::at(self.address())
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

/// The arguments of a call that writes a file.
pub(crate) fn write(path: &str, content: &str) -> Value {
    json!({"name": "file.write", "arguments": {"path": path, "content": content}})
}

/// Reads the answer to a request that was sent before.
pub(crate) fn answered(server: &mut Lines, id: u64) -> Value {
    loop {
        let message = server.read().expect("the server sends no more");
        if message["id"] == id && message.get("method").is_none() {
            return answer(&message);
        }
    }
}
