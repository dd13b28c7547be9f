//! Asking the program that embeds Pinfold.

use std::fmt;
use std::sync::{Condvar, Mutex, PoisonError};

use pinfold::{ApprovalAnswer, ApprovalRequest, Approver};
use serde_json::{Value, json};

use crate::pool::without_place;

/// Whoever can ask a person, or decide for them.
pub trait Host: Send + Sync + 'static {
    /// Asks, and waits for the decision: JSON text, as [`Mailbox`] is given it.
    fn ask(&self, question: &str) -> String;
}

/// The host decides how much of it to show.
const MAX_PREVIEW_CHARS: usize = 100_000;

/// A host, as the engine asks it.
pub(crate) struct Asker<H>(pub(crate) H);

impl<H> fmt::Debug for Asker<H> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Asker")
    }
}

impl<H: Host> Approver for Asker<H> {
    fn ask(&self, question: &ApprovalRequest) -> ApprovalAnswer {
        let text = json!({
            "question": question.headline(),
            "tool": question.tool,
            "operation": question.access.name(),
            "given": question.given,
            "path": question.path.to_string_lossy(),
            "reason": question.reason.to_string(),
            "diff": Some(question.preview(MAX_PREVIEW_CHARS)).filter(|it| !it.is_empty()),
        });
        verdict(&without_place(|| self.0.ask(&text.to_string())))
    }
}

/// What a program's decision means: `true`, `false`, or an object with `behavior` (`allow`, `deny`),
/// `message` (words for the agent) and `remember` (the same operation on the same file is not asked about
/// again). Anything else is no.
fn verdict(decision: &str) -> ApprovalAnswer {
    let decision: Value = serde_json::from_str(decision).unwrap_or_default();
    let message = decision["message"].as_str().map(str::to_owned);
    match (&decision, decision["behavior"].as_str()) {
        (Value::Bool(true), _) => ApprovalAnswer::Once,
        (Value::Bool(false), _) => ApprovalAnswer::Denied(None),
        (_, Some("allow")) if decision["remember"] == true => ApprovalAnswer::Session,
        (_, Some("allow")) => ApprovalAnswer::Once,
        (_, Some("deny")) => ApprovalAnswer::Denied(message),
        _ => {
            let problem = "whoever decides here gave an answer that is neither yes nor no";
            ApprovalAnswer::Denied(Some(problem.to_owned()))
        }
    }
}

/// Where a decision is left for a call that waits for it.
#[derive(Debug, Default)]
pub struct Mailbox {
    letter: Mutex<Letter>,
    arrived: Condvar,
}

#[derive(Debug, Default)]
enum Letter {
    #[default]
    None,
    Decision(String),
    /// No more decisions will come.
    Closed,
}

impl Mailbox {
    /// Leaves a decision.
    pub fn put(&self, decision: String) {
        let mut letter = self.lock();
        if !matches!(*letter, Letter::Closed) {
            *letter = Letter::Decision(decision);
            self.arrived.notify_all();
        }
    }

    /// Whoever waits, now or later, need not: the decision is no.
    pub fn close(&self) {
        *self.lock() = Letter::Closed;
        self.arrived.notify_all();
    }

    /// Waits for a decision.
    pub fn take(&self) -> String {
        let mut letter = self.lock();
        loop {
            match std::mem::take(&mut *letter) {
                Letter::Decision(decision) => return decision,
                Letter::Closed => {
                    *letter = Letter::Closed;
                    return "false".to_owned();
                }
                Letter::None => {
                    letter = self.arrived.wait(letter).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Letter> {
        self.letter.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_is_one() {
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
            assert_eq!(verdict(decision), means, "{decision}");
        }
        for unclear in ["", "null", "1", "\"yes\"", "{}", "[true]", r#"{"allow":true}"#] {
            let no = matches!(verdict(unclear), ApprovalAnswer::Denied(Some(words)) if words.contains("neither"));
            assert!(no, "{unclear}");
        }
    }

    #[test]
    fn a_closed_mailbox_says_no_for_ever() {
        let mailbox = Mailbox::default();
        mailbox.put("true".into());
        assert_eq!(mailbox.take(), "true");
        mailbox.close();
        mailbox.put("true".into());
        assert_eq!(mailbox.take(), "false");
        assert_eq!(mailbox.take(), "false");
    }
}
