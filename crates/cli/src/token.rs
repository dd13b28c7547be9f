//! The token that clients must send over HTTP.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use etcetera::BaseStrategy as _;
use pinfold_confine::{random_secret, read_secret, remove_secret, write_secret};

/// Shorter tokens could be guessed.
const MIN_CHARS: usize = 16;

/// The directory of Pinfold's own state: tokens and, by default, the journal.
pub(crate) fn state_directory() -> Result<PathBuf> {
    let base = etcetera::choose_base_strategy()?;
    Ok(base.state_dir().unwrap_or_else(|| base.data_dir()).join("pinfold"))
}

/// A token and its origin.
pub(crate) struct Token {
    text: String,
    origin: Origin,
}

enum Origin {
    File(PathBuf),
    Environment,
    /// A file that this server created and removes when it ends.
    OwnFile(PathBuf),
}

impl Token {
    /// The token in `file`, which is created if it is missing; else the one in `PINFOLD_TOKEN`; else a new one in a
    /// file of its own.
    pub(crate) fn get(file: Option<&Path>, address: SocketAddr) -> Result<Self> {
        if let Some(file) = file {
            return Self::in_file(file);
        }
        if let Ok(text) = std::env::var("PINFOLD_TOKEN") {
            return Ok(Self {
                text: checked(&text).context("PINFOLD_TOKEN")?,
                origin: Origin::Environment,
            });
        }
        let path = state_directory()?.join("tokens").join(format!("http-{address}"));
        let text = random_secret()?;
        let written = write_secret(&path, &format!("{text}\n"), true);
        written
            .map_err(|error| anyhow!("cannot write the token to {}: {error}", path.display()))?;
        Ok(Self { text, origin: Origin::OwnFile(path) })
    }

    fn in_file(file: &Path) -> Result<Self> {
        let named = || format!("the token in {}", file.display());
        let text = match read_secret(file) {
            Ok(text) => checked(&text).with_context(named)?,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let text = random_secret()?;
                write_secret(file, &format!("{text}\n"), false).with_context(named)?;
                text
            }
            Err(error) => bail!("{}: {error}", named()),
        };
        Ok(Self { text, origin: Origin::File(file.to_owned()) })
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// A sentence for the user that names the file with the token.
    pub(crate) fn location(&self) -> String {
        match &self.origin {
            Origin::File(path) | Origin::OwnFile(path) => {
                format!("the token is in {}", path.display())
            }
            Origin::Environment => "the token is the one in PINFOLD_TOKEN".into(),
        }
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        if let Origin::OwnFile(path) = &self.origin {
            // Another server at this address may have replaced the file.
            if read_secret(path).is_ok_and(|text| text.trim() == self.text) {
                _ = remove_secret(path);
            }
        }
    }
}

fn checked(text: &str) -> Result<String> {
    let text = text.trim();
    if text.len() < MIN_CHARS {
        bail!("it has {} characters; at least {MIN_CHARS} are needed", text.len());
    }
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        bail!("only ASCII letters, digits and punctuation are allowed");
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_can_be_sent_and_not_guessed() {
        assert_eq!(checked(" 0123456789abcdef\n").unwrap(), "0123456789abcdef");
        for bad in ["", "0123456789abcde", "0123456789 abcdef", "0123456789abcdé"] {
            assert!(checked(bad).is_err(), "{bad}");
        }
        let token = random_secret().unwrap();
        assert_eq!((token.len(), checked(&token).unwrap()), (64, token.clone()));
        assert_ne!(random_secret().unwrap(), token);
    }
}
