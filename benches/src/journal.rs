//! The cost of a change, and of finding the newest one, with a long history in the journal.
//!
//! Each sample does the same as `pinfold call`, `undo` or `log`: a new session and one operation. Both journals are
//! measured in turns, in one run. The ratio is the result.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::compare_slow;
use pinfold::operations::{Undo, Write};
use pinfold::{Durability, JournalSetting, Session, Settings};

const ENTRIES: usize = 1_000_000;
/// The number of entries between two real changes in the generated history: about a segment.
const BATCH: usize = 800;
const ROUNDS: usize = 300;

struct Place {
    workspace: PathBuf,
    journal: PathBuf,
}

impl Place {
    fn new(base: &Path, name: &str) -> Self {
        let place = Self {
            workspace: base.join(name).join("ws"),
            journal: base.join(name).join("journal"),
        };
        fs::create_dir_all(&place.workspace).unwrap();
        fs::create_dir_all(&place.journal).unwrap();
        place
    }

    fn session(&self) -> Session {
        let settings = Settings::default()
            .with_journal(Some(JournalSetting::Directory(self.journal.clone())))
            .with_durability(Durability::None);
        Session::with_settings([&self.workspace], settings).unwrap()
    }

    fn write(&self, content: &str) {
        self.session().perform(&Write::new("f", content)).unwrap();
    }

    /// Generates a history like that of real changes, without their backups.
    fn fill(&self) {
        let path = self.workspace.join("f");
        let mut made = 0;
        while made < ENTRIES {
            let mut lines = fs::read_to_string(self.journal.join("log.jsonl")).unwrap_or_default();
            for number in made..made + BATCH {
                let state = serde_json::json!({"kind": "file", "hash": "0".repeat(64), "bytes": 1});
                let entry = serde_json::json!({
                    "id": format!("h{number:09}"), "time": now(), "session": "s", "tool": "Write",
                    "path": path, "before": state, "after": state,
                });
                lines += &format!("{entry}\n{{\"made\":\"h{number:09}\"}}\n");
            }
            fs::write(self.journal.join("log.jsonl"), lines).unwrap();
            self.write(&format!("{made}"));
            made += BATCH;
        }
    }
}

fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    u64::try_from(since.as_millis()).unwrap()
}

pub(crate) fn run() {
    let base = tempfile::tempdir().unwrap();
    let (empty, long) = (Place::new(base.path(), "empty"), Place::new(base.path(), "long"));
    let start = Instant::now();
    long.fill();
    println!("a history of {ENTRIES} changes was made in {:.0} s\n", start.elapsed().as_secs_f64());
    let write = |place: &Place| place.write(&format!("{:?}", Instant::now()));
    let newest = |place: &Place| drop(place.session().history().unwrap().next().unwrap().unwrap());
    let undo = |place: &Place| {
        write(place);
        place.session().perform(&Undo::default()).unwrap();
    };
    compare_slow("a change, long history / none", ROUNDS, || write(&long), || write(&empty));
    compare_slow("the newest entry", ROUNDS, || newest(&long), || newest(&empty));
    compare_slow("a change and its undo", ROUNDS, || undo(&long), || undo(&empty));
}
