//! What is measured, as each server is asked for it.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

/// Something that does the work. Pinfold comes first.
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
}

/// A tool's name and its arguments; or a program's, as a list.
pub(crate) type Call = (String, Value);

/// How a server is asked for something in a round; `None` if it cannot do it.
pub(crate) type Ask = Box<dyn Fn(Server, usize) -> Option<Call>>;

/// Whether the text of an answer in a round is right.
pub(crate) type Check = Box<dyn Fn(&str, usize) -> bool>;

pub(crate) struct Operation {
    pub(crate) name: &'static str,
    pub(crate) rounds: usize,
    pub(crate) call: Ask,
    pub(crate) check: Check,
}

/// A program that was installed for this.
fn program(variable: &str) -> String {
    std::env::var(variable).unwrap()
}

fn call(tool: &str, arguments: Value) -> Option<Call> {
    Some((tool.to_owned(), arguments))
}

impl Server {
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
        }
    }

    /// Starts it, if it is a server.
    pub(crate) fn command(self, root: &Path, tree: &Path) -> Option<Command> {
        Some(match self {
            Self::Programs => return None,
            Self::Pinfold | Self::Flushed => {
                let mut command = Command::new(std::env::var("PINFOLD_BIN").unwrap());
                let durability = if self == Self::Flushed { "data" } else { "none" };
                command.args(["serve", "--dialect", "all", "--no-journal", "--durability"]);
                command.args([
                    durability,
                    "--read-before-write",
                    "off",
                    "--max-output-bytes",
                    "16777216",
                    "--root",
                ]);
                command.arg(root).arg("--root").arg(tree);
                command
            }
            Self::Official => {
                let program = "@modelcontextprotocol/server-filesystem/dist/index.js";
                let mut command = super::node_program(program);
                command.arg(root).arg(tree);
                command
            }
            Self::Rust => {
                let mut command = Command::new(std::env::var("PINFOLD_RUST_PEER").unwrap());
                command.arg("--allow-write").arg(root).arg(tree);
                command
            }
            Self::Commander => {
                let program = "@wonderwhy-er/desktop-commander/dist/index.js";
                let mut command = super::node_program(program);
                // Its configuration and log are there, and nowhere else.
                command.env("HOME", root.join("home"));
                command
            }
        })
    }

    /// Reads a small file.
    pub(crate) fn read(self, file: &Path) -> Call {
        match self {
            Self::Pinfold | Self::Flushed => ("Read".into(), json!({ "file_path": file })),
            Self::Programs => ("cat".into(), json!([file])),
            Self::Official | Self::Rust => ("read_text_file".into(), json!({ "path": file })),
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
            Self::Official => {
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

/// Everything that is measured call by call.
pub(crate) fn operations(root: &Path, tree: &Path) -> Vec<Operation> {
    let at = |name: &str| root.join(name).display().to_string();
    let (small, large) = (at("small.txt"), at("large.txt"));
    let (edit, edit1m, out) = (at("edit.txt"), at("edit1m.txt"), at("out.txt"));
    let (flat, deep, tree) = (at("flat"), at("deep"), tree.display().to_string());
    let has = |wanted: &'static str| -> Check {
        Box::new(move |text, _| !text.starts_with("ERROR") && text.contains(wanted))
    };
    let fine = || -> Check { Box::new(|text, _| !text.starts_with("ERROR")) };
    let write = |content: fn(usize) -> String| -> Ask {
        let out = out.clone();
        Box::new(move |server, round| {
            let path = format!("{out}.{}", server as usize);
            match server {
                Server::Programs => None,
                Server::Pinfold | Server::Flushed => {
                    call("Write", json!({"file_path": path, "content": content(round)}))
                }
                Server::Commander => {
                    let rewrite =
                        json!({"path": path, "content": content(round), "mode": "rewrite"});
                    call("write_file", rewrite)
                }
                _ => call("write_file", json!({"path": path, "content": content(round)})),
            }
        })
    };
    let change = |file: &str| -> Ask {
        let file = file.to_owned();
        Box::new(move |server, round| {
            // Each server changes a line of its own, to and fro.
            let line = 50 + server as usize;
            let (one, other) = (format!("line {line}: let"), format!("line {line}: LET"));
            let (old, new) = if round % 2 == 0 { (one, other) } else { (other, one) };
            match server {
                Server::Programs => None,
                Server::Pinfold | Server::Flushed => {
                    call("Edit", json!({"file_path": file, "old_string": old, "new_string": new}))
                }
                Server::Commander => call(
                    "edit_block",
                    json!({"file_path": file, "old_string": old, "new_string": new}),
                ),
                _ => call(
                    "edit_file",
                    json!({"path": file, "edits": [{"oldText": old, "newText": new}]}),
                ),
            }
        })
    };
    let grep = |pattern: &'static str, regex: bool| -> Ask {
        let tree = tree.clone();
        Box::new(move |server, _| match server {
            Server::Pinfold => {
                call("Grep", json!({"pattern": pattern, "path": tree, "output_mode": "content"}))
            }
            Server::Rust => call(
                "search_files_content",
                json!({"path": tree, "pattern": "**", "query": pattern, "is_regex": regex}),
            ),
            Server::Programs => call(&program("PINFOLD_RG"), json!(["-n", pattern, tree])),
            _ => None,
        })
    };
    vec![
        Operation {
            name: "read 5 KB",
            rounds: 60,
            call: {
                let small = small.clone();
                Box::new(move |server, _| {
                    (server != Server::Flushed).then(|| server.read(Path::new(&small)))
                })
            },
            check: has("line 100: let"),
        },
        Operation {
            name: "the last 100 lines of 8.8 MB",
            rounds: 30,
            call: {
                let large = large.clone();
                Box::new(move |server, _| match server {
                    Server::Flushed => None,
                    Server::Programs => call("tail", json!(["-n", "100", large])),
                    Server::Pinfold => {
                        call("Read", json!({"file_path": large, "offset": 159_901, "limit": 100}))
                    }
                    Server::Official => call("read_text_file", json!({"path": large, "tail": 100})),
                    Server::Rust => call(
                        "read_file_lines",
                        json!({"path": large, "offset": 159_900, "limit": 100}),
                    ),
                    Server::Commander => {
                        call("read_file", json!({"path": large, "offset": 159_900, "length": 100}))
                    }
                })
            },
            check: has("line 160000: let"),
        },
        Operation {
            name: "read 8.8 MB",
            rounds: 10,
            call: {
                let large = large.clone();
                Box::new(move |server, _| match server {
                    Server::Flushed => None,
                    Server::Programs => call("cat", json!([large])),
                    Server::Pinfold => call("read_file", json!({ "path": large })),
                    Server::Commander => {
                        call("read_file", json!({"path": large, "length": 200_000}))
                    }
                    _ => call("read_text_file", json!({ "path": large })),
                })
            },
            check: has("line 160000: let"),
        },
        Operation {
            name: "write 1 KB",
            rounds: 40,
            call: write(|round| format!("{round}\n").repeat(300)),
            check: fine(),
        },
        Operation {
            name: "write 1 MB",
            rounds: 30,
            call: write(|round| format!("{round:09}\n").repeat(100_000)),
            check: fine(),
        },
        Operation { name: "edit in 5 KB", rounds: 40, call: change(&edit), check: fine() },
        Operation { name: "edit in 0.9 MB", rounds: 20, call: change(&edit1m), check: fine() },
        Operation {
            name: "list 1,000 files by name and kind (ours: and size)",
            rounds: 30,
            call: {
                let flat = flat.clone();
                Box::new(move |server, _| match server {
                    Server::Flushed => None,
                    Server::Programs => call("ls", json!(["-F", flat])),
                    Server::Commander => call("list_directory", json!({"path": flat, "depth": 1})),
                    _ => call("list_directory", json!({ "path": flat })),
                })
            },
            check: has("file77.txt"),
        },
        Operation {
            name: "the same by name, kind and size",
            rounds: 30,
            call: {
                let flat = flat.clone();
                Box::new(move |server, _| match server {
                    Server::Flushed | Server::Commander => None,
                    Server::Programs => call("ls", json!(["-l", flat])),
                    Server::Pinfold => call("list_directory", json!({ "path": flat })),
                    _ => call("list_directory_with_sizes", json!({ "path": flat })),
                })
            },
            check: has("file77.txt"),
        },
        Operation {
            name: "the same, and which are binary",
            rounds: 30,
            call: Box::new(move |server, _| match server {
                Server::Pinfold => call("LS", json!({ "path": flat })),
                _ => None,
            }),
            check: has("file77.txt"),
        },
        Operation {
            name: "list 3,000 files in 110 directories",
            rounds: 20,
            call: {
                let deep = deep.clone();
                Box::new(move |server, _| match server {
                    Server::Flushed => None,
                    Server::Programs => call("find", json!([deep, "-printf", "%p %s\n"])),
                    Server::Pinfold => {
                        call("list_directory", json!({"path": deep, "recursive": true}))
                    }
                    Server::Commander => call("list_directory", json!({"path": deep, "depth": 5})),
                    _ => call("directory_tree", json!({ "path": deep })),
                })
            },
            check: has("f29.md"),
        },
        Operation {
            name: "glob `**/*.rs` of 3,000 files",
            rounds: 20,
            call: Box::new(move |server, _| match server {
                Server::Pinfold => call("Glob", json!({"path": deep, "pattern": "**/*.rs"})),
                Server::Commander | Server::Flushed => None,
                Server::Programs => call(&program("PINFOLD_FD"), json!(["-g", "*.rs", deep])),
                _ => call("search_files", json!({"path": deep, "pattern": "**/*.rs"})),
            }),
            check: has("f27.rs"),
        },
        Operation {
            name: "grep a literal in the kernel's source",
            rounds: 3,
            call: grep("zstd_compress_bound", false),
            check: has("zstd_compress_bound"),
        },
        Operation {
            name: "grep a regex in the kernel's source",
            rounds: 3,
            call: grep("zstd_[a-z]+_bound\\(", true),
            check: has("zstd_compress_bound"),
        },
        Operation {
            name: "info about a file",
            rounds: 60,
            call: Box::new(move |server, _| match server {
                Server::Flushed => None,
                Server::Programs => call("stat", json!([small])),
                _ => call("get_file_info", json!({ "path": small })),
            }),
            check: has("5"),
        },
    ]
}
