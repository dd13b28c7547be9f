//! The configuration file: the person's, and never one from inside a workspace.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};
use etcetera::BaseStrategy as _;
use pinfold::{Settings, UnknownKey, unknown_key};
use pinfold_confine::read_config;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// What a configuration file says.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Config {
    /// What holds for sessions.
    pub(crate) settings: Settings,
    /// What holds for `pinfold serve`.
    pub(crate) serve: ServeConfig,
    /// What holds for `pinfold serve --http`: the table `[http]`.
    pub(crate) http: HttpConfig,
}

/// The settings of `pinfold serve`.
#[derive(Debug, Default, Deserialize, PartialEq)]
pub(crate) struct ServeConfig {
    /// Whether the directories that the client has open narrow the workspace.
    pub(crate) client_roots: Option<ClientRootsSetting>,
}

/// What becomes of the client's roots.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ClientRootsSetting {
    /// They narrow the workspace; they never widen it
    Narrow,
    /// The client is not asked for them
    Ignore,
}

/// The table `[http]`.
#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct HttpConfig {
    /// How many bytes a request may have.
    pub(crate) body_limit: Option<usize>,
    /// How many sessions there may be at once.
    pub(crate) max_sessions: Option<usize>,
    /// After how many seconds without a request a session ends.
    pub(crate) idle_seconds: Option<u64>,
    /// Names that the server may be reached by.
    pub(crate) allow_hosts: Vec<String>,
    /// Web pages that may talk to the server, by origin.
    pub(crate) allow_origins: Vec<String>,
}

/// What `file` says, or the user's own configuration file if there is one.
pub(crate) fn load(file: Option<&Path>) -> Result<Config> {
    let (path, named) = match file {
        Some(file) => (file.to_owned(), true),
        None => match default_path() {
            Some(path) => (path, false),
            None => return Ok(Config::default()),
        },
    };
    match read_config(&path) {
        Ok(text) => parse(&text).with_context(|| format!("in {}", path.display())),
        Err(error) if error.kind() == ErrorKind::NotFound && !named => Ok(Config::default()),
        Err(error) => Err(anyhow!("cannot read {}: {error}", path.display())),
    }
}

/// Where the user's own configuration file is, if there is one.
pub(crate) fn default_path() -> Option<PathBuf> {
    let directories = etcetera::choose_base_strategy().ok()?;
    Some(directories.config_dir().join("pinfold").join("config.toml"))
}

fn parse(text: &str) -> Result<Config> {
    let mut settings: toml::Table = read(text.parse::<toml::Table>())?;
    // What is not about sessions is taken out, so that what is left must be.
    let serve = settings.remove("client_roots").map(|value| ("client_roots".to_owned(), value));
    let http = settings.remove("http").unwrap_or_else(|| toml::Table::new().into());
    Ok(Config {
        settings: from(settings.into())?,
        serve: from(toml::Table::from_iter(serve).into())?,
        http: from(http).context("in `[http]`")?,
    })
}

fn from<T: DeserializeOwned>(value: toml::Value) -> Result<T> {
    read(value.try_into())
}

fn read<T>(result: Result<T, toml::de::Error>) -> Result<T> {
    result.map_err(|error| {
        let text = error.to_string();
        match unknown_key(&text, &KNOWN) {
            Some(UnknownKey { key, near: Some(near) }) => {
                anyhow!("there is no key `{key}`; did you mean `{near}`?")
            }
            Some(UnknownKey { key, near: None }) => {
                anyhow!("there is no key `{key}`; docs/CONFIG.md has those that there are")
            }
            None => anyhow!("{}", text.trim_end()),
        }
    })
}

/// Keys at the top that are not about sessions.
const KNOWN: [&str; 3] = ["client_roots", "http", "permissions"];

#[cfg(test)]
mod tests {
    use pinfold::{
        AuditFailure, DocumentsSetting, DurabilitySetting, JournalFailure, JournalSetting,
        MatchingSetting, Mode, Permissions, SeenSetting,
    };

    use super::*;

    #[test]
    fn every_key_is_taken() {
        let text = "relative_paths = true\ndry_run = true\ndurability = \"full\"\nseen = \"off\"\n\
                    matching = \"exact\"\nedit_bytes = 4\n\
                    journal = \"/j\"\njournal_days = 1\njournal_bytes = 2\n\
                    journal_failure = \"say\"\noutput_bytes = 5\nmax_line_chars = 6\nglob_limit = 8\nimage_side = 9\nimage_bytes = 10\ndocuments = \"reject\"\ndeadline_seconds = 7\n\
                    audit = \"/a\"\naudit_failure = \"ignore\"\nclient_roots = \"ignore\"\n\
                    [permissions]\nmode = \"plan\"\nallow = [\"Edit(a)\"]\nask = [\"*\"]\ndeny = [\"Delete\"]\n[http]\nbody_limit = 1\nmax_sessions = 2\nidle_seconds = 3\n\
                    allow_hosts = [\"h\"]\nallow_origins = [\"o\"]\n";
        let settings = Settings {
            relative_paths: true,
            dry_run: true,
            durability: DurabilitySetting::Full,
            seen: Some(SeenSetting::Off),
            matching: MatchingSetting::Exact,
            edit_bytes: 4,
            journal: Some(JournalSetting::Directory("/j".into())),
            journal_days: 1,
            journal_bytes: 2,
            journal_failure: JournalFailure::Say,
            output_bytes: Some(5),
            max_line_chars: 6,
            documents: DocumentsSetting::Reject,
            image_side: Some(9),
            image_bytes: Some(10),
            glob_limit: 8,
            deadline_seconds: 7,
            audit: Some("/a".into()),
            audit_failure: AuditFailure::Ignore,
            permissions: Permissions {
                mode: Mode::Plan,
                allow: vec!["Edit(a)".into()],
                ask: vec!["*".into()],
                deny: vec!["Delete".into()],
            },
        };
        let serve = ServeConfig { client_roots: Some(ClientRootsSetting::Ignore) };
        let http = HttpConfig {
            body_limit: Some(1),
            max_sessions: Some(2),
            idle_seconds: Some(3),
            allow_hosts: vec!["h".into()],
            allow_origins: vec!["o".into()],
        };
        assert_eq!(parse(text).unwrap(), Config { settings, serve, http });
        assert_eq!(parse("").unwrap(), Config::default());
        let off = parse("journal = false").unwrap().settings.journal;
        assert_eq!(off, Some(JournalSetting::Usual(false)));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, named) in [
            ("durabilty = \"full\"", "did you mean `durability`?"),
            ("unknwn = 1", "there is no key `unknwn`; docs/CONFIG.md"),
            ("client_root = \"ignore\"", "did you mean `client_roots`?"),
            ("[htpp]\na = 1", "did you mean `http`?"),
            ("durability = \"most\"", "most"),
            ("max_line_chars = -1", "max_line_chars"),
            ("dry_run = 1", "dry_run"),
            ("dry_run", "line 1"),
            ("client_roots = \"widen\"", "widen"),
            ("[permissions]\nmode = \"careful\"", "careful"),
            ("[permissions]\ndenied = []", "did you mean `deny`?"),
            ("[http]\nbody_limits = 1", "did you mean `body_limit`?"),
            ("[http]\nbody_limit = -1", "body_limit"),
            ("http = 1", "http"),
        ] {
            let error = format!("{:#}", parse(text).unwrap_err());
            assert!(error.contains(named), "{error}");
        }
    }

    /// The keys that a type has, by what it says of one that it has not.
    fn keys<T: DeserializeOwned>() -> Vec<String> {
        let error = toml::from_str::<T>("no_such_key = 1").err().unwrap().to_string();
        let (_, known) = error.split_once("expected").unwrap();
        known.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    }

    /// The keys in the tables of a section, each with its default.
    fn documented(section: &str) -> Vec<(String, String)> {
        let docs = include_str!("../../../docs/CONFIG.md");
        let sections = docs.split("\n## ").find(|text| text.starts_with(section)).unwrap();
        let rows = sections.lines().filter(|line| line.starts_with("| `"));
        let cells = rows.map(|row| row.split('|').map(str::trim).collect::<Vec<_>>());
        let keys = cells.filter(|cells| cells.len() > 4 && cells[1].matches('`').count() == 2);
        keys.map(|cells| (cells[1].trim_matches('`').to_owned(), cells[2].to_owned())).collect()
    }

    #[test]
    fn every_key_is_documented_with_its_default() {
        let mut settings = keys::<Settings>();
        settings.retain(|key| key != "permissions");
        settings.push("client_roots".into());
        let mut all: Vec<(String, String)> = documented("# Settings");
        assert_eq!(
            all.iter().map(|(key, _)| key).collect::<Vec<_>>(),
            settings.iter().collect::<Vec<_>>()
        );
        let permissions: Vec<_> = documented("`[permissions]`")
            .into_iter()
            .filter(|(key, _)| keys::<Permissions>().contains(key))
            .collect();
        assert_eq!(
            permissions.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(),
            keys::<Permissions>()
        );
        let http = documented("`[http]`");
        assert_eq!(
            http.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(),
            keys::<HttpConfig>()
        );
        // A default that is given is what comes of leaving the key out.
        all.retain(|(key, default)| default.starts_with('`') && key != "client_roots");
        assert!(all.len() > 10);
        let text = |keys: &[(String, String)]| -> String {
            keys.iter()
                .map(|(key, default)| format!("{key} = {}\n", default.trim_matches('`')))
                .collect()
        };
        let whole = format!("{}[permissions]\n{}", text(&all), text(&permissions));
        assert_eq!(parse(&whole).unwrap(), Config::default(), "{whole}");
        let options = pinfold_mcp::Options::default();
        let http = parse(&format!("[http]\n{}", text(&http))).unwrap().http;
        assert_eq!(http.max_sessions, Some(options.sessions));
        assert_eq!(http.idle_seconds, Some(options.session_idle.as_secs()));
        assert_eq!(http.body_limit, Some(pinfold_mcp::limits::MESSAGE_BYTES));
    }
}
