//! The options that tools are opened with.

use std::path::PathBuf;

use pinfold::{BadName, Permissions, Settings, serde_names};
use pinfold_dialects::{Dialect, named_dialects};
use serde::Deserialize;
use serde_json::{Map, Value};

/// The roots and the dialects; every other option is one of the settings, by its name there.
pub(crate) struct Options {
    pub(crate) roots: Vec<PathBuf>,
    pub(crate) dialects: Vec<&'static Dialect>,
    pub(crate) settings: Settings,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

impl Options {
    /// The options, or what is wrong with them.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let options: Result<Map<String, Value>, _> = serde_json::from_str(text);
        let mut options = options.map_err(|error| format!("the options are no object: {error}"))?;
        // A null means that the option is not given.
        options.retain(|_, value| !value.is_null());
        let known = serde_names::<Settings>().iter().chain(&["root", "dialect"]);
        check_names(&options, &known.copied().collect::<Vec<_>>())?;
        let roots =
            options.remove("root").map_or(Ok(vec![".".into()]), |root| names("root", root))?;
        if roots.is_empty() {
            return Err("the option `root` names no directory".into());
        }
        let dialects =
            options.remove("dialect").map_or(Ok(Vec::new()), |names_| names("dialect", names_))?;
        let dialects = named_dialects(dialects.iter().map(String::as_str));
        let dialects = dialects.map_err(|problem| format!("the option `dialect`: {problem}"))?;
        match options.get("permissions") {
            Some(Value::Object(permissions)) => {
                check_names(permissions, serde_names::<Permissions>())?;
            }
            Some(_) => return Err("the option `permissions` must be an object".into()),
            None => {}
        }
        for (name, value) in &options {
            // One at a time, so that the message names the option.
            let alone = Map::from_iter([(name.clone(), value.clone())]);
            settings(alone).map_err(|problem| format!("the option `{name}`: {problem}"))?;
        }
        let roots = roots.into_iter().map(PathBuf::from).collect();
        let settings = settings(options)?;
        settings.permissions.check().map_err(|bad| bad.to_string())?;
        Ok(Self { roots, dialects, settings })
    }
}

/// Checks that every option is known and that no value was renamed.
fn check_names(options: &Map<String, Value>, known: &[&str]) -> Result<(), String> {
    for (key, value) in options {
        BadName::check_key(key, known).map_err(|problem| problem.to_string())?;
        if let Some(problem) = value.as_str().and_then(|value| BadName::renamed_value(key, value)) {
            return Err(problem.to_string());
        }
    }
    Ok(())
}

fn names(option: &str, value: Value) -> Result<Vec<String>, String> {
    match serde_json::from_value(value) {
        Ok(OneOrMore::One(name)) => Ok(vec![name]),
        Ok(OneOrMore::More(names)) => Ok(names),
        Err(_) => Err(format!("the option `{option}` must be a string or a list of strings")),
    }
}

fn settings(options: Map<String, Value>) -> Result<Settings, String> {
    serde_json::from_value(options.into()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_settings_by_their_names() {
        let options = r#"{"root": ["/a", "/b"], "dialect": ["dotted", "all"], "read_before_write": "off",
                          "journal": null, "permissions": {"mode": "plan"}}"#;
        let Options { roots, dialects, settings } = Options::parse(options).unwrap();
        assert_eq!(roots, [PathBuf::from("/a"), "/b".into()]);
        let names: Vec<_> = dialects.iter().map(|dialect| dialect.name).collect();
        assert_eq!(names, ["dotted", "classic", "scoped"]);
        assert_eq!(settings.permissions.mode, pinfold::Mode::Plan);
        let Options { roots, dialects, settings } = Options::parse("{}").unwrap();
        assert_eq!(roots, [PathBuf::from(".")]);
        assert!(dialects.is_empty());
        assert_eq!(settings, Settings::default());
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (options, named) in [
            (r#"{"dryRun": true}"#, "there is no setting `dryRun`; did you mean `dry_run`?"),
            (r#"{"roots": "/a"}"#, "there is no setting `roots`; did you mean `root`?"),
            (r#"{"colour": 1}"#, "there is no setting `colour`"),
            (r#"{"dry_run": "yes"}"#, "the option `dry_run`: invalid type"),
            (r#"{"durability": "most"}"#, "the option `durability`: unknown variant `most`"),
            (r#"{"permissions": {"modes": "plan"}}"#, "no setting `modes`; did you mean `mode`?"),
            (r#"{"permissions": {"mode": "careful"}}"#, "careful"),
            (r#"{"permissions": []}"#, "`permissions` must be an object"),
            (r#"{"permissions": {"deny": ["Fly(x)"]}}"#, "Fly"),
            (r#"{"seen": "off"}"#, "the setting `seen` is now `read_before_write`"),
            (r#"{"journal_failure": "say"}"#, "the value `say` of `journal_failure` is now `warn`"),
            (r#"{"root": 1}"#, "`root` must be a string or a list"),
            (r#"{"root": []}"#, "names no directory"),
            (r#"{"dialect": "old"}"#, "the dialects are classic, dotted, scoped"),
            ("[]", "no object"),
            ("{", "no object"),
        ] {
            let problem = Options::parse(options).err().unwrap();
            assert!(problem.contains(named), "{options}: {problem}");
        }
    }
}
