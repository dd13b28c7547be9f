//! The configuration file: the person's, and never one from inside a workspace.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};
use etcetera::BaseStrategy as _;
use pinfold::Settings;
use pinfold_confine::read_config;

/// The settings in `file`, or in the user's own configuration file if there is one.
pub(crate) fn load(file: Option<&Path>) -> Result<Settings> {
    let (path, named) = match file {
        Some(file) => (file.to_owned(), true),
        None => match default_path() {
            Some(path) => (path, false),
            None => return Ok(Settings::default()),
        },
    };
    match read_config(&path) {
        Ok(text) => parse(&text).with_context(|| format!("in {}", path.display())),
        Err(error) if error.kind() == ErrorKind::NotFound && !named => Ok(Settings::default()),
        Err(error) => Err(anyhow!("cannot read {}: {error}", path.display())),
    }
}

fn default_path() -> Option<PathBuf> {
    let directories = etcetera::choose_base_strategy().ok()?;
    Some(directories.config_dir().join("pinfold").join("config.toml"))
}

fn parse(text: &str) -> Result<Settings> {
    toml::from_str(text).map_err(|error| anyhow!("{}", error.to_string().trim_end()))
}

#[cfg(test)]
mod tests {
    use pinfold::{
        DocumentsSetting, DurabilitySetting, JournalFailure, JournalSetting, MatchingSetting,
        SeenSetting,
    };

    use super::*;

    #[test]
    fn every_key_is_taken() {
        let text = "relative_paths = true\ndry_run = true\ndurability = \"full\"\nseen = \"off\"\n\
                    matching = \"exact\"\nedit_bytes = 4\n\
                    journal = \"/j\"\njournal_days = 1\njournal_bytes = 2\n\
                    journal_failure = \"say\"\noutput_bytes = 5\nmax_line_chars = 6\nglob_limit = 8\nimage_side = 9\nimage_bytes = 10\ndocuments = \"reject\"\ndeadline_seconds = 7\n";
        let expected = Settings {
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
        };
        assert_eq!(parse(text).unwrap(), expected);
        assert_eq!(parse("").unwrap(), Settings::default());
        let off = parse("journal = false").unwrap().journal;
        assert_eq!(off, Some(JournalSetting::Usual(false)));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, named) in [
            ("durabilty = \"full\"", "durabilty"),
            ("durability = \"most\"", "most"),
            ("max_line_chars = -1", "max_line_chars"),
            ("dry_run = 1", "dry_run"),
            ("dry_run", "line 1"),
        ] {
            let error = format!("{:#}", parse(text).unwrap_err());
            assert!(error.contains(named), "{error}");
        }
    }
}
