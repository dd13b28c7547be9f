//! Restricts which files a process may open, with Landlock.
//!
//! A rule applies to the directory that a path leads to when the rule is made, and to everything below it. A
//! directory that later takes its place has no rule. Landlock checks when a file is opened, so handles that were
//! opened before keep working.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, LandlockStatus,
    PathBeneath, PathFd, RestrictSelfAttr as _, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _,
    RulesetError, make_bitflags,
};

use crate::{FileAccess, FileRestriction, Scope};

const READ: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ReadFile | ReadDir});

const EXECUTE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ReadFile | ReadDir | Execute});

/// All directories have the same rights, since Landlock refuses to move a file to a directory with more rights.
const WRITE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{
    ReadFile | ReadDir | WriteFile | Truncate | RemoveFile | RemoveDir | MakeReg | MakeDir | MakeSym
        | MakeSock | Refer
});

/// Restricts threads, and all threads and processes that they start, to these files. Also forbids them to connect
/// over TCP and to listen on further ports.
///
/// A process should restrict itself before it starts threads. If it has threads, they are restricted, too, if the
/// kernel can do that (Linux 7.0); otherwise nothing is restricted.
pub fn restrict_files(access: &FileAccess, scope: Scope) -> FileRestriction {
    try_restrict(access, scope).unwrap_or_else(|error| {
        FileRestriction::Unavailable(format!(
            "the kernel has no Landlock of version 2 (Linux 5.19), or does not allow it: {error}"
        ))
    })
}

fn try_restrict(access: &FileAccess, scope: Scope) -> Result<FileRestriction, RulesetError> {
    let mut ruleset = Ruleset::default()
        // Version 1 forbids every rename and link between directories.
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V2))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(ABI::V5))?
        .handle_access(AccessNet::from_all(ABI::V4))?
        .create()?;
    for (paths, rights) in
        [(&access.read, READ), (&access.write, WRITE), (&access.execute, EXECUTE)]
    {
        for path in paths {
            if let Ok(path) = PathFd::new(path) {
                ruleset = ruleset.add_rule(PathBeneath::new(path, rights))?;
            }
        }
    }
    if scope == Scope::Process && !is_alone() {
        ruleset = ruleset.set_compatibility(CompatLevel::HardRequirement).all_threads(true)?;
    }
    Ok(status(ruleset.restrict_self()?.landlock))
}

fn status(landlock: LandlockStatus) -> FileRestriction {
    match landlock {
        LandlockStatus::Available { effective_abi, kernel_abi } => {
            FileRestriction::Enforced(kernel_abi.unwrap_or(effective_abi as i32))
        }
        other => FileRestriction::Unavailable(format!("{other:?}")),
    }
}

/// Whether this thread can list the root directory. Only a rule for that directory allows it.
pub fn can_list_root_directory() -> bool {
    fs::read_dir("/").is_ok()
}

/// Whether the process has one thread. The directory of threads has a link for each, and two of its own.
fn is_alone() -> bool {
    fs::metadata("/proc/self/task").map_or(true, |threads| threads.nlink() <= 3)
}

/// The mappings of this process. The kernel generates the text for each read, so the buffer is large.
fn read_maps() -> std::io::Result<String> {
    let mut text = String::with_capacity(64 * 1024);
    fs::File::open("/proc/self/maps")?.read_to_string(&mut text)?;
    Ok(text)
}

/// The paths that a process must read and execute to start this program again: its file, and the shared libraries
/// that it is linked to.
pub fn program_files() -> Vec<PathBuf> {
    let maps = read_maps().unwrap_or_default();
    let program = fs::read_link("/proc/self/exe").unwrap_or_default();
    let mut files = vec![PathBuf::from("/proc/self/exe"), PathBuf::from("/etc/ld.so.cache")];
    for line in maps.lines() {
        // Address, permissions, offset, device, inode, path.
        let Some(start) = line.find('/') else { continue };
        let is_code = line.split(' ').nth(1).is_some_and(|permissions| permissions.contains('x'));
        let file = Path::new(&line[start..]);
        if !is_code || file == program {
            continue;
        }
        // The system's library directories have no secrets. With a rule for the directory, a library can be updated
        // without a restart.
        let is_systems = ["/lib", "/lib64", "/usr"].iter().any(|system| file.starts_with(system));
        match file.parent().filter(|_| is_systems) {
            Some(directory) => files.push(directory.to_owned()),
            None => files.push(file.to_owned()),
        }
    }
    files.sort();
    files.dedup();
    files
}
