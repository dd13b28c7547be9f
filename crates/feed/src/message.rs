//! The messages between a server and its viewers, as JSON lines. `docs/WATCHING.md` documents them.
//!
//! A field may be added without a new version, so a reader ignores unknown fields.

use pinfold::AuditedPath;
use serde::{Deserialize, Serialize};

/// The version of the messages.
pub const VERSION: u32 = 1;

/// An event, which a server sends to its viewers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// The description of the server. It is the first event, and is sent again whenever it changes.
    Server(Server),
    /// A call has started.
    CallStarted(CallStarted),
    /// A call has ended.
    CallEnded(CallEnded),
    /// A change was made.
    Change(Change),
    /// The user is asked for approval.
    ApprovalRequest(Approval),
    /// An approval request has ended, and no longer needs an answer.
    ApprovalEnded {
        /// The request's number.
        request: u64,
        /// How it ended.
        end: RequestEnd,
    },
    /// The whole diff of an approval request, for the viewer that requested it.
    Diff {
        /// The request's number.
        request: u64,
        /// The diff, escaped like the preview.
        text: String,
    },
    /// A protocol error of the viewer. The server closes the connection.
    Error {
        /// The problem.
        message: String,
    },
}

/// The description of a server.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Server {
    /// The version of the messages.
    pub version: u32,
    /// The server's process id.
    pub pid: u32,
    /// The version of Pinfold.
    pub pinfold: String,
    /// The time when the server started, in ISO 8601 and UTC.
    pub started: String,
    /// `stdio` or `http`.
    pub transport: String,
    /// The clients that have connected, by name.
    pub clients: Vec<String>,
    /// The roots of the workspace.
    pub roots: Vec<String>,
    /// The dialects of the tools.
    pub dialects: Vec<String>,
    /// The permission mode.
    pub mode: String,
    /// The directory of the journal, if there is one.
    pub journal: Option<String>,
    /// Whether changes are paused. If so, every change needs approval.
    pub paused: bool,
}

/// A call that has started.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct CallStarted {
    /// The call's number, unique in its server.
    pub call: u64,
    /// The time when it started, in ISO 8601 and UTC.
    pub time: String,
    /// The session, as in the journal and the audit log.
    pub session: String,
    /// The client's name.
    pub client: Option<String>,
    /// The tool.
    pub tool: String,
    /// The arguments on one line; `None` if they are invalid.
    pub parameters: Option<String>,
}

/// A call that has ended: its number, and the fields of its audit line.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct CallEnded {
    /// The call's number.
    pub call: u64,
    /// The time when it ended, in ISO 8601 and UTC.
    pub time: String,
    /// The session.
    pub session: String,
    /// The client's name.
    pub client: Option<String>,
    /// The tool.
    pub tool: String,
    /// `Read`, `Write` or `Delete`; `None` if the call did not get that far.
    pub operation: Option<String>,
    /// The paths of the call.
    pub paths: Vec<AuditedPath>,
    /// `allow` or `deny` by policy; after an approval request `approved`, `denied_by_user`, `unanswered`, `no_approver` or
    /// `deferred`; `none` if nothing was decided.
    pub decision: String,
    /// The reason for the decision.
    pub why: Option<String>,
    /// `ok`, or the error's code.
    pub outcome: String,
    /// How long it took.
    pub duration_ms: u64,
    /// The size of the answer.
    pub bytes: u64,
}

/// A change that was made.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Change {
    /// The number of the call that made it, if its start was sent.
    pub call: Option<u64>,
    /// The time of the change, in ISO 8601 and UTC.
    pub time: String,
    /// The session.
    pub session: String,
    /// The tool.
    pub tool: String,
    /// The file's real path.
    pub path: String,
    /// The real path that it was moved to, if it was moved.
    pub moved_to: Option<String>,
    /// `created`, `changed`, `deleted` or `moved`.
    pub kind: String,
    /// The change's id in the journal, by which it can be undone.
    pub id: Option<String>,
    /// The number of added lines, if both versions are text of a moderate size.
    pub added: Option<u64>,
    /// The number of removed lines: see `added`.
    pub removed: Option<u64>,
}

/// An approval request.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Approval {
    /// The request's number, unique in its server.
    pub request: u64,
    /// The time of the request, in ISO 8601 and UTC.
    pub time: String,
    /// The session.
    pub session: String,
    /// The client's name.
    pub client: Option<String>,
    /// The tool.
    pub tool: String,
    /// `Read`, `Write` or `Delete`.
    pub access: String,
    /// The path as the agent gave it.
    pub given: String,
    /// The real path, with invisible characters escaped.
    pub path: String,
    /// The reason why the user is asked.
    pub reason: String,
    /// The question on one line, escaped.
    pub headline: String,
    /// The change, escaped: a diff, or kind, size and hash. A long one has only its head and tail. Empty if nothing
    /// would change.
    pub preview: String,
    /// The accepted answers.
    pub answers: Vec<AnswerKind>,
}

/// How an approval request ended.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestEnd {
    /// It was approved once.
    Once,
    /// It was approved for the session.
    Session,
    /// It was denied.
    No,
    /// Its call ended first.
    Cancelled,
    /// There was no answer in time, which is a denial.
    Expired,
    /// No viewer that answers is left. The client is asked, if possible.
    PassedOn,
}

/// A command, which a viewer sends to a server.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Command {
    /// The first command, with the version that the viewer knows. The server sends nothing before it.
    Hello {
        /// The version of the messages.
        version: u32,
        /// Whether the viewer answers approval requests. If not, it is not asked.
        answers: bool,
    },
    /// Answers an approval request. The first answer counts.
    Answer(Answer),
    /// Requests the whole diff of an approval request.
    Diff {
        /// The request's number.
        request: u64,
    },
    /// Pauses changes. Every change needs approval until they are resumed.
    Pause,
    /// Resumes changes.
    Resume,
}

/// The user's answer to an approval request.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Answer {
    /// The request's number.
    pub request: u64,
    /// The answer.
    pub answer: AnswerKind,
    /// A message for the model, with a denial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The answers to an approval request.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerKind {
    /// Approved, for this call.
    Once,
    /// Approved for the same operation on the same file, until the session ends.
    Session,
    /// Denied.
    No,
}
