//! Compares results with the expected ones.

use serde_json::Value;

/// Collects the differences between `found` and `expected`. The string `$ANY` matches any value; at the end of a
/// string it matches the rest of the string.
pub(crate) fn differences(expected: &Value, found: &Value, at: &str, problems: &mut Vec<String>) {
    match (expected, found) {
        (Value::String(any), _) if any == "$ANY" => {}
        (Value::String(expected), Value::String(found))
            if expected.strip_suffix("$ANY").is_some_and(|begin| found.starts_with(begin)) => {}
        (Value::Object(expected), Value::Object(found)) => {
            for (key, value) in expected {
                match found.get(key) {
                    Some(found) => differences(value, found, &format!("{at}.{key}"), problems),
                    None => problems.push(format!("{at}.{key} is missing")),
                }
            }
            for (key, value) in found.iter().filter(|(key, _)| !expected.contains_key(*key)) {
                problems.push(format!("{at}.{key} was not expected: {value}"));
            }
        }
        (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => {
            for (number, (expected, found)) in expected.iter().zip(found).enumerate() {
                differences(expected, found, &format!("{at}[{number}]"), problems);
            }
        }
        _ if expected == found => {}
        _ => problems.push(format!("{at}:\n  expected {expected}\n  found    {found}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_difference_is_noted_and_any_is_none() {
        let count = |expected, found| {
            let mut problems = Vec::new();
            differences(&expected, &found, "", &mut problems);
            problems.len()
        };
        assert_eq!(count(json!({"a": 1, "b": "$ANY"}), json!({"a": 1, "b": [2]})), 0);
        assert_eq!(count(json!("ab$ANY"), json!("abc")), 0);
        assert_eq!(count(json!("ab$ANY"), json!("acb")), 1);
        assert_eq!(count(json!({"a": 1}), json!({"a": 2})), 1);
        assert_eq!(count(json!({"a": 1}), json!({"b": 1})), 2);
        assert_eq!(count(json!([1, 2]), json!([1])), 1);
        assert_eq!(count(json!([1, 2]), json!([2, 1])), 2);
    }
}
