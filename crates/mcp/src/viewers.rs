//! Asks the viewers of the feed for approval, while one is open, before the client is asked.

use std::sync::Arc;

use pinfold::{ApprovalAnswer, ApprovalRequest, Approver, Cancel};
use pinfold_feed::{Feed, ViewerRequest};

use crate::approve::RepeatedCallApprover;
use crate::limits;

/// Asks the viewers of the feed, then the client if no viewer is left.
#[derive(Debug)]
pub(crate) struct ViewersFirst {
    pub(crate) feed: Arc<Feed>,
    /// The user's answers from earlier rounds of the call, which are not asked for again.
    pub(crate) earlier: Option<Arc<RepeatedCallApprover>>,
    /// Asks the client, if it can be asked.
    pub(crate) client_approver: Option<Arc<dyn Approver>>,
    pub(crate) session: String,
    pub(crate) client: Option<Arc<str>>,
    pub(crate) session_grants: bool,
    pub(crate) cancel: Cancel,
}

impl Approver for ViewersFirst {
    fn ask(&self, request: &ApprovalRequest) -> ApprovalAnswer {
        if let Some(answer) = self.earlier.as_ref().and_then(|earlier| earlier.find(request)) {
            return answer;
        }
        let answer = self.feed.ask(&ViewerRequest {
            request,
            session: &self.session,
            client: self.client.as_deref(),
            session_grants: self.session_grants,
            max_wait: limits::APPROVAL_WAIT,
            is_cancelled: &|| self.cancel.is_cancelled(),
        });
        let client = self.client_approver.as_ref();
        answer.unwrap_or_else(|| {
            client.map_or(ApprovalAnswer::Unavailable, |client| client.ask(request))
        })
    }
}
