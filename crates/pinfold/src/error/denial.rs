//! Who said no, in words for the agent.

use crate::Reason;

/// Who said no, and why.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Denial {
    /// A rule, the mode, or that it is Pinfold's own.
    #[error("{}", said(.0))]
    Policy(Reason),
    /// A person, maybe with words for the agent.
    #[error("the person said no{}", words(.0.as_deref()))]
    Person(Option<String>),
    /// A person would have to be asked, and nobody can be.
    #[error("a person has to be asked ({reason}), and nobody can be")]
    Nobody {
        /// Why somebody would have to be.
        reason: Reason,
        /// The rule that would allow it, if one would.
        allow: Option<String>,
    },
    /// A person is being asked, and the call will be made again with the answer.
    #[error("a person is being asked")]
    Later,
}

fn said(reason: &Reason) -> String {
    match reason {
        Reason::Mode(mode) => format!("the mode `{}` changes nothing", mode.name()),
        Reason::Own => "it is Pinfold's own, and out of reach".into(),
        other => format!("{other} forbids it"),
    }
}

fn words(words: Option<&str>) -> String {
    words.map(|words| format!(": {words}")).unwrap_or_default()
}
