//! The reason why a call was denied, worded for the agent.

use crate::{Mode, Reason};

/// The reason why a call was denied.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Denial {
    /// By a rule or by the mode, or because the path is one of Pinfold's own files.
    #[error("{}", reason(.0))]
    Policy(Reason),
    /// By the user, maybe with a message for the agent.
    #[error("the user said no{}", message(.0.as_deref()))]
    User(Option<String>),
    /// The user was asked and did not answer; the text says what happened.
    #[error("the user did not answer: {0}")]
    Unanswered(String),
    /// Needs approval, and the mode `dontAsk` denies that.
    #[error("the mode `dontAsk` denies what needs approval{}", cause(.reason))]
    DontAsk {
        /// Why the user would have to be asked.
        reason: Reason,
        /// The rule that would allow it, if one would.
        allow: Option<String>,
    },
    /// Needs approval, and there is no way to ask the user.
    #[error("it needs the user's approval ({reason}), and nobody can be asked")]
    NoApprover {
        /// Why the user has to be asked.
        reason: Reason,
        /// The rule that would allow the access, if there is one.
        allow: Option<String>,
    },
    /// The client asks the user, and repeats the call with the answer.
    #[error("the user is being asked")]
    Deferred,
}

fn reason(reason: &Reason) -> String {
    match reason {
        Reason::Mode(mode) => format!("the mode `{}` changes nothing", mode.name()),
        Reason::Own => "it is one of Pinfold's own files, and out of reach".into(),
        Reason::ReadRoot | Reason::RootMoved | Reason::Paused => reason.to_string(),
        other => format!("{other} forbids it"),
    }
}

/// The reason in parentheses, unless it is the mode itself.
fn cause(reason: &Reason) -> String {
    match reason {
        Reason::Mode(Mode::DontAsk) => String::new(),
        other => format!(" ({other})"),
    }
}

fn message(message: Option<&str>) -> String {
    message.map(|message| format!(": {message}")).unwrap_or_default()
}
