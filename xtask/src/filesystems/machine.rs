//! A virtual machine with Debian's kernel, for file systems that this machine's kernel does not have.
//!
//! It sees this machine's files, and keeps its changes of them in memory. QEMU interprets the code, which needs no
//! support of the processor but is about ten times as slow.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use super::place;
use crate::packages::debian_program;

/// The modules that the machine needs to see this machine's files.
const FIRST_MODULES: [&str; 4] = ["virtio_pci", "9pnet_virtio", "9p", "overlay"];

/// The first script, which starts in the machine's memory. It loads the modules, and mounts this machine's files as
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

/// The second script: puts the modules where programs look for them, runs the command, and powers off.
const START: &str = "#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root PINFOLD_TEST_STRIDE=@STRIDE@
cd @HOME@
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

/// The value of `PINFOLD_TEST_STRIDE` for the tests in the machine.
const STRIDE: &str = "16";

pub(crate) struct Machine {
    kernel: PathBuf,
    modules: PathBuf,
    version: String,
    packed: &'static str,
}

impl Machine {
    /// Downloads the kernel and the machine's packages.
    pub(crate) fn set_up(packages: &[&str]) -> Result<Self> {
        let qemu = debian_program(&["qemu-system-x86_64"], "qemu-system-x86");
        qemu.context("this kernel does not have it, and there is no `qemu-system-x86_64`")?;
        debian_program(&["cpio"], "cpio").context("there is no `cpio`")?;
        debian_program(&["modprobe"], "kmod").context("there is no `modprobe`")?;
        let unpacked = place().join("kernel");
        if !unpacked.join("complete").exists() {
            let depends = output(Command::new("apt-cache").args(["depends", "linux-image-amd64"]))?;
            let image = depends.split_whitespace().find(|word| word.starts_with("linux-image-6"));
            let image = image.context("Debian has no kernel")?.to_owned();
            download(&unpacked, &[&image, "busybox-static"])?;
            for package in fs::read_dir(&unpacked)?.map_while(Result::ok) {
                if package.path().extension().is_some_and(|it| it == "deb") {
                    run(Command::new("dpkg").arg("-x").arg(package.path()).arg(&unpacked))?;
                }
            }
            fs::write(unpacked.join("complete"), "")?;
        }
        let packed = if packages.is_empty() { "none" } else { "packages" };
        if !packages.is_empty() && !place().join(packed).join("complete").exists() {
            download(&place().join(packed), packages)?;
            fs::write(place().join(packed).join("complete"), "")?;
        }
        let modules = unpacked.join("lib/modules");
        let version = fs::read_dir(&modules)?.next().context("the kernel has no modules")??;
        let version = version.file_name().to_string_lossy().into_owned();
        run(Command::new("depmod").arg("-b").arg(&unpacked).arg(&version))?;
        let kernel = unpacked.join(format!("boot/vmlinuz-{version}"));
        Ok(Self { kernel, modules, version, packed })
    }

    /// The command that runs this program in the machine.
    pub(crate) fn command(&self, row: &str, only: &str) -> Result<Command> {
        let start = place().join("start");
        let program = std::env::current_exe()?;
        let command = format!("{} filesystems --inside {row} '{only}'", program.display());
        let text = START
            .replace("@HOME@", &crate::release::home().display().to_string())
            .replace("@MODULES@", &self.modules.display().to_string())
            .replace("@PLACE@", &place().display().to_string())
            .replace("@PACKED@", self.packed)
            .replace("@STRIDE@", STRIDE)
            .replace("@COMMAND@", &command);
        fs::write(&start, text)?;
        fs::set_permissions(&start, fs::Permissions::from_mode(0o755))?;
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
        let unpacked = place().join("kernel");
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
        let home = crate::release::home().display().to_string();
        let init = INIT.replace("@START@", &start.display().to_string()).replace("@HOME@", &home);
        fs::write(tree.join("init"), init)?;
        fs::set_permissions(tree.join("init"), fs::Permissions::from_mode(0o755))?;
        let packed = place().join("first.cpio");
        let mut pack = Command::new("sh");
        pack.args(["-c", "find . | cpio -o -H newc --quiet > ../first.cpio"]).current_dir(&tree);
        run(&mut pack)?;
        Ok(packed)
    }
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
