//! Runs code on a thread that Landlock restricts to some directories, as it restricts a server.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::panic::resume_unwind;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use pinfold_sandbox::{FileAccess, FileRestriction, Scope, restrict_files};

/// Whether Landlock is on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Landlock {
    Off,
    On,
}

/// Both, where the kernel has Landlock.
pub(crate) fn off_and_on() -> Vec<Landlock> {
    let restrict = || restrict_files(&FileAccess::default(), Scope::Thread);
    match thread::spawn(restrict).join().unwrap() {
        FileRestriction::Enforced(_) => vec![Landlock::Off, Landlock::On],
        FileRestriction::Unavailable(reason) => {
            pinfold_testkit::skipped(&format!("NOT TRIED with Landlock: {reason}"));
            vec![Landlock::Off]
        }
    }
}

/// Runs code on a thread that can only use files below `roots`, if Landlock is on.
pub(crate) fn restricted<T: Send>(
    landlock: Landlock,
    roots: &[&Path],
    code: impl FnOnce() -> T + Send,
) -> T {
    let write = roots.iter().map(|root| root.to_path_buf()).collect();
    let access = FileAccess { write, ..FileAccess::default() };
    let run = || {
        if landlock == Landlock::On {
            let holds = restrict_files(&access, Scope::Thread);
            assert!(matches!(holds, FileRestriction::Enforced(_)), "{holds:?}");
        }
        code()
    };
    thread::scope(|scope| scope.spawn(run).join().unwrap_or_else(|panic| resume_unwind(panic)))
}

/// A thread without restrictions, which stands for another process.
pub(crate) struct OtherProcess(Sender<(Task, Sender<()>)>);

type Task = Box<dyn FnOnce() + Send>;

impl OtherProcess {
    pub(crate) fn start() -> Self {
        let (sender, receiver) = channel::<(Task, Sender<()>)>();
        thread::spawn(move || {
            for (task, done) in receiver {
                task();
                _ = done.send(());
            }
        });
        Self(sender)
    }

    /// Lets it run a task, and waits for its end.
    pub(crate) fn run(&self, task: impl FnOnce() + Send + 'static) {
        let (sender, done) = channel();
        self.0.send((Box::new(task), sender)).unwrap();
        done.recv().unwrap();
    }
}

impl Clone for OtherProcess {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}
