//! Checks arguments against a tool's schema, with errors that a model can act on.
//!
//! One error lists all problems. Unambiguous deviations of models and frameworks are accepted: whole numbers written
//! as `2.0`, numbers and booleans as strings, arrays and objects as JSON text, and `null` or an empty string for an
//! absent optional argument. If an empty string is a valid value, the schema has `minLength: 0`.

use pinfold::{Error, similar_names};
use serde_json::{Map, Number, Value};

use crate::phrases::{count, shortened};
use crate::portable_names::other_names;

/// Returns the arguments in the form of the tool's struct, or an error with all problems.
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
    /// The maximum number of listed problems. A longer list would not help to correct the call.
    const MAX_PROBLEMS: usize = 8;
    if problems.is_empty() {
        return Ok(checked);
    }
    let more = problems.len().saturating_sub(MAX_PROBLEMS);
    problems.truncate(MAX_PROBLEMS);
    if more > 0 {
        problems.push(format!("and {more} more"));
    }
    Err(Error::InvalidArgument(problems.join("; ")))
}

fn check_object(
    schema: &Value,
    mut given: Map<String, Value>,
    prefix: &str,
    problems: &mut Vec<String>,
) -> Value {
    let empty = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&empty);
    let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
    for (name, other) in other_names(properties) {
        if !given.contains_key(name)
            && let Some(value) = given.remove(other)
        {
            given.insert(name.into(), value);
        }
    }
    let mut checked = Map::new();
    for (name, property) in properties {
        let is_required = required.iter().any(|required| required == name);
        match given.remove(name) {
            None | Some(Value::Null) if is_required => {
                let purpose = property["description"].as_str().unwrap_or_default();
                let purpose = purpose.split(". ").next().unwrap_or_default().trim_end_matches('.');
                problems.push(format!("{prefix}`{name}` is missing ({purpose})"));
            }
            None | Some(Value::Null) => {}
            Some(Value::String(empty))
                if empty.is_empty() && !is_required && property.get("minLength").is_none() => {}
            Some(value) => {
                let value = check_value(property, value, &format!("{prefix}`{name}`"), problems);
                checked.insert(name.clone(), value);
            }
        }
    }
    for unknown in given.keys() {
        let names = || properties.keys().map(String::as_str);
        let instead = match similar_names(unknown, names(), 1).first() {
            Some(name) => format!("did you mean `{name}`?"),
            None if properties.is_empty() => "leave it out".into(),
            None => format!(
                "there is {}",
                names().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")
            ),
        };
        problems.push(format!("{prefix}there is no argument `{}`; {instead}", shortened(unknown)));
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
        "boolean" => match &value {
            Value::Bool(_) => value,
            Value::String(text) if text.eq_ignore_ascii_case("true") => Value::Bool(true),
            Value::String(text) if text.eq_ignore_ascii_case("false") => Value::Bool(false),
            _ => {
                problems.push(wrong("true or false", &value));
                value
            }
        },
        "integer" => {
            let bound = |key: &str| schema[key].as_i64().map(i128::from);
            let (min, max) = (bound("minimum"), bound("maximum"));
            let fits = |number: &i128| {
                min.is_none_or(|min| *number >= min) && max.is_none_or(|max| *number <= max)
            };
            match whole(&value).filter(fits) {
                Some(number) => Number::from_i128(number).map_or(value, Value::Number),
                None => {
                    let expected = match (min, max) {
                        (Some(min), Some(max)) => {
                            format!("a whole number from {min} to {max}")
                        }
                        (Some(min), None) => format!("a whole number of at least {min}"),
                        (None, Some(max)) => format!("a whole number of at most {max}"),
                        (None, None) => "a whole number".into(),
                    };
                    problems.push(wrong(&expected, &value));
                    value
                }
            }
        }
        "array" => match from_text(value, Value::is_array) {
            Value::Array(items) => {
                let min = schema["minItems"].as_u64().unwrap_or(0);
                if (items.len() as u64) < min {
                    problems.push(format!("{name} must have at least {}", count(min, "item")));
                }
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
        "object" => match from_text(value, Value::is_object) {
            Value::Object(object) => check_object(schema, object, &format!("{name}: "), problems),
            other => {
                problems.push(wrong("an object", &other));
                other
            }
        },
        _ => value,
    }
}

/// A whole number, written as an integer, as a float or as a string.
fn whole(value: &Value) -> Option<i128> {
    /// 2^53: a float represents every whole number up to this exactly.
    const MAX_EXACT: f64 = 9_007_199_254_740_992.0;
    let number = match value {
        Value::String(text) => text.trim().parse().ok().map(Value::Number),
        _ => None,
    };
    let value = number.as_ref().unwrap_or(value);
    let integer = value.as_i64().map(i128::from).or(value.as_u64().map(i128::from));
    integer.or_else(|| {
        let float = value.as_f64().filter(|float| float.fract() == 0.0)?;
        (-MAX_EXACT..=MAX_EXACT).contains(&float).then_some(float as i128)
    })
}

/// Parses a string as JSON if the result has the right type; otherwise returns the value itself.
fn from_text(value: Value, is_right: fn(&Value) -> bool) -> Value {
    let parsed = value.as_str().and_then(|text| serde_json::from_str(text).ok());
    parsed.filter(is_right).unwrap_or(value)
}

fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => format!("the string {:?}", shortened(text)),
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
            "names": {"type": "array", "minItems": 1, "items": {"type": "string"}},
            "edits": {"type": "array", "items": {"type": "object", "required": ["old"], "properties": {
                "old": {"type": "string"},
            }}},
        }})
    }

    #[test]
    fn common_deviations_of_models_are_accepted() {
        let given = json!({"path": "x", "limit": 2.0, "mode": null, "edits": [{"old": "y"}]});
        let accepted = json!({"path": "x", "limit": 2, "edits": [{"old": "y"}]});
        assert_eq!(check(&schema(), given).unwrap(), accepted);
        let given = json!({"path": "x", "limit": "2", "all": "True", "edits": "[{\"old\": \"\"}]"});
        let accepted = json!({"path": "x", "limit": 2, "all": true, "edits": [{"old": ""}]});
        assert_eq!(check(&schema(), given).unwrap(), accepted);
        let given = json!({"path": "", "limit": "", "mode": "", "all": "", "edits": ""});
        assert_eq!(check(&schema(), given).unwrap(), json!({"path": ""}));
        let given = json!({"path": "x", "limit": "2.0", "edits": ["{\"old\": \"a\"}"]});
        let accepted = json!({"path": "x", "limit": 2, "edits": [{"old": "a"}]});
        assert_eq!(check(&schema(), given).unwrap(), accepted);
        let flags = json!({"properties": {"-i": {"type": "boolean"}, "-C": {"type": "integer"}}});
        let given = json!({"ignore_case": true, "context": 3});
        assert_eq!(check(&flags, given).unwrap(), json!({"-i": true, "-C": 3}));
    }

    #[test]
    fn errors_name_the_argument_and_the_expected_value() {
        for (given, problem) in [
            (json!({}), "`path` is missing (The file)"),
            (json!(null), "`path` is missing (The file)"),
            (json!([]), "the arguments must be a JSON object, not an array"),
            (json!({"path": 1}), "`path` must be a string, not 1"),
            (json!({"path": "", "limit": 0}), "`limit` must be a whole number from 1 to 10, not 0"),
            (
                json!({"path": "", "limit": "5 lines"}),
                "`limit` must be a whole number from 1 to 10, not the string \"5 lines\"",
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
                "there is no argument `zzz`; there is `path`, `limit`, `mode`, `all`, `names`, `edits`",
            ),
            (json!({"path": "", "edits": {}}), "`edits` must be an array, not an object"),
            (json!({"path": "", "names": []}), "`names` must have at least 1 item"),
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
        fn any_json_is_accepted_or_refused(text in "[\\[\\]{}\":,a-z0-9.eE-]{0,60}") {
            if let Ok(value) = serde_json::from_str::<Value>(&text) {
                let _ = check(&schema(), json!({"path": value.clone(), "edits": value}));
                let _ = check(&schema(), serde_json::from_str(&text).unwrap());
            }
        }
    }
}
