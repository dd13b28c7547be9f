//! Who may look at what, and who may touch what.
//!
//! The order is fixed: the fence and Pinfold's own files, then deny, ask, allow, and what the mode says.
//! There are no priorities and no specificity; an exception is a `!pattern` within a list. `View` asks
//! before it looks and `commit` before it touches: tools never do.

mod fold;
mod protected;
mod rules;

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::Deserialize;

use fold::Names;
pub use rules::BadRule;
use rules::Rules;

/// What is to be done to a file, as rules speak of it.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Access {
    /// Reading, listing, finding, searching, and asking what is there.
    Read,
    /// Whatever changes content: `Write` and `Edit` in rules.
    Write,
    /// Deleting.
    Delete,
}

impl Access {
    /// What it is called in rules.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "Read",
            Self::Write => "Write",
            Self::Delete => "Delete",
        }
    }

    /// What somebody who does it is doing.
    pub(crate) fn doing(self) -> &'static str {
        match self {
            Self::Read => "reading",
            Self::Write => "changing",
            Self::Delete => "deleting",
        }
    }
}

/// What holds where no rule says otherwise.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
pub enum Mode {
    /// Files may be read; whatever changes something asks.
    #[serde(rename = "default")]
    Ask,
    /// Changes are allowed, too, but for protected places, which ask.
    #[default]
    #[serde(rename = "secure-file-access")]
    SecureFileAccess,
    /// As that, but deleting asks.
    #[serde(rename = "acceptEdits")]
    AcceptEdits,
    /// Nothing is changed, whatever the rules say.
    #[serde(rename = "plan")]
    Plan,
    /// What would ask is refused.
    #[serde(rename = "dontAsk")]
    DontAsk,
    /// Nothing asks. The fence and deny rules hold.
    #[serde(rename = "bypassPermissions")]
    BypassPermissions,
}

impl Mode {
    /// Every mode.
    pub const ALL: [Self; 6] = [
        Self::Ask,
        Self::SecureFileAccess,
        Self::AcceptEdits,
        Self::Plan,
        Self::DontAsk,
        Self::BypassPermissions,
    ];

    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ask => "default",
            Self::SecureFileAccess => "secure-file-access",
            Self::AcceptEdits => "acceptEdits",
            Self::Plan => "plan",
            Self::DontAsk => "dontAsk",
            Self::BypassPermissions => "bypassPermissions",
        }
    }
}

impl FromStr for Mode {
    type Err = String;

    /// The mode with a name, or what the names are.
    fn from_str(name: &str) -> Result<Self, String> {
        let named = Self::ALL.into_iter().find(|mode| mode.name() == name);
        named.ok_or_else(|| format!("the modes are {}", Self::ALL.map(Self::name).join(", ")))
    }
}

/// The settings in `[permissions]`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(default, deny_unknown_fields)]
pub struct Permissions {
    /// What holds where no rule says otherwise.
    pub mode: Mode,
    /// What is allowed: each `Tool(pattern)`, `Tool` or `*`.
    pub allow: Vec<String>,
    /// What a person is asked about.
    pub ask: Vec<String>,
    /// What is refused.
    pub deny: Vec<String>,
}

impl Permissions {
    /// Whether every rule can be understood.
    pub fn check(&self) -> Result<(), BadRule> {
        Policy::new(self, Vec::new(), &[]).map(|_| ())
    }
}

/// What is to become of a request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Decision {
    Allow(Reason),
    Ask(Reason),
    Deny(Reason),
}

/// Why something was decided.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Reason {
    /// A rule that the person gave, as it was written.
    Rule(String),
    /// The mode.
    Mode(Mode),
    /// It may hold secrets.
    Secret,
    /// What is written there may be run.
    MakesCodeRun,
    /// It is Pinfold's own.
    Own,
}

impl fmt::Display for Reason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(rule) => write!(out, "the rule `{rule}`"),
            Self::Mode(mode) => write!(out, "the mode `{}`", mode.name()),
            Self::Secret => out.write_str("it may hold secrets"),
            Self::MakesCodeRun => out.write_str("what is written there may be run"),
            Self::Own => out.write_str("it is Pinfold's own"),
        }
    }
}

/// The rules and the mode, ready to be asked.
#[derive(Clone, Debug)]
pub(crate) struct Policy {
    mode: Mode,
    deny: Rules,
    ask: Rules,
    allow: Rules,
    /// The roots that patterns are relative to: those that the person gave, however narrow the
    /// workspace has become since.
    roots: Vec<PathBuf>,
    /// Where Pinfold's own files are, as far as that is inside a root.
    own: Vec<PathBuf>,
}

impl Policy {
    /// `spelled` are the roots as they were given, which rules may begin with.
    pub(crate) fn new(
        permissions: &Permissions,
        roots: Vec<PathBuf>,
        spelled: &[PathBuf],
    ) -> Result<Self, BadRule> {
        let known: Vec<_> = roots.iter().chain(spelled).cloned().collect();
        Ok(Self {
            mode: permissions.mode,
            deny: Rules::broad("deny", &permissions.deny, &known)?,
            ask: Rules::broad("ask", &permissions.ask, &known)?,
            allow: Rules::exact("allow", &permissions.allow, &known)?,
            own: Vec::new(),
            roots,
        })
    }

    /// The same rules with another mode.
    pub(crate) fn in_mode(&self, mode: Mode) -> Self {
        Self { mode, ..self.clone() }
    }

    /// What is to become of a request to do something to a path. `given` is how the path was spelled,
    /// `real` where it leads, free of links; either may be all that is known.
    pub(crate) fn decide(
        &self,
        access: Access,
        given: Option<&Path>,
        real: Option<&Path>,
        directory: bool,
    ) -> Decision {
        let mut known = given.into_iter().chain(real).flat_map(|path| self.below_roots(path));
        let plain = |below: &Path| self.surely_shows(below.as_os_str().as_bytes());
        if self.allow.is_empty() && known.all(plain) {
            // Most paths are in no rule, and look like no place that is asked about.
            return self.by_mode(access);
        }
        if real.is_some_and(|real| self.own.iter().any(|own| real.starts_with(own))) {
            return Decision::Deny(Reason::Own);
        }
        if self.mode == Mode::Plan && access != Access::Read {
            return Decision::Deny(Reason::Mode(self.mode));
        }
        let spellings = given.into_iter().chain(real);
        let names = Names::new(spellings.flat_map(|path| self.below_roots(path)), directory);
        let rule = |text: &str| Reason::Rule(text.to_owned());
        if let Some(text) = self.deny.matches(access, &names) {
            return Decision::Deny(rule(text));
        }
        if self.mode == Mode::BypassPermissions {
            return Decision::Allow(Reason::Mode(self.mode));
        }
        if let Some(text) = self.ask.matches(access, &names) {
            // A yes to something else by that rule is none to a secret.
            let reason = protected::matches(access, &names);
            return Decision::Ask(reason.unwrap_or_else(|| rule(text)));
        }
        let real = Names::new(real.into_iter().flat_map(|path| self.below_roots(path)), directory);
        if let Some(text) = self.allow.matches(access, &real) {
            return Decision::Allow(rule(text));
        }
        if let Some(reason) = protected::matches(access, &names) {
            return Decision::Ask(reason);
        }
        self.by_mode(access)
    }

    /// What holds where no rule says otherwise, and nothing is asked about by itself.
    fn by_mode(&self, access: Access) -> Decision {
        let reason = Reason::Mode(self.mode);
        match (self.mode, access) {
            (_, Access::Read) | (Mode::BypassPermissions, _) => Decision::Allow(reason),
            (Mode::SecureFileAccess, _) | (Mode::AcceptEdits, Access::Write) => {
                Decision::Allow(reason)
            }
            (Mode::Plan, _) => Decision::Deny(reason),
            _ => Decision::Ask(reason),
        }
    }

    /// Whether what is at a path below a root is surely shown: what most files are asked on a walk, so
    /// it has to be quick. The rest is for [`Self::decide`].
    pub(crate) fn surely_shows(&self, below: &[u8]) -> bool {
        self.own.is_empty()
            && self.deny.is_empty()
            && self.ask.is_empty()
            && !protected::suspects(below)
    }

    /// Puts files of our own out of reach.
    pub(crate) fn keep_out(&mut self, own: impl IntoIterator<Item = PathBuf>) {
        let inside = |own: &PathBuf| {
            self.roots.iter().any(|root| own.starts_with(root) || root.starts_with(own))
        };
        self.own.extend(own.into_iter().filter(inside));
    }

    /// Whether what would ask is refused instead.
    pub(crate) fn asks_nobody(&self) -> bool {
        self.mode == Mode::DontAsk
    }

    /// What a path is called below each root that it is in.
    fn below_roots<'p>(&self, path: &'p Path) -> impl Iterator<Item = &'p Path> {
        self.roots.iter().filter_map(move |root| path.strip_prefix(root).ok())
    }

    /// The rule that would allow something, for the person to add. None for names that cannot be typed.
    pub(crate) fn allowing(&self, access: Access, real: &Path) -> Option<String> {
        let below = self.below_roots(real).max_by_key(|below| below.as_os_str().len());
        let below = below.unwrap_or(real);
        let pattern = below.to_str()?;
        let typed = |letter: char| letter == ' ' || !letter.is_whitespace() && !letter.is_control();
        let shown = pinfold_confine::escaped(pattern.as_bytes()).to_string() == pattern;
        match pattern.is_empty() {
            true => Some(access.name().to_owned()),
            false if !shown || !pattern.chars().all(typed) => None,
            false => Some(format!("{}(/{})", access.name(), rules::literal(pattern))),
        }
    }
}

/// A path as it was spelled, made absolute below the first root, with `.` and `..` taken out.
pub(crate) fn as_spelled(path: &str, first_root: &Path) -> PathBuf {
    let mut spelled = PathBuf::new();
    for part in first_root.join(OsStr::new(path)).components() {
        match part {
            std::path::Component::ParentDir => _ = spelled.pop(),
            std::path::Component::CurDir => {}
            other => spelled.push(other),
        }
    }
    spelled
}

#[cfg(test)]
mod tests;
