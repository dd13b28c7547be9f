//! Scans JSON text without parsing it: counts its values, and finds the parts of an object or array. Escapes text.

use std::ops::Range;

/// Whether a JSON text has more than `max` values, approximately. Many small values take much more memory than their
/// text. A text of at most `max` bytes is not counted.
pub fn exceeds_json_values(text: &[u8], max: usize) -> bool {
    if text.len() <= max {
        return false;
    }
    // This fast count includes characters in strings. It suffices for most texts.
    let marks = [b',', b'[', b'{'].map(|mark| memchr::memchr_iter(mark, text).count());
    if marks.iter().sum::<usize>() <= max {
        return false;
    }
    let mut values = 0;
    let mut rest = text;
    // Outside strings, there is one value before each comma and one in each bracket.
    while let Some(at) = rest.iter().position(|byte| matches!(byte, b'"' | b',' | b'[' | b'{')) {
        let byte = rest[at];
        rest = &rest[at + 1..];
        if byte != b'"' {
            values += 1;
            if values > max {
                return true;
            }
            continue;
        }
        rest = &text[string_end(text, text.len() - rest.len() - 1)..];
    }
    false
}

/// The elements of an object or array in a JSON text that has been parsed, so it is known to be valid.
///
/// `container` is the range from its opening to its closing bracket, both included. An element is the range from its
/// first to its last byte, without the whitespace and commas around it: a value of an array, or a key, colon and
/// value of an object. The function does not recurse.
pub fn json_elements(text: &str, container: Range<usize>) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let is_blank = |byte: u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    let mut elements = Vec::new();
    let (mut depth, mut element) = (0, None);
    let mut at = container.start + 1;
    let inside = container.end.saturating_sub(1).min(bytes.len());
    while at < inside {
        let byte = bytes[at];
        if byte == b',' && depth == 0 {
            elements.extend(element.take());
            at += 1;
            continue;
        }
        let next = if byte == b'"' { string_end(bytes, at) } else { at + 1 };
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth -= 1,
            _ => {}
        }
        if !is_blank(byte) {
            let start = element.map_or(at, |element: Range<usize>| element.start);
            element = Some(start..next);
        }
        at = next;
    }
    elements.extend(element);
    elements
}

/// The literal key and the value of an object's element: see [`json_elements`].
pub fn json_member(text: &str, element: Range<usize>) -> [Range<usize>; 2] {
    let key = element.start..string_end(text.as_bytes(), element.start).min(element.end);
    let blank = |character: char| matches!(character, ' ' | '\t' | '\r' | '\n' | ':');
    let value = text[key.end..element.end].trim_start_matches(blank);
    [key, element.end - value.len()..element.end]
}

/// Appends a text as a JSON string has it, without the quotes around it. This is several times as fast as `serde_json`
/// with long texts.
pub fn escape_json(text: &str, json: &mut String) {
    escape(text, |part| json.push_str(part));
}

/// As [`escape_json`], for JSON as bytes.
pub fn escape_json_bytes(text: &str, json: &mut Vec<u8>) {
    escape(text, |part| json.extend_from_slice(part.as_bytes()));
}

// Not generic for other crates, which may be compiled for size.
fn escape(text: &str, mut push: impl FnMut(&str)) {
    let mut rest = text;
    while let Some(at) = first_special(rest.as_bytes()) {
        push(&rest[..at]);
        match rest.as_bytes()[at] {
            b'\n' => push("\\n"),
            b'"' => push("\\\""),
            b'\\' => push("\\\\"),
            b'\t' => push("\\t"),
            b'\r' => push("\\r"),
            0x08 => push("\\b"),
            0x0c => push("\\f"),
            byte => push(&format!("\\u{byte:04x}")),
        }
        rest = &rest[at + 1..];
    }
    push(rest);
}

/// Appends the text of the string that starts at a quote, and returns the offset after its closing quote. This is
/// several times as fast as `serde_json` if many characters are escaped. Returns `None` if the string is not valid;
/// whether it is UTF-8 is not checked.
pub fn unescape_json(json: &[u8], quote: usize, text: &mut Vec<u8>) -> Option<usize> {
    let mut at = quote + 1;
    loop {
        at = copy_plain(json, at, text)?;
        let special = json[at];
        at += 1;
        if special != b'\\' {
            return (special == b'"').then_some(at);
        }
        let plain = match *json.get(at)? {
            b'n' => b'\n',
            same @ (b'"' | b'\\' | b'/') => same,
            b't' => b'\t',
            b'r' => b'\r',
            b'b' => 0x08,
            b'f' => 0x0c,
            b'u' => {
                let (character, end) = escaped_character(json, at + 1)?;
                text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                at = end;
                continue;
            }
            _ => return None,
        };
        text.push(plain);
        at += 1;
    }
}

/// The character after `\u`, of four hexadecimal digits or a pair of surrogates, and the offset after it.
fn escaped_character(json: &[u8], at: usize) -> Option<(char, usize)> {
    let unit = |at: usize| {
        let digits = json.get(at..at + 4).filter(|it| it.iter().all(u8::is_ascii_hexdigit))?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let first = unit(at)?;
    if let Some(character) = char::from_u32(first.into()) {
        return Some((character, at + 4));
    }
    json.get(at + 4..)?.starts_with(b"\\u").then_some(())?;
    let pair = char::decode_utf16([first, unit(at + 6)?]).next()?.ok()?;
    Some((pair, at + 10))
}

/// Appends the bytes before the first one that is special, and returns the offset of that one. Most runs are short, so
/// that they are copied by words.
fn copy_plain(json: &[u8], mut at: usize, text: &mut Vec<u8>) -> Option<usize> {
    let (words, rest) = json.get(at..)?.as_chunks::<8>();
    for word in words {
        text.extend_from_slice(word);
        if let Some(plain) = special_in(*word) {
            text.truncate(text.len() - word.len() + plain);
            return Some(at + plain);
        }
        at += word.len();
    }
    let plain = rest.iter().position(is_special)?;
    text.extend_from_slice(&rest[..plain]);
    Some(at + plain)
}

/// The offset of the first special byte.
fn first_special(bytes: &[u8]) -> Option<usize> {
    let (words, rest) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        if let Some(at) = special_in(*word) {
            return Some(index * word.len() + at);
        }
    }
    let found = rest.iter().position(is_special)?;
    Some(bytes.len() - rest.len() + found)
}

/// Whether a byte has to be escaped: a quote, a backslash, or a control character.
fn is_special(byte: &u8) -> bool {
    matches!(byte, ..0x20 | b'"' | b'\\')
}

/// The index of the first special byte.
fn special_in(word: [u8; 8]) -> Option<usize> {
    const ONES: u64 = u64::MAX / 0xff;
    const HIGHS: u64 = ONES << 7;
    // The lowest byte with its high bit set is the first one that is zero, or below 0x20.
    let zero = |word: u64| word.wrapping_sub(ONES) & !word;
    let word = u64::from_le_bytes(word);
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    let quote = zero(word ^ (ONES * u64::from(b'"')));
    let backslash = zero(word ^ (ONES * u64::from(b'\\')));
    let found = (control | quote | backslash) & HIGHS;
    (found != 0).then(|| (found.trailing_zeros() / 8) as usize)
}

/// The end of the string that starts at a quote.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    loop {
        match bytes.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
            Some(found) if bytes[at + found] == b'\\' => at += found + 2,
            Some(found) => return at + found + 1,
            None => return bytes.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_outside_of_strings() {
        const MAX: usize = 100;
        let many = MAX + 1;
        for (text, expected) in [
            (format!("[{}]", "0,".repeat(many)), true),
            (format!("[{}]", "[],".repeat(many / 2)), true),
            (format!("[{}]", "{},".repeat(many / 4)), false),
            (format!("[\"{}\"]", ",[{\\\"".repeat(many)), false),
            (format!("[\"{}", ",".repeat(many)), false),
            (format!("[\"\\{}", ",".repeat(many)), false),
            (format!("\"\\\\\"{}", ",".repeat(many)), true),
        ] {
            assert_eq!(exceeds_json_values(text.as_bytes(), MAX), expected, "{}", &text[..20]);
        }
    }

    #[test]
    fn every_character_is_escaped_wherever_it_stands() {
        for character in '\0'..='\u{100}' {
            let escaped = match character {
                '"' | '\\' => format!("\\{character}"),
                '\n' => "\\n".into(),
                '\t' => "\\t".into(),
                '\r' => "\\r".into(),
                '\u{8}' => "\\b".into(),
                '\u{c}' => "\\f".into(),
                ..' ' => format!("\\u{:04x}", u32::from(character)),
                _ => character.to_string(),
            };
            for before in 0..17 {
                let [before, after] = ["x".repeat(before), "\u{e9}y".repeat(5)];
                let mut json = String::new();
                escape_json(&format!("{before}{character}{after}"), &mut json);
                assert_eq!(json, format!("{before}{escaped}{after}"));
            }
        }
    }

    #[test]
    fn a_string_is_unescaped_to_its_closing_quote() {
        let unescaped = |json: &str| {
            let mut text = Vec::new();
            let end = unescape_json(json.as_bytes(), 1, &mut text)?;
            Some((String::from_utf8(text).unwrap(), end))
        };
        for (string, text) in [
            (r#""""#, ""),
            (r#""a\"nb\"\\\/\b\f\r\t""#, "a\"nb\"\\/\u{8}\u{c}\r\t"),
            (
                r#""\n\n0123456789\nabc\u00e9\uD83D\ude00 \u{e9}""#,
                "\n\n0123456789\nabc\u{e9}\u{1f600} \u{e9}",
            ),
        ] {
            let string = string.replace("\\u{e9}", "\u{e9}");
            for after in ["", ",", "1234567890"] {
                let json = format!("[{string}{after}");
                assert_eq!(unescaped(&json), Some((text.to_owned(), 1 + string.len())), "{json}");
            }
        }
        for bad in [
            "",
            "a",
            "\\",
            "\\\"",
            "\\x\"",
            "\\u12\"",
            "\\u+123\"",
            "\\ud800\"",
            "\\ud800\\n\"",
            "\\udc00\"",
            "\n\"",
        ] {
            assert_eq!(unescaped(&format!("[\"{bad}")), None, "{bad}");
        }
    }

    #[test]
    fn the_parts_of_objects_and_arrays_are_found() {
        let text = r#" { "a\"," : [1, "x,]", {"b":[]} ] ,"c":"\\","d": null } "#;
        let elements = json_elements(text, 1..text.len() - 1);
        let members = elements.iter().map(|element| json_member(text, element.clone()));
        let members: Vec<_> = members.map(|member| member.map(|range| &text[range])).collect();
        let array = r#"[1, "x,]", {"b":[]} ]"#;
        assert_eq!(members, [[r#""a\",""#, array], [r#""c""#, r#""\\""#], [r#""d""#, "null"]]);
        let items: Vec<_> =
            json_elements(array, 0..array.len()).into_iter().map(|range| &array[range]).collect();
        assert_eq!(items, ["1", "\"x,]\"", "{\"b\":[]}"]);
        for empty in ["[]", "{ }", "[\n]"] {
            assert!(json_elements(empty, 0..empty.len()).is_empty(), "{empty:?}");
        }
    }
}
