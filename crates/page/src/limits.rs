//! The limits of the page, with the reasons for their values.

use std::time::Duration;

/// The maximum number of connections. A browser opens six for a page, and one of them stays open for events.
pub(crate) const MAX_CONNECTIONS: usize = 64;

/// How long a browser may take to send the head of a request, and its body.
pub(crate) const HEAD_WAIT: Duration = Duration::from_secs(10);
pub(crate) const BODY_WAIT: Duration = Duration::from_secs(10);

/// The longest body. A message for the model is its longest part by far.
pub(crate) const MAX_BODY_BYTES: usize = 64 * 1024;

/// The maximum number of queued events for a browser. A browser that is too slow is disconnected, connects again and
/// gets the newest.
pub(crate) const MAX_QUEUED_EVENTS: usize = 4096;

/// The number of events about calls and changes that a page gets when it opens: more than fit on a screen, and sent
/// in less than a second.
pub(crate) const MAX_RECENT_EVENTS: usize = 1000;

/// The interval of empty lines, which show whether a browser is still connected.
pub(crate) const PING_INTERVAL: Duration = Duration::from_secs(10);

/// How long servers still count the page as open after it was closed. A reload takes less.
pub(crate) const CLOSE_WAIT: Duration = Duration::from_secs(3);

/// The maximum number of changes in one answer.
pub(crate) const MAX_CHANGES: usize = 500;

/// The maximum size of a diff: some hundred thousand lines. The page shows a part at a time.
pub(crate) const MAX_DIFF_BYTES: usize = 16 * 1024 * 1024;
