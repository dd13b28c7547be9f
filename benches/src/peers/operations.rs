//! The calls that are measured, in the form that each server takes.

use std::path::Path;

use serde_json::{Value, json};

use super::server::{Call, Server, program};

/// The call for a server in a round. Returns `None` if the server cannot do it. It is made right before the request,
/// and only the request is timed.
pub(crate) type Ask = Box<dyn Fn(Server, usize) -> Option<Call>>;

/// Checks the text of an answer in a round.
pub(crate) type Check = Box<dyn Fn(&str, usize) -> bool>;

pub(crate) struct Operation {
    pub(crate) name: &'static str,
    pub(crate) rounds: usize,
    pub(crate) call: Ask,
    pub(crate) check: Check,
}

fn call(tool: &str, arguments: Value) -> Option<Call> {
    Some((tool.to_owned(), arguments))
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
            // Each server changes its own line, back and forth.
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
                    Server::Official | Server::Reference | Server::ReferenceUnflushed => {
                        call("read_text_file", json!({"path": large, "tail": 100}))
                    }
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
