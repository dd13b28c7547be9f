//! The tables of tools and arguments in `docs/DIALECTS.md`. `PINFOLD_BLESS=1` writes them.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

use std::fmt::Write as _;
use std::path::Path;

use pinfold_dialects::{ToolInfo, every_dialect, tools_of};
use serde_json::Value;

/// The marks before and after the generated part.
const MARKS: [&str; 2] = ["<!-- the tools, by a test -->\n", "<!-- end of the tools -->\n"];

/// The arguments of a tool, as in `path`, `limit?`. Optional ones have a question mark.
fn arguments(tool: &ToolInfo) -> String {
    let required = tool.input()["required"].as_array().cloned().unwrap_or_default();
    let names = tool.input()["properties"].as_object().into_iter().flatten().map(|(name, _)| {
        let mark = if required.contains(&Value::from(name.as_str())) { "" } else { "?" };
        format!("`{name}{mark}`")
    });
    names.collect::<Vec<_>>().join(" ")
}

fn tables() -> String {
    let mut text = String::new();
    for dialect in every_dialect() {
        write!(
            text,
            "\n### `{}`\n\n| tool | arguments | changes files |\n|---|---|---|\n",
            dialect.name
        )
        .unwrap();
        for tool in tools_of(&[dialect]) {
            let changes = if tool.entry.annotations.read_only { "no" } else { "yes" };
            writeln!(text, "| `{}` | {} | {changes} |", tool.entry.name, arguments(&tool)).unwrap();
        }
    }
    text.push('\n');
    text
}

#[test]
fn the_documented_tools_are_those_that_there_are() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/DIALECTS.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(MARKS[0]).unwrap();
    let (_, after) = rest.split_once(MARKS[1]).unwrap();
    let expected = [before, MARKS[0], &tables(), MARKS[1], after].concat();
    if std::env::var_os("PINFOLD_BLESS").is_some() {
        std::fs::write(&path, &expected).unwrap();
    } else {
        assert!(
            page == expected,
            "docs/DIALECTS.md is not up to date; run this with `PINFOLD_BLESS=1`"
        );
    }
    for dialect in every_dialect() {
        let named = format!("`{}`", dialect.name);
        assert!(before.contains(&named), "docs/DIALECTS.md does not say who takes {named}");
    }
}
