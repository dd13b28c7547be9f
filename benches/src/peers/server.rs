//! The servers that are measured: how each is started, and its simplest calls.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

/// Something that does the work.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(crate) enum Server {
    Pinfold,
    /// Pinfold at its usual durability, which the others have no match for: for what changes something.
    Flushed,
    Official,
    Rust,
    Commander,
    /// No server: a program for each call, such as `cat`.
    Programs,
    /// Pinfold with the tools of [`Self::Official`], and every setting at its default.
    Reference,
    /// The same without a journal, and nothing flushed: as [`Self::Official`] works.
    ReferenceUnflushed,
}

/// A tool's name and its arguments; or a program's, as a list.
pub(crate) type Call = (String, Value);

impl Server {
    /// All that are measured side by side, Pinfold first.
    pub(crate) const ALL: [Self; 6] =
        [Self::Pinfold, Self::Flushed, Self::Official, Self::Rust, Self::Commander, Self::Programs];

    /// Whether it is a server that somebody would use instead.
    pub(crate) fn is_peer(self) -> bool {
        matches!(self, Self::Official | Self::Rust | Self::Commander)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Pinfold => "Pinfold",
            Self::Flushed => "Pinfold, `data`",
            Self::Official => "server-filesystem 2026.8.31",
            Self::Rust => "rust-mcp-filesystem 0.4.5",
            Self::Commander => "desktop-commander 0.2.52",
            Self::Programs => "as a process",
            Self::Reference => "`--dialect reference`",
            Self::ReferenceUnflushed => "the same, no journal, nothing flushed",
        }
    }

    /// Starts it on some directories, if it is a server. Its own files are beside or below the first one.
    pub(crate) fn command(self, roots: &[&Path]) -> Option<Command> {
        let mut command = match self {
            Self::Programs => return None,
            Self::Pinfold | Self::Flushed => {
                let mut command = Command::new(program("PINFOLD_BIN"));
                let durability = if self == Self::Flushed { "data" } else { "none" };
                command.args(["serve", "--dialect", "all", "--no-journal", "--durability"]);
                let more = ["--read-before-write", "off", "--max-output-bytes", "16777216"];
                command.arg(durability).args(more);
                command
            }
            Self::Reference | Self::ReferenceUnflushed => {
                let mut command = Command::new(program("PINFOLD_BIN"));
                command.args(["serve", "--dialect", "reference"]);
                if self == Self::Reference {
                    // Not among the user's journals.
                    command.arg("--journal").arg(roots[0].with_file_name("journal"));
                } else {
                    command.args(["--no-journal", "--durability", "none"]);
                }
                command
            }
            Self::Official => {
                let program = "@modelcontextprotocol/server-filesystem/dist/index.js";
                let mut command = node_program(program);
                // Pinfold shows times in UTC.
                command.env("TZ", "UTC");
                command
            }
            Self::Rust => {
                let mut command = Command::new(program("PINFOLD_RUST_PEER"));
                command.arg("--allow-write");
                command
            }
            Self::Commander => {
                let program = "@wonderwhy-er/desktop-commander/dist/index.js";
                let mut command = node_program(program);
                // Its configuration and log are there, and nowhere else. It takes no directories.
                command.env("HOME", roots[0].join("home"));
                return Some(command);
            }
        };
        command.args(roots);
        Some(command)
    }

    /// Reads a small file.
    pub(crate) fn read(self, file: &Path) -> Call {
        match self {
            Self::Pinfold | Self::Flushed => ("Read".into(), json!({ "file_path": file })),
            Self::Programs => ("cat".into(), json!([file])),
            Self::Official | Self::Rust | Self::Reference | Self::ReferenceUnflushed => {
                ("read_text_file".into(), json!({ "path": file }))
            }
            Self::Commander => ("read_file".into(), json!({ "path": file })),
        }
    }

    /// Something that takes long: a search of the whole tree.
    pub(crate) fn slow(self, tree: &Path) -> Call {
        match self {
            Self::Pinfold | Self::Flushed => {
                ("Grep".into(), json!({"pattern": "zzz_not_there", "path": tree}))
            }
            Self::Programs => (program("PINFOLD_RG"), json!(["zzz_not_there", tree])),
            Self::Official | Self::Reference | Self::ReferenceUnflushed => {
                ("search_files".into(), json!({"path": tree, "pattern": "**/zzz_not_there"}))
            }
            Self::Rust => (
                "search_files_content".into(),
                json!({"path": tree, "pattern": "**", "query": "zzz_not_there", "is_regex": false}),
            ),
            Self::Commander => (
                "start_search".into(),
                json!({"path": tree, "pattern": "zzz_not_there", "searchType": "content"}),
            ),
        }
    }
}

/// A program that was installed for this.
pub(crate) fn program(variable: &str) -> String {
    std::env::var(variable).unwrap()
}

/// A program for Node among the packages that were installed for this.
fn node_program(package: &str) -> Command {
    let mut command = Command::new("node");
    command.arg(Path::new(&program("PINFOLD_PEERS")).join(package));
    command
}
