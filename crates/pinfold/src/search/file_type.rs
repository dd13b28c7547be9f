//! Selects files by ripgrep's file types, such as `rust`.

use std::collections::HashMap;

use ignore::types::{Types, TypesBuilder};

use crate::Error;
use crate::similar_names::similar_names;

/// The matcher for one of ripgrep's file types. An unknown name is an error with similar names.
pub(crate) fn file_type_matcher(name: &str) -> Result<Types, Error> {
    let mut builder = TypesBuilder::new();
    builder.add_defaults();
    let known: HashMap<_, _> = builder
        .definitions()
        .into_iter()
        .map(|definition| (definition.name().to_owned(), definition.globs().join(" ")))
        .collect();
    if name != "all" && !known.contains_key(name) {
        return Err(unknown_type(name, &known));
    }
    builder.select(name);
    builder.build().map_err(|error| Error::Internal { what: error.to_string() })
}

fn unknown_type(name: &str, known: &HashMap<String, String>) -> Error {
    /// The maximum number of suggested types.
    const MAX_NAMED: usize = 3;
    let asked = name.to_lowercase();
    // Models often send `tsx`, which is an extension of the type `ts`.
    let has_extension = |globs: &str| globs.split(' ').any(|glob| glob == format!("*.{asked}"));
    let mut near: Vec<_> = known
        .iter()
        .filter(|(_, globs)| has_extension(globs))
        .map(|(known, _)| known.as_str())
        .collect();
    near.sort_unstable();
    let similar = similar_names(&asked, known.keys().map(String::as_str), MAX_NAMED);
    near.extend(similar.into_iter().filter(|name| !near.contains(name)).collect::<Vec<_>>());
    near.truncate(MAX_NAMED);
    let name: String = name.chars().take(40).collect();
    Error::UnknownFileType {
        name: name.escape_debug().to_string(),
        near: near.into_iter().map(str::to_owned).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_types_name_near_ones() {
        for (asked, near) in
            [("pyton", Some("py")), ("tsx", Some("ts")), ("rs", Some("rust")), ("qqqq", None)]
        {
            let Err(Error::UnknownFileType { near: named, .. }) = file_type_matcher(asked) else {
                panic!("{asked} is no type");
            };
            assert_eq!(
                named.iter().any(|name| Some(name.as_str()) == near),
                near.is_some(),
                "{named:?}"
            );
        }
        assert!(file_type_matcher("rust").is_ok());
    }
}
