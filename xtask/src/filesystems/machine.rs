//! Debian's kernel, for file systems that this machine's kernel does not have.
//!
//! It runs as a process, which is User Mode Linux, or in a virtual machine. The process runs code of programs as fast as
//! this machine, but has one processor and lacks some features. QEMU has all of them; it interprets the code, which needs
//! no support of the processor but is about ten times as slow. Either way, the kernel sees this machine's files, and
//! keeps changes of them in memory.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use super::place;
use crate::packages::debian_program;

/// How Debian's kernel runs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kernel {
    /// As a process: User Mode Linux.
    Process,
    /// In a virtual machine.
    Machine,
}

/// The modules that the virtual machine needs to see this machine's files.
const FIRST_MODULES: [&str; 4] = ["virtio_pci", "9pnet_virtio", "9p", "overlay"];

/// The first script of the virtual machine, which starts in its memory. It loads the modules, and mounts this machine's files as
/// the root, below a layer for changes. The root directory itself is in memory, so that the path to a tested file
/// system crosses no other one that has to be asked for each name.
const INIT: &str = "#!/bin/busybox sh
b=/bin/busybox
$b mount -t proc proc /proc
$b mount -t sysfs sysfs /sys
$b mount -t devtmpfs devtmpfs /dev
for m in $($b cat /modules/list); do $b insmod /modules/$m; done
$b mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=loose,ro host /host
$b mount -t tmpfs -o size=60% tmpfs /layer
$b mkdir /layer/upper /layer/work /layer/files
$b mount -t overlay -o lowerdir=/host,upperdir=/layer/upper,workdir=/layer/work overlay /layer/files
$b mount -t tmpfs tmpfs /new
cd /layer/files
for f in *; do
  if [ -L $f ]; then $b cp -a $f /new/$f; elif [ -d $f ]; then $b mkdir /new/$f; fi
  case $f in mnt|tmp|proc|sys|dev) continue;; esac
  [ -L $f ] || [ ! -d $f ] || $b mount --bind $f /new/$f
done
# It may be below /tmp.
$b mkdir -p /new@HOME@
$b mount --bind /layer/files@HOME@ /new@HOME@
for m in proc sys dev; do $b mount --move /$m /new/$m; done
exec $b switch_root /new @START@
";

/// The first script of the process. It is started from this machine's files, and does the same.
const PROCESS_INIT: &str = "#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -n -t proc proc /proc
mount -n -t sysfs sysfs /sys
modprobe -d @PLACE@/process overlay
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
mkdir -p /mnt/new@HOME@
mount -n --bind /mnt/files@HOME@ /mnt/new@HOME@
for m in proc sys dev; do mount -n --move /$m /mnt/new/$m; done
cd /mnt/new
mkdir old
pivot_root . old
exec chroot . @START@
";

/// The second script: puts the modules where programs look for them, runs the command, and powers off.
const START: &str = "#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root PINFOLD_TEST_STRIDE=@STRIDE@
cd @HOME@
[ ! -d /old ] || umount -n -l /old
chmod 1777 /tmp
mkdir -p /dev/shm /dev/pts /lib/modules
mount -t tmpfs tmpfs /dev/shm
mount -t devpts devpts /dev/pts
mount --bind @MODULES@ /lib/modules
for p in @PLACE@/@PACKED@/*.deb; do
  # `dpkg -x` would put a directory in the place of the symlink `/lib`.
  [ -e \"$p\" ] && dpkg-deb --fsys-tarfile \"$p\" | tar -x --keep-directory-symlink -C /
done
modprobe loop
modprobe ext4
@COMMAND@ 2>&1
echo o > /proc/sysrq-trigger
sleep 60
";

/// The value of `PINFOLD_TEST_STRIDE` for the tests there.
const STRIDE: &str = "16";

/// Debian's kernel, ready to start.
pub(crate) struct Machine {
    kind: Kernel,
    kernel: PathBuf,
    modules: PathBuf,
    version: String,
    packed: &'static str,
}

impl Machine {
    /// Downloads the kernel and the packages that are unpacked there.
    pub(crate) fn set_up(kind: Kernel, packages: &[&str]) -> Result<Self> {
        debian_program(&["modprobe"], "kmod").context("there is no `modprobe`")?;
        let packed = if packages.is_empty() { "none" } else { "packages" };
        if !packages.is_empty() && !place().join(packed).join("complete").exists() {
            download(&place().join(packed), packages)?;
            fs::write(place().join(packed).join("complete"), "")?;
        }
        let unpacked = place().join(kind.directory());
        let modules = unpacked.join("lib/modules");
        match kind {
            Kernel::Process => {
                unpack(&unpacked, &["user-mode-linux"])?;
                _ = fs::create_dir(unpacked.join("lib"));
                _ = std::os::unix::fs::symlink("../usr/lib/uml/modules", &modules);
            }
            Kernel::Machine => {
                let qemu = debian_program(&["qemu-system-x86_64"], "qemu-system-x86");
                qemu.context("this kernel does not have it, and there is no `qemu-system-x86_64`")?;
                debian_program(&["cpio"], "cpio").context("there is no `cpio`")?;
                let depends =
                    Command::new("apt-cache").args(["depends", "linux-image-amd64"]).output()?;
                let depends = String::from_utf8_lossy(&depends.stdout).into_owned();
                let image = depends.split_whitespace().find(|it| it.starts_with("linux-image-6"));
                unpack(&unpacked, &[image.context("Debian has no kernel")?, "busybox-static"])?;
            }
        }
        let version = fs::read_dir(&modules)?.next().context("the kernel has no modules")??;
        let version = version.file_name().to_string_lossy().into_owned();
        run(Command::new("depmod").arg("-b").arg(&unpacked).arg(&version))?;
        let kernel = match kind {
            Kernel::Process => unpacked.join("usr/bin/linux.uml"),
            Kernel::Machine => unpacked.join(format!("boot/vmlinuz-{version}")),
        };
        Ok(Self { kind, kernel, modules, version, packed })
    }

    /// The command that runs this program there.
    pub(crate) fn command(&self, row: &str, only: &str) -> Result<Command> {
        let start = place().join("start");
        let program = std::env::current_exe()?;
        let command = format!("{} filesystems --inside {row} '{only}'", program.display());
        let text = START
            .replace("@MODULES@", &self.modules.display().to_string())
            .replace("@PACKED@", self.packed)
            .replace("@STRIDE@", STRIDE)
            .replace("@COMMAND@", &command);
        script(&start, &text)?;
        if self.kind == Kernel::Process {
            let init = place().join("init");
            script(&init, &PROCESS_INIT.replace("@START@", &start.display().to_string()))?;
            let mut process = Command::new(&self.kernel);
            process.args(["mem=3072M", "rootfstype=hostfs", "rootflags=/", "ro", "quiet"]);
            process.args(["con=null", "con0=null,fd:1"]).arg(format!("init={}", init.display()));
            return Ok(process);
        }
        let first = self.first_files(&start)?;
        let mut qemu = Command::new("qemu-system-x86_64");
        qemu.args(["-M", "q35", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2"]);
        qemu.args(["-m", "3072", "-nodefaults", "-no-reboot", "-nographic", "-serial", "stdio"]);
        qemu.arg("-kernel").arg(&self.kernel).arg("-initrd").arg(first);
        qemu.args(["-append", "console=ttyS0 quiet panic=-1 mitigations=off"]);
        let shared = "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap";
        qemu.args(["-virtfs", shared]);
        Ok(qemu)
    }

    /// The initial RAM disk.
    fn first_files(&self, start: &std::path::Path) -> Result<PathBuf> {
        let tree = place().join("first");
        _ = fs::remove_dir_all(&tree);
        for directory in ["bin", "modules", "proc", "sys", "dev", "host", "layer", "new"] {
            fs::create_dir_all(tree.join(directory))?;
        }
        let unpacked = place().join(self.kind.directory());
        fs::copy(unpacked.join("bin/busybox"), tree.join("bin/busybox"))?;
        let mut names = Vec::new();
        for module in FIRST_MODULES {
            let mut ask = Command::new("modprobe");
            ask.arg("-d").arg(&unpacked).args(["-S", &self.version, "--show-depends", module]);
            for line in output(&mut ask)?.lines() {
                let Some(path) = line.strip_prefix("insmod ") else { continue };
                let path = PathBuf::from(path.trim());
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                fs::copy(&path, tree.join("modules").join(&name))?;
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        fs::write(tree.join("modules/list"), names.join("\n"))?;
        script(&tree.join("init"), &INIT.replace("@START@", &start.display().to_string()))?;
        let packed = place().join("first.cpio");
        let mut pack = Command::new("sh");
        pack.args(["-c", "find . | cpio -o -H newc --quiet > ../first.cpio"]).current_dir(&tree);
        run(&mut pack)?;
        Ok(packed)
    }
}

impl Kernel {
    /// The directory with its files.
    fn directory(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Machine => "kernel",
        }
    }
}

/// Writes a script, with the paths of this machine.
fn script(to: &std::path::Path, text: &str) -> Result<()> {
    let text = text.replace("@HOME@", &crate::release::home().display().to_string());
    fs::write(to, text.replace("@PLACE@", &place().display().to_string()))?;
    Ok(fs::set_permissions(to, fs::Permissions::from_mode(0o755))?)
}

/// Downloads packages and unpacks them, once.
fn unpack(to: &std::path::Path, packages: &[&str]) -> Result<()> {
    if to.join("complete").exists() {
        return Ok(());
    }
    download(to, packages)?;
    for package in fs::read_dir(to)?.map_while(Result::ok) {
        if package.path().extension().is_some_and(|it| it == "deb") {
            run(Command::new("dpkg").arg("-x").arg(package.path()).arg(to))?;
        }
    }
    Ok(fs::write(to.join("complete"), "")?)
}

fn download(to: &std::path::Path, packages: &[&str]) -> Result<()> {
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

fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
