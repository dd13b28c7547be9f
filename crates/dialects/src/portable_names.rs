//! Names of arguments that every framework accepts.
//!
//! Some frameworks turn the names into identifiers, or allow only letters, digits and `_`. These words are always
//! accepted. With the setting `portable_names`, they are listed instead of the flags.

use serde_json::{Map, Value};

/// Each word, and the flag that it replaces.
const NAMES: [(&str, &str); 5] = [
    ("ignore_case", "-i"),
    ("line_numbers", "-n"),
    ("after", "-A"),
    ("before", "-B"),
    ("context", "-C"),
];

/// The other name of each argument that a schema has under one of its two names.
pub(crate) fn other_names(properties: &Map<String, Value>) -> Vec<(&'static str, &'static str)> {
    let pairs = NAMES.iter().flat_map(|(word, flag)| [(*word, *flag), (*flag, *word)]);
    let listed = pairs
        .filter(|(name, other)| properties.contains_key(*name) && !properties.contains_key(*other));
    listed.collect()
}

/// Lists the words instead of the flags, in the same order.
pub(crate) fn rename(properties: &mut Map<String, Value>) {
    let renamed = std::mem::take(properties).into_iter().map(|(name, value)| {
        let word = NAMES.iter().find(|(_, flag)| *flag == name).map(|(word, _)| (*word).to_owned());
        (word.unwrap_or(name), value)
    });
    *properties = renamed.collect();
}

/// Renames arguments to the names in the tool's struct.
pub(crate) fn restore(arguments: &mut Map<String, Value>) {
    for (word, flag) in NAMES {
        if let Some(value) = arguments.remove(word) {
            arguments.insert(flag.to_owned(), value);
        }
    }
}
