//! The user's terminal: single keys or a line of text, and signals.
//!
//! The original state of the terminal is restored at the end of the program, whatever ends it, except SIGKILL.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use pinfold_confine::terminal;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::getpgrp;
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr,
    tcgetpgrp, tcgetwinsize, tcsetattr,
};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
use signal_hook::low_level::{emulate_default_handler, pipe};

/// The user's terminal.
#[derive(Debug)]
pub(super) struct Terminal {
    file: File,
    /// The original state of the terminal.
    before: Termios,
    mode: Mode,
    /// Readable while signals are pending.
    signals: Vec<(i32, UnixStream)>,
    /// Readable after [`Waker::wake`] was called.
    woken: UnixStream,
    waker: Waker,
}

/// How the terminal passes on the user's input.
#[derive(Clone, Copy, Debug)]
pub(super) enum Mode {
    /// Each key at once, without echo.
    Keys,
    /// Whole lines, which the user can edit, with echo.
    Line,
}

/// An event from the terminal.
#[derive(Debug)]
pub(super) enum Input {
    /// Input of the user: one key, several at once, or a line with its line ending.
    Typed(Vec<u8>),
    /// The user has ended the input, or the terminal was closed.
    End,
    /// The user suspends the program.
    Suspend,
    /// The program goes on after it was stopped.
    Continued,
    /// A signal that ends the program.
    Quit(i32),
    /// Nothing: the time is up, or another thread has called [`Waker::wake`].
    Nothing,
}

/// Wakes a thread that waits for input.
#[derive(Clone, Debug)]
pub(super) struct Waker(Arc<UnixStream>);

impl Waker {
    pub(super) fn wake(&self) {
        // If the buffer is full, the thread wakes anyway.
        _ = (&*self.0).write(&[0]);
    }
}

impl Terminal {
    /// Opens the user's terminal for keys: standard input, or the controlling terminal of this process.
    pub(super) fn open() -> io::Result<Self> {
        let input = io::stdin();
        if input.is_terminal() {
            return Self::of(input.as_fd().try_clone_to_owned()?.into());
        }
        Self::of(terminal()?)
    }

    fn of(file: File) -> io::Result<Self> {
        let before = tcgetattr(&file)?;
        let mut signals = Vec::new();
        for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT] {
            let (read, write) = UnixStream::pair()?;
            pipe::register(signal, write)?;
            read.set_nonblocking(true)?;
            signals.push((signal, read));
        }
        let (woken, waker) = UnixStream::pair()?;
        woken.set_nonblocking(true)?;
        waker.set_nonblocking(true)?;
        let waker = Waker(Arc::new(waker));
        let terminal = Self { file, before, mode: Mode::Keys, signals, woken, waker };
        terminal.apply()?;
        Ok(terminal)
    }

    pub(super) fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Changes how the terminal passes on the user's input, and discards pending input.
    pub(super) fn set_mode(&mut self, mode: Mode) -> io::Result<()> {
        self.mode = mode;
        self.apply()
    }

    fn apply(&self) -> io::Result<()> {
        let mut state = self.before.clone();
        let by_line = LocalModes::ICANON | LocalModes::ECHO;
        state.local_modes.insert(LocalModes::ISIG);
        match self.mode {
            Mode::Keys => {
                state.local_modes.remove(by_line);
                state.special_codes[SpecialCodeIndex::VMIN] = 1;
                state.special_codes[SpecialCodeIndex::VTIME] = 0;
            }
            Mode::Line => state.local_modes.insert(by_line),
        }
        Ok(tcsetattr(&self.file, OptionalActions::Flush, &state)?)
    }

    /// Discards pending input.
    pub(super) fn discard_input(&self) -> io::Result<()> {
        Ok(tcflush(&self.file, QueueSelector::IFlush)?)
    }

    /// How many columns the terminal has.
    pub(super) fn width(&self) -> usize {
        let size = tcgetwinsize(&self.file).map_or(0, |size| size.ws_col);
        if size == 0 { 80 } else { size.into() }
    }

    /// Waits for input for at most this time.
    pub(super) fn wait(&mut self, max_wait: Option<Duration>) -> io::Result<Input> {
        let mut files =
            vec![PollFd::new(&self.file, PollFlags::IN), PollFd::new(&self.woken, PollFlags::IN)];
        files.extend(self.signals.iter().map(|(_, read)| PollFd::new(read, PollFlags::IN)));
        let max_wait = max_wait.and_then(|wait| wait.try_into().ok());
        match poll(&mut files, max_wait.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let typed = !files[0].revents().is_empty();
        while (&self.woken).read(&mut [0; 64]).is_ok_and(|read| read > 0) {}
        for (signal, read) in &self.signals {
            let mut caught = false;
            while (&*read).read(&mut [0; 64]).is_ok_and(|read| read > 0) {
                caught = true;
            }
            if caught {
                return Ok(match *signal {
                    SIGTSTP => Input::Suspend,
                    SIGCONT => Input::Continued,
                    other => Input::Quit(other),
                });
            }
        }
        if !typed {
            return Ok(Input::Nothing);
        }
        let mut buffer = vec![0; 4096];
        match (&self.file).read(&mut buffer) {
            Ok(0) => Ok(Input::End),
            Ok(read) => {
                buffer.truncate(read);
                Ok(Input::Typed(buffer))
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(Input::Nothing),
            // The other end of the terminal is closed.
            Err(_) => Ok(Input::End),
        }
    }

    /// Restores the terminal, and stops the process until the user continues it ([`Input::Continued`]).
    pub(super) fn suspend(&self) -> io::Result<()> {
        self.restore();
        emulate_default_handler(SIGTSTP)
    }

    /// Sets the terminal up again after the process was stopped.
    pub(super) fn resume(&self) -> io::Result<()> {
        self.apply()
    }

    /// Restores the terminal, and ends the process by the signal.
    pub(super) fn end_by(self, signal: i32) -> io::Result<()> {
        drop(self);
        emulate_default_handler(signal)
    }

    fn restore(&self) {
        // If this process was stopped and continued in the background, the shell has the terminal. Setting it up
        // would stop the process again.
        if tcgetpgrp(&self.file).is_ok_and(|foreground| foreground != getpgrp()) {
            return;
        }
        _ = tcsetattr(&self.file, OptionalActions::Now, &self.before);
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.restore();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
    #![allow(clippy::disallowed_methods, reason = "a test opens a terminal of its own")]

    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    use super::*;

    #[test]
    fn a_panic_leaves_the_terminal_as_it_was() {
        let other_end = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&other_end).unwrap();
        unlockpt(&other_end).unwrap();
        let name = ptsname(&other_end, Vec::new()).unwrap();
        let open = || File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let file = open();
        let modes = || tcgetattr(&file).unwrap().local_modes;
        let before = modes();
        let panicked = std::panic::catch_unwind(|| {
            let _terminal = Terminal::of(open()).unwrap();
            let changed = modes();
            std::panic::panic_any(changed);
        });
        let changed = *panicked.unwrap_err().downcast::<LocalModes>().unwrap();
        assert!(before.contains(LocalModes::ICANON) && !changed.contains(LocalModes::ICANON));
        assert_eq!(modes(), before);
    }
}
