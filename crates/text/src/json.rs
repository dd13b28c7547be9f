//! Scans JSON text without parsing it: counts its values, and finds the parts of an object or array.

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
