//! Words that several tools use.

use pinfold::Page;

/// `1 line`, `2 lines`.
pub(crate) fn count(number: u64, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// The names that are most like `wanted`, if any are like it at all.
pub(crate) fn nearest<'n>(wanted: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let wanted = wanted.to_lowercase();
    let names: Vec<_> = names.collect();
    let within =
        names.iter().find(|name| wanted.len() > 2 && name.to_lowercase().contains(&wanted));
    if let Some(name) = within {
        return Some(name);
    }
    names
        .into_iter()
        .map(|name| (strsim::normalized_damerau_levenshtein(&wanted, &name.to_lowercase()), name))
        .filter(|(score, _)| *score >= 0.5)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, name)| name)
}

/// What a reader should know about bytes that are not what they should be, if there are any.
pub(crate) fn malformed(page: &Page) -> Option<String> {
    let encoding = page.encoding.name();
    page.malformed.then(|| format!("bytes that are not {encoding} are shown as U+FFFD"))
}

/// The beginning of a text that somebody else chose the length of.
pub(crate) fn brief(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}
