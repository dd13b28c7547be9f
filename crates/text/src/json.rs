//! Counts the values of a JSON text before it is parsed.

/// Whether a JSON text has more than `max` values, approximately: many small values take much more memory than their
/// text. A text of at most `max` bytes is not counted.
pub fn exceeds_json_values(text: &[u8], max: usize) -> bool {
    if text.len() <= max {
        return false;
    }
    let mut values = 0;
    let mut rest = text;
    // Outside of strings, there is one value before each comma and one in each bracket.
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
        loop {
            match memchr::memchr2(b'"', b'\\', rest) {
                Some(at) if rest[at] == b'\\' => rest = rest.get(at + 2..).unwrap_or_default(),
                Some(at) => {
                    rest = &rest[at + 1..];
                    break;
                }
                None => return false,
            }
        }
    }
    false
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
}
