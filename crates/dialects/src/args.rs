//! Checking arguments against a tool's schema, in words that a model can act on.
//!
//! Everything that is wrong is said at once. What models often send and nobody could misread is put
//! right: whole numbers written as `2.0`, optional arguments given as `null`.

use pinfold::Error;
use serde_json::{Map, Number, Value};

use crate::words::{brief, nearest};

/// The arguments as the tool's struct takes them, or everything that is wrong with them.
pub(crate) fn check(schema: &Value, arguments: Value) -> Result<Value, Error> {
    let mut problems = Vec::new();
    let arguments = match arguments {
        Value::Null => Value::Object(Map::new()),
        other => other,
    };
    let checked = match arguments {
        Value::Object(object) => check_object(schema, object, "", &mut problems),
        other => {
            problems.push(format!("the arguments must be a JSON object, not {}", describe(&other)));
            Value::Null
        }
    };
    /// Who has this many mistakes to mend will not mind to be told of the others later.
    const MAX_NAMED: usize = 8;
    if problems.is_empty() {
        return Ok(checked);
    }
    let more = problems.len().saturating_sub(MAX_NAMED);
    problems.truncate(MAX_NAMED);
    if more > 0 {
        problems.push(format!("and {more} more"));
    }
    Err(Error::InvalidArgument(problems.join("; ")))
}

fn check_object(
    schema: &Value,
    mut given: Map<String, Value>,
    whose: &str,
    problems: &mut Vec<String>,
) -> Value {
    let empty = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&empty);
    let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
    let mut checked = Map::new();
    for (name, property) in properties {
        match given.remove(name) {
            None | Some(Value::Null) if required.iter().any(|required| required == name) => {
                let about = property["description"].as_str().unwrap_or_default();
                let about = about.split(". ").next().unwrap_or_default().trim_end_matches('.');
                problems.push(format!("{whose}`{name}` is missing ({about})"));
            }
            None | Some(Value::Null) => {}
            Some(value) => {
                let value = check_value(property, value, &format!("{whose}`{name}`"), problems);
                checked.insert(name.clone(), value);
            }
        }
    }
    for unknown in given.keys() {
        let names = || properties.keys().map(String::as_str);
        let instead = match nearest(unknown, names()) {
            Some(name) => format!("did you mean `{name}`?"),
            None => format!(
                "there is {}",
                names().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")
            ),
        };
        problems.push(format!("{whose}there is no argument `{}`; {instead}", brief(unknown)));
    }
    Value::Object(checked)
}

fn check_value(schema: &Value, value: Value, name: &str, problems: &mut Vec<String>) -> Value {
    let wrong = |expected: &str, value: &Value| {
        format!("{name} must be {expected}, not {}", describe(value))
    };
    match schema["type"].as_str().unwrap_or_default() {
        "string" => {
            let choices = schema["enum"].as_array();
            match choices {
                Some(choices) if !choices.contains(&value) => {
                    let choices: Vec<_> = choices.iter().filter_map(Value::as_str).collect();
                    let choices = format!("one of `{}`", choices.join("`, `"));
                    problems.push(wrong(&choices, &value));
                }
                None if !value.is_string() => problems.push(wrong("a string", &value)),
                _ => {}
            }
            value
        }
        "boolean" => {
            if !value.is_boolean() {
                problems.push(wrong("true or false", &value));
            }
            value
        }
        "integer" => {
            let (least, most) = (schema["minimum"].as_u64(), schema["maximum"].as_u64());
            let fits = |number: &u64| {
                least.is_none_or(|least| *number >= least)
                    && most.is_none_or(|most| *number <= most)
            };
            match whole(&value).filter(fits) {
                Some(number) => Value::Number(Number::from(number)),
                None => {
                    let expected = match (least, most) {
                        (Some(least), Some(most)) => {
                            format!("a whole number from {least} to {most}")
                        }
                        (Some(least), None) => format!("a whole number of at least {least}"),
                        (None, Some(most)) => format!("a whole number of at most {most}"),
                        (None, None) => "a whole number".into(),
                    };
                    problems.push(wrong(&expected, &value));
                    value
                }
            }
        }
        "array" => match value {
            Value::Array(items) => {
                let check = |(number, item)| {
                    let name = format!("item {} of {name}", number + 1);
                    check_value(&schema["items"], item, &name, problems)
                };
                Value::Array(items.into_iter().enumerate().map(check).collect())
            }
            other => {
                problems.push(wrong("an array", &other));
                other
            }
        },
        "object" => match value {
            Value::Object(object) => check_object(schema, object, &format!("{name}: "), problems),
            other => {
                problems.push(wrong("an object", &other));
                other
            }
        },
        _ => value,
    }
}

/// A number without a fraction, however it is written.
fn whole(value: &Value) -> Option<u64> {
    /// Up to here, every whole number has a float of its own.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    value.as_u64().or_else(|| {
        let float = value.as_f64().filter(|float| float.fract() == 0.0)?;
        (0.0..=EXACT).contains(&float).then_some(float as u64)
    })
}

fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => format!("the string {:?}", brief(text)),
        Value::Array(_) => "an array".into(),
        Value::Object(_) => "an object".into(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({"type": "object", "required": ["path"], "properties": {
            "path": {"type": "string", "description": "The file. Absolute."},
            "limit": {"type": "integer", "minimum": 1, "maximum": 10},
            "mode": {"type": "string", "enum": ["a", "b"]},
            "all": {"type": "boolean"},
            "edits": {"type": "array", "items": {"type": "object", "required": ["old"], "properties": {
                "old": {"type": "string"},
            }}},
        }})
    }

    #[test]
    fn what_models_often_send_is_put_right() {
        let given = json!({"path": "x", "limit": 2.0, "mode": null, "edits": [{"old": "y"}]});
        let taken = json!({"path": "x", "limit": 2, "edits": [{"old": "y"}]});
        assert_eq!(check(&schema(), given).unwrap(), taken);
    }

    #[test]
    fn what_is_wrong_is_named_with_what_was_expected() {
        for (given, problem) in [
            (json!({}), "`path` is missing (The file)"),
            (json!(null), "`path` is missing (The file)"),
            (json!([]), "the arguments must be a JSON object, not an array"),
            (json!({"path": 1}), "`path` must be a string, not 1"),
            (json!({"path": "", "limit": 0}), "`limit` must be a whole number from 1 to 10, not 0"),
            (
                json!({"path": "", "limit": "5"}),
                "`limit` must be a whole number from 1 to 10, not the string \"5\"",
            ),
            (
                json!({"path": "", "limit": 1.5}),
                "`limit` must be a whole number from 1 to 10, not 1.5",
            ),
            (
                json!({"path": "", "limit": -1}),
                "`limit` must be a whole number from 1 to 10, not -1",
            ),
            (
                json!({"path": "", "limit": 1e300}),
                "`limit` must be a whole number from 1 to 10, not 1e+300",
            ),
            (
                json!({"path": "", "mode": "c"}),
                "`mode` must be one of `a`, `b`, not the string \"c\"",
            ),
            (
                json!({"path": "", "all": "yes"}),
                "`all` must be true or false, not the string \"yes\"",
            ),
            (json!({"path": "", "pathh": 1}), "there is no argument `pathh`; did you mean `path`?"),
            (
                json!({"path": "", "zzz": 1}),
                "there is no argument `zzz`; there is `path`, `limit`, `mode`, `all`, `edits`",
            ),
            (json!({"path": "", "edits": {}}), "`edits` must be an array, not an object"),
            (
                json!({"path": "", "edits": [{"old": ""}, {"new": ""}]}),
                "item 2 of `edits`: `old` is missing (); item 2 of `edits`: there is no argument `new`; there is `old`",
            ),
            (
                json!({"limit": 99}),
                "`path` is missing (The file); `limit` must be a whole number from 1 to 10, not 99",
            ),
        ] {
            let error = check(&schema(), given.clone()).unwrap_err().to_string();
            assert_eq!(error, problem, "{given}");
        }
    }

    proptest! {
        #[test]
        fn any_json_is_taken_or_refused(text in "[\\[\\]{}\":,a-z0-9.eE-]{0,60}") {
            if let Ok(value) = serde_json::from_str::<Value>(&text) {
                let _ = check(&schema(), json!({"path": value.clone(), "edits": value}));
                let _ = check(&schema(), serde_json::from_str(&text).unwrap());
            }
        }
    }
}
