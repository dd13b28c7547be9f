//! File names in the headers of unified diffs.

/// A name from a header, without Git's quotes and escapes, and without the time that `diff` appends.
pub(super) fn plain_name(text: &str) -> Option<String> {
    if text.starts_with('"') {
        return quoted(text).map(|(name, _)| name);
    }
    let name = text.split('\t').next().unwrap_or_default();
    let name = name.strip_suffix('\r').unwrap_or(name);
    (!name.is_empty()).then(|| name.to_owned())
}

/// The two names after `diff --git `. Names with spaces can be split because both are the same.
pub(super) fn both_names(text: &str) -> Option<(String, String)> {
    let text = text.strip_suffix('\r').unwrap_or(text);
    if text.starts_with('"') {
        let (old, rest) = quoted(text)?;
        return Some((old, plain_name(rest.strip_prefix(' ')?)?));
    }
    if let Some(at) = text.find(" \"") {
        return Some((text[..at].to_owned(), plain_name(&text[at + 1..])?));
    }
    let pairs = text.match_indices(' ').map(|(at, _)| (&text[..at], &text[at + 1..]));
    let same = |(old, new): &(&str, &str)| without_prefix(old) == without_prefix(new);
    let found = pairs.clone().find(same).or_else(|| {
        let mut pairs = pairs;
        pairs.next().filter(|_| pairs.next().is_none())
    });
    found.map(|(old, new)| (old.to_owned(), new.to_owned()))
}

/// A name without Git's prefix, such as `a/` or `b/`.
pub(super) fn without_prefix(name: &str) -> &str {
    match name.split_once('/') {
        Some((prefix, rest)) if prefix.len() == 1 => rest,
        _ => name,
    }
}

/// A quoted name at the beginning of a text, and the text after it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut bytes = Vec::new();
    let mut rest = text.strip_prefix('"')?.char_indices();
    let body = &text[1..];
    while let Some((at, letter)) = rest.next() {
        match letter {
            '"' => return Some((String::from_utf8(bytes).ok()?, &body[at + 1..])),
            '\\' => {
                let escaped = rest.next()?.1;
                bytes.push(match escaped {
                    'a' => 7,
                    'b' => 8,
                    't' => b'\t',
                    'n' => b'\n',
                    'v' => 11,
                    'f' => 12,
                    'r' => b'\r',
                    '"' | '\\' => escaped as u8,
                    '0'..='3' => {
                        let digits = [escaped, rest.next()?.1, rest.next()?.1];
                        let digits: String = digits.iter().collect();
                        u8::from_str_radix(&digits, 8).ok()?
                    }
                    _ => return None,
                });
            }
            other => bytes.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_git_writes_them() {
        for (text, name) in [
            ("a/x.txt", Some("a/x.txt")),
            ("a/with blank\t", Some("a/with blank")),
            ("a.txt\t2024-01-01 00:00:00.000000000 +0000", Some("a.txt")),
            (r#""a/caf\303\251.txt""#, Some("a/café.txt")),
            (r#""a/\"q\"\t\\""#, Some("a/\"q\"\t\\")),
            (r#""a/\377""#, None),
            (r#""a/open"#, None),
            ("", None),
        ] {
            assert_eq!(plain_name(text).as_deref(), name, "{text}");
        }
        for (text, names) in [
            ("a/x b/x", Some(("a/x", "b/x"))),
            ("a/with blank b/with blank", Some(("a/with blank", "b/with blank"))),
            ("x y", Some(("x", "y"))),
            (r#""a/\303\251" b/e"#, Some(("a/é", "b/e"))),
            (r#"a/e "b/\303\251""#, Some(("a/e", "b/é"))),
            ("a/one two b/three", None),
        ] {
            let found = both_names(text);
            let found = found.as_ref().map(|(old, new)| (old.as_str(), new.as_str()));
            assert_eq!(found, names, "{text}");
        }
    }
}
