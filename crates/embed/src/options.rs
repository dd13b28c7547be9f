//! The options for opening tools.

use std::path::PathBuf;

use pinfold::{BadName, Permissions, Settings, serde_names};
use pinfold_dialects::{Dialect, check_settings, named_dialects};
use serde::Deserialize;
use serde_json::{Map, Value};

/// The style of option names in a language.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NameStyle {
    /// `dry_run`, as in the configuration file.
    Snake,
    /// `dryRun`.
    Camel,
}

impl NameStyle {
    /// The name of an option in this style, from its name in the configuration file.
    pub fn spell(self, name: &str) -> String {
        let mut words = name.split('_');
        match self {
            Self::Snake => name.to_owned(),
            Self::Camel => {
                let first = words.next().unwrap_or_default().to_owned();
                words.fold(first, |start, word| start + &word[..1].to_uppercase() + &word[1..])
            }
        }
    }
}

/// The roots, the dialects and the settings.
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
    /// Parses options: `root`, `dialect`, and settings by their names in the style.
    pub(crate) fn parse(text: &str, style: NameStyle) -> Result<Self, String> {
        let options: Result<Map<String, Value>, _> = serde_json::from_str(text);
        let mut options = options.map_err(|error| format!("the options are no object: {error}"))?;
        // `null` means that the option is not given.
        options.retain(|_, value| !value.is_null());
        let known = serde_names::<Settings>().iter().chain(&["root", "dialect"]);
        let mut options = config_names(options, &known.copied().collect::<Vec<_>>(), style)?;
        let roots =
            options.remove("root").map_or(Ok(vec![".".into()]), |root| names("root", root))?;
        if roots.is_empty() {
            return Err("the option `root` names no directory".into());
        }
        let dialects =
            options.remove("dialect").map_or(Ok(Vec::new()), |names_| names("dialect", names_))?;
        let dialects = named_dialects(dialects.iter().map(String::as_str));
        let dialects = dialects.map_err(|problem| format!("the option `dialect`: {problem}"))?;
        match options.remove("permissions") {
            Some(Value::Object(permissions)) => {
                let permissions = config_names(permissions, serde_names::<Permissions>(), style)?;
                options.insert("permissions".to_owned(), permissions.into());
            }
            Some(_) => return Err("the option `permissions` must be an object".into()),
            None => {}
        }
        for (name, value) in &options {
            // Each is parsed alone, so that the error names the option.
            let alone = Map::from_iter([(name.clone(), value.clone())]);
            settings(alone)
                .map_err(|problem| format!("the option `{}`: {problem}", style.spell(name)))?;
        }
        let roots = roots.into_iter().map(PathBuf::from).collect();
        let settings = settings(options)?;
        settings.permissions.check().map_err(|bad| bad.to_string())?;
        if let Some(name) = settings.zero() {
            return Err(format!("the setting `{}` must be at least 1", style.spell(name)));
        }
        check_settings(&dialects, &settings)?;
        Ok(Self { roots, dialects, settings })
    }
}

/// The options by their names in the configuration file. Refuses unknown options and renamed values.
fn config_names(
    options: Map<String, Value>,
    known: &[&str],
    style: NameStyle,
) -> Result<Map<String, Value>, String> {
    let spelled: Vec<String> = known.iter().map(|name| style.spell(name)).collect();
    let config_name = |(key, value): (String, Value)| {
        let Some(number) = spelled.iter().position(|name| *name == key) else {
            let spelled: Vec<&str> = spelled.iter().map(String::as_str).collect();
            return match BadName::check_key(&key, &spelled) {
                Err(BadName::RenamedKey { old, new }) => {
                    Err(format!("the setting `{old}` is now `{}`", style.spell(new)))
                }
                Err(unknown) => Err(unknown.to_string()),
                Ok(()) => Err(String::new()),
            };
        };
        let name = known[number];
        match value.as_str().and_then(|value| BadName::renamed_value(name, value)) {
            Some(BadName::RenamedValue { old, new, .. }) => {
                Err(BadName::RenamedValue { key, old, new }.to_string())
            }
            _ => Ok((name.to_owned(), value)),
        }
    };
    options.into_iter().map(config_name).collect()
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
        let Options { roots, dialects, settings } =
            Options::parse(options, NameStyle::Snake).unwrap();
        assert_eq!(roots, [PathBuf::from("/a"), "/b".into()]);
        let names: Vec<_> = dialects.iter().map(|dialect| dialect.name).collect();
        assert_eq!(names, ["dotted", "classic", "scoped"]);
        assert_eq!(settings.permissions.mode, pinfold::Mode::Plan);
        let Options { roots, dialects, settings } = Options::parse("{}", NameStyle::Snake).unwrap();
        assert_eq!(roots, [PathBuf::from(".")]);
        assert!(dialects.is_empty());
        assert_eq!(settings, Settings::default());
    }

    #[test]
    fn an_invalid_option_is_named() {
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
            (
                r#"{"dialect": "old"}"#,
                "there is no dialect `old`; the dialects are classic, dotted",
            ),
            (r#"{"dialect": "memory"}"#, "needs a directory for its files: set `memory`"),
            ("[]", "no object"),
            ("{", "no object"),
        ] {
            let problem = Options::parse(options, NameStyle::Snake).err().unwrap();
            assert!(problem.contains(named), "{options}: {problem}");
        }
    }

    #[test]
    fn camel_case_options_are_read_and_named_in_camel_case() {
        let options =
            r#"{"root": "/a", "dryRun": true, "readBeforeWrite": "off", "maxGlobFiles": 7}"#;
        let Options { settings, .. } = Options::parse(options, NameStyle::Camel).unwrap();
        assert!(settings.dry_run);
        assert_eq!(settings.read_before_write, Some(pinfold::ReadBeforeWrite::Off));
        assert_eq!(settings.max_glob_files, 7);
        for (options, named) in [
            (r#"{"dry_run": true}"#, "there is no setting `dry_run`; did you mean `dryRun`?"),
            (r#"{"dryRun": "yes"}"#, "the option `dryRun`: invalid type"),
            (r#"{"seen": "off"}"#, "the setting `seen` is now `readBeforeWrite`"),
            (r#"{"deadlineSeconds": 0}"#, "the setting `deadlineSeconds` must be at least 1"),
            (r#"{"journal": 5}"#, "the option `journal`: expected true, false or a directory"),
            (r#"{"journalFailure": "say"}"#, "the value `say` of `journalFailure` is now `warn`"),
            (r#"{"permissions": {"modes": "plan"}}"#, "no setting `modes`; did you mean `mode`?"),
        ] {
            let problem = Options::parse(options, NameStyle::Camel).err().unwrap();
            assert!(problem.contains(named), "{options}: {problem}");
        }
    }
}
