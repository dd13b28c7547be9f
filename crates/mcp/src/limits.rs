//! The limits of the server, and why they have these values.

use std::time::Duration;

/// The largest message: a file of 100 MiB as JSON text, with room for escapes.
pub const MAX_MESSAGE_BYTES: usize = 128 * 1024 * 1024;

/// How many calls run at once. Searches use several threads each; more calls wait for a thread.
pub(crate) const MAX_CALLS: usize = 64;

/// How many more calls may wait for the user. Each holds a thread, which costs little while it waits.
pub(crate) const MAX_APPROVAL_REQUESTS: usize = 448;

/// How many calls may have been answered while their threads hang, on a file system that does not answer for
/// example. Further calls are refused: each such thread takes memory for as long as it hangs.
pub(crate) const MAX_STUCK_CALLS: usize = 64;

/// How long after its deadline, or after it was cancelled, a call may still end normally. Then it is answered, and
/// its thread is stuck. Less than a second: the answer must go out within one second after the deadline or
/// cancellation.
pub(crate) const STUCK_AFTER: Duration = Duration::from_millis(800);

/// How long the thread that moves the messages stays awake for a call that was just given to another thread: as long as
/// a small change takes that is flushed to the disk. A longer call does not profit.
pub(crate) const AWAKE_FOR: Duration = Duration::from_micros(500);

/// How often a call that waits for the user looks whether it still does.
pub(crate) const APPROVAL_POLL: Duration = Duration::from_millis(100);

/// How long calls may run on after the client has closed the connection, before they are cancelled: long enough
/// for a script that pipes requests in and reads the answers, short enough to be gone when a client looks.
pub(crate) const LAST_CALLS: Duration = Duration::from_secs(1);

/// How long a server that stops waits for cancelled calls.
pub(crate) const STOPPING: Duration = Duration::from_secs(10);

/// How often progress is reported.
pub(crate) const PROGRESS_EVERY: Duration = Duration::from_millis(500);

/// How long the client may take to answer with its roots.
pub(crate) const ROOTS_WAIT: Duration = Duration::from_secs(10);

/// How many conversations, and how many HTTP sessions, each workspace may have over HTTP. Each may hold the fingerprints of 50,000 files.
pub(crate) const MAX_CONVERSATIONS: usize = 256;

/// How long a conversation over HTTP lasts after its last request: users take lunch breaks.
pub(crate) const CONVERSATION_IDLE: Duration = Duration::from_secs(2 * 60 * 60);

/// The longest name that a client may give a session.
pub(crate) const MAX_SESSION_NAME_BYTES: usize = 200;

/// How long clients may cache the list of tools: only a restart changes it, but a client that outlives the server
/// should notice.
pub(crate) const LIST_TTL: Duration = Duration::from_secs(5 * 60);

/// The shortest time between two progress reports.
pub(crate) const MIN_PROGRESS_INTERVAL: Duration = Duration::from_millis(1);

/// How long the user may take to answer an approval request.
pub(crate) const APPROVAL_WAIT: Duration = Duration::from_secs(5 * 60);

/// How much of a diff the client's form shows.
pub(crate) const DIFF_CHARS: usize = 4_000;

/// How many of the client's roots count.
pub(crate) const MAX_CLIENT_ROOTS: usize = 64;

/// How many JSON values a message may have. The text of a file is one; a hundred thousand edits are a few hundred
/// thousand. Each takes some hundred bytes while it is parsed.
pub(crate) const MAX_MESSAGE_VALUES: usize = 500_000;

/// How many bytes of requests may be queued. More stay in the pipe.
pub(crate) const MAX_QUEUED_BYTES: usize = 2 * MAX_MESSAGE_BYTES;

/// How many requests of one client are handled at once.
pub(crate) const MAX_REQUESTS: usize = 64;

/// How long to wait for a client that does not read a message, where something else depends on it.
pub(crate) const UNREAD_WAIT: Duration = Duration::from_secs(1);

/// The memory for a message that stays allocated for the next one.
pub(crate) const KEPT_LINE_BYTES: usize = 4 * 1024 * 1024;

/// The capacity of the output pipe, where the system allows it.
pub(crate) const OUTPUT_PIPE_BYTES: usize = 1024 * 1024;

/// The size of the pipe of standard input. The system lets each user have 64 MiB in all pipes, and arguments are rarely
/// longer.
pub(crate) const INPUT_PIPE_BYTES: usize = 256 * 1024;

/// Limits of the HTTP server alone.
#[cfg(feature = "http")]
pub(crate) mod http {
    use std::time::Duration;

    /// Idle sessions are looked for every half of the time that a session may be idle, within these bounds.
    pub(crate) const MIN_IDLE_CHECK_INTERVAL: Duration = Duration::from_millis(10);
    pub(crate) const MAX_IDLE_CHECK_INTERVAL: Duration = Duration::from_secs(60);

    /// How many connections for metrics are open at once: there is one Prometheus, or two.
    pub(crate) const MAX_SCRAPES: usize = 8;

    /// How long to wait where a connection cannot be accepted: most likely there are too many open files.
    pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

    /// How long calls under way may take after SIGTERM: less than the half minute that container engines wait before
    /// they kill.
    pub(crate) const DRAIN: Duration = Duration::from_secs(20);

    /// How long a server that ends waits for calls that it has cancelled.
    pub(crate) const STOPPING: Duration = Duration::from_secs(2);

    /// How many connections are open at once: half of the files that a process may usually open.
    pub(crate) const MAX_CONNECTIONS: usize = 512;

    /// How long a client may take to send the head of a request.
    pub(crate) const HEAD_WAIT: Duration = Duration::from_secs(10);

    /// How long a client may take to send the body.
    pub(crate) const BODY_WAIT: Duration = Duration::from_secs(30);

    /// How many threads move messages over HTTP. They also answer small reads of cached files; other calls run on
    /// threads of their own.
    pub(crate) const MAX_MESSAGE_THREADS: usize = 4;

    /// A session over HTTP that was used in this time does not end to make room for another.
    pub(crate) const SESSION_BUSY: Duration = Duration::from_secs(60);
}
