//! Makes events from calls, changes and approval requests.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use chrono::{SecondsFormat, Utc};
use pinfold::{AuditLine, CallStart, ChangeEvent, Observer, Reason, cut_to_chars, escaped_text};

use super::{Feed, ViewerRequest};
use crate::limits;
use crate::message::{AnswerKind, Approval, CallEnded, CallStarted, Change, Event};

impl Observer for Feed {
    fn is_watching(&self) -> bool {
        self.0.is_watching()
    }

    fn is_paused(&self) -> bool {
        self.0.paused.load(Ordering::Relaxed)
    }

    fn call_started(&self, call: &CallStart<'_>) -> u64 {
        let number = self.0.last_call.fetch_add(1, Ordering::Relaxed) + 1;
        self.0.send(&Event::CallStarted(CallStarted {
            call: number,
            time: now(),
            session: call.session.to_owned(),
            client: call.client.map(brief),
            tool: call.tool.to_owned(),
            parameters: call.compact_params.map(brief),
        }));
        number
    }

    fn call_ended(&self, number: u64, line: &AuditLine<'_>) {
        self.0.send(&Event::CallEnded(CallEnded {
            call: number,
            time: line.time.clone(),
            session: line.session.to_owned(),
            client: line.client.as_deref().map(brief),
            tool: line.tool.to_string(),
            operation: line.fields.operation.map(str::to_owned),
            paths: line.fields.paths.clone(),
            decision: line.fields.decision.0.to_owned(),
            why: line.fields.why.clone(),
            outcome: line.outcome.to_owned(),
            duration_ms: line.duration_ms,
            bytes: line.bytes as u64,
        }));
    }

    fn changed(&self, change: &ChangeEvent<'_>) {
        self.0.send(&Event::Change(Change {
            call: change.call,
            time: now(),
            session: change.session.to_owned(),
            tool: change.tool.to_owned(),
            path: change.path.clone(),
            moved_to: change.moved_to.clone(),
            kind: change.kind.to_owned(),
            id: change.id.map(str::to_owned),
            added: change.lines.map(|(added, _)| added),
            removed: change.lines.map(|(_, removed)| removed),
        }));
    }
}

/// The event for an approval request, without its number.
pub(super) fn approval(asked: &ViewerRequest<'_>) -> Approval {
    let request = asked.request;
    let mut answers = vec![AnswerKind::Once, AnswerKind::Session, AnswerKind::No];
    if !asked.session_grants || request.reason == Reason::Paused {
        answers.retain(|answer| *answer != AnswerKind::Session);
    }
    Approval {
        request: 0,
        time: now(),
        session: asked.session.to_owned(),
        client: asked.client.map(brief),
        tool: request.tool.clone(),
        access: request.access.name().to_owned(),
        given: brief(&request.given),
        path: escaped_text(request.path.as_os_str().as_encoded_bytes()),
        reason: request.reason.to_string(),
        headline: request.headline(),
        preview: request.preview(limits::MAX_PREVIEW_CHARS),
        answers,
    }
}

/// An event as a line.
pub(crate) fn line(event: &Event) -> Arc<str> {
    let mut line = serde_json::to_string(event).expect("events are plain data with text keys");
    line.push('\n');
    line.into()
}

/// The current time, in ISO 8601 and UTC.
pub(super) fn now() -> String {
    Utc::now().to_rfc3339_opts(SecondsFormat::Micros, true)
}

/// Cuts a text to the maximum length in events.
pub(super) fn brief(text: &str) -> String {
    cut_to_chars(text, limits::MAX_TEXT_CHARS).into_owned()
}
