//! Sets of changes whose process is killed: all or none of them after the next start.
//!
//! `PINFOLD_KILLS` sets how many processes are killed. The library's tests kill one at each system call.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Instant;

use pinfold_testkit::tree;
use serde_json::json;

use super::Place;

const PATCH: &str = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+ONE\n\
    *** Add File: new/deep/n.txt\n+new\n*** Delete File: b.txt\n\
    *** Update File: c.txt\n*** Move to: moved/c.txt\n@@\n-three\n+THREE\n\
    *** Update File: d/e.txt\n@@\n-four\n+FOUR\n*** End Patch\n";

/// A process that makes a set of changes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Set {
    Apply,
    ApplyPatch,
    Rewind,
    RemoveTree,
}

impl Set {
    fn place(self) -> Place {
        let place = Place::new();
        for (path, text) in [
            ("a.txt", "one\n"),
            ("b.txt", "two\n"),
            ("c.txt", "three\n"),
            ("d/e.txt", "four\n"),
            ("d/sub/f.txt", "five\n"),
        ] {
            let path = self.root(&place).join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        if self == Self::Rewind {
            std::os::unix::fs::symlink("a.txt", place.ws().join("link")).unwrap();
            assert!(place.pinfold("checkpoint").arg("start").output().unwrap().status.success());
            for (tool, arguments) in [
                ("file.write", json!({"path": "a.txt", "content": "changed\n"})),
                ("file.move", json!({"source": "d", "destination": "far/away"})),
                ("file.write", json!({"path": "far/away/e.txt", "content": "changed\n"})),
                ("file.write", json!({"path": "gone/deep/g.txt", "content": "g\n"})),
                ("file.delete", json!({"path": "gone/deep/g.txt"})),
                ("file.delete", json!({"path": "b.txt"})),
                ("file.delete", json!({"path": "link"})),
                ("file.write", json!({"path": "link", "content": "now a file\n"})),
                ("file.move", json!({"source": "c.txt", "destination": "c/c.txt"})),
            ] {
                assert_eq!(place.call(tool, arguments)["success"], true, "{tool}");
            }
        }
        place
    }

    /// The directory in which it changes files.
    fn root(self, place: &Place) -> PathBuf {
        if self == Self::RemoveTree { place.0.path().join("memory") } else { place.ws() }
    }

    /// The files, without copies of what was deleted.
    fn tree(self, place: &Place) -> BTreeMap<String, String> {
        let mut tree = tree(&self.root(place));
        tree.retain(|path, _| !path.contains(".pinfold-"));
        tree
    }

    fn server(self, place: &Place) -> Command {
        let mut serve = place.pinfold("serve");
        match self {
            Self::RemoveTree => {
                serve.args(["--dialect", "memory", "--memory"]).arg(self.root(place))
            }
            _ => serve.args(["--dialect", "patch"]),
        };
        serve
    }

    /// Starts the process.
    fn start(self, place: &Place) -> Child {
        let call = |name: &str, arguments| {
            let initialize = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
            let messages = [
                json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize}),
                json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
                json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": name, "arguments": arguments}}),
            ];
            messages.map(|message| format!("{message}\n")).concat()
        };
        let (mut command, input) = match self {
            Self::Apply => (place.pinfold("apply"), PATCH.to_owned()),
            Self::ApplyPatch => (self.server(place), call("apply_patch", json!({"input": PATCH}))),
            Self::Rewind => (place.pinfold("undo"), String::new()),
            Self::RemoveTree => {
                let delete = json!({"command": "delete", "path": "/memories/d"});
                (self.server(place), call("memory", delete))
            }
        };
        if self == Self::Rewind {
            command.args(["--since", "start"]);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut process = command.spawn().unwrap();
        process.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        process
    }
}

#[test]
fn a_set_whose_process_is_killed_is_whole_after_the_next_start_and_can_be_undone() {
    let kills = std::env::var("PINFOLD_KILLS").map_or(6, |kills| kills.parse().unwrap());
    for set in [Set::Apply, Set::ApplyPatch, Set::Rewind, Set::RemoveTree] {
        let place = set.place();
        let start = Instant::now();
        assert!(set.start(&place).wait().unwrap().success());
        let (time, after) = (start.elapsed(), set.tree(&place));
        let mut made = 0;
        for kill in 1..=kills {
            let place = set.place();
            let before = set.tree(&place);
            assert_ne!(before, after);
            let mut process = set.start(&place);
            sleep(time * kill / kills);
            process.kill().unwrap();
            process.wait().unwrap();
            // The next start.
            let next = set.server(&place).stdin(Stdio::null()).output().unwrap();
            let now = set.tree(&place);
            let what = format!("{set:?}, kill {kill} of {kills}, {next:?}: {now:?}");
            assert!(now == before || now == after, "{what}");
            let mut log = place.pinfold("log");
            let log = log.arg("--root").arg(set.root(&place)).output().unwrap();
            assert!(log.status.success(), "{what}: {log:?}");
            let log = String::from_utf8(log.stdout).unwrap();
            assert!(!log.contains("(torn"), "{what}: {log}");
            if now == after {
                made += 1;
                let id = log.lines().last().unwrap().split(' ').next().unwrap();
                let mut undo = place.pinfold("undo");
                let undone = undo.arg("--root").arg(set.root(&place)).arg(id).output().unwrap();
                assert!(undone.status.success(), "{what}: {undone:?}");
                assert_eq!(set.tree(&place), before, "{what}: {undone:?}");
            }
        }
        println!("{set:?}: {kills} killed, of which {made} were made");
    }
}
