//! How many refused edits succeed in the next call, and how often the refusal has the reason.
//!
//! Each case of the corpus is an edit with a typical mistake of a model. A script copies the lines that the refusal
//! shows, as a model would, and calls again.

mod corpus;

use std::fs;
use std::process::ExitCode;

use corpus::{Case, corpus};
use pinfold::{Session, Settings};
use pinfold_dialects::{CLASSIC, DOTTED, Toolbox};
use serde_json::{Value, json};

/// The minimum share of cases that the next call repairs, and of those whose reason is named.
const MIN_PERCENT: usize = 95;

/// The outcome of one case.
struct Repair {
    refused: bool,
    mended: bool,
    named: bool,
    message: String,
}

pub(crate) fn run() -> ExitCode {
    let verbose = std::env::args().any(|argument| argument == "--verbose");
    let cases = corpus();
    let (mut refused, mut mended, mut named) = (0, 0, 0);
    for dialect in ["classic", "dotted"] {
        for case in &cases {
            let repair = repair(dialect, case);
            if !repair.refused {
                continue;
            }
            refused += 1;
            mended += usize::from(repair.mended);
            named += usize::from(repair.named);
            if verbose && !(repair.mended && repair.named) {
                let Repair { mended, named, message, .. } = repair;
                println!("{dialect}, {}: mended {mended}, named {named}", case.kind);
                println!("--- text\n{}\n--- answer\n{message}\n", case.old);
            }
        }
    }
    let percent = |count: usize| count * 100 / refused;
    println!("refused edits                 {refused:>5}");
    println!("mended by the next call       {mended:>5}  {} %", percent(mended));
    println!("reason named                  {named:>5}  {} %", percent(named));
    match percent(mended).min(percent(named)) {
        MIN_PERCENT.. => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// Makes an edit. If it is refused, makes it again with the lines that the refusal shows.
fn repair(dialect: &str, case: &Case) -> Repair {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    fs::write(&path, &case.file).unwrap();
    let session = Session::with_settings([dir.path()], Settings::default()).unwrap();
    let tools = Toolbox::new(session, &[&CLASSIC, &DOTTED]);
    tools.call("Read", json!({ "file_path": path }));
    let edit = |old: &str| -> Value {
        let answer = match dialect {
            "classic" => tools
                .call("Edit", json!({"file_path": path, "old_string": old, "new_string": "NEW"})),
            _ => {
                let patches = json!([{"find": old, "replace": "NEW"}]);
                tools.call("file.patch", json!({"path": "file", "patches": patches}))
            }
        };
        answer.to_json()
    };
    let answer = edit(&case.old);
    let refused = answer["success"] != true;
    let text = answer["message"].as_str().or(answer["error"].as_str());
    let message = text.unwrap_or_default().to_owned();
    assert!(message.len() < 4096, "{message}");
    let again = pinfold_testkit::shown_lines(&message);
    let mended = refused && !again.is_empty() && edit(&again)["success"] == true;
    let named = case.reasons.iter().any(|reason| message.contains(reason));
    Repair { refused, mended, named, message }
}

#[test]
fn refusals_carry_what_the_next_call_needs() {
    assert!(corpus().len() >= 200);
    assert!(matches!(run(), code if format!("{code:?}") == format!("{:?}", ExitCode::SUCCESS)));
}
