//! The tables `[workspaces.NAME]`: workspaces with their own roots, rules, tokens and journals.
//!
//! A table can have every key of a session's settings. For other keys, those of the whole file apply; rules add up.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use pinfold::{JournalSetting, Settings, serde_names};
use pinfold_mcp::ClientRoots;
use serde::Deserialize;

use super::{check_names, parse_settings};

/// A table `[workspaces.NAME]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct WorkspaceConfig {
    /// The settings of its sessions.
    pub(crate) settings: Settings,
    /// The journal setting in the table itself.
    own_journal: Option<JournalSetting>,
    /// The keys that only such a table has.
    pub(crate) keys: Keys,
}

/// The keys that only such a table has.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Keys {
    /// The root directories.
    pub(crate) roots: Vec<PathBuf>,
    /// The tool dialects.
    pub(crate) dialects: Vec<String>,
    /// The file with the workspace's tokens.
    pub(crate) token_file: Option<PathBuf>,
    /// Whether the client's roots narrow the workspace.
    pub(crate) client_roots: Option<ClientRoots>,
}

/// The names of [`Keys`].
pub(super) const KEYS: [&str; 4] = ["roots", "dialects", "token_file", "client_roots"];

impl WorkspaceConfig {
    /// Sets a separate journal, in a directory with the workspace's name, unless its table has one. Must be called
    /// after flags were applied.
    pub(crate) fn separate_journal(&mut self, name: &str, state: &Path) {
        let journal = &mut self.settings.journal;
        if self.own_journal.is_some() && *journal == self.own_journal {
            return;
        }
        let directory = match journal.take() {
            None | Some(JournalSetting::Enabled(true)) => state.join("journals"),
            Some(JournalSetting::Directory(directory)) => directory,
            Some(off @ JournalSetting::Enabled(false)) => {
                *journal = Some(off);
                return;
            }
        };
        *journal = Some(JournalSetting::Directory(directory.join(name)));
    }
}

/// Parses the tables. `base` has the settings of the whole file.
pub(super) fn parse(
    base: &toml::Table,
    named: toml::Value,
) -> Result<BTreeMap<String, WorkspaceConfig>> {
    let named: toml::Table = named.try_into().context("`workspaces`")?;
    let parsed = named.into_iter().map(|(name, table)| {
        let place = || format!("in `[workspaces.{name}]`");
        check_name(&name).with_context(place)?;
        let table: toml::Table = table.try_into().with_context(place)?;
        let workspace = parse_one(base.clone(), table).with_context(place)?;
        Ok((name, workspace))
    });
    parsed.collect()
}

fn parse_one(base: toml::Table, mut own: toml::Table) -> Result<WorkspaceConfig> {
    let known = serde_names::<Settings>().iter().chain(&KEYS);
    check_names(&own, &known.copied().collect::<Vec<_>>())?;
    let keys: toml::Table = KEYS.iter().filter_map(|key| own.remove_entry(*key)).collect();
    let keys: Keys = keys.try_into()?;
    if keys.roots.is_empty() {
        bail!("`roots` is missing: the directories of the workspace");
    }
    let paths = keys.roots.iter().chain(&keys.token_file);
    if let Some(relative) = paths.into_iter().find(|path| path.is_relative()) {
        bail!("`{}` is a relative path; a server may start in any directory", relative.display());
    }
    let has_journal = own.contains_key("journal");
    let settings = parse_settings(merged(base, own))?;
    let own_journal = settings.journal.clone().filter(|_| has_journal);
    Ok(WorkspaceConfig { settings, own_journal, keys })
}

/// Merges a table into another one. Lists in `[permissions]` are joined.
fn merged(mut base: toml::Table, own: toml::Table) -> toml::Table {
    for (key, value) in own {
        match (base.get_mut(&key), value) {
            (Some(toml::Value::Table(base)), toml::Value::Table(own)) if key == "permissions" => {
                for (key, value) in own {
                    match (base.get_mut(&key), value) {
                        (Some(toml::Value::Array(base)), toml::Value::Array(own)) => {
                            base.extend(own);
                        }
                        (_, value) => _ = base.insert(key, value),
                    }
                }
            }
            (_, value) => _ = base.insert(key, value),
        }
    }
    base
}

/// Checks the name of a workspace or token, since it becomes part of paths and logs.
pub(crate) fn check_name(name: &str) -> Result<()> {
    let good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let inner = |byte: u8| good(byte) || byte == b'-' || byte == b'_';
    let first = name.bytes().next().is_some_and(good);
    if !first || name.len() > 64 || !name.bytes().all(inner) {
        bail!(
            "the name `{name}` must have 1 to 64 of a-z, 0-9, `-` and `_`, and begin with a letter or digit"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use pinfold::Mode;

    use super::super::parse;
    use super::*;

    #[test]
    fn a_workspace_has_the_settings_of_the_file_and_its_own() {
        let text = "max_line_chars = 7\nmax_glob_files = 8\njournal = \"/j\"\n\
                    [permissions]\nmode = \"default\"\ndeny = [\"Read(a)\"]\n\
                    [workspaces.one]\nroots = [\"/one\"]\nmax_glob_files = 9\n\
                    [workspaces.one.permissions]\nmode = \"plan\"\ndeny = [\"Read(b)\"]\n\
                    [workspaces.two]\nroots = [\"/two\"]\njournal = \"/own\"\ndialects = [\"dotted\"]\n\
                    token_file = \"/t\"\nclient_roots = \"ignore\"\n";
        let config = parse(text).unwrap();
        let (one, two) = (&config.workspaces["one"], &config.workspaces["two"]);
        assert_eq!(one.settings.permissions.deny, ["Read(a)", "Read(b)"]);
        assert_eq!(two.settings.permissions.deny, ["Read(a)"]);
        let modes = [one, two].map(|it| it.settings.permissions.mode);
        assert_eq!(modes, [Mode::Plan, Mode::Ask]);
        let numbers = [one, two].map(|it| (it.settings.max_line_chars, it.settings.max_glob_files));
        assert_eq!(numbers, [(7, 9), (7, 8)]);
        assert_eq!(two.keys.token_file, Some("/t".into()));
        let mut journals = [one.clone(), two.clone()];
        journals[0].separate_journal("one", Path::new("/state"));
        journals[1].separate_journal("two", Path::new("/state"));
        let directory = |path: &str| Some(JournalSetting::Directory(path.into()));
        let journals = journals.map(|it| it.settings.journal);
        assert_eq!(journals, [directory("/j/one"), directory("/own")]);
    }

    #[test]
    fn journals_are_apart_unless_there_are_none() {
        let directory = |path: &str| Some(JournalSetting::Directory(path.into()));
        for (given, expected) in [
            (None, directory("/state/journals/a")),
            (Some(JournalSetting::Enabled(true)), directory("/state/journals/a")),
            (Some(JournalSetting::Enabled(false)), Some(JournalSetting::Enabled(false))),
            (directory("/j"), directory("/j/a")),
        ] {
            let mut workspace = WorkspaceConfig::default();
            workspace.settings.journal = given;
            workspace.separate_journal("a", Path::new("/state"));
            assert_eq!(workspace.settings.journal, expected);
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, named) in [
            ("[workspaces.A]\nroots = [\"/a\"]", "the name `A` must have"),
            ("[workspaces.\"a/b\"]\nroots = [\"/a\"]", "the name `a/b` must have"),
            ("[workspaces.a]\nroot = [\"/a\"]", "did you mean `roots`?"),
            ("[workspaces.a]", "in `[workspaces.a]`: `roots` is missing"),
            ("[workspaces.a]\nroots = [\"a\"]", "`a` is a relative path"),
            (
                "[workspaces.a]\nroots = [\"/a\"]\nlandlock = \"off\"",
                "there is no setting `landlock`",
            ),
            (
                "[workspaces.a]\nroots = [\"/a\"]\n[workspaces.a.permissions]\ndeny = [\"x(\"]",
                "`x(` is not a rule",
            ),
            ("workspaces = 1", "`workspaces`"),
        ] {
            let error = format!("{:#}", parse(text).unwrap_err());
            assert!(error.contains(named), "{error}");
        }
    }
}
