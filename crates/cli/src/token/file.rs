//! The file of hashed tokens, with a table `[tokens.NAME]` for each.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use pinfold::{Mode, serde_names};
use pinfold_confine::{read_secret, write_secret};
use pinfold_mcp::http::{Token, TokenHash, TokenLimits};
use serde::{Deserialize, Serialize, Serializer};

use crate::config::{check_name, check_names};

/// The content of the file.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TokenFile {
    pub(super) tokens: BTreeMap<String, Entry>,
}

/// A table `[tokens.NAME]`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Entry {
    pub(super) hashes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "mode_name")]
    pub(super) mode: Option<Mode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_sessions: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_calls_per_second: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_bytes_per_second: Option<u64>,
}

fn mode_name<S: Serializer>(mode: &Option<Mode>, to: S) -> Result<S::Ok, S::Error> {
    mode.map(|mode| mode.name()).serialize(to)
}

/// Whether a text is such a file, not a plain token.
pub(super) fn is_table(text: &str) -> bool {
    text.lines().any(|line| line.trim_start().starts_with("[tokens"))
}

pub(super) fn parse(text: &str) -> Result<TokenFile> {
    let table: toml::Table = text.parse()?;
    check_names(&table, &["tokens"])?;
    if let Some(toml::Value::Table(tokens)) = table.get("tokens") {
        for (name, entry) in tokens {
            let place = || format!("in `[tokens.{name}]`");
            check_name(name).with_context(place)?;
            if let toml::Value::Table(entry) = entry {
                check_names(entry, serde_names::<Entry>()).with_context(place)?;
            }
        }
    }
    let file: TokenFile = table.try_into()?;
    let mut seen = Vec::new();
    for (name, entry) in &file.tokens {
        let place = || format!("in `[tokens.{name}]`");
        if entry.hashes.is_empty() {
            bail!("`[tokens.{name}]` has no `hashes`; `pinfold token new` creates a token");
        }
        let zero = [
            ("max_sessions", entry.max_sessions == Some(0)),
            ("max_calls_per_second", entry.max_calls_per_second == Some(0)),
            ("max_bytes_per_second", entry.max_bytes_per_second == Some(0)),
        ];
        if let Some((key, _)) = zero.into_iter().find(|(_, zero)| *zero) {
            bail!("`{key}` of `[tokens.{name}]` is 0; to refuse all requests, remove the token");
        }
        for hash in entry.parsed().with_context(place)? {
            if hash.is_among(&seen) {
                bail!("`[tokens.{name}]` has a hash that is in the file twice");
            }
            seen.push(hash);
        }
    }
    Ok(file)
}

impl TokenFile {
    /// Reads a file. Returns `None` if it is missing.
    pub(super) fn read(path: &Path) -> Result<Option<Self>> {
        let text = match read_secret(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            read => read?,
        };
        if !is_table(&text) && !text.trim().is_empty() {
            bail!("it has a token in plain text, and no table of hashes; choose another file");
        }
        Ok(Some(if text.trim().is_empty() { Self::default() } else { parse(&text)? }))
    }

    /// Replaces the file atomically, since a server may be reading it.
    pub(super) fn write(&self, path: &Path) -> Result<()> {
        let mut text = toml::to_string(self)?;
        if self.tokens.is_empty() {
            // An empty file would be taken for a plain token.
            text = "[tokens]\n".into();
        }
        Ok(write_secret(path, &text, true)?)
    }

    /// The tokens. Those without their own limits get these.
    pub(super) fn tokens(&self, limits: TokenLimits) -> Vec<Token> {
        let token = |(name, entry): (&String, &Entry)| Token {
            name: name.as_str().into(),
            hashes: entry.parsed().unwrap_or_default(),
            mode: entry.mode,
            limits: entry.limits().or(limits),
        };
        self.tokens.iter().map(token).collect()
    }
}

impl Entry {
    fn parsed(&self) -> Result<Vec<TokenHash>> {
        let parsed = self.hashes.iter().map(|hash| {
            TokenHash::parse(hash).with_context(|| {
                format!("`{hash}` is no hash: `sha256:` and 64 hexadecimal digits")
            })
        });
        parsed.collect()
    }

    fn limits(&self) -> TokenLimits {
        TokenLimits {
            max_sessions: self.max_sessions,
            max_calls_per_second: self.max_calls_per_second,
            max_bytes_per_second: self.max_bytes_per_second,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_as_it_is_written() {
        let hash = TokenHash::of(b"abc").to_string();
        let text = format!(
            "[tokens.a]\nhashes = [\"{hash}\"]\nmode = \"plan\"\nmax_sessions = 2\n\
             max_calls_per_second = 3\nmax_bytes_per_second = 4\n"
        );
        let file = parse(&text).unwrap();
        assert_eq!(toml::to_string(&file).unwrap(), text);
        let [token] = &file.tokens(TokenLimits::default())[..] else { panic!("{file:?}") };
        assert_eq!((&*token.name, token.mode), ("a", Some(Mode::Plan)));
        assert!(TokenHash::of(b"abc").is_among(&token.hashes));
        let limits = TokenLimits { max_sessions: Some(9), ..TokenLimits::default() };
        let bare = parse(&format!("[tokens.a]\nhashes = [\"{hash}\"]\n")).unwrap();
        assert_eq!(bare.tokens(limits)[0].limits, limits);
        assert!(is_table(&text) && is_table("[tokens]\n") && !is_table("0123456789abcdef\n"));
        assert!(parse("[tokens]\n").unwrap().tokens.is_empty());
    }

    #[test]
    fn what_is_wrong_is_named() {
        let hash = TokenHash::of(b"abc");
        for (text, named) in [
            ("[tokens.a]\n", "has no `hashes`"),
            ("[tokens.a]\nhashes = [\"abc\"]", "`abc` is no hash"),
            ("[tokens.A]\nhashes = []", "the name `A` must have"),
            ("[tokens.a]\nhash = \"x\"", "did you mean `hashes`?"),
            ("[tokens.a]\nhashes = [\"HASH\"]\nmode = \"careful\"", "careful"),
            (
                "[tokens.a]\nhashes = [\"HASH\"]\nmax_sessions = 0",
                "`max_sessions` of `[tokens.a]` is 0",
            ),
            ("[tokens.a]\nhashes = [\"HASH\"]\n[tokens.b]\nhashes = [\"HASH\"]", "twice"),
            ("[token.a]\nhashes = []", "did you mean `tokens`?"),
        ] {
            let error =
                format!("{:#}", parse(&text.replace("HASH", &hash.to_string())).unwrap_err());
            assert!(error.contains(named), "{error}");
        }
    }
}
