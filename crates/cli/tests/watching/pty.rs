//! `pinfold watch` on its own terminal.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, tcgetattr};

/// A test that waits for longer than this has failed.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// A program on a terminal, and its output.
pub(crate) struct Screen {
    ours: File,
    theirs: File,
    process: Child,
    /// Everything that was printed.
    pub(crate) seen: String,
    /// The length of the output up to the last awaited text.
    waited_for: usize,
}

impl Screen {
    /// Starts a program that is controlled by a new terminal.
    pub(crate) fn start(program: &Command) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap();
        let theirs = || {
            let path = Path::new(name.to_str().unwrap());
            File::options().read(true).write(true).open(path).unwrap()
        };
        let mut process = Command::new("setsid");
        process.arg("--ctty").arg(program.get_program()).args(program.get_args());
        process.env("TERM", "xterm").env_remove("NO_COLOR");
        for (name, value) in program.get_envs() {
            match value {
                Some(value) => process.env(name, value),
                None => process.env_remove(name),
            };
        }
        let process = process.stdin(theirs()).stdout(theirs()).stderr(theirs()).spawn().unwrap();
        let (ours, theirs) = (File::from(ours), theirs());
        Self { ours, theirs, process, seen: String::new(), waited_for: 0 }
    }

    /// Waits until a text is printed after the last awaited one.
    pub(crate) fn until(&mut self, text: &str) {
        let begin = Instant::now();
        loop {
            if let Some(at) = self.seen[self.waited_for..].find(text) {
                self.waited_for += at + text.len();
                return;
            }
            let left = MAX_WAIT.checked_sub(begin.elapsed());
            let left = left.unwrap_or_else(|| panic!("no `{text}` in:\n{}", self.seen));
            self.read(left);
        }
    }

    fn read(&mut self, max_wait: Duration) {
        let wait: Timespec = max_wait.try_into().unwrap();
        let mut ours = [PollFd::new(&self.ours, PollFlags::IN)];
        if poll(&mut ours, Some(&wait)).unwrap() > 0 {
            let mut buffer = [0; 65536];
            let read = self.ours.read(&mut buffer).unwrap();
            self.seen.push_str(&String::from_utf8_lossy(&buffer[..read]).replace("\r\n", "\n"));
        }
    }

    /// Waits until the user is asked for a key.
    pub(crate) fn asked(&mut self) {
        self.until("whole [d]iff");
        self.until(": \u{7}");
    }

    /// Types.
    pub(crate) fn keys(&mut self, keys: &str) {
        self.ours.write_all(keys.as_bytes()).unwrap();
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    /// Waits until the process is stopped, or not.
    pub(crate) fn wait_until_stopped(&self, stopped: bool) {
        let path = format!("/proc/{}/stat", self.process.id());
        loop {
            let stat = std::fs::read_to_string(&path).unwrap();
            let state = stat.rsplit(") ").next().unwrap().chars().next();
            if (state == Some('T')) == stopped {
                return;
            }
            std::thread::yield_now();
        }
    }

    /// Whether the terminal is in a shell's state: line by line, with echo.
    pub(crate) fn is_as_before(&self) -> bool {
        let modes = tcgetattr(&self.theirs).unwrap().local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }

    /// Waits until the program has ended. Returns its exit code, or the signal that ended it.
    pub(crate) fn ended(&mut self) -> Result<i32, i32> {
        let status: ExitStatus = self.process.wait().unwrap();
        while poll(&mut [PollFd::new(&self.ours, PollFlags::IN)], Some(&Timespec::default()))
            .unwrap()
            > 0
        {
            self.read(Duration::ZERO);
        }
        status.code().ok_or_else(|| status.signal().unwrap())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}
