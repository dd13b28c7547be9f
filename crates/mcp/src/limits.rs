//! The limits of the server, and the reasons for their values.

use std::time::Duration;

/// The largest message: a file of 100 MiB as JSON text, with room for escapes.
pub const MAX_MESSAGE_BYTES: usize = 128 * 1024 * 1024;

/// How many calls run at once. Searches use several threads each; more calls wait for a thread.
pub(crate) const MAX_CALLS: usize = 64;

/// How much nicer searches over HTTP are than other calls: with 10, a search gets about a tenth of a processor that
/// another call needs, too, and is never stopped altogether. With 5 it gets a quarter, and one small read in ten of
/// another client took nearly twice as long.
#[cfg(target_os = "linux")]
pub(crate) const SEARCH_NICE: i32 = 10;

/// How many more calls may wait for the user. Each occupies a thread, which costs little while it waits.
pub(crate) const MAX_APPROVAL_REQUESTS: usize = 448;

/// How many calls may have been answered while their threads hang, for example on a network file system that does not
/// respond. Further calls are refused, since each such thread uses memory for as long as it hangs.
pub(crate) const MAX_STUCK_CALLS: usize = 64;

/// How long after its deadline or cancellation a call may still end normally. After that the server answers, and
/// counts the thread as stuck. It is less than a second, so that the answer arrives within one second after the
/// deadline or cancellation.
pub(crate) const STUCK_AFTER: Duration = Duration::from_millis(800);

/// How long the event-loop thread busy-waits after it has given a call to another thread. It is the
/// time that a small change with a flush takes. A longer call does not benefit.
pub(crate) const MAX_SPIN: Duration = Duration::from_micros(500);

/// How often a call checks whether it is still waiting for the user.
pub(crate) const APPROVAL_POLL: Duration = Duration::from_millis(100);

/// How long calls may go on after the client has closed the connection; then they are cancelled. That is enough for a
/// script that pipes requests in and reads the answers, and short enough that a client does not see the process
/// linger.
pub(crate) const LAST_CALLS: Duration = Duration::from_secs(1);

/// How long calls on standard input and output may take after SIGTERM, before they are cancelled: half of the ten seconds
/// that Docker waits before it kills.
pub(crate) const DRAIN: Duration = Duration::from_secs(5);

/// How long a server that stops waits for cancelled calls.
pub(crate) const STOPPING: Duration = Duration::from_secs(10);

/// How often progress is reported.
pub(crate) const PROGRESS_EVERY: Duration = Duration::from_millis(500);

/// How long the client may take to answer with its roots.
pub(crate) const ROOTS_WAIT: Duration = Duration::from_secs(10);

/// The maximum number of conversations, and of HTTP sessions, for each workspace over HTTP. Each may hold the
/// fingerprints of 50,000 files.
pub(crate) const MAX_CONVERSATIONS: usize = 256;

/// How long a conversation over HTTP lasts after its last request. A user may take a lunch break.
pub(crate) const CONVERSATION_IDLE: Duration = Duration::from_secs(2 * 60 * 60);

/// The longest name that a client may give a session.
pub(crate) const MAX_SESSION_NAME_BYTES: usize = 200;

/// How long clients may cache the list of tools. Only a restart changes it, but a client that outlives the server
/// should notice.
pub(crate) const LIST_TTL: Duration = Duration::from_secs(5 * 60);

/// The shortest time between two progress reports.
pub(crate) const MIN_PROGRESS_INTERVAL: Duration = Duration::from_millis(1);

/// How long the user may take to answer an approval request.
pub(crate) const APPROVAL_WAIT: Duration = Duration::from_secs(5 * 60);

/// How much of a diff the client's form shows.
pub(crate) const DIFF_CHARS: usize = 4_000;

/// The maximum number of the client's roots; the others are ignored.
pub(crate) const MAX_CLIENT_ROOTS: usize = 64;

/// The maximum number of JSON values in a message. The text of a file is one value; a hundred thousand edits are a
/// few hundred thousand. Each takes some hundred bytes while it is parsed.
pub(crate) const MAX_MESSAGE_VALUES: usize = 500_000;

/// The maximum size of all queued requests. More of them stay in the pipe.
pub(crate) const MAX_QUEUED_BYTES: usize = 2 * MAX_MESSAGE_BYTES;

/// The maximum size of all requests that are handled at once; others wait. A larger one is handled alone.
pub(crate) const MAX_HANDLED_BYTES: usize = 2 * MAX_MESSAGE_BYTES;

/// How many requests of one client are handled at once.
pub(crate) const MAX_REQUESTS: usize = 64;

/// How long the server waits for a client that does not read, where other work depends on it.
pub(crate) const UNREAD_WAIT: Duration = Duration::from_secs(1);

/// How much memory stays allocated for the next message.
pub(crate) const KEPT_LINE_BYTES: usize = 4 * 1024 * 1024;

/// The capacity of the pipe of standard output, if the system allows it.
pub(crate) const OUTPUT_PIPE_BYTES: usize = 1024 * 1024;

/// The capacity of the pipe of standard input. The system allows each user 64 MiB in all pipes, and arguments are
/// rarely longer.
pub(crate) const INPUT_PIPE_BYTES: usize = 256 * 1024;

/// Limits that only the HTTP server has.
#[cfg(feature = "http")]
pub(crate) mod http {
    use std::time::Duration;

    /// The server looks for idle sessions twice in each session's idle time, but within these bounds.
    pub(crate) const MIN_IDLE_CHECK_INTERVAL: Duration = Duration::from_millis(10);
    pub(crate) const MAX_IDLE_CHECK_INTERVAL: Duration = Duration::from_secs(60);

    /// The maximum number of connections for metrics. Few Prometheus servers connect.
    pub(crate) const MAX_SCRAPES: usize = 8;

    /// How long the server waits after it failed to accept a connection. Most likely the process has too many open
    /// files.
    pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

    /// How long running calls may take after SIGTERM. It is less than the half minute after which container engines
    /// kill a process.
    pub(crate) const DRAIN: Duration = Duration::from_secs(20);

    /// How long a server that ends waits for the calls that it has cancelled.
    pub(crate) const STOPPING: Duration = Duration::from_secs(2);

    /// The maximum number of open connections: half of the files that a process may usually open.
    pub(crate) const MAX_CONNECTIONS: usize = 512;

    /// How long a client may take to send the head of a request.
    pub(crate) const HEAD_WAIT: Duration = Duration::from_secs(10);

    /// How long a client may take to send the body.
    pub(crate) const BODY_WAIT: Duration = Duration::from_secs(30);

    /// How long a long body waits for memory. With the time to send it, that is the minute after which clients give up.
    pub(crate) const BODY_MEMORY_WAIT: Duration = Duration::from_secs(30);

    /// A body up to this size does not wait for others.
    pub(crate) const MAX_SMALL_BODY: usize = 64 * 1024;

    /// How much of an answer is given to the connection at once. The rest keeps its room in memory until the client has
    /// read what went before.
    pub(crate) const ANSWER_PIECE: usize = 64 * 1024;

    /// How long a client may take to read an answer for whose memory other calls wait, and how often that is checked. It is
    /// half of a call's usual deadline, so that the other calls still have theirs.
    pub(crate) const ANSWER_WAIT: Duration = Duration::from_secs(30);
    pub(crate) const ANSWER_CHECK_INTERVAL: Duration = Duration::from_secs(1);

    /// How many event-loop threads there are over HTTP. They also answer small reads of cached files; other calls run on
    /// other threads.
    pub(crate) const MAX_EVENT_LOOP_THREADS: usize = 4;

    /// A session over HTTP that was used within this time does not end to make room for another.
    pub(crate) const SESSION_BUSY: Duration = Duration::from_secs(60);
}
