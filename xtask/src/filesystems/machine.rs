//! Debian's kernel as a process, for file systems that this machine's kernel does not have.
//!
//! It is User Mode Linux, compiled from Debian's source once, since Debian's own build can neither fold case nor
//! restrict programs by Landlock. It runs the code of programs as fast as this machine, on one processor. The process
//! sees this machine's files, and keeps changes of them in memory.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use super::place;
use crate::packages::debian_program;

/// The programs that compile the kernel, each with its package.
const COMPILERS: [(&str, &str); 5] =
    [("gcc", "gcc"), ("make", "make"), ("flex", "flex"), ("bison", "bison"), ("bc", "bc")];

/// The options of the kernel, besides the usual ones of User Mode Linux.
const OPTIONS: &str = "# CONFIG_MODULES is not set
# CONFIG_BLK_DEV_UBD is not set
# CONFIG_REISERFS_FS is not set
CONFIG_CC_OPTIMIZE_FOR_PERFORMANCE=y
CONFIG_DEBUG_INFO_NONE=y
CONFIG_HOSTFS=y
CONFIG_DEVTMPFS=y
CONFIG_DEVTMPFS_MOUNT=y
CONFIG_BLK_DEV_LOOP=y
CONFIG_TMPFS=y
CONFIG_TMPFS_POSIX_ACL=y
CONFIG_TMPFS_XATTR=y
CONFIG_OVERLAY_FS=y
CONFIG_FUSE_FS=y
CONFIG_UNICODE=y
CONFIG_EXT4_FS=y
CONFIG_EXT4_FS_POSIX_ACL=y
CONFIG_EXT4_FS_SECURITY=y
CONFIG_XFS_FS=y
CONFIG_XFS_POSIX_ACL=y
CONFIG_BTRFS_FS=y
CONFIG_BTRFS_FS_POSIX_ACL=y
# CONFIG_RAID6_PQ_BENCHMARK is not set
CONFIG_F2FS_FS=y
CONFIG_F2FS_FS_POSIX_ACL=y
CONFIG_F2FS_FS_SECURITY=y
CONFIG_QUOTA=y
CONFIG_QFMT_V2=y
CONFIG_NETWORK_FILESYSTEMS=y
CONFIG_NFS_FS=y
CONFIG_NFS_V4=y
CONFIG_NFS_V4_1=y
CONFIG_NFS_V4_2=y
CONFIG_NFSD=y
CONFIG_NFSD_V4=y
CONFIG_SECCOMP=y
CONFIG_SECURITY=y
CONFIG_SECURITY_LANDLOCK=y
CONFIG_LSM=\"landlock\"
CONFIG_FANOTIFY=y
CONFIG_INOTIFY_USER=y
CONFIG_IO_URING=y
CONFIG_USER_NS=y
CONFIG_MAGIC_SYSRQ=y
";

/// Compiles the kernel in its source.
const COMPILE: &str = "set -e
export ARCH=um
make defconfig
scripts/kconfig/merge_config.sh -m .config ../options
make olddefconfig
make -j$(nproc) linux
mv linux ../linux
";

/// The first script, which is started from this machine's files. It puts a layer for changes above them. The root
/// directory itself is in memory, so that the path to a tested file system crosses no other one that has to be asked
/// for each name.
const INIT: &str = "#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -n -t proc proc /proc
mount -n -t sysfs sysfs /sys
mount -n -t tmpfs -o size=60% tmpfs /mnt
mkdir /mnt/upper /mnt/work /mnt/files /mnt/new
mount -n -t overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work overlay /mnt/files
mount -n -t tmpfs tmpfs /mnt/new
cd /mnt/files
for f in *; do
  if [ -L $f ]; then cp -a $f /mnt/new/$f; elif [ -d $f ]; then mkdir /mnt/new/$f; fi
  case $f in mnt|tmp|proc|sys|dev) continue;; esac
  [ -L $f ] || [ ! -d $f ] || mount -n --bind $f /mnt/new/$f
done
# It may be below /tmp.
mkdir -p /mnt/new@HOME@
mount -n --bind /mnt/files@HOME@ /mnt/new@HOME@
for m in proc sys dev; do mount -n --move /$m /mnt/new/$m; done
cd /mnt/new
mkdir old
pivot_root . old
exec chroot . @PLACE@/start
";

/// The second script: unpacks packages, runs the command, and powers off.
const START: &str = "#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root PINFOLD_TEST_STRIDE=@STRIDE@
cd @HOME@
umount -n -l /old
chmod 1777 /tmp
mkdir -p /dev/shm /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t devpts devpts /dev/pts
for p in @PLACE@/@PACKED@/*.deb; do
  # `dpkg -x` would put a directory in the place of the symlink `/lib`.
  [ -e \"$p\" ] && dpkg-deb --fsys-tarfile \"$p\" | tar -x --keep-directory-symlink -C /
done
@COMMAND@ 2>&1
echo o > /proc/sysrq-trigger
sleep 60
";

/// The value of `PINFOLD_TEST_STRIDE` for the tests there.
const STRIDE: &str = "16";

/// Debian's kernel, ready to start.
pub(crate) struct Machine {
    kernel: PathBuf,
    packed: &'static str,
}

impl Machine {
    /// Compiles the kernel, and downloads the packages that are unpacked there.
    pub(crate) fn set_up(packages: &[&str]) -> Result<Self> {
        let packed = if packages.is_empty() { "none" } else { "packages" };
        if !packages.is_empty() && !place().join(packed).join("complete").exists() {
            download(&place().join(packed), packages)?;
            fs::write(place().join(packed).join("complete"), "")?;
        }
        let kernel = place().join("kernel/linux");
        let compiled_with = fs::read_to_string(place().join("kernel/options"));
        if !kernel.exists() || !compiled_with.is_ok_and(|options| options == OPTIONS) {
            compile(&place().join("kernel"))?;
        }
        Ok(Self { kernel, packed })
    }

    /// The command that runs this program there.
    pub(crate) fn command(&self, row: &str, only: &str) -> Result<Command> {
        let program = std::env::current_exe()?;
        let command = format!("{} filesystems --inside {row} '{only}'", program.display());
        let start = START
            .replace("@PACKED@", self.packed)
            .replace("@STRIDE@", STRIDE)
            .replace("@COMMAND@", &command);
        script(&place().join("start"), &start)?;
        let init = place().join("init");
        script(&init, INIT)?;
        let mut process = Command::new(&self.kernel);
        process.args(["mem=3072M", "rootfstype=hostfs", "rootflags=/", "ro", "quiet"]);
        process.args(["con=null", "con0=null,fd:1"]).arg(format!("init={}", init.display()));
        Ok(process)
    }
}

/// Downloads the newest kernel's source that this Debian has, and compiles it.
fn compile(at: &Path) -> Result<()> {
    for (program, package) in COMPILERS {
        debian_program(&[program], package)
            .with_context(|| format!("there is no `{program}`; install `{package}`"))?;
    }
    let mut search = Command::new("apt-cache");
    let found = search.args(["search", "--names-only", "^linux-source-[0-9.]+$"]).output()?;
    let found = String::from_utf8_lossy(&found.stdout).into_owned();
    let names = found.lines().filter_map(|line| line.split(' ').next());
    let version = |name: &&str| -> Vec<u32> {
        name.split(['-', '.']).filter_map(|part| part.parse().ok()).collect()
    };
    let package = names.max_by_key(version).context("this system has no package of a kernel")?;
    eprintln!("xtask: compiling Debian's kernel, from {package}");
    _ = fs::remove_dir_all(at);
    download(at, &[package])?;
    let unpack = format!("dpkg -x {package}_*.deb . && tar -xf usr/src/{package}.tar.xz");
    run(Command::new("sh").args(["-ec", &unpack]).current_dir(at))?;
    fs::write(at.join("options"), OPTIONS)?;
    let (source, log) = (at.join(package), fs::File::create(at.join("log"))?);
    let mut compile = Command::new("sh");
    compile.args(["-c", COMPILE]).current_dir(&source).stdin(Stdio::null());
    run(compile.stdout(log.try_clone()?).stderr(log))
        .context("see target/filesystems/kernel/log")?;
    // It has more than a gigabyte.
    Ok(fs::remove_dir_all(source)?)
}

/// Writes a script, with the paths of this machine.
fn script(to: &Path, text: &str) -> Result<()> {
    let text = text.replace("@HOME@", &crate::release::home().display().to_string());
    fs::write(to, text.replace("@PLACE@", &place().display().to_string()))?;
    Ok(fs::set_permissions(to, fs::Permissions::from_mode(0o755))?)
}

fn download(to: &Path, packages: &[&str]) -> Result<()> {
    fs::create_dir_all(to)?;
    let mut get = Command::new("apt-get");
    run(get.arg("download").args(packages).current_dir(to).stdout(Stdio::null()))
}

fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    Ok(())
}
