//! The 18 queries, from those that an index answers at once to those that read every file.

use serde_json::{Value, json};

/// A search for `Grep` and for `rg`.
pub(super) struct Query {
    pub(super) name: &'static str,
    /// `Grep`'s arguments.
    pub(super) arguments: Value,
    /// `rg`'s arguments, without the pattern.
    pub(super) flags: Vec<&'static str>,
    /// The maximum number of lines. `rg` is stopped after this many, and `Grep` does not count the others.
    pub(super) head: Option<usize>,
}

impl Query {
    pub(super) fn pattern(&self) -> &str {
        self.arguments["pattern"].as_str().unwrap()
    }

    /// Whether the order of the answer is that of `rg --sort path`.
    pub(super) fn is_by_path(&self) -> bool {
        self.arguments.get("output_mode").is_some()
    }

    /// The arguments with an equivalent regex that was not used before.
    pub(super) fn reworded(&self) -> Value {
        use std::sync::atomic::{AtomicU64, Ordering};
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let mut arguments = self.arguments.clone();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        arguments["pattern"] = format!("(?P<g{number}>{})", self.pattern()).into();
        arguments
    }
}

pub(super) fn queries() -> Vec<Query> {
    let lines = |name, pattern: &str, more: Value, flags: &[&'static str], head: Option<usize>| {
        let mut arguments = json!({"pattern": pattern, "output_mode": "content"});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        if let Some(head) = head {
            arguments["head_limit"] = head.into();
        }
        Query { name, arguments, flags: flags.to_vec(), head }
    };
    let files = |name, pattern: &str, more: Value, flags: &[&'static str]| {
        let mut query = lines(name, pattern, more, flags, None);
        query.arguments.as_object_mut().unwrap().remove("output_mode");
        query
    };
    let none = || json!({});
    let no_literal = r"\w{5}\s+\w{5}";
    let headers = || json!({"glob": "*.h"});
    vec![
        lines("rare literal", "kmem_cache_alloc_bulk", none(), &[], None),
        lines("common literal", "mutex_lock", none(), &[], None),
        lines("common literal, 100 lines", "mutex_lock", none(), &[], Some(100)),
        lines("regex with a literal", r"static\s+int\s+\w+_probe\(", none(), &[], None),
        lines("regex without a literal, 100 lines", no_literal, none(), &[], Some(100)),
        files("regex without a literal, files", no_literal, none(), &["-l"]),
        lines("digits only", "[0-9]{3}-[0-9]{4}-[0-9]{4}", none(), &[], None),
        lines("ignore case", "pm_resume", json!({"-i": true}), &["-i"], None),
        lines("whole word", r"\bPM_RESUME\b", none(), &[], None),
        files("files", "copy_from_user", none(), &["-l"]),
        lines("count", "spin_lock_irqsave", json!({"output_mode": "count"}), &["-c"], None),
        files(
            "multiline, files",
            r"struct file_operations \w+ = \{\s*\.owner",
            json!({"multiline": true}),
            &["-l", "-U", "--multiline-dotall"],
        ),
        lines("*.h, many matches", r"#define\s+\w*_MAX_\w+", headers(), &["-g", "*.h"], None),
        lines("*.h, rare", r"\bstruct\s+kmem_cache\s*\{", headers(), &["-g", "*.h"], None),
        lines("context 3", r"BUG_ON\(in_interrupt", json!({"-C": 3}), &["-C3"], None),
        lines("no match", "zzz_not_there_qqq", none(), &[], None),
        lines("alternation", "kmalloc_array|kvmalloc_array", none(), &[], None),
        lines("class and short literal", r"[A-Z]+_RESUME\b", none(), &[], None),
    ]
}

/// The searches by name: `Glob`'s pattern, and `fd`'s directory and pattern.
pub(super) const FINDS: [(&str, &str, &str); 6] = [
    ("**/*.h", "", "*.h"),
    ("**/Makefile", "", "Makefile"),
    ("**/*mutex*", "", "*mutex*"),
    ("**/*.{c,S}", "", "*.{c,S}"),
    ("kernel/**/*.c", "kernel", "*.c"),
    ("**/sched_fair_no_such.c", "", "sched_fair_no_such.c"),
];
