//! Options and functions that `pinfold watch` and `pinfold page` share.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use pinfold::{Session, Settings};
use pinfold_feed::WatchOptions;

use crate::config::{self, Config};
use crate::options::{self, FeedDirectory, Group};

/// The servers to watch.
#[derive(Args)]
#[command(next_help_heading = "Servers")]
pub(crate) struct ViewerOptions {
    /// Only servers with a root that contains this directory or is inside it; repeatable
    ///
    /// Default: all running servers of this user.
    #[arg(long = "root", value_name = "DIR")]
    pub(crate) roots: Vec<PathBuf>,

    #[command(flatten)]
    feed: FeedDirectory,

    /// Configuration file
    ///
    /// Default: the file in PINFOLD_CONFIG, else pinfold/config.toml in the user's configuration directory.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl ViewerOptions {
    /// The servers to watch. If a flag names the directory of the sockets, only that one is searched; the directory
    /// in the configuration file is one of several.
    pub(crate) fn watch_options(&self, answers: bool) -> Result<WatchOptions> {
        let directories = match self.feed.given() {
            Some(directory) => vec![directory],
            None => {
                config::load(self.config.as_deref())?.serve.feed.unwrap_or_default().directories()
            }
        };
        Ok(WatchOptions::new(directories, answers).with_roots(self.real_roots()?))
    }

    /// The real paths of the given directories.
    pub(crate) fn real_roots(&self) -> Result<Vec<PathBuf>> {
        if self.roots.is_empty() {
            return Ok(Vec::new());
        }
        let session = Session::with_settings(&self.roots, Settings::default())?;
        Ok(session.real_roots().collect())
    }

    /// Reads the configuration file and applies the flags.
    pub(crate) fn configure(&self, groups: &[&dyn Group]) -> Result<Config> {
        options::configure(self.config.as_deref(), groups)
    }

    /// Pinfold's own files, which no tool may reach.
    pub(crate) fn own_files(&self) -> Vec<PathBuf> {
        options::own_files(self.config.as_deref()).collect()
    }
}
