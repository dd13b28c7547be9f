//! What tools are made with.

use std::path::PathBuf;

use pinfold::{Settings, UnknownKey, unknown_key};
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

/// Options besides the settings.
const KNOWN: [&str; 2] = ["root", "dialect"];

impl Options {
    /// The options, or what is wrong with them.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let options: Result<Map<String, Value>, _> = serde_json::from_str(text);
        let mut options = options.map_err(|error| format!("the options are no object: {error}"))?;
        // What is not given is not there.
        options.retain(|_, value| !value.is_null());
        let roots =
            options.remove("root").map_or(Ok(vec![".".into()]), |root| names("root", root))?;
        if roots.is_empty() {
            return Err("the option `root` names no directory".into());
        }
        let dialects =
            options.remove("dialect").map_or(Ok(Vec::new()), |names_| names("dialect", names_))?;
        let dialects = named_dialects(dialects.iter().map(String::as_str));
        let dialects = dialects.map_err(|problem| format!("the option `dialect`: {problem}"))?;
        if options.get("permissions").is_some_and(|permissions| !permissions.is_object()) {
            return Err("the option `permissions` must be an object".into());
        }
        for (name, value) in &options {
            let alone = Map::from_iter([(name.clone(), value.clone())]);
            settings(alone).map_err(|problem| match unknown_key(&problem, &KNOWN) {
                Some(UnknownKey { key, near: Some(near) }) => {
                    format!("there is no option `{key}`; did you mean `{near}`?")
                }
                Some(UnknownKey { key, near: None }) => format!("there is no option `{key}`"),
                None => format!("the option `{name}`: {problem}"),
            })?;
        }
        let roots = roots.into_iter().map(PathBuf::from).collect();
        let settings = settings(options)?;
        settings.permissions.check().map_err(|bad| bad.to_string())?;
        Ok(Self { roots, dialects, settings })
    }
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
        let options = r#"{"root": ["/a", "/b"], "dialect": ["dotted", "all"], "seen": "off",
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
            (r#"{"dryRun": true}"#, "there is no option `dryRun`; did you mean `dry_run`?"),
            (r#"{"roots": "/a"}"#, "there is no option `roots`; did you mean `root`?"),
            (r#"{"colour": 1}"#, "there is no option `colour`"),
            (r#"{"dry_run": "yes"}"#, "the option `dry_run`: invalid type"),
            (r#"{"durability": "most"}"#, "the option `durability`: unknown variant `most`"),
            (r#"{"permissions": {"modes": "plan"}}"#, "no option `modes`; did you mean `mode`?"),
            (r#"{"permissions": {"mode": "careful"}}"#, "careful"),
            (r#"{"permissions": []}"#, "`permissions` must be an object"),
            (r#"{"permissions": {"deny": ["Fly(x)"]}}"#, "Fly"),
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
