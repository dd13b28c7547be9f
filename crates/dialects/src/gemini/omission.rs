//! Finds placeholders for text that a model has left out.

/// The words of a placeholder before its dots.
const PHRASES: [&str; 7] = [
    "rest of",
    "rest of method",
    "rest of methods",
    "rest of code",
    "unchanged code",
    "unchanged method",
    "unchanged methods",
];

/// Whether a line of a text is a placeholder, and the old text has no such line.
pub(super) fn has_placeholder(text: &str, old: &str) -> bool {
    let mut found = text.lines().filter_map(placeholder).peekable();
    if found.peek().is_none() {
        return false;
    }
    let known: Vec<_> = old.lines().filter_map(placeholder).collect();
    found.any(|phrase| !known.contains(&phrase))
}

/// The phrase of a line such as `// rest of methods ...` or `(unchanged code ...)`.
fn placeholder(line: &str) -> Option<&'static str> {
    let mut text = line.trim();
    for mark in ["//", "#", "--"] {
        text = text.strip_prefix(mark).unwrap_or(text).trim();
    }
    for (open, close) in [("/*", "*/"), ("(", ")")] {
        let inner = text.strip_prefix(open).and_then(|inner| inner.strip_suffix(close));
        text = inner.unwrap_or(text).trim();
    }
    let (phrase_text, rest) = text.split_once("...")?;
    if !rest.trim().chars().all(|character| character == '.') {
        return None;
    }
    let phrase_text = phrase_text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    PHRASES.into_iter().find(|phrase| *phrase == phrase_text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_stand_for_others_are_found() {
        for (text, found) in [
            ("fn a() {}\n// rest of methods ...\n", true),
            ("  # Rest  of code ....", true),
            ("-- unchanged code ...", true),
            ("/* unchanged methods... */", true),
            ("(rest of ...)", true),
            ("// (rest of method ...)\r\n", true),
            ("// unchanged method ...", true),
            ("// the rest of methods ...", false),
            ("rest of methods", false),
            ("// rest of code ... and more", false),
            ("let rest = [...of];", false),
            ("", false),
        ] {
            assert_eq!(has_placeholder(text, ""), found, "{text}");
        }
    }

    #[test]
    fn what_the_old_text_says_may_stay() {
        assert!(!has_placeholder("a\n// rest of code ...", "b\n# rest of code ..."));
        assert!(has_placeholder("a\n// rest of code ...", "# rest of methods ..."));
    }
}
