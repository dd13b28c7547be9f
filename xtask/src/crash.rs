//! `cargo xtask crash`: checks the disk after a loss of power.
//!
//! Calls of the command line change files on ext4, XFS and Btrfs, on a disk that records writes and flushes. Then the
//! command makes the disks that a loss of power after each of the writes could leave: they have all writes before the
//! last flush, and the first or some of those after it. Each such disk is mounted and checked. A file has its old or
//! its new content, a set of changes is made or not, the journal can be read, and the newest change can be undone.

mod recorder;
mod work;

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::packages::debian_program;
use crate::release::home;
use recorder::{Event, LoopDevice, Recorder};
use work::{Durability, Work};

/// A file system that is tried.
struct FileSystem {
    name: &'static str,
    /// The command that makes it.
    make: &'static [&'static str],
    /// The package of that command.
    package: &'static str,
    /// Whether a change can only be on the disk if all changes before it are. A flush on Btrfs writes a log of one file,
    /// without the changes of others.
    keeps_order: bool,
}

const FILE_SYSTEMS: [FileSystem; 3] = [
    FileSystem {
        name: "ext4",
        make: &["mkfs.ext4", "-q", "-E", "nodiscard"],
        package: "e2fsprogs",
        keeps_order: true,
    },
    FileSystem {
        name: "xfs",
        make: &["mkfs.xfs", "-q", "-K"],
        package: "xfsprogs",
        keeps_order: true,
    },
    FileSystem {
        name: "btrfs",
        make: &["mkfs.btrfs", "-q", "-K"],
        package: "btrfs-progs",
        keeps_order: false,
    },
];

/// The options of each mount. A disk does not record what is discarded.
const OPTIONS: &str = "nodiscard";

/// The smallest disk for `mkfs.xfs` has 300 MB.
const DISK_BYTES: u64 = 320 << 20;

/// Runs everything in a mount namespace, as root, or `--inside` one file system.
pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    if let ["--inside", name] = arguments {
        return inside(name);
    }
    if !arguments.is_empty() {
        bail!("`cargo xtask crash` takes no arguments");
    }
    crate::run(&["build", "--package", "pinfold-cli"], &[])?;
    let mut failed = false;
    for FileSystem { name, make, package, .. } in FILE_SYSTEMS {
        debian_program(&make[..1], package)
            .with_context(|| format!("there is no `{}`; install `{package}`", make[0]))?;
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private"]).arg(std::env::current_exe()?);
        failed |= !command.args(["crash", "--inside", name]).status()?.success();
    }
    if failed {
        bail!("a disk was not as it has to be");
    }
    Ok(())
}

fn inside(name: &str) -> Result<()> {
    let known = FILE_SYSTEMS.iter().find(|it| it.name == name);
    let file_system = known.context("no such file system")?;
    // In its own namespace, this process has `/mnt` for itself.
    must(Command::new("mount").args(["-t", "tmpfs", "tmpfs", "/mnt"]))?;
    for directory in ["/mnt/at", "/mnt/fuse"] {
        fs::create_dir(directory)?;
    }
    let mut wrong = 0;
    for durability in Durability::ALL {
        let recording = record(file_system, durability)?;
        wrong += recording.replay(file_system.name)?;
    }
    if wrong > 0 { bail!("{wrong} disks were not as they have to be") } else { Ok(()) }
}

/// The calls, and the recorded events of the disk.
struct Recording {
    before: Vec<u8>,
    events: Vec<Event>,
    work: Work,
}

fn record(file_system: &FileSystem, durability: Durability) -> Result<Recording> {
    let fresh = Path::new("/mnt/fresh");
    fs::File::create(fresh)?.set_len(DISK_BYTES)?;
    let make = file_system.make;
    must(Command::new(make[0]).args(&make[1..]).arg(fresh).stdout(Stdio::null()))?;
    let recorder = Recorder::mount(Path::new("/mnt/fuse"), fs::read(fresh)?)?;
    fs::remove_file(fresh)?;
    let device = LoopDevice::on(Path::new("/mnt/fuse/disk"))?;
    let at = Path::new("/mnt/at");
    must(Command::new("mount").args(["-o", OPTIONS, &device.0]).arg(at))?;
    let mut work = Work::prepare(at, &program(), durability, file_system.keeps_order)?;
    must(&mut Command::new("sync"))?;
    let before = recorder.content();
    recorder.start();
    work.perform(|| recorder.answered())?;
    // Data that is still in memory is written at the end, too.
    must(Command::new("umount").arg(at))?;
    let events = recorder.take();
    drop(device);
    must(Command::new("umount").args(["--lazy", "/mnt/fuse"]))?;
    Ok(Recording { before, events, work })
}

/// Random numbers that are the same in every run.
struct Random(u64);

impl Random {
    fn yes(&mut self) -> bool {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.0 >> 63 == 1
    }
}

impl Recording {
    /// Checks every disk that a loss of power could leave, and returns how many are wrong.
    fn replay(&self, name: &str) -> Result<u64> {
        let base = PathBuf::from("/mnt/base");
        let disk = fs::File::create(&base)?;
        write_sparse(&disk, &self.before)?;
        let (mut answered, mut looked, mut random) = (0, 0_u64, Random(1));
        let mut wrong: Vec<(usize, String)> = Vec::new();
        let mut unflushed: Vec<(u64, &[u8])> = Vec::new();
        for (number, event) in self.events.iter().enumerate() {
            let mut extra = Vec::new();
            match event {
                Event::Write { offset, data } => unflushed.push((*offset, data)),
                Event::Flush => {
                    // Some of the writes, not in their order.
                    extra = unflushed.iter().copied().filter(|_| random.yes()).collect();
                }
                Event::Answered => answered += 1,
            }
            if matches!(event, Event::Flush) {
                let problem = self.look(&base, &extra, answered)?;
                wrong.extend(problem.map(|it| (number, format!("some writes: {it}"))));
                looked += 1;
                for (offset, data) in unflushed.drain(..) {
                    disk.write_all_at(data, offset)?;
                }
            }
            let problem = self.look(&base, &unflushed, answered)?;
            wrong.extend(problem.map(|it| (number, it)));
            looked += 1;
        }
        let how = self.work.durability;
        println!(
            "{name}, durability = \"{}\": {} calls, {} writes and flushes, {looked} disks, {} not as promised",
            how.name(),
            self.work.calls(),
            self.events.len() - self.work.calls(),
            wrong.len()
        );
        for (number, problem) in wrong.iter().take(8) {
            println!("  after event {number}: {problem}");
        }
        // Without a flush, nothing is promised for a loss of power.
        Ok(if how == Durability::None { 0 } else { wrong.len() as u64 })
    }

    /// Mounts a copy of the disk with some more writes, and checks it.
    fn look(
        &self,
        base: &Path,
        writes: &[(u64, &[u8])],
        answered: usize,
    ) -> Result<Option<String>> {
        let (copy, at) = (Path::new("/mnt/copy"), Path::new("/mnt/at"));
        must(Command::new("cp").arg("--sparse=always").args([base, copy]))?;
        let disk = fs::File::options().write(true).open(copy)?;
        for (offset, data) in writes {
            disk.write_all_at(data, *offset)?;
        }
        drop(disk);
        let options = format!("loop,{OPTIONS}");
        let mounted = Command::new("mount").args(["-o", &options]).args([copy, at]).output()?;
        if !mounted.status.success() {
            let said = String::from_utf8_lossy(&mounted.stderr);
            return Ok(Some(format!("it cannot be mounted: {}", said.trim())));
        }
        let problem = self.work.check(answered);
        must(Command::new("umount").arg(at))?;
        problem.map(Result::err)
    }
}

/// Writes the blocks that are not empty.
fn write_sparse(file: &fs::File, content: &[u8]) -> Result<()> {
    file.set_len(content.len() as u64)?;
    for (number, block) in content.chunks(4096).enumerate() {
        if block.iter().any(|byte| *byte != 0) {
            file.write_all_at(block, number as u64 * 4096)?;
        }
    }
    Ok(())
}

fn program() -> PathBuf {
    home().join("target/debug/pinfold")
}

fn must(command: &mut Command) -> Result<()> {
    let status = command.stdin(Stdio::null()).status();
    let status = status.with_context(|| format!("cannot run {command:?}"))?;
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    Ok(())
}
