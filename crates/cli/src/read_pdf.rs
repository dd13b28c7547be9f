//! `pinfold read-pdf`, which only Pinfold itself calls.

use std::io::{Read as _, Write as _};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Args;
use pinfold::media::{Wanted, answer};
use rustix::process::{
    Resource, Rlimit, Signal, getrlimit, set_parent_process_death_signal, setrlimit,
};

/// How much memory a PDF may take. The largest of some hundred real ones took 150 MB.
const MEMORY: u64 = 1024 * 1024 * 1024;

/// How many seconds it may compute, whatever the deadline is.
const PROCESSOR: u64 = 300;

/// Read a PDF on standard input and print its text as JSON
#[derive(Args)]
pub(crate) struct ReadPdf {
    /// The first page, counting from 1
    first: usize,
    /// The last page
    last: usize,
    /// How many bytes of text are enough
    most_bytes: usize,
}

impl ReadPdf {
    pub(crate) fn run(self) -> Result<ExitCode> {
        // Whoever asked is gone: nobody wants the answer.
        set_parent_process_death_signal(Some(Signal::KILL)).context("cannot follow the parent")?;
        lower(Resource::Cpu, PROCESSOR).context("cannot limit the time")?;
        lower(Resource::As, MEMORY).context("cannot limit the memory")?;
        let mut content = Vec::new();
        std::io::stdin().read_to_end(&mut content).context("cannot read standard input")?;
        let wanted = Wanted { first: self.first, last: self.last, most_bytes: self.most_bytes };
        let answer = answer(content, wanted);
        std::io::stdout().write_all(&answer).context("cannot write to standard output")?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Limits what this process may use, where it may not use less already.
fn lower(what: Resource, most: u64) -> rustix::io::Result<()> {
    let Rlimit { current, maximum } = getrlimit(what);
    let least = [current, maximum].into_iter().flatten().fold(most, u64::min);
    setrlimit(what, Rlimit { current: Some(least), maximum })
}
