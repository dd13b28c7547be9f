//! Reads the text of PDFs, so that a hostile PDF does no harm.
//!
//! All sessions of a process together read at most [`MAX_PDFS_AT_ONCE`] documents with [`MAX_PDF_BYTES_AT_ONCE`]
//! bytes at a time, whichever reader they use. Other calls wait for their turn until their deadline.

use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use pinfold_confine::{Deadline, File};
#[cfg(feature = "pdf")]
use pinfold_pdf::{Budget, extract};
use pinfold_pdf::{ExtractError, Extracted, PdfRequest};

#[cfg(feature = "pdf")]
use crate::limits::MAX_PDF_BYTES;
use crate::limits::{MAX_PDF_BYTES_AT_ONCE, MAX_PDFS_AT_ONCE};
use crate::memory_budget::MemoryBudget;

/// How often a waiting call checks its deadline.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The stack of a thread that reads a PDF. Drawing recurses if a document has nested parts.
#[cfg(feature = "pdf")]
pub const PDF_STACK_BYTES: usize = 64 * 1024 * 1024;

/// The maximum size of a child process's answer: the text of the largest result that a dialect allows, as JSON.
const MAX_ANSWER_BYTES: u64 = 256 * 1024 * 1024;

/// Reads PDFs, which may be hostile.
pub trait PdfReader: std::fmt::Debug + Send + Sync {
    /// Returns the text of some pages, or an error message.
    fn read(
        &self,
        file: File,
        request: PdfRequest,
        deadline: &Deadline,
    ) -> Result<Extracted, String>;
}

fn message(error: ExtractError) -> String {
    match error {
        ExtractError::Encrypted => "it is encrypted with a password".into(),
        ExtractError::Damaged => "it is damaged".into(),
        ExtractError::TooComplex(page) => format!(
            "page {page} is too complex: what it decompresses to or draws exceeds the limit for a page"
        ),
        ExtractError::Interrupted => TIMED_OUT.into(),
    }
}

const TIMED_OUT: &str = "it takes too long to read";

/// The documents that this process is reading.
static READING: MemoryBudget = MemoryBudget::new(MAX_PDFS_AT_ONCE, MAX_PDF_BYTES_AT_ONCE);

/// Reads PDFs on a thread of this process.
///
/// The thread stops soon after the deadline. Nothing limits the memory that a hostile document takes, and a document
/// that overflows the stack ends the process. Programs that read untrusted files should use [`ProcessPdfReader`].
#[cfg(feature = "pdf")]
#[derive(Debug, Default)]
pub struct ThreadPdfReader;

#[cfg(feature = "pdf")]
impl PdfReader for ThreadPdfReader {
    fn read(
        &self,
        file: File,
        request: PdfRequest,
        deadline: &Deadline,
    ) -> Result<Extracted, String> {
        let permit = READING.reserve(file.meta().len, deadline).ok_or(TIMED_OUT)?;
        let (send, receive) = mpsc::channel();
        let thread_deadline = deadline.clone();
        let work = move || {
            // Held until the thread ends, even if the call has ended.
            let _permit = permit;
            let extracted = read_content(file).map(|content| {
                extract(content, request, Budget::default(), &|| !thread_deadline.has_passed())
                    .map_err(message)
            });
            // Fails if the caller has stopped waiting.
            let _ = send.send(extracted.unwrap_or_else(|error| Err(cannot_read(&error))));
        };
        let thread = thread::Builder::new().name("pdf".into()).stack_size(PDF_STACK_BYTES);
        thread.spawn(work).map_err(|error| cannot_read(&error))?;
        match wait(&receive, deadline) {
            WaitOutcome::Received(extracted) => extracted,
            // The thread has panicked.
            WaitOutcome::Disconnected => Err(message(ExtractError::Damaged)),
            WaitOutcome::TimedOut => Err(TIMED_OUT.into()),
        }
    }
}

/// Refuses every PDF.
#[cfg(not(feature = "pdf"))]
#[derive(Debug)]
pub(crate) struct NoPdfReader;

#[cfg(not(feature = "pdf"))]
impl PdfReader for NoPdfReader {
    fn read(&self, _: File, _: PdfRequest, _: &Deadline) -> Result<Extracted, String> {
        Err("it is a PDF, and this build of Pinfold does not read these".into())
    }
}

fn cannot_read(error: &std::io::Error) -> String {
    format!("it could not be read: {error}")
}

#[cfg(feature = "pdf")]
fn read_content(mut file: File) -> std::io::Result<Vec<u8>> {
    file.rewind();
    let mut content = Vec::with_capacity(usize::try_from(file.meta().len).unwrap_or(0) + 1);
    file.take(MAX_PDF_BYTES).read_to_end(&mut content)?;
    Ok(content)
}

enum WaitOutcome<T> {
    Received(T),
    Disconnected,
    TimedOut,
}

fn wait<T>(receive: &mpsc::Receiver<T>, deadline: &Deadline) -> WaitOutcome<T> {
    loop {
        match receive.recv_timeout(POLL_INTERVAL) {
            Ok(value) => return WaitOutcome::Received(value),
            Err(RecvTimeoutError::Disconnected) => return WaitOutcome::Disconnected,
            Err(RecvTimeoutError::Timeout) if deadline.has_passed() => {
                return WaitOutcome::TimedOut;
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// Reads each PDF in a child process, which is killed at the deadline.
///
/// The child gets the open file as its standard input, so this process does not read it, and answers with
/// [`extract_to_json`]. The child should restrict itself, as `pinfold read-pdf` does.
#[derive(Clone, Debug)]
pub struct ProcessPdfReader {
    /// The program.
    pub program: PathBuf,
    /// Its arguments, before the three numbers of the request.
    pub arguments: Vec<String>,
}

impl PdfReader for ProcessPdfReader {
    fn read(
        &self,
        file: File,
        request: PdfRequest,
        deadline: &Deadline,
    ) -> Result<Extracted, String> {
        let _permit = READING.reserve(file.meta().len, deadline).ok_or(TIMED_OUT)?;
        let numbers =
            [request.first, request.last, request.max_bytes].map(|number| number.to_string());
        let child = Command::new(&self.program)
            .arg0("pinfold")
            .args(&self.arguments)
            .args(numbers)
            .env_clear()
            .stdin(Stdio::from(OwnedFd::from(file)))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let child =
            child.map_err(|error| format!("the process that reads PDFs did not start: {error}"))?;
        let mut child = KillOnDrop(child);
        let Some(stdout) = child.0.stdout.take() else {
            return Err("the process that reads PDFs has no output".into());
        };
        let (send, receive) = mpsc::channel();
        thread::scope(|scope| {
            let reader = thread::Builder::new().name("pdf answer".into());
            // This thread ends with the child, which is killed below.
            let reader = reader.spawn_scoped(scope, move || {
                let mut answer = Vec::new();
                let _ = stdout.take(MAX_ANSWER_BYTES).read_to_end(&mut answer);
                let _ = send.send(answer);
            });
            let answer = wait(&receive, deadline);
            child.kill();
            reader.map_err(|error| cannot_read(&error))?;
            let WaitOutcome::Received(answer) = answer else { return Err(TIMED_OUT.into()) };
            match serde_json::from_slice::<Result<Extracted, ExtractError>>(&answer) {
                Ok(extracted) => extracted.map_err(message),
                Err(_) => Err("it is damaged, or takes too much memory to read".into()),
            }
        })
    }
}

/// Extracts text as [`ProcessPdfReader`] expects it on its child's standard output.
///
/// The calling thread should have a stack of [`PDF_STACK_BYTES`].
#[cfg(feature = "pdf")]
pub fn extract_to_json(content: Vec<u8>, request: PdfRequest) -> Vec<u8> {
    let extracted = extract(content, request, Budget::default(), &|| true);
    serde_json::to_vec(&extracted).unwrap_or_default()
}

/// A child process that is killed when this is dropped.
struct KillOnDrop(Child);

impl KillOnDrop {
    fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        self.kill();
    }
}
