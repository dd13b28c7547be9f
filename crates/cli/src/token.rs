//! The token that clients must send over HTTP.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use etcetera::BaseStrategy as _;
use pinfold_confine::{random_number, read_secret, remove_secret, write_secret};

/// Fewer characters can be guessed.
const SHORTEST: usize = 16;

/// Where Pinfold keeps what is its own.
pub(crate) fn state_directory() -> Result<PathBuf> {
    let base = etcetera::choose_base_strategy()?;
    Ok(base.state_dir().unwrap_or_else(|| base.data_dir()).join("pinfold"))
}

/// A token, and where it is from.
pub(crate) struct Token {
    text: String,
    from: From,
}

enum From {
    File(PathBuf),
    Environment,
    /// Made for this server alone, and removed with it.
    Made(PathBuf),
}

impl Token {
    /// The token in a file, which is made if it is not there; or else the one in the environment; or
    /// else a new one, in a file of its own.
    pub(crate) fn get(file: Option<&Path>, address: SocketAddr) -> Result<Self> {
        if let Some(file) = file {
            return Self::in_file(file);
        }
        if let Ok(text) = std::env::var("PINFOLD_TOKEN") {
            return Ok(Self {
                text: checked(&text).context("PINFOLD_TOKEN")?,
                from: From::Environment,
            });
        }
        let path = state_directory()?.join("tokens").join(format!("http-{address}"));
        let text = fresh()?;
        let written = write_secret(&path, &format!("{text}\n"), true);
        written
            .map_err(|error| anyhow!("cannot write the token to {}: {error}", path.display()))?;
        Ok(Self { text, from: From::Made(path) })
    }

    fn in_file(file: &Path) -> Result<Self> {
        let named = || format!("the token in {}", file.display());
        let text = match read_secret(file) {
            Ok(text) => checked(&text).with_context(named)?,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let text = fresh()?;
                write_secret(file, &format!("{text}\n"), false).with_context(named)?;
                text
            }
            Err(error) => bail!("{}: {error}", named()),
        };
        Ok(Self { text, from: From::File(file.to_owned()) })
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Where a person finds it.
    pub(crate) fn whence(&self) -> String {
        match &self.from {
            From::File(path) | From::Made(path) => format!("the token is in {}", path.display()),
            From::Environment => "the token is the one in PINFOLD_TOKEN".into(),
        }
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        if let From::Made(path) = &self.from {
            // Another server may have begun at this address, and put its own there.
            if read_secret(path).is_ok_and(|text| text.trim() == self.text) {
                _ = remove_secret(path);
            }
        }
    }
}

fn fresh() -> Result<String> {
    let words = [random_number()?, random_number()?, random_number()?, random_number()?];
    Ok(words.map(|word| format!("{word:016x}")).concat())
}

fn checked(text: &str) -> Result<String> {
    let text = text.trim();
    if text.len() < SHORTEST {
        bail!("it has {} characters; at least {SHORTEST} are needed", text.len());
    }
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        bail!("it may only have letters, digits and punctuation of ASCII");
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
        let token = fresh().unwrap();
        assert_eq!((token.len(), checked(&token).unwrap()), (64, token.clone()));
        assert_ne!(fresh().unwrap(), token);
    }
}
