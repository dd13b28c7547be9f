//! Every number that somebody chose for the server, and why.

use std::time::Duration;

/// The largest message: a file of 100 MiB as JSON text, with room for what has to be escaped.
pub const MESSAGE_BYTES: usize = 128 * 1024 * 1024;

/// How many calls are at work at once. Searches use several threads each; more calls wait their turn.
pub(crate) const CALLS_AT_ONCE: usize = 64;

/// How many calls may wait for a person besides. Each holds a thread, which costs little while it waits.
pub(crate) const QUESTIONS_AT_ONCE: usize = 448;

/// How long calls may go on after the client has closed the connection, before they are cancelled:
/// long enough for whoever pipes requests in and reads the answers, short enough to be gone when the
/// client looks.
pub(crate) const LAST_CALLS: Duration = Duration::from_secs(1);

/// How long calls that were told to stop are waited for.
pub(crate) const STOPPING: Duration = Duration::from_secs(10);

/// How often a call says how far it has come.
pub(crate) const PROGRESS_EVERY: Duration = Duration::from_millis(500);

/// How long the client is waited for when it is asked for its roots.
pub(crate) const ROOTS_WAIT: Duration = Duration::from_secs(10);

/// How many conversations are remembered over HTTP. Each may hold what it has seen of 50,000 files.
pub(crate) const SESSIONS: usize = 256;

/// How long a conversation over HTTP is remembered after its last request: people take lunch breaks.
pub(crate) const SESSION_IDLE: Duration = Duration::from_secs(2 * 60 * 60);

/// How often it is looked for sessions that were idle for too long: that often if they may not be idle for long, and
/// that rarely if they may.
pub(crate) const MIN_SWEEP_INTERVAL: Duration = Duration::from_millis(10);
pub(crate) const MAX_SWEEP_INTERVAL: Duration = Duration::from_secs(60);

/// The longest name that a client may give a conversation.
pub(crate) const SESSION_NAME_BYTES: usize = 200;

/// How many connections are held at once: half of the files that a process may open, usually.
pub(crate) const CONNECTIONS: usize = 512;

/// How long a client may take to send the head of a request.
pub(crate) const SENDING_HEAD: Duration = Duration::from_secs(10);

/// How long it may take to send the body.
pub(crate) const SENDING: Duration = Duration::from_secs(30);

/// For how long clients may keep the list of tools: it changes with a restart only, but a client
/// that outlives the server should notice.
pub(crate) const LIST_FRESH: Duration = Duration::from_secs(5 * 60);

/// More often than this, it is not said how far a call has come.
pub(crate) const PROGRESS_AT_MOST_EVERY: Duration = Duration::from_millis(1);

/// How many threads move messages over HTTP. They only read and write; the calls have their own.
pub(crate) const MESSAGE_THREADS: usize = 4;

/// How long a person may think about a question.
pub(crate) const ASKING: Duration = Duration::from_secs(5 * 60);

/// How much of a diff a person is shown in a client's form.
pub(crate) const DIFF_CHARS: usize = 4_000;

/// How many of the directories that a client has open are looked at.
pub(crate) const CLIENT_ROOTS: usize = 64;

/// How many values a message may have. The text of a file is one; a hundred thousand edits are a few.
/// Each takes some hundred bytes while it is read.
pub(crate) const MESSAGE_VALUES: usize = 500_000;

/// How many bytes of requests may wait for their turn. More wait in the pipe.
pub(crate) const QUEUED_BYTES: usize = 2 * MESSAGE_BYTES;

/// How many requests of one client are answered at a time.
pub(crate) const REQUESTS_AT_ONCE: usize = 64;

/// How long a message to a client that does not read is waited for, where something else depends on it.
pub(crate) const UNREAD_WAIT: Duration = Duration::from_secs(1);

/// A session over HTTP that was used in this time is not ended to make room for another.
pub(crate) const SESSION_BUSY: Duration = Duration::from_secs(60);

/// How much of an answer a pipe holds before it is read, where the system allows it.
pub(crate) const PIPE_BYTES: usize = 1024 * 1024;
