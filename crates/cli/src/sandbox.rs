//! Restricts the server to its own files, with Landlock.
//!
//! The fence opens nothing outside the roots. Landlock is a second barrier, which the kernel enforces for every
//! thread and child process of the server, even if the fence has a bug.

use std::path::{Path, PathBuf};

use clap::Args;
use pinfold::Session;
use pinfold_confine::{device_and_inode, make_private_directory};
use pinfold_sandbox::{
    FileAccess, FileRestriction, Scope, can_list_root_directory, program_files, restrict_files,
};
use serde::Deserialize;

use crate::config::ServeConfig;
use crate::options::values;
use crate::token::state_directory;

/// The values of `landlock`.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Landlock {
    /// The server is restricted if the kernel supports it.
    #[default]
    Auto,
    /// The server is not restricted.
    Off,
}

/// Options for the restrictions of the server.
#[derive(Args)]
pub(crate) struct SandboxOptions {
    /// Whether Landlock restricts the server to its own files [default: auto]
    #[arg(
        long,
        value_name = "WHEN",
        help_heading = "Permissions",
        hide_short_help = true,
        value_parser = values::<Landlock>()
    )]
    landlock: Option<Landlock>,
}

impl SandboxOptions {
    /// The setting. A flag overrides the file.
    pub(crate) fn landlock(&self, config: &ServeConfig) -> Landlock {
        self.landlock.or(config.landlock).unwrap_or_default()
    }

    /// Restricts this process, unless the setting is off. Must be called before a thread is started.
    ///
    /// `watched` are files that are read again when they are replaced.
    pub(crate) fn restrict<'s>(
        &self,
        config: &ServeConfig,
        sessions: impl IntoIterator<Item = &'s Session>,
        feed: Option<&Path>,
        watched: &[PathBuf],
    ) {
        if self.landlock(config) == Landlock::Off {
            return;
        }
        let mut access = FileAccess::default();
        for session in sessions {
            let more = server_files(session, feed);
            access.read.extend(more.read);
            access.write.extend(more.write);
            access.execute = more.execute;
        }
        let home = etcetera::home_dir().ok().and_then(|home| device_and_inode(&home));
        access.read.extend(watched.iter().map(|file| replaceable(file.clone(), home)));
        match restrict_files(&access, Scope::Process) {
            FileRestriction::Enforced(version) => tracing::info!("Landlock {version} holds"),
            FileRestriction::Unavailable(reason) => tracing::info!("no Landlock: {reason}"),
        }
    }
}

/// The files that a server with this session opens after its start.
///
/// Creates the missing directories of the journal, the state, the feed and the memory, since a rule needs an existing
/// directory.
fn server_files(session: &Session, feed: Option<&Path>) -> FileAccess {
    let journal = session.journal().map(|journal| journal.directory().to_owned());
    let own = journal.into_iter().chain(state_directory()).chain(feed.map(Path::to_owned));
    let own = own.chain(session.settings().memory.clone());
    let own: Vec<PathBuf> = own.collect();
    for directory in &own {
        // If it cannot be created, writing there reports the error.
        _ = make_private_directory(directory);
    }
    let audit = session.settings().audit.clone();
    let home = etcetera::home_dir().ok().and_then(|home| device_and_inode(&home));
    let (read_roots, roots): (Vec<_>, Vec<_>) =
        session.real_roots().partition(|root| session.is_in_read_root(root));
    let replaceable = |root| replaceable(root, home);
    FileAccess {
        // These files have the number of processors, which decides the number of threads.
        read: ["/proc/self", "/sys/fs/cgroup"]
            .map(PathBuf::from)
            .into_iter()
            .chain(read_roots.into_iter().map(replaceable))
            .collect(),
        write: roots
            .into_iter()
            .map(replaceable)
            .chain(own)
            .chain(audit)
            .chain([PathBuf::from("/dev/null")])
            .collect(),
        // For the child processes that read PDFs.
        execute: program_files(),
    }
}

/// The directory that a root's rule is made for.
///
/// A rule belongs to an inode. With a rule for the root itself, a root that was removed and created again could not
/// be used. So the rule is for the directory above it, unless that has far more than the workspace: the home
/// directory with the user's secrets, or everything.
fn replaceable(root: PathBuf, home: Option<(u64, u64)>) -> PathBuf {
    match root.parent() {
        Some(parent) if parent.parent().is_some() && device_and_inode(parent) != home => {
            parent.to_owned()
        }
        _ => root,
    }
}

/// Restricts a thread like a server with this session, and lets it try to leave.
pub(crate) fn check(session: &Session) -> FileRestriction {
    let access = server_files(session, None);
    let is_everything = access.write.iter().any(|path| path == Path::new("/"));
    let attempt = move || match restrict_files(&access, Scope::Thread) {
        FileRestriction::Enforced(_) if !is_everything && can_list_root_directory() => {
            FileRestriction::Unavailable("the kernel accepts rules and does not apply them".into())
        }
        other => other,
    };
    let thread = std::thread::spawn(attempt).join();
    thread.unwrap_or_else(|_| FileRestriction::Unavailable("the check failed".into()))
}
