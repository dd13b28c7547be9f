//! The limits of the feed, with the reasons for their values.

use std::time::Duration;

/// The maximum number of connections. Each has two threads.
pub(crate) const MAX_CONNECTIONS: usize = 32;

/// How long a new connection may take to send `hello`.
pub(crate) const HELLO_WAIT: Duration = Duration::from_secs(5);

/// How long a viewer may leave a line unread once the socket's buffer is full.
pub(crate) const UNREAD_WAIT: Duration = Duration::from_secs(5);

/// The maximum number of lines in a viewer's queue, and their size: a burst of calls and a few whole diffs.
pub(crate) const MAX_QUEUED_LINES: usize = 8192;
pub(crate) const MAX_QUEUED_BYTES: usize = 32 * 1024 * 1024;

/// The longest command. A message for the model is its longest part by far.
pub(crate) const MAX_COMMAND_BYTES: usize = 64 * 1024;

/// The maximum number of a viewer's commands per second. A user answers a few.
pub(crate) const MAX_COMMANDS_PER_SECOND: u32 = 100;

/// Characters of the preview in an approval request: a few screens.
pub(crate) const MAX_PREVIEW_CHARS: usize = 20_000;

/// Characters of a whole diff.
pub(crate) const MAX_DIFF_CHARS: usize = 4_000_000;

/// Characters of a call's arguments, of a path and of a client's name.
pub(crate) const MAX_TEXT_CHARS: usize = 4_000;

/// How often a call that waits for an answer checks whether it was cancelled.
pub(crate) const CANCEL_POLL: Duration = Duration::from_millis(50);

/// The longest event that a viewer accepts: a whole diff in which every character is escaped.
pub(crate) const MAX_EVENT_BYTES: usize = 64 * 1024 * 1024;

/// The maximum number of a server's clients that are named.
pub(crate) const MAX_CLIENTS: usize = 64;

/// How often a viewer looks for new servers. It is soon enough for a user, and takes almost no work.
pub(crate) const SEARCH_INTERVAL: Duration = Duration::from_millis(250);
