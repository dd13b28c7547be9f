//! System calls that fail on purpose, so that tests can see what is left behind.
//!
//! Only calls of the current thread are counted and failed.

use std::cell::RefCell;

use rustix::io::{Errno, Result};

/// The kind of failure.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// The call fails with this error number, before it does anything.
    Errno(i32),
    /// If the call writes, it writes only half of the bytes; any other call is left alone.
    ShortWrite,
    /// The process ends before the call, as if it had been killed: nothing is cleaned up.
    Exit,
}

/// The call that fails.
#[derive(Clone, Copy, Debug)]
pub enum When {
    /// The n-th call from now on, counting from 1, once.
    Nth(u64),
    /// Every call of this name.
    Every(&'static str),
    /// The n-th call of this name, counting from 1, and every later one.
    From(&'static str, usize),
}

/// An action of another process just before the n-th call of a name, counting from 1.
pub type Meanwhile = (&'static str, usize, Box<dyn FnOnce()>);

#[derive(Default)]
struct Plan {
    meanwhile: Vec<Meanwhile>,
    faults: Vec<(When, Fault)>,
    calls: Vec<&'static str>,
    fired: Option<&'static str>,
    shorten: bool,
}

impl Plan {
    /// Notes a call, and gives what another process does just before it.
    fn due(&mut self, name: &'static str) -> Option<Meanwhile> {
        self.calls.push(name);
        let times = self.calls.iter().filter(|call| **call == name).count();
        let due =
            self.meanwhile.iter().position(|(call, nth, _)| (*call, *nth) == (name, times))?;
        Some(self.meanwhile.swap_remove(due))
    }
}

thread_local! {
    static PLAN: RefCell<Option<Plan>> = const { RefCell::new(None) };
}

/// The outcome of an injected fault.
#[derive(Debug)]
pub struct Report<T> {
    /// The result of the code under test.
    pub result: T,
    /// The name of the n-th call, if it came to that.
    pub fired: Option<&'static str>,
    /// Every call that was made, in order.
    pub calls: Vec<&'static str>,
}

/// The calls to fail or to be killed at, one after the other: each, or with `PINFOLD_TEST_STRIDE=N` every N-th. That is
/// for machines on which a process takes long to start.
pub fn each_call() -> impl Iterator<Item = u64> {
    (1..).step_by(stride())
}

/// How often a test tries a race: as often as it usually does, or with `PINFOLD_TEST_STRIDE=N` an N-th of that.
pub fn rounds(usual: usize) -> usize {
    usual / stride()
}

fn stride() -> usize {
    let set = std::env::var("PINFOLD_TEST_STRIDE").ok().and_then(|stride| stride.parse().ok());
    set.unwrap_or(1).max(1)
}

/// Runs `code`, makes some of its system calls fail, and returns which calls were made.
pub fn inject<T>(faults: &[(When, Fault)], code: impl FnOnce() -> T) -> Report<T> {
    run(Plan { faults: faults.to_vec(), ..Plan::default() }, code)
}

/// As [`inject`] and [`interleave`] at once.
pub fn inject_while<T>(
    faults: &[(When, Fault)],
    meanwhile: Vec<Meanwhile>,
    code: impl FnOnce() -> T,
) -> Report<T> {
    run(Plan { meanwhile, faults: faults.to_vec(), ..Plan::default() }, code)
}

/// Runs `code` while others do things between its system calls.
pub fn interleave<T>(meanwhile: Vec<Meanwhile>, code: impl FnOnce() -> T) -> Report<T> {
    run(Plan { meanwhile, ..Plan::default() }, code)
}

fn run<T>(plan: Plan, code: impl FnOnce() -> T) -> Report<T> {
    PLAN.set(Some(plan));
    let result = code();
    let plan = PLAN.take().unwrap_or_default();
    Report { result, fired: plan.fired, calls: plan.calls }
}

pub(crate) fn check(name: &'static str) -> Result<()> {
    if let Some((_, _, others)) = PLAN.with_borrow_mut(|plan| plan.as_mut()?.due(name)) {
        others();
    }
    PLAN.with_borrow_mut(|plan| {
        let Some(plan) = plan else { return Ok(()) };
        let nth = plan.calls.len() as u64;
        let times = plan.calls.iter().filter(|call| **call == name).count();
        let is_due = |(when, _): &&(When, Fault)| match *when {
            When::Nth(wanted) => wanted == nth,
            When::Every(every) => every == name,
            When::From(from, first) => from == name && times >= first,
        };
        let due: Vec<_> = plan.faults.iter().filter(is_due).copied().collect();
        let once = due.iter().find(|(when, _)| matches!(when, When::Nth(_)));
        if once.is_some() {
            plan.fired = Some(name);
        }
        let Some(&(_, fault)) = once.or(due.first()) else { return Ok(()) };
        match fault {
            Fault::Errno(errno) => Err(Errno::from_raw_os_error(errno)),
            Fault::Exit => std::process::exit(9),
            Fault::ShortWrite => {
                plan.shorten = name == "write";
                Ok(())
            }
        }
    })
}

pub(crate) fn shortened(bytes: &[u8]) -> &[u8] {
    let shorten = PLAN.with_borrow_mut(|plan| {
        plan.as_mut().is_some_and(|plan| std::mem::take(&mut plan.shorten))
    });
    if shorten { &bytes[..bytes.len().div_ceil(2)] } else { bytes }
}
