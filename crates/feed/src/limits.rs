//! The limits of the feed, each with the reason for its value.

use std::time::Duration;

/// How many connections a feed has at once. Each has two threads.
pub(crate) const MAX_CONNECTIONS: usize = 32;

/// How long a connection may take to say hello.
pub(crate) const HELLO_WAIT: Duration = Duration::from_secs(5);

/// How long a viewer may leave a line unread once the socket's buffer is full.
pub(crate) const UNREAD_WAIT: Duration = Duration::from_secs(5);

/// Lines that wait for a viewer, and their bytes: a burst of calls, and a few whole diffs.
pub(crate) const MAX_QUEUED_LINES: usize = 8192;
pub(crate) const MAX_QUEUED_BYTES: usize = 32 * 1024 * 1024;

/// The longest command: a message for the model is by far the longest part.
pub(crate) const MAX_COMMAND_BYTES: usize = 64 * 1024;

/// Commands of one viewer in a second. A user answers a few.
pub(crate) const MAX_COMMANDS_PER_SECOND: u32 = 100;

/// Characters of the preview in an approval request: a few screens.
pub(crate) const MAX_PREVIEW_CHARS: usize = 20_000;

/// Characters of a whole diff.
pub(crate) const MAX_DIFF_CHARS: usize = 4_000_000;

/// Characters of a call's arguments, of a path and of a client's name.
pub(crate) const MAX_TEXT_CHARS: usize = 4_000;

/// How often a call that waits for an answer looks whether it was cancelled.
pub(crate) const CANCEL_POLL: Duration = Duration::from_millis(50);

/// The longest event that a viewer accepts: a whole diff in which every character is escaped.
pub(crate) const MAX_EVENT_BYTES: usize = 64 * 1024 * 1024;

/// The clients of a server that are named.
pub(crate) const MAX_CLIENTS: usize = 64;

/// How often a viewer looks for servers that have started: soon enough for a person, and next to no work.
pub(crate) const SEARCH_INTERVAL: Duration = Duration::from_millis(250);
