//! The measured servers: how each is started, and its simplest calls.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

/// A server or program that is measured.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(crate) enum Server {
    Pinfold,
    /// Pinfold with its default durability, which the others do not have. For calls that change something.
    Flushed,
    Official,
    Rust,
    Commander,
    /// Not a server: a program for each call, such as `cat`.
    Programs,
    /// Pinfold with the tools of [`Self::Official`] and default settings.
    Reference,
    /// The same without a journal and without flushing, as in [`Self::Official`].
    ReferenceUnflushed,
}

/// A tool's name and its arguments; or a program's, as a list.
pub(crate) type Call = (String, Value);

impl Server {
    /// All servers for the tables, Pinfold first.
    pub(crate) const ALL: [Self; 6] =
        [Self::Pinfold, Self::Flushed, Self::Official, Self::Rust, Self::Commander, Self::Programs];

    /// Whether it is an alternative to Pinfold.
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

    /// The command that starts it on some directories, if it is a server. Its own files are beside or below the first
    /// one.
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
                    // Not in the user's journal.
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
                // It has its configuration and log only there. It takes no directories.
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

    /// A slow call: a search of the whole tree.
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

/// A program that was installed for the benchmark.
pub(crate) fn program(variable: &str) -> String {
    std::env::var(variable).unwrap()
}

/// A Node program from the packages that were installed for the benchmark.
fn node_program(package: &str) -> Command {
    let mut command = Command::new("node");
    command.arg(Path::new(&program("PINFOLD_PEERS")).join(package));
    command
}
