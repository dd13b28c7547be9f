//! The tokens that clients must send over HTTP, and their sources.

mod command;
mod file;

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use etcetera::BaseStrategy as _;
use pinfold_confine::{random_secret, read_secret, remove_secret, write_secret};
use pinfold_mcp::RequestStateKey;
use pinfold_mcp::http::{Token, TokenHash, TokenLimits, Tokens};
use tokio::sync::watch;

pub(crate) use command::TokenCommand;

/// The minimum length of a token. A shorter one could be guessed.
const MIN_CHARS: usize = 16;

/// The interval at which a token file is read again, so that a rotation takes effect soon.
const READ_EVERY: Duration = Duration::from_secs(1);

/// Pinfold's state directory, with tokens and, by default, the journal.
pub(crate) fn state_directory() -> Result<PathBuf> {
    let base = etcetera::choose_base_strategy()?;
    Ok(base.state_dir().unwrap_or_else(|| base.data_dir()).join("pinfold"))
}

/// The tokens of a workspace, and their source.
pub(crate) struct TokenSource {
    origin: Origin,
    /// The limits of tokens without their own.
    limits: TokenLimits,
    current: watch::Sender<Tokens>,
}

enum Origin {
    /// The user's file, which is read again when it has changed.
    File {
        path: PathBuf,
        text: String,
    },
    Environment,
    /// A file that this server has created, and removes when it ends.
    OwnFile {
        path: PathBuf,
        token: String,
    },
}

impl TokenSource {
    /// The tokens in `file`, which is created with one token if it is missing. Without a file, the unnamed workspace
    /// has the token in `PINFOLD_TOKEN`. Otherwise a new token is created in a new file.
    pub(crate) fn get(
        file: Option<&Path>,
        (address, workspace): (SocketAddr, &str),
        limits: TokenLimits,
    ) -> Result<Self> {
        if let Some(file) = file {
            return Self::in_file(file, limits);
        }
        if workspace.is_empty()
            && let Ok(text) = std::env::var("PINFOLD_TOKEN")
        {
            let tokens = plain(&text, limits).context("PINFOLD_TOKEN")?;
            return Ok(Self::new(Origin::Environment, limits, tokens));
        }
        let end = if workspace.is_empty() { String::new() } else { format!("-{workspace}") };
        let path = state_directory()?.join("tokens").join(format!("http-{address}{end}"));
        let token = random_secret()?;
        let written = write_secret(&path, &format!("{token}\n"), true);
        written
            .map_err(|error| anyhow!("cannot write the token to {}: {error}", path.display()))?;
        let tokens = plain(&token, limits)?;
        Ok(Self::new(Origin::OwnFile { path, token }, limits, tokens))
    }

    fn new(origin: Origin, limits: TokenLimits, tokens: Vec<Token>) -> Self {
        Self { origin, limits, current: watch::Sender::new(Tokens::Known(tokens.into())) }
    }

    fn in_file(file: &Path, limits: TokenLimits) -> Result<Self> {
        let path = std::path::absolute(file)?;
        let text =
            made_secret(&path).with_context(|| format!("the token file {}", path.display()))?;
        let tokens =
            parse(&text, limits).with_context(|| format!("the token file {}", path.display()))?;
        Ok(Self::new(Origin::File { path, text }, limits, tokens))
    }

    /// The accepted tokens, now and after each change.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Tokens> {
        self.current.subscribe()
    }

    /// The file that is read again when it has changed.
    pub(crate) fn watched_file(&self) -> Option<&Path> {
        match &self.origin {
            Origin::File { path, .. } => Some(path),
            Origin::Environment | Origin::OwnFile { .. } => None,
        }
    }

    /// A sentence for the user with the path of the token file.
    pub(crate) fn location(&self) -> String {
        match &self.origin {
            Origin::File { path, text } if file::is_table(text) => {
                format!("the hashes of the tokens are in {}", path.display())
            }
            Origin::File { path, .. } | Origin::OwnFile { path, .. } => {
                format!("the token is in {}", path.display())
            }
            Origin::Environment => "the token is the one in PINFOLD_TOKEN".into(),
        }
    }

    /// Reads the files again at intervals, on a thread. If a file cannot be read or parsed, no token is accepted: a
    /// removed token must not stay valid because of a typing error.
    pub(crate) fn watch<'s>(sources: impl IntoIterator<Item = &'s Self>) -> Result<()> {
        let files = sources.into_iter().filter_map(|source| match &source.origin {
            Origin::File { path, text } => {
                let read = Some(text.clone());
                Some((path.clone(), read, source.limits, source.current.clone()))
            }
            Origin::Environment | Origin::OwnFile { .. } => None,
        });
        let mut files: Vec<_> = files.collect();
        if files.is_empty() {
            return Ok(());
        }
        let watch = move || {
            loop {
                std::thread::sleep(READ_EVERY);
                for (path, known, limits, current) in &mut files {
                    let text = read_secret(path);
                    if text.as_ref().ok() == known.as_ref() {
                        continue;
                    }
                    let tokens = text.as_deref().map_err(|error| anyhow!("{error}"));
                    match tokens.and_then(|text| parse(text, *limits)) {
                        Ok(tokens) => {
                            tracing::info!("{} has {} tokens now", path.display(), tokens.len());
                            current.send_replace(Tokens::Known(tokens.into()));
                            *known = text.ok();
                        }
                        Err(error) => {
                            let shown = path.display();
                            if !matches!(*current.borrow(), Tokens::Unknown) {
                                crate::serve::print_error(&format!(
                                    "requests with a token are refused: {shown}: {error:#}"
                                ));
                            }
                            current.send_replace(Tokens::Unknown);
                            *known = None;
                        }
                    }
                }
            }
        };
        std::thread::Builder::new().name("tokens".into()).spawn(watch)?;
        Ok(())
    }
}

impl Drop for TokenSource {
    fn drop(&mut self) {
        if let Origin::OwnFile { path, token } = &self.origin {
            // Another server at this address may have replaced the file.
            if read_secret(path).is_ok_and(|text| text.trim() == token) {
                _ = remove_secret(path);
            }
        }
    }
}

/// The key that replicas share, for the states of one workspace. The file is created if it is missing.
pub(crate) fn state_key(file: &Path, workspace: &str) -> Result<RequestStateKey> {
    let named = || format!("the key in {}", file.display());
    let text = made_secret(file).with_context(named)?;
    let text = text.trim();
    let key = RequestStateKey::new(text.as_bytes(), workspace).with_context(|| {
        let (has, needed) = (text.len(), RequestStateKey::MIN_BYTES);
        format!("it has {has} bytes; at least {needed} are needed, such as `openssl rand -hex 32` prints")
    });
    key.with_context(named)
}

/// The secret in a file. If the file is missing, it is created with a new secret.
fn made_secret(file: &Path) -> Result<String> {
    match read_secret(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        read => return read.map_err(plain_error),
    }
    match write_secret(file, &format!("{}\n", random_secret()?), false) {
        // Another server has created it first.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        written => written.map_err(plain_error)?,
    }
    read_secret(file).map_err(plain_error)
}

/// A problem with a file from the command line is a usage error.
fn plain_error(error: std::io::Error) -> anyhow::Error {
    anyhow!("{error}")
}

/// The number of tokens in a file. Returns `None` if there is no such file.
pub(crate) fn count(file: &Path) -> Result<Option<usize>> {
    match read_secret(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        read => Ok(Some(parse(&read.map_err(plain_error)?, TokenLimits::default())?.len())),
    }
}

/// The tokens in a file: one plain token, or a table of hashes.
fn parse(text: &str, limits: TokenLimits) -> Result<Vec<Token>> {
    if file::is_table(text) { Ok(file::parse(text)?.tokens(limits)) } else { plain(text, limits) }
}

/// A plain token.
fn plain(text: &str, limits: TokenLimits) -> Result<Vec<Token>> {
    let hashes = vec![TokenHash::of(checked(text)?.as_bytes())];
    Ok(vec![Token { name: "".into(), hashes, mode: None, limits }])
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
