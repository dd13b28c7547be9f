//! `pinfold read-pdf`: the child process in which Pinfold reads one PDF.
//!
//! It restricts itself before it reads the first byte.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;

use anyhow::{Context as _, Result, anyhow};
use clap::Args;
use pinfold::media::{PDF_STACK_BYTES, PdfRequest, ProcessPdfReader, extract_to_json};
use pinfold_sandbox::{
    FileAccess, Scope, deny_system_calls, end_with_parent, limit, limit_memory, restrict_files,
};
use rustix::process::Resource;

/// The maximum memory. The largest of some hundred real files took 150 MB.
const MAX_MEMORY_BYTES: u64 = 768 * 1024 * 1024;

/// Limits of the process.
const LIMITS: [(Resource, u64); 4] = [
    // Seconds of CPU time, whatever the call's deadline.
    (Resource::Cpu, 300),
    (Resource::Core, 0),
    // The answer goes to a pipe, which this does not limit.
    (Resource::Fsize, 0),
    (Resource::Nofile, 16),
];

/// Read a PDF on standard input and print its text as JSON
#[derive(Args)]
pub(crate) struct ReadPdf {
    /// The first page, counting from 1
    first: usize,
    /// The last page
    last: usize,
    /// Maximum number of bytes of text to print
    max_bytes: usize,
}

/// Reads PDFs in processes of this program.
pub(crate) fn reader() -> Option<ProcessPdfReader> {
    // The file of the running program, even if another version has been installed since.
    let own = Path::new("/proc/self/exe");
    let current = std::env::current_exe().ok()?;
    let program = if rustix::fs::access(own, rustix::fs::Access::EXEC_OK).is_ok() {
        PathBuf::from(own)
    } else {
        current
    };
    Some(ProcessPdfReader { program, arguments: vec!["read-pdf".into()] })
}

impl ReadPdf {
    pub(crate) fn run(self) -> Result<ExitCode> {
        // After the parent has ended, nobody reads the answer.
        end_with_parent().context("cannot follow the parent")?;
        limit_memory(MAX_MEMORY_BYTES).context("cannot limit the memory of the process")?;
        for (resource, max) in LIMITS {
            limit(resource, max).context("cannot limit what the process uses")?;
        }
        // Without rules, it may open nothing. If the kernel has no Landlock, seccomp forbids it, too. If it has
        // neither, only the limits remain.
        restrict_files(&FileAccess::default(), Scope::Process);
        let request = PdfRequest { first: self.first, last: self.last, max_bytes: self.max_bytes };
        let file = File::from(std::io::stdin().as_fd().try_clone_to_owned()?);
        let work = move || -> Result<Vec<u8>> {
            // The process starts no other thread after this one.
            _ = limit(Resource::Nproc, 0);
            _ = deny_system_calls(Scope::Process);
            let mut content = Vec::new();
            (&file).read_to_end(&mut content).context("cannot read standard input")?;
            Ok(extract_to_json(content, request))
        };
        // The main thread may have a smaller stack than a new thread can get.
        let work = thread::Builder::new().stack_size(PDF_STACK_BYTES).spawn(work)?;
        let answer = work.join().map_err(|_| anyhow!("the document cannot be read"))??;
        std::io::stdout().write_all(&answer).context("cannot write to standard output")?;
        Ok(ExitCode::SUCCESS)
    }
}
