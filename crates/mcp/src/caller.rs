//! The caller of a request: its token and the token's limits.

use std::sync::Arc;

use pinfold::{AnswerMemory, CallOptions, Mode, Session};
use rmcp::RoleServer;
use rmcp::service::RequestContext;

/// The caller of a request, identified by its token. The one client on standard input and output has no token.
///
/// Sessions and conversations belong to a caller. Another token never reaches them, and neither does the same token
/// in another mode.
#[derive(Clone, Debug, Default)]
pub(crate) struct Caller {
    /// The name of the token; empty if it has none.
    pub(crate) token: Arc<str>,
    /// The token's permission mode, if it has one.
    pub(crate) mode: Option<Mode>,
    /// The maximum number of the token's sessions.
    pub(crate) max_sessions: Option<usize>,
}

impl Caller {
    /// The caller of a request. Over HTTP, the endpoint has put it into the request's extensions.
    pub(crate) fn of(context: &RequestContext<RoleServer>) -> Self {
        #[cfg(feature = "http")]
        if let Some(head) = context.extensions.get::<http::request::Parts>() {
            return head.extensions.get::<Self>().cloned().unwrap_or_default();
        }
        _ = context;
        Self::default()
    }

    /// Whether a request came over HTTP, where the server has other clients, too.
    pub(crate) fn is_over_http(context: &RequestContext<RoleServer>) -> bool {
        #[cfg(feature = "http")]
        return context.extensions.get::<http::request::Parts>().is_some();
        #[cfg(not(feature = "http"))]
        {
            _ = context;
            false
        }
    }

    /// The memory of the answer to a request, which its transport keeps until the answer is sent.
    fn answer_memory(context: &RequestContext<RoleServer>) -> Option<AnswerMemory> {
        #[cfg(feature = "http")]
        if let Some(head) = context.extensions.get::<http::request::Parts>() {
            return head.extensions.get().cloned();
        }
        context.extensions.get().cloned()
    }

    /// The options of a call, which name the client and its token for the audit log.
    pub(crate) fn call_options(context: &RequestContext<RoleServer>) -> CallOptions {
        let client: Option<Arc<str>> = context.client_info().map(|client| client.name.into());
        let token = Some(Self::of(context).token).filter(|token| !token.is_empty());
        let options = CallOptions::default().with_client(client).with_token(token);
        options.with_answer_memory(Self::answer_memory(context))
    }

    /// Whether two callers share sessions and conversations: they have the same token and mode.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.token == other.token && self.mode == other.mode
    }

    /// Returns the session in the caller's mode, if that allows less than the session's own.
    pub(crate) fn restrict_mode(&self, session: Session) -> Session {
        let own = session.settings().permissions.mode;
        match self.mode {
            Some(mode) if allows(mode) < allows(own) => session.in_mode(mode),
            _ => session,
        }
    }
}

/// Orders modes by how much they allow.
fn allows(mode: Mode) -> u8 {
    match mode {
        Mode::Plan => 0,
        Mode::DontAsk => 1,
        Mode::Ask => 2,
        Mode::AcceptEdits => 3,
        Mode::SecureFileAccess => 4,
        Mode::BypassPermissions => 5,
    }
}

#[cfg(test)]
mod tests {
    use pinfold::Settings;

    use super::*;

    #[test]
    fn a_token_never_allows_more_than_the_workspace() {
        let dir = tempfile::tempdir().unwrap();
        for (own, token, expected) in [
            (Mode::SecureFileAccess, None, Mode::SecureFileAccess),
            (Mode::SecureFileAccess, Some(Mode::Plan), Mode::Plan),
            (Mode::SecureFileAccess, Some(Mode::BypassPermissions), Mode::SecureFileAccess),
            (Mode::Plan, Some(Mode::AcceptEdits), Mode::Plan),
            (Mode::DontAsk, Some(Mode::Ask), Mode::DontAsk),
            (Mode::BypassPermissions, Some(Mode::AcceptEdits), Mode::AcceptEdits),
        ] {
            let mut settings = Settings::default();
            settings.permissions.mode = own;
            let session = Session::with_settings([dir.path()], settings).unwrap();
            let caller = Caller { mode: token, ..Caller::default() };
            let limited = caller.restrict_mode(session).settings().permissions.mode;
            assert_eq!(limited, expected, "{own:?} {token:?}");
        }
    }
}
