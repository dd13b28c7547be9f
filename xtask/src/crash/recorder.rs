//! A disk that records writes and flushes.
//!
//! It is a file on a FUSE file system that this process serves, behind a loop device. Each write to the device is one
//! request, in the order of the device, and a flush is an `fsync`. The protocol is that of `linux/fuse.h`; only the
//! requests of a loop device are answered.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, bail};

/// An event of the disk.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    Write {
        offset: u64,
        data: Vec<u8>,
    },
    /// All writes before it are on the disk.
    Flush,
    /// A call was answered.
    Answered,
}

#[derive(Debug, Default)]
struct Disk {
    content: Vec<u8>,
    events: Vec<Event>,
    recording: bool,
}

/// The disk. It is served until this is dropped.
#[derive(Debug)]
pub(crate) struct Recorder {
    disk: Arc<Mutex<Disk>>,
}

const ROOT: u64 = 1;
const DISK: u64 = 2;

impl Recorder {
    /// Mounts a file system at `at` with one file, `disk`, that has this content.
    pub(crate) fn mount(at: &Path, content: Vec<u8>) -> Result<Self> {
        let fuse = File::options().read(true).write(true).open("/dev/fuse")?;
        let mut mount = Command::new("mount");
        // The handle is the program's standard input.
        mount.args(["-i", "-t", "fuse", "-o", "fd=0,rootmode=40000,user_id=0,group_id=0", "disk"]);
        let status = mount.arg(at).stdin(Stdio::from(fuse.try_clone()?)).status()?;
        if !status.success() {
            bail!("FUSE cannot be mounted");
        }
        let disk = Arc::new(Mutex::new(Disk { content, ..Disk::default() }));
        let served = Arc::clone(&disk);
        std::thread::spawn(move || serve(fuse, &served));
        Ok(Self { disk })
    }

    /// Begins to record.
    pub(crate) fn start(&self) {
        self.disk().recording = true;
    }

    pub(crate) fn answered(&self) {
        self.disk().events.push(Event::Answered);
    }

    /// The recorded events.
    pub(crate) fn take(&self) -> Vec<Event> {
        let mut disk = self.disk();
        disk.recording = false;
        std::mem::take(&mut disk.events)
    }

    /// The current content of the disk.
    pub(crate) fn content(&self) -> Vec<u8> {
        self.disk().content.clone()
    }

    fn disk(&self) -> std::sync::MutexGuard<'_, Disk> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers requests until the file system is unmounted.
fn serve(mut fuse: File, disk: &Mutex<Disk>) {
    let mut buffer = vec![0; 1 << 20];
    while let Ok(read) = fuse.read(&mut buffer) {
        let Some(request) = Request::parse(&buffer[..read]) else { continue };
        let answer = {
            let mut disk = disk.lock().unwrap_or_else(PoisonError::into_inner);
            answer(&request, &mut disk)
        };
        let Some(answer) = answer else { continue };
        let (error, body) = match answer {
            Ok(body) => (0, body),
            Err(errno) => (-errno, Vec::new()),
        };
        let mut reply = Vec::with_capacity(16 + body.len());
        reply.extend((16 + body.len() as u32).to_ne_bytes());
        reply.extend(error.to_ne_bytes());
        reply.extend(request.id.to_ne_bytes());
        reply.extend(body);
        _ = fuse.write_all(&reply);
    }
}

struct Request<'a> {
    operation: u32,
    id: u64,
    node: u64,
    body: &'a [u8],
}

impl<'a> Request<'a> {
    fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (header, body) = bytes.split_at_checked(40)?;
        Some(Self {
            operation: number(header, 4)?,
            id: long(header, 8)?,
            node: long(header, 16)?,
            body,
        })
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

const ENOENT: i32 = 2;
const EINVAL: i32 = 22;
const ENOSYS: i32 = 38;
const EOPNOTSUPP: i32 = 95;

/// The body of the answer, or an error. Returns `None` for requests without an answer.
fn answer(request: &Request<'_>, disk: &mut Disk) -> Option<Result<Vec<u8>, i32>> {
    let size = disk.content.len() as u64;
    Some(match request.operation {
        // Lookup.
        1 if request.body == b"disk\0" => {
            let mut entry = [DISK, 0, 0, 0, 0].map(u64::to_ne_bytes).concat();
            entry.extend(attributes(DISK, size));
            Ok(entry)
        }
        1 => Err(ENOENT),
        // Forget, interrupt, forget several: these have no answer.
        2 | 36 | 42 => return None,
        // Get and set attributes.
        3 | 4 => {
            let mut body = [0_u64, 0].map(u64::to_ne_bytes).concat();
            body.extend(attributes(request.node, size));
            Ok(body)
        }
        // Open: bypasses the page cache, so that each write is a request.
        14 => Ok([0_u64, 1].map(u64::to_ne_bytes).concat()),
        // Read.
        15 => read_range(request.body).map_or(Err(EINVAL), |(offset, len)| {
            let end = (offset + len).min(disk.content.len());
            Ok(disk.content.get(offset..end).unwrap_or_default().to_vec())
        }),
        // Write.
        16 => write(request.body, disk).ok_or(EINVAL),
        // Statfs.
        17 => Ok(vec![0; 80]),
        // Fsync.
        20 => {
            if disk.recording {
                disk.events.push(Event::Flush);
            }
            Ok(Vec::new())
        }
        // Release, flush, release of a directory.
        18 | 25 | 29 => Ok(Vec::new()),
        26 => Ok(init()),
        // Fallocate: discarding is not supported.
        43 => Err(EOPNOTSUPP),
        _ => Err(ENOSYS),
    })
}

/// Version 7.31, requests of at most 128 KiB.
fn init() -> Vec<u8> {
    let mut body = [7_u32, 31, 0, 0].map(u32::to_ne_bytes).concat();
    body.extend([16_u16, 12].map(u16::to_ne_bytes).concat());
    body.extend([128 << 10, 1_u32].map(u32::to_ne_bytes).concat());
    body.extend([32_u16, 0].map(u16::to_ne_bytes).concat());
    body.resize(64, 0);
    body
}

fn attributes(node: u64, size: u64) -> Vec<u8> {
    let (mode, size): (u32, u64) = if node == ROOT { (0o040_755, 0) } else { (0o100_600, size) };
    let mut body = [node, size, size / 512, 0, 0, 0].map(u64::to_ne_bytes).concat();
    let rest = [0, 0, 0, mode, 1, 0, 0, 0, 4096, 0];
    body.extend(rest.map(u32::to_ne_bytes).concat());
    body
}

fn read_range(body: &[u8]) -> Option<(usize, usize)> {
    Some((long(body, 8)? as usize, number(body, 16)? as usize))
}

fn write(body: &[u8], disk: &mut Disk) -> Option<Vec<u8>> {
    let (offset, len) = read_range(body)?;
    let data = body.get(40..40 + len)?;
    disk.content.get_mut(offset..offset + len)?.copy_from_slice(data);
    if disk.recording {
        disk.events.push(Event::Write { offset: offset as u64, data: data.to_vec() });
    }
    Some([len as u32, 0].map(u32::to_ne_bytes).concat())
}

/// A loop device on the file of a recorder. It is detached when this is dropped.
#[derive(Debug)]
pub(crate) struct LoopDevice(pub(crate) String);

impl LoopDevice {
    pub(crate) fn on(file: &Path) -> Result<Self> {
        let mut attach = Command::new("losetup");
        let output = attach.args(["--find", "--show"]).arg(file).output()?;
        if !output.status.success() {
            bail!("no loop device: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let name = String::from_utf8(output.stdout).context("a loop device has an odd name")?;
        Ok(Self(name.trim().to_owned()))
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        _ = Command::new("losetup").args(["--detach", &self.0]).status();
    }
}
