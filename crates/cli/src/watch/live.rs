//! The live view on a terminal: prints lines, asks the user one approval request at a time, and handles keys.
//!
//! While a request is open, the lines of other calls are held back, so that its diff stays in view. A key answers a
//! request only if it was typed after the request was shown.

use std::collections::VecDeque;
use std::io;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use anyhow::Result;
use pinfold_feed::{
    Answer, AnswerKind, Approval, Command, Event, RequestEnd, ServerId, Update, Watcher,
};

use super::MAX_WAITING;
use super::lines::{Color, Lines, cut, ending};
use super::screen::Screen;
use super::terminal::{Input, Mode, Terminal};
use crate::viewer::ViewerOptions;

/// How long a request is shown before its keys count. Earlier keys are discarded, since the user cannot have seen the
/// request yet, especially over a slow connection.
const QUESTION_DELAY: Duration = Duration::from_millis(300);

/// The maximum number of lines that are held back while a request is open.
const MAX_HELD_LINES: usize = 1_000;

const KEYS: &str =
    "Keys: p pauses changes or resumes them, q quits. Approval requests ask for a key.";

/// Runs until the user quits.
pub(super) fn run(
    servers: &ViewerOptions,
    lines: Lines,
    terminal: Terminal,
    screen: Screen,
) -> Result<ExitCode> {
    // `None` while the program is suspended.
    let mut watched = Some(follow(servers, &terminal)?);
    let mut live = Live {
        terminal,
        screen,
        lines,
        requests: VecDeque::new(),
        phase: Phase::Idle,
        held: VecDeque::new(),
        left_out: 0,
    };
    live.screen.print(&[live.lines.paint(Color::Dim, KEYS)])?;
    loop {
        let mut taken = 0;
        let updates = watched.iter().flat_map(|(_, updates)| updates.try_iter());
        for update in updates.take(MAX_WAITING) {
            live.take(&update)?;
            taken += 1;
        }
        live.ask()?;
        // There may be more updates, but keys are handled in between.
        let wait = if taken == MAX_WAITING { Some(Duration::ZERO) } else { live.next_wait() };
        match live.terminal.wait(wait)? {
            Input::Nothing => {}
            Input::Typed(typed) => {
                if let Some((watcher, _)) = &watched
                    && live.typed(&typed, watcher)?.is_break()
                {
                    break;
                }
            }
            Input::End if matches!(live.phase, Phase::Message) => live.leave_message()?,
            Input::End => break,
            Input::Continued => {
                live.terminal.resume()?;
                if watched.is_none() {
                    watched = Some(follow(servers, &live.terminal)?);
                }
                if let Phase::Asking | Phase::Message = live.phase {
                    live.show_prompt()?;
                }
            }
            Input::Suspend => {
                // While the program is suspended it does not ask; the servers see that this viewer has left.
                watched = None;
                live.reset()?;
                live.terminal.suspend()?;
            }
            Input::Quit(signal) => {
                live.screen.clear_prompt()?;
                drop(watched);
                live.terminal.end_by(signal)?;
                return Ok(ExitCode::FAILURE);
            }
        }
    }
    live.screen.clear_prompt()?;
    Ok(ExitCode::SUCCESS)
}

/// Watches the servers that the user has selected.
fn follow(servers: &ViewerOptions, terminal: &Terminal) -> Result<(Watcher, Receiver<Update>)> {
    let (sender, updates) = sync_channel(MAX_WAITING);
    let waker = terminal.waker();
    let watcher = Watcher::start(servers.watch_options(true)?, move |update| {
        // A full channel is being read, so nothing has to be woken.
        _ = sender.send(update);
        waker.wake();
    })?;
    Ok((watcher, updates))
}

struct Live {
    terminal: Terminal,
    screen: Screen,
    lines: Lines,
    /// The pending requests. The first one is shown.
    requests: VecDeque<PendingRequest>,
    phase: Phase,
    held: VecDeque<String>,
    /// How many lines were dropped because there was no room.
    left_out: usize,
}

struct PendingRequest {
    server: ServerId,
    approval: Approval,
    /// The user's answer, given in this viewer.
    answer: Option<AnswerKind>,
}

/// How much of the first request is shown.
enum Phase {
    /// Nothing, or there is no request.
    Idle,
    /// The request since this time, but not yet its keys.
    Shown(Instant),
    /// The keys for the answer.
    Asking,
    /// A line for a message to the agent.
    Message,
    /// The note that the answer was sent.
    Answered,
}

impl Live {
    /// Prints an update, or holds it back.
    fn take(&mut self, update: &Update) -> io::Result<()> {
        let is_first = |server: &ServerId, request: u64, requests: &VecDeque<PendingRequest>| {
            let first = requests.front();
            first.is_some_and(|it| it.server == *server && it.approval.request == request)
        };
        match update {
            Update::Event { server, event: Event::ApprovalRequest(approval) } => {
                let (server, approval) = (server.clone(), approval.clone());
                self.requests.push_back(PendingRequest { server, approval, answer: None });
                if let Phase::Asking = self.phase {
                    self.show_prompt()?;
                }
                Ok(())
            }
            Update::Event { server, event: Event::ApprovalEnded { request, end } } => {
                if is_first(server, *request, &self.requests) {
                    return self.end(Some(*end));
                }
                self.requests.retain(|it| it.server != *server || it.approval.request != *request);
                Ok(())
            }
            Update::Event { server, event: Event::Diff { request, text } } => {
                let asking = matches!(self.phase, Phase::Asking);
                let Some(pending) = self.requests.front().filter(|_| asking) else {
                    return Ok(());
                };
                if !is_first(server, *request, &self.requests) {
                    return Ok(());
                }
                if *text == pending.approval.preview {
                    return self.screen.print(&["This is the whole diff.".into()]);
                }
                let mut lines = self.lines.diff(text);
                let label = self.lines.label(server, pending.approval.client.as_deref());
                lines.push(self.lines.headline(&label, &pending.approval));
                self.screen.print(&lines)
            }
            Update::Event { event: Event::Server(_), .. } => {
                // Printed even while a request is open, since the user may just have paused changes.
                let lines = self.lines.of(update, self.terminal.width());
                self.screen.print(&lines)
            }
            Update::Gone { server } => {
                if self.requests.front().is_some_and(|first| first.server == *server) {
                    self.end(None)?;
                }
                self.requests.retain(|pending| pending.server != *server);
                self.hold_or_print(update)
            }
            _ => self.hold_or_print(update),
        }
    }

    fn hold_or_print(&mut self, update: &Update) -> io::Result<()> {
        let lines = self.lines.of(update, self.terminal.width());
        if let Phase::Idle = self.phase {
            return self.screen.print(&lines);
        }
        for line in lines {
            if self.held.len() == MAX_HELD_LINES {
                self.held.pop_front();
                self.left_out += 1;
            }
            self.held.push_back(line);
        }
        Ok(())
    }

    /// Shows the first request, and then its keys.
    fn ask(&mut self) -> io::Result<()> {
        match self.phase {
            Phase::Idle => {
                let Some(pending) = self.requests.front() else { return Ok(()) };
                let lines = self.lines.request(&pending.server, &pending.approval);
                self.screen.print(&lines)?;
                self.phase = Phase::Shown(Instant::now());
            }
            Phase::Shown(since) if since.elapsed() >= QUESTION_DELAY => {
                self.terminal.discard_input()?;
                self.phase = Phase::Asking;
                self.show_prompt()?;
                self.screen.ring()?;
            }
            Phase::Shown(_) | Phase::Asking | Phase::Message | Phase::Answered => {}
        }
        Ok(())
    }

    /// How long to wait for an event.
    fn next_wait(&self) -> Option<Duration> {
        match self.phase {
            Phase::Shown(since) => Some(QUESTION_DELAY.saturating_sub(since.elapsed())),
            _ => None,
        }
    }

    /// Handles the user's input.
    fn typed(&mut self, typed: &[u8], watcher: &Watcher) -> io::Result<std::ops::ControlFlow<()>> {
        use std::ops::ControlFlow::{Break, Continue};
        if let Phase::Message = self.phase {
            // The user has ended the line.
            self.screen.line_ended();
            self.terminal.set_mode(Mode::Keys)?;
            let message = String::from_utf8_lossy(typed).trim().to_owned();
            self.answer(AnswerKind::No, Some(message), watcher)?;
            return Ok(Continue(()));
        }
        let asked = self.requests.front().filter(|_| matches!(self.phase, Phase::Asking));
        // Several keys at once are an escape sequence, or were pasted.
        let key = if let &[key] = typed { key } else { 0 };
        let taken = |kind| asked.is_some_and(|asked| asked.approval.answers.contains(&kind));
        match key.to_ascii_lowercase() {
            b'q' | 0x04 => return Ok(Break(())),
            b'p' => self.pause(watcher)?,
            b'?' => self.screen.print(&[self.lines.paint(Color::Dim, KEYS)])?,
            b'y' if taken(AnswerKind::Once) => self.answer(AnswerKind::Once, None, watcher)?,
            b's' if taken(AnswerKind::Session) => {
                self.answer(AnswerKind::Session, None, watcher)?
            }
            b'n' if taken(AnswerKind::No) => self.answer(AnswerKind::No, None, watcher)?,
            b'm' if taken(AnswerKind::No) => {
                self.phase = Phase::Message;
                self.terminal.set_mode(Mode::Line)?;
                self.show_prompt()?;
            }
            b'd' if let Some(PendingRequest { server, approval, .. }) = asked => {
                // If the server has ended, the watcher reports it.
                _ = watcher.send(server, &Command::Diff { request: approval.request });
            }
            _ if asked.is_some() => self.screen.ring()?,
            _ => {}
        }
        Ok(Continue(()))
    }

    /// Sends the user's answer to the first request.
    fn answer(
        &mut self,
        answer: AnswerKind,
        message: Option<String>,
        watcher: &Watcher,
    ) -> io::Result<()> {
        let Some(pending) = self.requests.front_mut() else { return Ok(()) };
        let request = pending.approval.request;
        pending.answer = Some(answer);
        // If the server has ended, the watcher reports it. It also reports which answer counts.
        _ = watcher.send(&pending.server, &Command::Answer(Answer { request, answer, message }));
        self.phase = Phase::Answered;
        self.screen.clear_prompt()
    }

    /// Returns from the message to the keys.
    fn leave_message(&mut self) -> io::Result<()> {
        self.terminal.set_mode(Mode::Keys)?;
        self.phase = Phase::Asking;
        self.show_prompt()
    }

    /// Pauses changes of all servers, or resumes them if all are paused.
    fn pause(&mut self, watcher: &Watcher) -> io::Result<()> {
        let servers = &self.lines.servers;
        if servers.is_empty() {
            return self
                .screen
                .print(&["There is no server whose changes could be paused.".into()]);
        }
        let pause = servers.values().any(|server| !server.paused);
        let command = if pause { Command::Pause } else { Command::Resume };
        for (id, _) in servers.iter().filter(|(_, server)| server.paused != pause) {
            _ = watcher.send(id, &command);
        }
        Ok(())
    }

    /// Handles the end of the first request, or, with `None`, of its server.
    fn end(&mut self, end: Option<RequestEnd>) -> io::Result<()> {
        let Some(pending) = self.requests.pop_front() else { return Ok(()) };
        if let Phase::Idle = self.phase {
            return Ok(());
        }
        self.screen.clear_prompt()?;
        if let Phase::Message = self.phase {
            self.terminal.set_mode(Mode::Keys)?;
        }
        self.phase = Phase::Idle;
        let own = match end {
            Some(RequestEnd::Once) => pending.answer == Some(AnswerKind::Once),
            Some(RequestEnd::Session) => pending.answer == Some(AnswerKind::Session),
            Some(RequestEnd::No) => pending.answer == Some(AnswerKind::No),
            _ => true,
        };
        let by = if own { "" } else { " by another viewer" };
        let ending = end.map_or("no longer asked: the server has ended", ending);
        let mut lines = vec![self.lines.paint(Color::Bold, &format!("→ {ending}{by}"))];
        if self.left_out > 0 {
            lines.push(format!("({} lines are left out)", self.left_out));
        }
        self.left_out = 0;
        lines.extend(self.held.drain(..));
        self.screen.print(&lines)
    }

    /// Forgets all servers and requests.
    fn reset(&mut self) -> io::Result<()> {
        self.screen.clear_prompt()?;
        self.terminal.set_mode(Mode::Keys)?;
        self.requests.clear();
        self.phase = Phase::Idle;
        self.lines.forget();
        let held: Vec<_> = self.held.drain(..).collect();
        self.screen.print(&held)
    }

    fn show_prompt(&mut self) -> io::Result<()> {
        let Some(pending) = self.requests.front() else { return Ok(()) };
        let echoes = matches!(self.phase, Phase::Message);
        let prompt = if echoes {
            "Message for the agent (Ctrl-D goes back): ".to_owned()
        } else {
            let takes_session = pending.approval.answers.contains(&AnswerKind::Session);
            let session = if takes_session { ", [s]ession" } else { "" };
            let more = match self.requests.len() - 1 {
                0 => String::new(),
                more => format!(" ({more} more)"),
            };
            format!("[y]es{session}, [n]o, no with [m]essage, whole [d]iff{more}: ")
        };
        let prompt = cut(&prompt, self.terminal.width().saturating_sub(1));
        self.screen.show_prompt(prompt, echoes)
    }
}
