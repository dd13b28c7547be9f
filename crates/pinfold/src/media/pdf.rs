//! The text of PDFs, read where a hostile one can do no harm.

use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use pinfold_confine::Deadline;
use pinfold_pdf::{Extracted, Failure, Wanted, extract};

/// How often it is looked whether anybody still waits.
const LOOK: Duration = Duration::from_millis(20);

/// A PDF is a program. Drawing one takes some stack, and one that nests its parts takes more.
const STACK: usize = 64 * 1024 * 1024;

/// Reads PDFs. What it is given comes from anybody.
pub trait PdfReader: std::fmt::Debug + Send + Sync {
    /// The text of some pages; in a word or two, what is wrong, if there is none.
    fn read(
        &self,
        content: Vec<u8>,
        wanted: Wanted,
        deadline: &Deadline,
    ) -> Result<Extracted, String>;
}

fn said(failure: Failure) -> String {
    match failure {
        Failure::Encrypted => "it is encrypted with a password".into(),
        Failure::Damaged => "it is damaged".into(),
    }
}

/// Reads PDFs on a thread of this process.
///
/// One that takes too long is given up, but its thread runs on until it is done, and nothing limits
/// the memory that it takes or stops it from ending the process by using up its stack. Programs that
/// read files of strangers should use [`InChild`].
#[derive(Debug, Default)]
pub struct InThread;

impl PdfReader for InThread {
    fn read(
        &self,
        content: Vec<u8>,
        wanted: Wanted,
        deadline: &Deadline,
    ) -> Result<Extracted, String> {
        let (send, receive) = mpsc::channel();
        let work = move || {
            // If nobody waits any more, nobody wants it.
            let _ = send.send(extract(content, wanted));
        };
        let thread = thread::Builder::new().name("pdf".into()).stack_size(STACK);
        thread.spawn(work).map_err(|error| format!("it could not be read: {error}"))?;
        match waited(&receive, deadline) {
            Waited::For(extracted) => extracted.map_err(said),
            // The thread has panicked.
            Waited::Gone => Err("it is damaged".into()),
            Waited::TooLong => Err(TOO_LONG.into()),
        }
    }
}

const TOO_LONG: &str = "it takes too long to read";

/// What came of waiting for somebody.
enum Waited<T> {
    For(T),
    /// It will never come.
    Gone,
    /// Nobody waits any more.
    TooLong,
}

fn waited<T>(receive: &mpsc::Receiver<T>, deadline: &Deadline) -> Waited<T> {
    loop {
        match receive.recv_timeout(LOOK) {
            Ok(value) => return Waited::For(value),
            Err(RecvTimeoutError::Disconnected) => return Waited::Gone,
            Err(RecvTimeoutError::Timeout) if deadline.has_passed() => return Waited::TooLong,
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// Reads each PDF in a process of its own, which is ended when it takes too long.
///
/// The process gets the PDF on its standard input and answers with [`answer`]; it should limit its own
/// memory, as `pinfold read-pdf` does.
#[derive(Clone, Debug)]
pub struct InChild {
    /// The program.
    pub program: PathBuf,
    /// Its arguments, before the three numbers of what is wanted.
    pub arguments: Vec<String>,
}

impl PdfReader for InChild {
    fn read(
        &self,
        content: Vec<u8>,
        wanted: Wanted,
        deadline: &Deadline,
    ) -> Result<Extracted, String> {
        let numbers =
            [wanted.first, wanted.last, wanted.most_bytes].map(|number| number.to_string());
        let child = Command::new(&self.program)
            .args(&self.arguments)
            .args(numbers)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let child =
            child.map_err(|error| format!("the process to read it did not start: {error}"))?;
        let mut child = Ended(child);
        let (stdin, stdout) = (child.0.stdin.take(), child.0.stdout.take());
        let (Some(mut stdin), Some(mut stdout)) = (stdin, stdout) else {
            return Err("the process to read it cannot be talked to".into());
        };
        let (send, receive) = mpsc::channel();
        thread::scope(|scope| {
            // Both end with the child, at the latest: it is killed when this returns.
            scope.spawn(move || {
                let _ = stdin.write_all(&content);
            });
            scope.spawn(move || {
                let mut answer = Vec::new();
                let _ = stdout.read_to_end(&mut answer);
                let _ = send.send(answer);
            });
            let answer = waited(&receive, deadline);
            child.end();
            let Waited::For(answer) = answer else { return Err(TOO_LONG.into()) };
            match serde_json::from_slice::<Result<Extracted, Failure>>(&answer) {
                Ok(extracted) => extracted.map_err(said),
                Err(_) => Err("it is damaged, or takes too much memory to read".into()),
            }
        })
    }
}

/// What a process that reads a PDF writes to its standard output.
pub fn answer(content: Vec<u8>, wanted: Wanted) -> Vec<u8> {
    // The process may have less stack than a thread can be given.
    let work = thread::Builder::new().stack_size(STACK).spawn(move || extract(content, wanted));
    let extracted = work.ok().and_then(|work| work.join().ok());
    extracted.and_then(|extracted| serde_json::to_vec(&extracted).ok()).unwrap_or_default()
}

/// A process that does not outlive whoever waits for it.
struct Ended(Child);

impl Ended {
    fn end(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        self.end();
    }
}
