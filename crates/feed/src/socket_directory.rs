//! The directories of servers' sockets.
//!
//! They depend on the user's id and home directory, but not on variables such as `XDG_RUNTIME_DIR`, since clients
//! start servers without them.

use std::path::PathBuf;

use pinfold_confine::owner;
use serde::Deserialize;

/// The values of the setting `feed`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(untagged, expecting = "expected true, false or a directory")]
pub enum FeedSetting {
    /// In the default directory, or not at all.
    Enabled(bool),
    /// In this directory.
    Directory(PathBuf),
}

impl Default for FeedSetting {
    fn default() -> Self {
        Self::Enabled(true)
    }
}

impl FeedSetting {
    /// The directory for a server's socket. Returns `None` if it has none.
    pub fn directory(&self) -> Option<PathBuf> {
        match self {
            Self::Enabled(true) => directories().into_iter().next(),
            Self::Enabled(false) => None,
            Self::Directory(directory) => Some(directory.clone()),
        }
    }

    /// The directories in which a viewer looks for sockets: the one of this setting, and the defaults for servers
    /// with other settings.
    pub fn directories(&self) -> Vec<PathBuf> {
        let own = match self {
            Self::Enabled(_) => None,
            Self::Directory(directory) => Some(directory.clone()),
        };
        own.into_iter().chain(directories()).collect()
    }
}

/// The default directories, the preferred one first.
pub fn directories() -> Vec<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let runtime = PathBuf::from(format!("/run/user/{user}"));
    let runtime = (owner(&runtime) == Some(user)).then(|| runtime.join("pinfold"));
    let home = std::env::home_dir().filter(|home| home.is_absolute());
    let home = home.map(|home| home.join(".local/state/pinfold/feed"));
    runtime.into_iter().chain(home).collect()
}
