//! Lets system calls fail, so that tests can check the files afterwards.
//!
//! Only calls of the current thread are counted and fail.

use std::cell::RefCell;

use rustix::io::{Errno, Result};

/// The kind of failure.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// The call fails with this error number, and has no effect.
    Errno(i32),
    /// If the call writes, it writes only half of the bytes. Other calls are not affected.
    ShortWrite,
    /// The process ends before the call, as if it had been killed. Nothing is cleaned up.
    Exit,
}

/// Which calls fail.
#[derive(Clone, Copy, Debug)]
pub enum When {
    /// The n-th call from now on, counting from 1. Only this one fails.
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
    /// Records a call. Returns the action of another process just before it.
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
    /// The name of the n-th call, if there was one.
    pub fired: Option<&'static str>,
    /// Every call that was made, in order.
    pub calls: Vec<&'static str>,
}

/// The numbers of the calls at which a test lets a call fail or is killed. With `PINFOLD_TEST_STRIDE=N`, only every
/// N-th, for machines on which a process takes long to start.
pub fn each_call() -> impl Iterator<Item = u64> {
    (1..).step_by(stride())
}

/// How often a test tries a race. With `PINFOLD_TEST_STRIDE=N`, an N-th of the usual number.
pub fn rounds(usual: usize) -> usize {
    usual / stride()
}

fn stride() -> usize {
    let set = std::env::var("PINFOLD_TEST_STRIDE").ok().and_then(|stride| stride.parse().ok());
    set.unwrap_or(1).max(1)
}

/// Runs `code` and lets some of its system calls fail.
pub fn inject<T>(faults: &[(When, Fault)], code: impl FnOnce() -> T) -> Report<T> {
    run(Plan { faults: faults.to_vec(), ..Plan::default() }, code)
}

/// Combines [`inject`] and [`interleave`].
pub fn inject_while<T>(
    faults: &[(When, Fault)],
    meanwhile: Vec<Meanwhile>,
    code: impl FnOnce() -> T,
) -> Report<T> {
    run(Plan { meanwhile, faults: faults.to_vec(), ..Plan::default() }, code)
}

/// Runs `code`, with actions of other processes between its system calls.
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
