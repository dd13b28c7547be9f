//! The configuration file. It belongs to the user, and no workspace is searched for it.

mod workspaces;

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};
use etcetera::BaseStrategy as _;
use pinfold::{BadName, Permissions, Settings, serde_names};
use pinfold_confine::read_user_file;
use pinfold_feed::FeedSetting;
use pinfold_mcp::ClientRoots;
use serde::Deserialize;

use crate::sandbox::Landlock;
pub(crate) use workspaces::{WorkspaceConfig, check_name};

/// The content of a configuration file.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Config {
    /// The settings of sessions.
    pub(crate) settings: Settings,
    /// The settings of `pinfold serve`.
    pub(crate) serve: ServeConfig,
    /// The table `[http]`: the settings of `pinfold serve --http`.
    pub(crate) http: HttpConfig,
    /// The tables `[workspaces.NAME]`.
    pub(crate) workspaces: BTreeMap<String, WorkspaceConfig>,
}

/// The settings of `pinfold serve`.
#[derive(Debug, Default, Deserialize, PartialEq)]
pub(crate) struct ServeConfig {
    /// Whether the client's roots narrow the workspace.
    pub(crate) client_roots: Option<ClientRoots>,
    /// Whether Landlock restricts the server to its own files.
    pub(crate) landlock: Option<Landlock>,
    /// Whether viewers can watch the server, and the directory of its socket.
    pub(crate) feed: Option<FeedSetting>,
    /// The format of the log.
    pub(crate) log_format: Option<LogFormat>,
}

/// The format of the log on standard error.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// Lines for people.
    #[default]
    Text,
    /// JSON lines.
    Json,
}

/// The table `[http]`.
#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct HttpConfig {
    /// The maximum number of bytes of a request body.
    pub(crate) max_body_bytes: Option<usize>,
    /// The maximum number of sessions at a time.
    pub(crate) max_sessions: Option<usize>,
    /// Seconds without a request after which a session ends.
    pub(crate) idle_seconds: Option<u64>,
    /// The maximum number of connections at a time.
    pub(crate) max_connections: Option<usize>,
    /// The maximum number of a token's sessions at a time.
    pub(crate) max_token_sessions: Option<usize>,
    /// The maximum number of a token's requests per second.
    pub(crate) max_token_calls_per_second: Option<u32>,
    /// The maximum number of bytes per second in a token's requests and answers.
    pub(crate) max_token_bytes_per_second: Option<u64>,
    /// Seconds that running calls may take after SIGTERM.
    pub(crate) drain_seconds: Option<u64>,
    /// The address of the metrics.
    pub(crate) metrics: Option<String>,
    /// The file with the key that replicas share.
    pub(crate) state_key_file: Option<PathBuf>,
    /// Host names of the server.
    pub(crate) allow_hosts: Vec<String>,
    /// Origins whose web pages may call the server.
    pub(crate) allow_origins: Vec<String>,
}

/// Reads the configuration file: `file`, the one in `PINFOLD_CONFIG`, or the default one if it exists.
pub(crate) fn load(file: Option<&Path>) -> Result<Config> {
    let Some((path, required)) = path(file) else { return Ok(Config::default()) };
    match read_user_file(&path) {
        Ok(text) => parse(&text).with_context(|| format!("in {}", path.display())),
        Err(error) if error.kind() == ErrorKind::NotFound && !required => Ok(Config::default()),
        Err(error) => Err(anyhow!("cannot read {}: {error}", path.display())),
    }
}

/// The path of the configuration file, and whether it must exist because the user named it.
pub(crate) fn path(file: Option<&Path>) -> Option<(PathBuf, bool)> {
    let variable = || std::env::var_os("PINFOLD_CONFIG").filter(|value| !value.is_empty());
    let named = file.map(Path::to_owned).or_else(|| variable().map(PathBuf::from));
    named.map(|path| (path, true)).or_else(|| default_path().map(|path| (path, false)))
}

/// The path of the default configuration file. Returns `None` if the user has no home directory.
pub(crate) fn default_path() -> Option<PathBuf> {
    let directories = etcetera::choose_base_strategy().ok()?;
    Some(directories.config_dir().join("pinfold").join("config.toml"))
}

fn parse(text: &str) -> Result<Config> {
    let mut settings: toml::Table = text.parse()?;
    let own = serde_names::<ServeConfig>().iter().chain(&["http", "workspaces"]);
    let top = serde_names::<Settings>().iter().chain(own);
    check_names(&settings, &top.copied().collect::<Vec<_>>())?;
    if let Some(toml::Value::Table(http)) = settings.get("http") {
        check_names(http, serde_names::<HttpConfig>()).context("in `[http]`")?;
    }
    // The other keys are those of `Settings`, which refuses unknown ones.
    let http = settings.remove("http").unwrap_or_else(|| toml::Table::new().into());
    let named = settings.remove("workspaces");
    let serve = serde_names::<ServeConfig>().iter().filter_map(|key| settings.remove_entry(*key));
    let serve: toml::Table = serve.collect();
    Ok(Config {
        workspaces: named
            .map(|named| workspaces::parse(&settings, named))
            .transpose()?
            .unwrap_or_default(),
        settings: parse_settings(settings)?,
        serve: serve.try_into()?,
        http: http.try_into().context("in `[http]`")?,
    })
}

/// Parses the settings of sessions from a table with no other keys.
fn parse_settings(table: toml::Table) -> Result<Settings> {
    if let Some(toml::Value::Table(permissions)) = table.get("permissions") {
        check_names(permissions, serde_names::<Permissions>()).context("in `[permissions]`")?;
    }
    let settings: Settings = table.try_into()?;
    // Checked here, where the file of a rule is known.
    settings.permissions.check().context("in `[permissions]`")?;
    Ok(settings)
}

/// Checks that every key of a table is known and that no value was renamed.
pub(crate) fn check_names(table: &toml::Table, known: &[&str]) -> Result<()> {
    for (key, value) in table {
        BadName::check_key(key, known).map_err(|problem| match problem {
            BadName::Unknown { similar: None, .. } => {
                anyhow!("{problem}; docs/CONFIG.md lists the settings")
            }
            _ => problem.into(),
        })?;
        if let Some(problem) = value.as_str().and_then(|value| BadName::renamed_value(key, value)) {
            return Err(problem.into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use pinfold::{
        AuditFailure, Documents, Durability, IndexMode, JournalFailure, JournalSetting, MatchMode,
        Mode, ReadBeforeWrite,
    };

    use super::*;

    #[test]
    fn every_key_is_taken() {
        let text = "relative_paths = true\nportable_names = true\nread_roots = [\"/r\"]\nmemory = \"/m\"\ndry_run = true\ndurability = \"full\"\nread_before_write = \"off\"\n\
                    matching = \"exact\"\nmax_edit_bytes = 4\n\
                    journal = \"/j\"\njournal_days = 1\nmax_journal_bytes = 2\n\
                    journal_failure = \"warn\"\nmax_output_bytes = 5\nmax_line_chars = 6\n\
                    max_glob_files = 8\nindex = \"strict\"\nmax_index_bytes = 12\nmax_count_bytes = 11\nmax_image_side = 9\nmax_image_bytes = 10\ndocuments = \"reject\"\ndeadline_seconds = 7\n\
                    audit = \"/a\"\naudit_failure = \"ignore\"\nclient_roots = \"ignore\"\nlandlock = \"off\"\nfeed = \"/f\"\nlog_format = \"json\"\n\
                    [permissions]\nmode = \"plan\"\nallow = [\"Edit(a)\"]\nask = [\"*\"]\ndeny = [\"Delete\"]\n[http]\n\
                    max_body_bytes = 1\nmax_sessions = 2\nidle_seconds = 3\n\
                    max_connections = 4\nmax_token_sessions = 5\nmax_token_calls_per_second = 6\n\
                    max_token_bytes_per_second = 7\ndrain_seconds = 8\nmetrics = \"m\"\n\
                    state_key_file = \"/k\"\n\
                    allow_hosts = [\"h\"]\nallow_origins = [\"o\"]\n";
        let keys: toml::Table = text.parse().unwrap();
        for key in serde_names::<Settings>() {
            assert!(keys.contains_key(*key), "{key} has no value here");
        }
        let settings = Settings::default()
            .with_relative_paths(true)
            .with_portable_names(true)
            .with_read_roots(vec!["/r".into()])
            .with_memory(Some("/m".into()))
            .with_dry_run(true)
            .with_durability(Durability::Full)
            .with_read_before_write(Some(ReadBeforeWrite::Off))
            .with_matching(MatchMode::Exact)
            .with_max_edit_bytes(4)
            .with_journal(Some(JournalSetting::Directory("/j".into())))
            .with_journal_days(1)
            .with_max_journal_bytes(2)
            .with_journal_failure(JournalFailure::Warn)
            .with_max_output_bytes(Some(5))
            .with_max_line_chars(6)
            .with_documents(Documents::Reject)
            .with_max_image_side(Some(9))
            .with_max_image_bytes(Some(10))
            .with_max_glob_files(8)
            .with_index(IndexMode::Strict)
            .with_max_index_bytes(Some(12))
            .with_max_count_bytes(11)
            .with_deadline_seconds(7)
            .with_audit(Some("/a".into()))
            .with_audit_failure(AuditFailure::Ignore)
            .with_permissions(Permissions {
                mode: Mode::Plan,
                allow: vec!["Edit(a)".into()],
                ask: vec!["*".into()],
                deny: vec!["Delete".into()],
            });
        let serve = ServeConfig {
            client_roots: Some(ClientRoots::Ignore),
            landlock: Some(Landlock::Off),
            feed: Some(FeedSetting::Directory("/f".into())),
            log_format: Some(LogFormat::Json),
        };
        let http = HttpConfig {
            max_body_bytes: Some(1),
            max_sessions: Some(2),
            idle_seconds: Some(3),
            max_connections: Some(4),
            max_token_sessions: Some(5),
            max_token_calls_per_second: Some(6),
            max_token_bytes_per_second: Some(7),
            drain_seconds: Some(8),
            metrics: Some("m".into()),
            state_key_file: Some("/k".into()),
            allow_hosts: vec!["h".into()],
            allow_origins: vec!["o".into()],
        };
        let workspaces = BTreeMap::new();
        assert_eq!(parse(text).unwrap(), Config { settings, serve, http, workspaces });
        assert_eq!(parse("").unwrap(), Config::default());
        let off = parse("journal = false").unwrap().settings.journal;
        assert_eq!(off, Some(JournalSetting::Enabled(false)));
        let off = parse("feed = false").unwrap().serve.feed;
        assert_eq!(off, Some(FeedSetting::Enabled(false)));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, named) in [
            ("durabilty = \"full\"", "did you mean `durability`?"),
            ("unknwn = 1", "there is no setting `unknwn`; docs/CONFIG.md"),
            ("client_root = \"ignore\"", "did you mean `client_roots`?"),
            ("[htpp]\na = 1", "did you mean `http`?"),
            ("durability = \"most\"", "most"),
            ("max_line_chars = -1", "max_line_chars"),
            ("dry_run = 1", "dry_run"),
            ("dry_run", "line 1"),
            ("client_roots = \"widen\"", "widen"),
            ("landlock = \"on\"", "on"),
            ("feed = 1", "feed"),
            ("[permissions]\nmode = \"careful\"", "careful"),
            ("[permissions]\ndenied = []", "did you mean `deny`?"),
            ("[permissions]\ndeny = [\"Edit(src\"]", "the deny rule `Edit(src` is not a rule"),
            ("[http]\nmax_body_byte = 1", "did you mean `max_body_bytes`?"),
            ("[http]\nmax_body_bytes = -1", "max_body_bytes"),
            ("[http]\nbody_limit = 1", "the setting `body_limit` is now `max_body_bytes`"),
            ("glob_limit = 1", "the setting `glob_limit` is now `max_glob_files`"),
            ("ladder = true", "the setting `ladder` is now `matching`"),
            ("matching = \"ladder\"", "the value `ladder` of `matching` is now `lenient`"),
            ("journal_failure = \"say\"", "the value `say` of `journal_failure` is now `warn`"),
            ("http = 1", "http"),
        ] {
            let error = format!("{:#}", parse(text).unwrap_err());
            assert!(error.contains(named), "{error}");
        }
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
        let mut settings = serde_names::<Settings>().to_vec();
        settings.retain(|key| *key != "permissions");
        settings.extend(serde_names::<ServeConfig>());
        let mut all: Vec<(String, String)> = documented("# Settings");
        assert_eq!(all.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(), settings);
        let permissions: Vec<_> = documented("`[permissions]`")
            .into_iter()
            .filter(|(key, _)| serde_names::<Permissions>().contains(&key.as_str()))
            .collect();
        assert_eq!(
            permissions.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(),
            serde_names::<Permissions>()
        );
        let mut http = documented("`[http]`");
        assert_eq!(
            http.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(),
            serde_names::<HttpConfig>()
        );
        http.retain(|(_, default)| default.starts_with('`'));
        let mut named = documented("`[workspaces.NAME]`");
        named.retain(|(key, _)| workspaces::KEYS.contains(&key.as_str()));
        assert_eq!(named.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(), workspaces::KEYS);
        // A documented default must be the value that applies without the key.
        all.retain(|(key, default)| {
            default.starts_with('`') && !serde_names::<ServeConfig>().contains(&key.as_str())
        });
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
        assert_eq!(http.max_sessions, Some(options.max_conversations));
        assert_eq!(http.idle_seconds, Some(options.conversation_idle.as_secs()));
        assert_eq!(http.max_body_bytes, Some(pinfold_mcp::limits::MAX_MESSAGE_BYTES));
        let usual = pinfold_mcp::http::HttpOptions::new(pinfold_mcp::http::Guard::default());
        assert_eq!(http.max_connections, Some(usual.max_connections));
        assert_eq!(http.drain_seconds, Some(usual.drain.as_secs()));
    }
}
