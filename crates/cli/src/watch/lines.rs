//! Formats updates as lines of text, one for each call.
//!
//! Names, arguments and contents come from agents and files, so characters that could control the terminal or hide
//! other text are escaped here.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::path::Path;

use pinfold::{cut_to_chars, escaped_line, escaped_text};
use pinfold_feed::{Approval, CallEnded, Change, Event, RequestEnd, Server, ServerId, Update};

/// Terminal colours, by their escape codes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Color {
    Bold = 1,
    Dim = 2,
    Red = 31,
    Green = 32,
    Yellow = 33,
    Cyan = 36,
}

use Color::{Bold, Cyan, Dim, Green, Red, Yellow};

/// Formats updates as lines. It remembers earlier updates.
#[derive(Debug)]
pub(super) struct Lines {
    color: bool,
    /// Whether the user has selected servers with `--root`.
    chosen: bool,
    pub(super) servers: BTreeMap<ServerId, Server>,
    /// The running calls.
    calls: HashMap<(ServerId, u64), Call>,
}

/// A running call.
#[derive(Debug, Default)]
struct Call {
    parameters: String,
    changes: Vec<Change>,
}

/// The maximum number of remembered calls, so that a server which starts many and ends none takes no more memory.
const MAX_CALLS: usize = 10_000;

impl Lines {
    pub(super) fn new(color: bool, chosen: bool) -> Self {
        Self { color, chosen, servers: BTreeMap::new(), calls: HashMap::new() }
    }

    /// Forgets all servers and calls.
    pub(super) fn forget(&mut self) {
        self.servers.clear();
        self.calls.clear();
    }

    /// The lines for an update. Those of calls have at most `width` columns if possible.
    pub(super) fn of(&mut self, update: &Update, width: usize) -> Vec<String> {
        match update {
            Update::NoServer { others } => self.no_server(*others),
            Update::Gone { server } => {
                let line = format!("{} has ended", self.label(server, None));
                self.servers.remove(server);
                self.calls.retain(|(its, _), _| its != server);
                vec![self.paint(Dim, &line)]
            }
            Update::Event { server, event } => self.event(server, event, width),
        }
    }

    fn event(&mut self, id: &ServerId, event: &Event, width: usize) -> Vec<String> {
        match event {
            Event::Server(server) => {
                let before = self.servers.insert(id.clone(), server.clone());
                self.server(id, server, before.as_ref())
            }
            Event::CallStarted(call) => {
                if self.calls.len() < MAX_CALLS {
                    let parameters = call.parameters.clone().unwrap_or_default();
                    let changes = Vec::new();
                    self.calls.insert((id.clone(), call.call), Call { parameters, changes });
                }
                Vec::new()
            }
            Event::Change(change) => {
                let call = change.call.and_then(|call| self.calls.get_mut(&(id.clone(), call)));
                match call {
                    Some(call) => {
                        call.changes.push(change.clone());
                        Vec::new()
                    }
                    None => vec![self.lone_change(id, change)],
                }
            }
            Event::CallEnded(call) => self.call(id, call, width),
            Event::ApprovalRequest(approval) => self.request(id, approval),
            Event::ApprovalEnded { end, .. } => {
                vec![self.paint(Bold, &format!("→ {}", ending(*end)))]
            }
            Event::Diff { text, .. } => self.diff(text),
            Event::Error { message } => {
                vec![self.paint(Red, &format!("{}: {}", self.label(id, None), one_line(message)))]
            }
        }
    }

    fn no_server(&self, others: usize) -> Vec<String> {
        let mut lines = match (self.chosen, others) {
            (true, 0) => vec!["No server is running for the directories of `--root`.".to_owned()],
            (true, _) => vec![format!(
                "No server is running for the directories of `--root`; without it, there are others ({others})."
            )],
            (false, 0) => vec!["No server of this user is running.".to_owned()],
            (false, _) => {
                vec!["No server of this user is running that lets itself be watched.".to_owned()]
            }
        };
        lines.push(
            "Start an agent that uses Pinfold (docs/CLIENTS.md), or `pinfold serve`: it appears here."
                .into(),
        );
        lines.iter().map(|line| self.paint(Dim, line)).collect()
    }

    /// The lines for a new description of a server.
    fn server(&self, id: &ServerId, server: &Server, before: Option<&Server>) -> Vec<String> {
        let label = self.label(id, None);
        let Some(before) = before else {
            let clients = match &server.clients[..] {
                [] => String::new(),
                clients => format!(" for {}", one_line(&clients.join(", "))),
            };
            let roots = one_line(&server.roots.join(", "));
            let (mode, dialects) = (one_line(&server.mode), one_line(&server.dialects.join(", ")));
            let mut lines = vec![self.paint(
                Bold,
                &format!(
                    "{label} serves {roots}{clients} ({mode}; {dialects}; process {})",
                    server.pid
                ),
            )];
            if server.paused {
                lines.push(self.pause(&label, true));
            }
            return lines;
        };
        let mut lines = Vec::new();
        for client in server.clients.iter().filter(|client| !before.clients.contains(client)) {
            lines.push(self.paint(Dim, &format!("{label}: {} has connected", one_line(client))));
        }
        if server.paused != before.paused {
            lines.push(self.pause(&label, server.paused));
        }
        lines
    }

    fn pause(&self, label: &str, paused: bool) -> String {
        let text = if paused {
            "changes are paused: each needs your approval"
        } else {
            "changes are resumed"
        };
        self.paint(Yellow, &format!("{label}: {text}"))
    }

    /// The name of a server: the last name of its first root. If several servers have that name, the process id is
    /// added; if it has several clients, the client.
    pub(super) fn label(&self, id: &ServerId, client: Option<&str>) -> String {
        let Some(server) = self.servers.get(id) else { return one_line(id.as_str()) };
        let name = |server: &Server| {
            let root = server.roots.first().map(Path::new);
            let name = root.and_then(Path::file_name).map(|name| name.to_string_lossy());
            name.map_or_else(|| "/".to_owned(), |name| one_line(&name))
        };
        let mut label = name(server);
        if self.servers.values().filter(|other| name(other) == label).count() > 1 {
            write!(label, ":{}", server.pid).expect("a String takes anything");
        }
        if let Some(client) = client.filter(|_| server.clients.len() > 1) {
            write!(label, "/{}", one_line(client)).expect("a String takes anything");
        }
        label
    }

    fn call(&mut self, id: &ServerId, ended: &CallEnded, width: usize) -> Vec<String> {
        let call = self.calls.remove(&(id.clone(), ended.call)).unwrap_or_default();
        let label = self.label(id, ended.client.as_deref());
        let (time, tool) = (time(&ended.time), one_line(&ended.tool));
        let mut result = Vec::new();
        match &call.changes[..] {
            [change] => result.push(self.lines_changed(change)),
            changes if !changes.is_empty() => {
                result.push((format!("{} files", changes.len()), None))
            }
            _ => {}
        }
        let why = ended.why.as_deref().map(one_line).unwrap_or_default();
        match ended.decision.as_str() {
            "approved" => result.push(("approved".into(), Some(Green))),
            "denied_by_user" => result.push(("denied by the user".into(), Some(Red))),
            "unanswered" => result.push((format!("no answer ({why})"), Some(Red))),
            "no_approver" => result.push((format!("nobody to ask ({why})"), Some(Red))),
            "deny" => result.push((format!("denied ({why})"), Some(Red))),
            _ if ended.outcome != "ok" => result.push((one_line(&ended.outcome), Some(Red))),
            _ => {}
        }
        let asked = matches!(ended.decision.as_str(), "approved" | "denied_by_user" | "unanswered");
        if ended.duration_ms >= 1_000 && !asked {
            let tenths = ended.duration_ms / 100;
            result.push((format!("{}.{} s", tenths / 10, tenths % 10), Some(Dim)));
        }
        let taken = [&time, &label, &tool].into_iter().chain(result.iter().map(|(text, _)| text));
        let taken: usize = taken.map(|text| text.chars().count() + 2).sum();
        let parameters = cut(&one_line(&call.parameters), width.saturating_sub(taken).max(16));
        let mut line = format!("{}  {}  {tool}", self.paint(Dim, &time), self.paint(Cyan, &label));
        for (text, color) in [(parameters, None)].into_iter().chain(result) {
            if !text.is_empty() {
                let text = color.map_or(text.clone(), |color| self.paint(color, &text));
                write!(line, "  {text}").expect("a String takes anything");
            }
        }
        let mut lines = vec![line];
        if let changes @ [_, _, ..] = &call.changes[..] {
            lines.extend(changes.iter().map(|change| format!("    {}", self.change(id, change))));
        }
        lines
    }

    /// A change by a call that started before this viewer.
    fn lone_change(&self, id: &ServerId, change: &Change) -> String {
        let (time, label) = (time(&change.time), self.label(id, None));
        let tool = one_line(&change.tool);
        let (time, label) = (self.paint(Dim, &time), self.paint(Cyan, &label));
        format!("{time}  {label}  {tool}  {}", self.change(id, change))
    }

    /// The path, and the numbers of added and removed lines.
    fn change(&self, id: &ServerId, change: &Change) -> String {
        let roots = self.servers.get(id).map_or(&[][..], |server| &server.roots);
        let below = |path: &str| {
            let mut below = roots.iter().filter_map(|root| Path::new(path).strip_prefix(root).ok());
            let below = below.next().filter(|path| *path != Path::new(""));
            one_line(&below.map_or(path.into(), |path| path.to_string_lossy()))
        };
        let mut line = below(&change.path);
        if let Some(to) = &change.moved_to {
            write!(line, " to {}", below(to)).expect("a String takes anything");
        }
        let (text, color) = self.lines_changed(change);
        format!("{line}  {}", color.map_or(text.clone(), |color| self.paint(color, &text)))
    }

    /// The effect of a change, such as `+12 −3` or `created +12`.
    fn lines_changed(&self, change: &Change) -> (String, Option<Color>) {
        let mut text = match change.kind.as_str() {
            "changed" => String::new(),
            kind => one_line(kind),
        };
        match (change.added, change.removed) {
            (Some(0), Some(0)) | (None, _) | (_, None) => {}
            (Some(added), Some(removed)) => {
                let counts = [(added, '+'), (removed, '−')];
                for (count, sign) in counts.into_iter().filter(|(count, _)| *count > 0) {
                    let space = if text.is_empty() { "" } else { " " };
                    write!(text, "{space}{sign}{count}").expect("a String takes anything");
                }
            }
        }
        if text.is_empty() {
            text.push_str("changed");
        }
        (text, Some(Yellow))
    }

    /// An approval request: the question and the preview.
    pub(super) fn request(&self, id: &ServerId, approval: &Approval) -> Vec<String> {
        let label = self.label(id, approval.client.as_deref());
        let mut lines = self.diff(&approval.preview);
        lines.push(self.headline(&label, approval));
        lines
    }

    /// The question, on one line.
    pub(super) fn headline(&self, label: &str, approval: &Approval) -> String {
        let question = visible(&approval.headline).replace('\n', "\\x0a");
        self.paint(Bold, &format!("{label}: {question}"))
    }

    /// A diff in colours. The server has escaped it.
    pub(super) fn diff(&self, text: &str) -> Vec<String> {
        let lines = text.lines().map(|line| {
            let color = match line.as_bytes() {
                [b'+', ..] => Some(Green),
                [b'-', ..] => Some(Red),
                [b'@', b'@', ..] => Some(Cyan),
                _ => None,
            };
            let line = visible(line);
            color.map_or(line.clone(), |color| self.paint(color, &line))
        });
        lines.collect()
    }

    pub(super) fn paint(&self, color: Color, text: &str) -> String {
        if self.color && !text.is_empty() {
            return format!("\x1b[{}m{text}\x1b[0m", color as u8);
        }
        text.to_owned()
    }
}

/// How an approval request ended.
pub(super) fn ending(end: RequestEnd) -> &'static str {
    match end {
        RequestEnd::Once => "allowed once",
        RequestEnd::Session => "allowed for the session",
        RequestEnd::No => "denied",
        RequestEnd::Cancelled => "no longer asked: its call has ended",
        RequestEnd::Expired => "denied: nobody answered in time",
        RequestEnd::PassedOn => "passed on to the client",
    }
}

/// The time of day of an event.
fn time(time: &str) -> String {
    // 2026-01-31T12:00:00.123Z
    let clock = time.get(11..19).filter(|clock| clock.bytes().all(|it| it.is_ascii_graphic()));
    clock.map_or_else(|| one_line(time), |clock| format!("{clock}Z"))
}

/// An untrusted text on one line, with invisible characters escaped.
fn one_line(text: &str) -> String {
    escaped_line(text.as_bytes())
}

/// A text that the server has escaped. Its escapes stay, and characters that should have been escaped are escaped
/// now.
fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            ' '..='~' | '\t' | '\n' => out.push(character),
            _ => out.push_str(&escaped_text(character.encode_utf8(&mut [0; 4]).as_bytes())),
        }
    }
    out
}

/// Cuts a text to `max_chars` characters, the last of which is then `…`.
pub(super) fn cut(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some(_) => cut_to_chars(text, max_chars.saturating_sub(1)).into_owned(),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The lines for an event of the server `1-a`, with the root `/srv/ws`.
    fn lines_of(lines: &mut Lines, event: serde_json::Value, width: usize) -> Vec<String> {
        let event = serde_json::from_value(event).unwrap();
        lines.of(&Update::Event { server: "1-a".into(), event }, width)
    }

    fn served() -> Lines {
        let mut lines = Lines::new(false, false);
        let roots = vec!["/srv/ws".into()];
        let event = Event::Server(Server { roots, pid: 7, ..Server::default() });
        lines.of(&Update::Event { server: "1-a".into(), event }, 80);
        lines
    }

    const TIME: &str = "2026-01-31T12:00:01.5Z";

    fn started(parameters: &str) -> serde_json::Value {
        json!({"type": "call_started", "call": 1, "time": TIME, "session": "s", "tool": "Edit",
               "client": null, "parameters": parameters})
    }

    fn change(path: &str, added: Option<u64>, moved_to: Option<&str>) -> serde_json::Value {
        json!({"type": "change", "call": 1, "time": TIME, "session": "s", "tool": "Edit", "path": path,
               "moved_to": moved_to, "kind": if moved_to.is_some() { "moved" } else { "changed" },
               "id": null, "added": added, "removed": added.map(|_| 0)})
    }

    fn ended(outcome: &str, decision: &str, duration_ms: u64) -> serde_json::Value {
        json!({"type": "call_ended", "call": 1, "time": TIME, "session": "s", "tool": "Edit",
               "client": null, "operation": "Write", "paths": [], "decision": decision,
               "why": "a rule", "outcome": outcome, "duration_ms": duration_ms, "bytes": 0})
    }

    #[test]
    fn a_call_is_one_line_that_fits() {
        let head = "12:00:01Z  ws  Edit  ";
        for (parameters, width, end, line) in [
            ("a.txt", 80, ended("ok", "allow", 5), "a.txt"),
            ("a.txt", 80, ended("ok", "allow", 1_260), "a.txt  1.2 s"),
            ("a.txt", 80, ended("ok", "approved", 9_000), "a.txt  approved"),
            (
                "a.txt",
                80,
                ended("permission_denied", "unanswered", 300_000),
                "a.txt  no answer (a rule)",
            ),
            (
                "a.txt",
                80,
                ended("permission_denied", "no_approver", 5),
                "a.txt  nobody to ask (a rule)",
            ),
            ("a.txt", 80, ended("timeout", "allow", 5), "a.txt  timeout"),
            ("a.txt", 80, ended("permission_denied", "deny", 5), "a.txt  denied (a rule)"),
            ("", 80, ended("invalid_argument", "none", 5), "invalid_argument"),
            ("0123456789abcdefghij", 48, ended("ok", "approved", 5), "0123456789abcdef…  approved"),
            ("a\nb\t\u{1b}", 80, ended("ok", "allow", 5), r"a\x0ab\x09\x1b"),
        ] {
            let mut lines = served();
            assert!(lines_of(&mut lines, started(parameters), width).is_empty());
            let shown = lines_of(&mut lines, end, width);
            assert_eq!(shown, [format!("{head}{line}")]);
            assert!(shown[0].chars().count() <= width);
        }
    }

    #[test]
    fn changes_are_shown_with_their_call_or_alone() {
        let mut lines = served();
        lines_of(&mut lines, started("two files"), 80);
        lines_of(&mut lines, change("/srv/ws/a\u{202e}", Some(2), None), 80);
        lines_of(&mut lines, change("/srv/ws/b", None, Some("/srv/ws/c")), 80);
        let shown = lines_of(&mut lines, ended("ok", "allow", 5), 80);
        assert_eq!(
            shown,
            ["12:00:01Z  ws  Edit  two files  2 files", r"    a\u{202e}  +2", "    b to c  moved"]
        );
        // The call that made this change started before the viewer opened.
        let shown = lines_of(&mut lines, change("/elsewhere/a", None, None), 80);
        assert_eq!(shown, ["12:00:01Z  ws  Edit  /elsewhere/a  changed"]);
    }

    #[test]
    fn what_the_server_has_escaped_is_not_escaped_again() {
        assert_eq!(
            visible("\\x1b[2J\t\\u{202e}\u{1b}\u{202e}é"),
            "\\x1b[2J\t\\u{202e}\\x1b\\u{202e}é"
        );
        assert_eq!(one_line("\\x1b\n"), "\\x5cx1b\\x0a");
        assert_eq!(time("soon\u{7}"), "soon\\x07");
    }
}
