//! Runs the scenario corpus through the front ends, and has clients for tests of the server.
//!
//! `scenarios/README.md` describes the files of a scenario.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]

mod compare;
mod extended;
mod limits;
pub mod mcp;
mod namespace;
mod process;
mod provided;
mod random;
mod scenario;
mod stage;
mod tree;

pub use extended::{attribute, exchange, set_attribute};
pub use limits::{
    can_create_unnamed, can_exchange, can_have_long_paths, can_rename_new, is_watched, limited,
    names_in, until_seen,
};
pub use namespace::{in_mount_namespace, mount};
pub use process::{Process, this_program};
pub use provided::{provided, skipped};
pub use random::Random;
pub use scenario::{Scenario, corpus};
pub use stage::Stage;
pub use tree::tree;

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;

/// A front end under test. It takes calls, one after the other, in one session.
pub trait FrontEnd {
    /// Calls a tool and returns its result.
    fn call(&mut self, tool: &str, arguments: &Value) -> Value;
}

/// Opens a front end on a stage. Returns `None` if the scenario is not for this front end.
pub type Open = fn(&Stage) -> Option<Box<dyn FrontEnd>>;

/// Runs every scenario through the front ends, one test for each pair. Does not return.
///
/// With `PINFOLD_BLESS=1`, the results of the first front end become the expected ones.
pub fn run_corpus(front_ends: &[(&'static str, Open)]) -> ! {
    let bless = std::env::var_os("PINFOLD_BLESS").is_some();
    let front_ends = if bless { &front_ends[..1] } else { front_ends };
    let trials = front_ends.iter().copied().flat_map(|(front_end, open)| {
        corpus().into_iter().map(move |scenario| {
            let name = format!("{front_end}::{}", scenario.name);
            Trial::test(name, move || scenario.run(open, bless).map_err(Failed::from))
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit()
}

/// The lines of the file that a refused edit shows, with the whitespace markers translated back.
pub fn shown_lines(message: &str) -> String {
    let lines = message.split('\n').filter_map(|line| {
        let (number, rest) = line.split_once('\t')?;
        number.trim().parse::<u64>().ok()?;
        Some(rest)
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    // The file's own dots and arrows stay: a region with some has no markers.
    if message.contains("are in the file as they are shown)") {
        return text;
    }
    text.replace('\u{b7}', " ").replace('\u{2192}', "\t")
}

/// Decodes the escapes of `pinfold::escaped_text`.
pub fn unescaped(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let hex = |digits: &str| u32::from_str_radix(digits, 16).unwrap();
        if let Some(escape) = rest.strip_prefix("\\x") {
            out.push(u8::try_from(hex(&escape[..2])).unwrap());
            rest = &escape[2..];
        } else if let Some(escape) = rest.strip_prefix("\\u{") {
            let (digits, after) = escape.split_once('}').unwrap();
            let character = char::from_u32(hex(digits)).unwrap();
            out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            rest = after;
        } else {
            out.extend_from_slice(&rest.as_bytes()[..character.len_utf8()]);
            rest = &rest[character.len_utf8()..];
        }
    }
    out
}
