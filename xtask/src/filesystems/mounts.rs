//! The file systems, and how each of them is mounted.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use super::promises::{Column, Outcome, PROMISES};

/// A file system of the table.
pub(crate) struct Mount {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    /// The requirement for the kernel: a line of `/proc/filesystems`, or a file that shows a feature.
    needs: &'static str,
    /// The programs that mount it, each with its Debian package.
    tools: &'static [(&'static str, &'static str)],
    /// Packages that only the virtual machine gets.
    pub(crate) packages: &'static [&'static str],
    /// A shell script that mounts it at `$at` and may use the directory `$disk`.
    script: &'static str,
    pub(crate) columns: &'static [Column],
    /// Tests that may fail there, each with the number of the note that explains it.
    exceptions: &'static [(&'static str, u8)],
}

impl Mount {
    /// A file system that supports everything.
    const USUAL: Self = Self {
        name: "",
        title: "",
        needs: "tmpfs",
        tools: &[],
        packages: &[],
        script: "mount -t tmpfs -o size=1G tmpfs $at\n",
        columns: &PROMISES,
        exceptions: &[],
    };
}

/// A disk in a file.
macro_rules! disk {
    ($make:literal) => {
        concat!("truncate -s 1G $disk/disk\n", $make, " $disk/disk\nmount -o loop $disk/disk $at\n")
    };
}

pub(crate) const ROWS: [Mount; 9] = [
    Mount {
        name: "ext4",
        title: "ext4",
        needs: "ext4",
        tools: &[("mkfs.ext4", "e2fsprogs")],
        script: disk!("mkfs.ext4 -q"),
        ..Mount::USUAL
    },
    Mount {
        name: "xfs",
        title: "XFS",
        needs: "xfs",
        tools: &[("mkfs.xfs", "xfsprogs")],
        script: disk!("mkfs.xfs -q"),
        exceptions: &SLOWER_BY_A_SYMLINK,
        ..Mount::USUAL
    },
    Mount {
        name: "btrfs",
        title: "Btrfs",
        needs: "btrfs",
        tools: &[("mkfs.btrfs", "btrfs-progs")],
        script: disk!("mkfs.btrfs -q"),
        ..Mount::USUAL
    },
    Mount {
        name: "f2fs",
        title: "F2FS",
        needs: "f2fs",
        tools: &[("mkfs.f2fs", "f2fs-tools")],
        script: disk!("mkfs.f2fs -q"),
        exceptions: &SLOWER_BY_A_SYMLINK,
        ..Mount::USUAL
    },
    Mount { name: "tmpfs", title: "tmpfs", ..Mount::USUAL },
    Mount {
        name: "overlay",
        title: "overlayfs on ext4",
        needs: "overlay",
        tools: &[("mkfs.ext4", "e2fsprogs")],
        script: "truncate -s 1G $disk/disk\nmkfs.ext4 -q $disk/disk\nmkdir $disk/layers\n\
            mount -o loop $disk/disk $disk/layers\n\
            cd $disk/layers && mkdir lower upper work\n\
            mount -t overlay -o lowerdir=lower,upperdir=upper,workdir=work overlay $at\n",
        ..Mount::USUAL
    },
    Mount {
        name: "fuse",
        title: "FUSE (bindfs on ext4)",
        needs: "fuse",
        tools: &[("bindfs", "bindfs"), ("mkfs.ext4", "e2fsprogs")],
        script: "truncate -s 1G $disk/disk\nmkfs.ext4 -q $disk/disk\nmkdir $disk/below\n\
            mount -o loop $disk/disk $disk/below\nbindfs $disk/below $at\n",
        exceptions: &PROVIDED_BY_OTHERS,
        ..Mount::USUAL
    },
    Mount {
        name: "nfs",
        title: "NFS 4.2 (ext4 exported)",
        needs: "nfs4",
        tools: &[("mkfs.ext4", "e2fsprogs")],
        packages: &[
            "nfs-kernel-server",
            "nfs-common",
            "libtirpc3",
            "libtirpc-common",
            "libnfsidmap1",
            "libevent-core-2.1-7",
            "libkeyutils1",
            "libdevmapper1.02.1",
            "rpcbind",
            "libwrap0",
        ],
        script: "truncate -s 1G $disk/disk\nmkfs.ext4 -q $disk/disk\nmkdir /exported\n\
            mount -o loop $disk/disk /exported\nip link set lo up\n\
            mkdir -p /var/lib/nfs/v4recovery /var/lib/nfs/rpc_pipefs /run/rpcbind /run/sendsigs.omit.d\n\
            touch /var/lib/nfs/etab /var/lib/nfs/rmtab /etc/exports\n\
            mount -t rpc_pipefs rpc_pipefs /var/lib/nfs/rpc_pipefs\n\
            modprobe nfsd\nmount -t nfsd nfsd /proc/fs/nfsd || true\n\
            echo 10 > /proc/fs/nfsd/nfsv4leasetime\necho 10 > /proc/fs/nfsd/nfsv4gracetime\n\
            rpcbind\nrpc.mountd --no-nfs-version 3\n\
            exportfs -o rw,no_root_squash,no_subtree_check,fsid=0,insecure,async 127.0.0.1:/exported\n\
            rpc.nfsd --no-nfs-version 3 4\n\
            mount -i -t nfs4 -o vers=4.2,addr=127.0.0.1,clientaddr=127.0.0.1 127.0.0.1:/ $at\n",
        exceptions: &PROVIDED_BY_OTHERS,
        ..Mount::USUAL
    },
    Mount {
        name: "casefold",
        title: "ext4, a directory that folds case",
        needs: "/sys/fs/ext4/features/casefold",
        tools: &[("mkfs.ext4", "e2fsprogs")],
        script: concat!(disk!("mkfs.ext4 -q -O casefold"), "mkdir $at/tmp\nchattr +F $at/tmp\n"),
        exceptions: &[
            ("confine/fence::cached_file::a_cached_read_makes_no_call_that_waits_for_a_root", 5),
            ("confine/fence::cached_file::a_file_of_a_root_that_was_replaced_is_not_cached", 5),
            (
                "confine/fence::cached_file::a_file_of_a_root_whose_real_path_changed_is_not_cached",
                5,
            ),
            (
                "confine/fence::cached_file::a_file_that_another_process_or_server_provides_is_not_cached",
                5,
            ),
            ("confine/fence::cached_file::only_a_small_regular_file_without_links_is_cached", 5),
        ],
        ..Mount::USUAL
    },
];

/// The test that may fail where a small read through a symlink does not take the fast path.
const SLOWER_BY_A_SYMLINK: [(&str, u8); 1] =
    [("confine/fence::cached_file::a_file_of_a_root_whose_real_path_changed_is_not_cached", 5)];

/// The tests that may fail if another process or machine provides the files.
const PROVIDED_BY_OTHERS: [(&str, u8); 32] = [
    ("confine/writes::a_second_write_in_a_directory_makes_these_calls", 1),
    (
        "confine/writes::others::whoever_comes_between_the_last_look_and_the_trade_is_given_back_what_is_theirs",
        1,
    ),
    ("confine/writes::others::writers_without_our_locks_lose_nothing_to_us", 1),
    ("confine/moved_roots::what_cannot_be_renamed_back_is_written_back_and_said", 1),
    ("confine/moved_roots::a_directory_that_is_moved_does_not_take_the_change_with_it", 1),
    ("confine/sweep::content_that_a_failed_rollback_left_is_never_swept", 1),
    ("confine/sweep::a_process_that_is_killed_while_it_writes_the_old_content_back_loses_none", 1),
    ("confine/moves::a_killed_move_is_made_or_not_made", 1),
    ("confine/trees::a_directory_that_a_failed_rollback_left_goes_back_whole", 1),
    ("confine/faults::what_cannot_be_put_back_is_kept_and_named", 1),
    ("pinfold/commits::eight_sessions_that_read_before_they_write_lose_nothing", 1),
    ("pinfold/sets::the_next_start_restores_a_set_that_was_interrupted", 1),
    ("pinfold/sets::the_next_start_restores_it_also_where_files_cannot_be_exchanged", 1),
    ("pinfold/rewinds::a_rewind_that_is_killed_is_whole_after_the_next_start", 1),
    ("confine/writes::others::a_file_that_changed_since_it_was_found_is_left_alone", 2),
    ("confine/writes::others::a_save_survives_where_the_file_system_cannot_exchange", 2),
    ("confine/writes::others::directories_that_others_take_back_are_made_again", 2),
    ("confine/sweep::only_what_is_surely_left_behind_is_swept", 2),
    ("confine/fence::cached_file::a_file_of_a_root_that_was_replaced_is_not_cached", 3),
    ("pinfold/rewinds::a_rewind_that_fails_anywhere_changes_nothing", 2),
    ("confine/tree::a_hard_link_is_still_known_after_its_directory_was_listed_again", 3),
    ("confine/tree::an_ignore_file_that_changes_by_another_name_counts", 3),
    ("confine/tree::a_write_through_a_hard_link_outside_is_seen", 3),
    ("confine/tree::a_write_through_a_later_hard_link_inside_is_seen_at_once", 3),
    ("confine/tree::a_write_through_a_later_hard_link_is_seen_after_a_recheck", 3),
    (
        "cli/journal::keeping::what_was_written_to_after_it_was_displaced_does_not_come_back_as_if_nothing_were",
        3,
    ),
    ("confine/tree::a_large_tree_is_watched_and_a_small_one_is_compared", 4),
    ("confine/tree::an_ignored_tree_is_not_watched", 4),
    ("confine/fence::paths_longer_than_one_call_takes_are_walked", 5),
    ("confine/fence::whoever_waits_at_a_pipe_is_not_disturbed", 5),
    ("confine/walk::paths_may_be_longer_than_the_kernel_takes_but_trees_not_endlessly_deep", 5),
    (
        "cli/journal::keeping::sparse_files_are_copied_sparsely_and_not_beyond_what_the_journal_may_take",
        5,
    ),
];

/// Special mounts that do not support everything, each with the tests for it.
pub(crate) const SPECIAL: [Mount; 8] = [
    Mount {
        name: "read-only",
        title: "read-only",
        columns: &[Column::of(&[(
            "cli/mounts",
            &["a_read_only_mount_is_read_and_says_why_nothing_changes"],
        )])],
        ..Mount::USUAL
    },
    Mount { name: "full", title: "full", columns: &FULL, ..Mount::USUAL },
    Mount {
        name: "full-journal",
        title: "full, with the journal on it",
        columns: &[Column::of(&[("cli/mounts", &["a_journal_on_a_full_disk_stops_the_change"])])],
        ..Mount::USUAL
    },
    Mount {
        name: "quota-btrfs",
        title: "a quota of Btrfs",
        needs: "btrfs",
        tools: &[("mkfs.btrfs", "btrfs-progs")],
        script: concat!(
            disk!("mkfs.btrfs -q"),
            "btrfs -q quota enable $at\nbtrfs -q subvolume create $at/small\n\
             btrfs -q qgroup limit 4M $at/small\n"
        ),
        columns: &FULL,
        ..Mount::USUAL
    },
    Mount {
        name: "quota-ext4",
        title: "a quota of an ext4 project",
        needs: "/sys/module/quota_v2",
        tools: &[("mkfs.ext4", "e2fsprogs"), ("setquota", "quota")],
        script: "modprobe quota_v2\ntruncate -s 1G $disk/disk\n\
            mkfs.ext4 -q -O quota,project -E quotatype=prjquota $disk/disk\n\
            mount -o loop,prjquota $disk/disk $at\nmkdir $at/small\n\
            chattr -p 7 +P $at/small\nsetquota -P 7 0 4096 0 0 $at\n",
        columns: &FULL,
        ..Mount::USUAL
    },
    Mount {
        name: "mount-inside",
        title: "another mount inside a root",
        columns: &[Column::of(&[("cli/mounts", &["a_mount_inside_a_root_is_part_of_it"])])],
        ..Mount::USUAL
    },
    Mount {
        name: "spellings",
        title: "a name in two spellings, where case is folded",
        needs: "/sys/fs/ext4/features/casefold",
        tools: &[("mkfs.ext4", "e2fsprogs")],
        columns: &[Column::of(&[("confine/folding", &[])])],
        ..Mount::USUAL
    },
    Mount {
        name: "layers",
        title: "files of an overlay's lower layer",
        needs: "overlay",
        columns: &[Column::of(&[
            ("cli/mounts", &["changes_of_an_overlay_stay_in_its_upper_layer"]),
            ("confine/copy_up", &[]),
        ])],
        ..Mount::USUAL
    },
];

const FULL: [Column; 1] = [Column::of(&[(
    "cli/mounts",
    &["a_full_disk_or_quota_leaves_the_old_content_and_nothing_else"],
)])];

/// All rows of both tables.
pub(crate) fn all() -> impl Iterator<Item = &'static Mount> {
    ROWS.iter().chain(&SPECIAL)
}

impl Mount {
    /// Whether this machine's kernel has the file system.
    pub(crate) fn is_known_here(&self) -> bool {
        let needs = self.needs;
        if needs.starts_with('/') {
            return Path::new(needs).exists();
        }
        // This loads the module, if it is one.
        _ = Command::new("modprobe").arg("-q").arg(needs).stderr(Stdio::null()).status();
        let known = fs::read_to_string("/proc/filesystems").unwrap_or_default();
        known.lines().any(|line| line.split_whitespace().last() == Some(needs))
    }

    /// Installs the programs that mount it.
    pub(crate) fn install(&self) -> Result<()> {
        for (program, package) in self.tools {
            crate::packages::debian_program(&[program], package)
                .with_context(|| format!("there is no `{program}`; install `{package}`"))?;
        }
        Ok(())
    }

    /// Mounts it, and returns a directory on it for the tests.
    pub(crate) fn mount(&self) -> Result<PathBuf> {
        // In its own namespace, this process has `/mnt` for itself.
        let (disk, at) = (Path::new("/mnt/disk"), Path::new("/mnt/at"));
        let script = "set -e\nmount -t tmpfs tmpfs /mnt\nmkdir $disk $at\n";
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{script}{}", self.script)]);
        shell.env("disk", disk).env("at", at).env("PATH", PATH).stdin(Stdio::null());
        let output = shell.output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("it cannot be mounted: {}", said.trim().replace('\n', "; "));
        }
        let tests = at.join("tmp");
        fs::create_dir_all(&tests)?;
        Ok(tests)
    }

    /// The row of the table.
    pub(crate) fn line(&self, outcomes: &BTreeMap<String, Outcome>) -> String {
        let by = if self.is_known_here() { "this kernel" } else { "Debian's kernel, in a machine" };
        let cell = |title: &str| match outcomes.get(title) {
            None => "**not finished**".to_owned(),
            Some(Outcome { passed, failed, unfinished }) => {
                let mut notes: Vec<_> = failed.iter().filter_map(|it| self.note(it)).collect();
                notes.sort_unstable();
                notes.dedup();
                let notes: String = notes.iter().map(|note| format!(" [{note}]")).collect();
                match (failed.len(), unfinished.len()) {
                    (0, 0) => format!("yes ({passed})"),
                    (some, 0) => format!("{passed} of {}{notes}", passed + some as u64),
                    (some, late) => {
                        let all = passed + (some + late) as u64;
                        format!("{passed} of {all}, {late} not in time{notes}")
                    }
                }
            }
        };
        let cells: String =
            self.columns.iter().map(|it| format!(" {} |", cell(it.title))).collect();
        format!("| {} | {by} |{cells}", self.title)
    }

    fn note(&self, test: &str) -> Option<u8> {
        self.exceptions.iter().find(|(name, _)| *name == test).map(|(_, note)| *note)
    }

    /// The differences from the table of exceptions.
    pub(crate) fn problems(&self, outcomes: &BTreeMap<String, Outcome>) -> Vec<String> {
        let failed = || outcomes.values().flat_map(|outcome| &outcome.failed);
        let unexpected = failed().filter(|test| self.note(test).is_none());
        let mut problems: Vec<_> =
            unexpected.map(|test| format!("{}: {test} fails", self.title)).collect();
        let late = outcomes.values().flat_map(|outcome| &outcome.unfinished);
        problems.extend(late.map(|test| format!("{}: {test} does not end in time", self.title)));
        let missing = self.columns.iter().filter(|column| !outcomes.contains_key(column.title));
        problems.extend(missing.map(|it| format!("{}: {}: did not finish", self.title, it.title)));
        problems
    }
}

/// Includes the directories of administrators' programs.
const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";
