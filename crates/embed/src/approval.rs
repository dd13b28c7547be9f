//! Approval requests to the embedding program.

use std::fmt;
use std::sync::{Condvar, Mutex, PoisonError};

use pinfold::{ApprovalAnswer, ApprovalRequest, Approver};
use serde_json::{Value, json};

use crate::pool::while_waiting;

/// The embedding program. It asks the user for approval, or decides for the user.
pub trait Host: Send + Sync + 'static {
    /// Passes on an approval request, and waits for the decision. Both are JSON text.
    fn ask(&self, request: &str) -> String;
}

/// The maximum number of characters of a preview. The host decides how much of it to show.
const MAX_PREVIEW_CHARS: usize = 100_000;

/// Wraps a host as an [`Approver`].
pub(crate) struct HostApprover<H>(pub(crate) H);

impl<H> fmt::Debug for HostApprover<H> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("HostApprover")
    }
}

impl<H: Host> Approver for HostApprover<H> {
    fn ask(&self, request: &ApprovalRequest) -> ApprovalAnswer {
        let text = json!({
            "question": request.headline(),
            "tool": request.tool,
            "operation": request.access.name(),
            "given": request.given,
            "path": request.path.to_string_lossy(),
            "reason": request.reason.to_string(),
            "diff": Some(request.preview(MAX_PREVIEW_CHARS)).filter(|diff| !diff.is_empty()),
        });
        parse_decision(&while_waiting(|| self.0.ask(&text.to_string())))
    }
}

/// Parses a decision: `true`, `false`, or an object with `behavior` (`allow`, `deny`), `message` (for the agent) and
/// `remember` (approves the same operation on the same file for the session), or with `failed` (the callback's
/// failure). Anything else denies.
fn parse_decision(decision: &str) -> ApprovalAnswer {
    let decision: Value = serde_json::from_str(decision).unwrap_or_default();
    let message = decision["message"].as_str().map(str::to_owned);
    match (&decision, decision["behavior"].as_str()) {
        (Value::Bool(true), _) => ApprovalAnswer::Once,
        (Value::Bool(false), _) => ApprovalAnswer::Denied(None),
        (_, Some("allow")) if decision["remember"] == true => ApprovalAnswer::Session,
        (_, Some("allow")) => ApprovalAnswer::Once,
        (_, Some("deny")) => ApprovalAnswer::Denied(message),
        _ => {
            let failed = decision["failed"].as_str();
            let unclear = "the approval callback returned neither yes nor no";
            ApprovalAnswer::Unanswered(failed.unwrap_or(unclear).to_owned())
        }
    }
}

/// Passes a decision to the thread of the waiting call.
#[derive(Debug, Default)]
pub struct DecisionSlot {
    state: Mutex<SlotState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
enum SlotState {
    #[default]
    Empty,
    Decision(String),
    /// There will be no more decisions.
    Closed,
}

impl DecisionSlot {
    /// Passes on a decision.
    pub fn put(&self, decision: String) {
        let mut state = self.lock();
        if !matches!(*state, SlotState::Closed) {
            *state = SlotState::Decision(decision);
            self.changed.notify_all();
        }
    }

    /// Ends the current and all later waits. The decision is a denial.
    pub fn close(&self) {
        *self.lock() = SlotState::Closed;
        self.changed.notify_all();
    }

    /// Waits for a decision.
    pub fn take(&self) -> String {
        let mut state = self.lock();
        loop {
            match std::mem::take(&mut *state) {
                SlotState::Decision(decision) => return decision,
                SlotState::Closed => {
                    *state = SlotState::Closed;
                    return "false".to_owned();
                }
                SlotState::Empty => {
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, SlotState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_approves() {
        for (decision, means) in [
            ("true", ApprovalAnswer::Once),
            (r#"{"behavior":"allow"}"#, ApprovalAnswer::Once),
            (r#"{"behavior":"allow","remember":true}"#, ApprovalAnswer::Session),
            ("false", ApprovalAnswer::Denied(None)),
            (r#"{"behavior":"deny"}"#, ApprovalAnswer::Denied(None)),
            (
                r#"{"behavior":"deny","message":"later"}"#,
                ApprovalAnswer::Denied(Some("later".into())),
            ),
        ] {
            assert_eq!(parse_decision(decision), means, "{decision}");
        }
        let failed = parse_decision(r#"{"failed":"it threw"}"#);
        assert_eq!(failed, ApprovalAnswer::Unanswered("it threw".into()));
        for unclear in ["", "null", "1", "\"yes\"", "{}", "[true]", r#"{"allow":true}"#] {
            let no = matches!(parse_decision(unclear), ApprovalAnswer::Unanswered(words) if words.contains("neither"));
            assert!(no, "{unclear}");
        }
    }

    #[test]
    fn a_closed_slot_says_no_for_ever() {
        let slot = DecisionSlot::default();
        slot.put("true".into());
        assert_eq!(slot.take(), "true");
        slot.close();
        slot.put("true".into());
        assert_eq!(slot.take(), "false");
        assert_eq!(slot.take(), "false");
    }
}
