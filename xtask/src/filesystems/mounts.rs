//! The file systems, and how each of them is mounted.

use std::collections::{BTreeMap, BTreeSet};
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
    /// Packages that are unpacked for Debian's kernel, if this machine's kernel does not have the file system.
    pub(crate) packages: &'static [&'static str],
    /// A shell script that mounts it at `$at` and may use the directory `$disk`.
    script: &'static str,
    pub(crate) columns: &'static [Column],
}

impl Mount {
    /// A file system that supports everything.
    const STANDARD: Self = Self {
        name: "",
        title: "",
        needs: "tmpfs",
        tools: &[],
        packages: &[],
        script: "mount -t tmpfs -o size=1G tmpfs $at\n",
        columns: &PROMISES,
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
        ..Mount::STANDARD
    },
    Mount {
        name: "xfs",
        title: "XFS",
        needs: "xfs",
        tools: &[("mkfs.xfs", "xfsprogs")],
        script: disk!("mkfs.xfs -q"),
        ..Mount::STANDARD
    },
    Mount {
        name: "btrfs",
        title: "Btrfs",
        needs: "btrfs",
        tools: &[("mkfs.btrfs", "btrfs-progs")],
        script: disk!("mkfs.btrfs -q"),
        ..Mount::STANDARD
    },
    Mount {
        name: "f2fs",
        title: "F2FS",
        needs: "f2fs",
        tools: &[("mkfs.f2fs", "f2fs-tools")],
        script: disk!("mkfs.f2fs -q"),
        ..Mount::STANDARD
    },
    Mount { name: "tmpfs", title: "tmpfs", ..Mount::STANDARD },
    Mount {
        name: "overlay",
        title: "overlayfs on ext4",
        needs: "overlay",
        tools: &[("mkfs.ext4", "e2fsprogs")],
        script: "truncate -s 1G $disk/disk\nmkfs.ext4 -q $disk/disk\nmkdir $disk/layers\n\
            mount -o loop $disk/disk $disk/layers\n\
            cd $disk/layers && mkdir lower upper work\n\
            mount -t overlay -o lowerdir=lower,upperdir=upper,workdir=work overlay $at\n",
        ..Mount::STANDARD
    },
    Mount {
        name: "fuse",
        title: "FUSE (bindfs on ext4)",
        needs: "fuse",
        tools: &[("bindfs", "bindfs"), ("mkfs.ext4", "e2fsprogs")],
        script: "truncate -s 1G $disk/disk\nmkfs.ext4 -q $disk/disk\nmkdir $disk/below\n\
            mount -o loop $disk/disk $disk/below\nbindfs $disk/below $at\n",
        ..Mount::STANDARD
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
            mount -t nfsd nfsd /proc/fs/nfsd || true\n\
            echo 10 > /proc/fs/nfsd/nfsv4leasetime\necho 10 > /proc/fs/nfsd/nfsv4gracetime\n\
            rpcbind\nrpc.mountd --no-nfs-version 3\n\
            exportfs -o rw,no_root_squash,no_subtree_check,fsid=0,insecure,async 127.0.0.1:/exported\n\
            rpc.nfsd --no-nfs-version 3 4\n\
            mount -i -t nfs4 -o vers=4.2,addr=127.0.0.1,clientaddr=127.0.0.1 127.0.0.1:/ $at\n",
        ..Mount::STANDARD
    },
    Mount {
        name: "casefold",
        title: "ext4, a directory that folds case",
        needs: "/sys/fs/ext4/features/casefold",
        tools: &[("mkfs.ext4", "e2fsprogs")],
        script: concat!(disk!("mkfs.ext4 -q -O casefold"), "mkdir $at/tmp\nchattr +F $at/tmp\n"),
        ..Mount::STANDARD
    },
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
        ..Mount::STANDARD
    },
    Mount {
        name: "full",
        title: "full",
        columns: &[Column::of(&[(
            "cli/mounts",
            &[
                "a_full_disk_or_quota_leaves_the_old_content_and_nothing_else",
                "a_rewind_on_a_full_disk_changes_nothing_and_works_once_there_is_room",
            ],
        )])],
        ..Mount::STANDARD
    },
    Mount {
        name: "full-journal",
        title: "full, with the journal on it",
        columns: &[Column::of(&[("cli/mounts", &["a_journal_on_a_full_disk_stops_the_change"])])],
        ..Mount::STANDARD
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
        ..Mount::STANDARD
    },
    Mount {
        name: "quota-ext4",
        title: "a quota of an ext4 project",
        needs: "/sys/module/quota_v2",
        tools: &[("mkfs.ext4", "e2fsprogs"), ("setquota", "quota")],
        script: "truncate -s 1G $disk/disk\n\
            mkfs.ext4 -q -O quota,project -E quotatype=prjquota $disk/disk\n\
            mount -o loop,prjquota $disk/disk $at\nmkdir $at/small\n\
            chattr -p 7 +P $at/small\nsetquota -P 7 0 4096 0 0 $at\n",
        columns: &FULL,
        ..Mount::STANDARD
    },
    Mount {
        name: "mount-inside",
        title: "another mount inside a root",
        columns: &[Column::of(&[("cli/mounts", &["a_mount_inside_a_root_is_part_of_it"])])],
        ..Mount::STANDARD
    },
    Mount {
        name: "spellings",
        title: "a name in two spellings, where case is folded",
        needs: "/sys/fs/ext4/features/casefold",
        tools: &[("mkfs.ext4", "e2fsprogs")],
        columns: &[Column::of(&[("confine/folding", &[])])],
        ..Mount::STANDARD
    },
    Mount {
        name: "layers",
        title: "files of an overlay's lower layer",
        needs: "overlay",
        columns: &[Column::of(&[
            ("cli/mounts", &["changes_of_an_overlay_stay_in_its_upper_layer"]),
            ("confine/copy_up", &[]),
        ])],
        ..Mount::STANDARD
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
        let by = if self.is_known_here() { "this kernel" } else { "Debian's kernel" };
        let cell = |title: &str| match outcomes.get(title) {
            None => "**not finished**".to_owned(),
            Some(Outcome { passed, failed, unfinished, limits }) => {
                let all = *passed as usize + failed.len() + unfinished.len();
                let limited: BTreeSet<_> = limits.values().flatten().collect();
                let limited = match limited.len() {
                    0 => String::new(),
                    some => format!(", {some} limited"),
                };
                match (failed.len(), unfinished.len()) {
                    (0, 0) => format!("yes ({all}{limited})"),
                    (_, 0) => format!("**{passed} of {all}**{limited}"),
                    (_, late) => format!("**{passed} of {all}, {late} not in time**{limited}"),
                }
            }
        };
        let cells: String =
            self.columns.iter().map(|it| format!(" {} |", cell(it.title))).collect();
        format!("| {} | {by} |{cells}", self.title)
    }

    /// The rows of the table of limits.
    pub(crate) fn limits(&self, outcomes: &BTreeMap<String, Outcome>) -> Vec<String> {
        let mut limits = BTreeMap::<_, BTreeSet<_>>::new();
        for (limit, tests) in outcomes.values().flat_map(|outcome| &outcome.limits) {
            // The name of the test is enough without its modules.
            let names = tests.iter().filter_map(|test| test.rsplit("::").next());
            limits.entry(limit).or_default().extend(names);
        }
        let row = |(limit, tests): (_, BTreeSet<_>)| {
            let tests: Vec<_> = tests.iter().map(|test| format!("`{test}`")).collect();
            format!("| {} | {limit} | {} |", self.title, tests.join(", "))
        };
        limits.into_iter().map(row).collect()
    }

    /// What does not hold.
    pub(crate) fn problems(&self, outcomes: &BTreeMap<String, Outcome>) -> Vec<String> {
        let failed = outcomes.values().flat_map(|outcome| &outcome.failed);
        let mut problems: Vec<_> =
            failed.map(|test| format!("{}: {test} fails", self.title)).collect();
        let late = outcomes.values().flat_map(|outcome| &outcome.unfinished);
        problems.extend(late.map(|test| format!("{}: {test} does not end in time", self.title)));
        let missing = self.columns.iter().filter(|column| !outcomes.contains_key(column.title));
        problems.extend(missing.map(|it| format!("{}: {}: did not finish", self.title, it.title)));
        problems
    }
}

/// Includes the directories of administrators' programs.
const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";
