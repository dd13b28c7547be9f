//! Every number that somebody chose for the page, and why.

use std::time::Duration;

/// Connections at once. A browser opens six for a page, and one of them stays open for events.
pub(crate) const MAX_CONNECTIONS: usize = 64;

/// How long a browser may take to send the head of a request, and the body.
pub(crate) const HEAD_WAIT: Duration = Duration::from_secs(10);
pub(crate) const BODY_WAIT: Duration = Duration::from_secs(10);

/// The longest body: a message for the model is by far the longest part.
pub(crate) const MAX_BODY_BYTES: usize = 64 * 1024;

/// Events that wait for a browser. One that lets more wait is disconnected, connects again and gets the newest.
pub(crate) const MAX_QUEUED_EVENTS: usize = 4096;

/// Events about calls and changes that a page gets when it opens: more than a screen, less than a second's work.
pub(crate) const MAX_RECENT_EVENTS: usize = 1000;

/// How often an empty line is sent, so that a browser that is gone is noticed.
pub(crate) const PING_INTERVAL: Duration = Duration::from_secs(10);

/// How long after the last page has closed servers still count it as open: a reload takes less.
pub(crate) const CLOSE_WAIT: Duration = Duration::from_secs(3);

/// Changes in one answer, at most.
pub(crate) const MAX_CHANGES: usize = 500;

/// Bytes of a diff: some hundred thousand lines. The page shows a part at a time.
pub(crate) const MAX_DIFF_BYTES: usize = 16 * 1024 * 1024;
