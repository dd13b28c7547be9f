//! Decides whether an operation on a path is allowed, denied, or needs the user's approval.
//!
//! The order is fixed; the first that applies decides:
//!
//! 1. Read roots: changes are denied (`View::decision`).
//! 2. A path in none of the roots, since a root was moved while the call ran: denied.
//! 3. Pinfold's own files: denied.
//! 4. The mode `plan`: changes are denied.
//! 5. Deny rules.
//! 6. The mode `bypassPermissions`: allowed.
//! 7. Ask rules.
//! 8. Allow rules.
//! 9. Protected paths: reading secrets needs approval, and so does changing files that cause code to run.
//! 10. The mode.
//!
//! While the user has paused changes, a change that is allowed needs approval (`View::check_policy`).
//! There are no priorities and no specificity; an exception is a `!pattern` within a list. `View` evaluates the
//! policy for reads and writes, `commit` evaluates it for writes again: tools never do.

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

/// An operation on a file. Rules name it.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Access {
    /// Reading, listing, finding, searching, and metadata.
    Read,
    /// Every change of content: `Write` and `Edit` in rules.
    Write,
    /// Deleting.
    Delete,
}

impl Access {
    /// The name in rules.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "Read",
            Self::Write => "Write",
            Self::Delete => "Delete",
        }
    }

    /// The gerund for messages.
    pub(crate) fn doing(self) -> &'static str {
        match self {
            Self::Read => "reading",
            Self::Write => "changing",
            Self::Delete => "deleting",
        }
    }
}

/// Permission mode for operations that no rule matches.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
pub enum Mode {
    /// Reads are allowed; changes need approval.
    #[serde(rename = "default")]
    Ask,
    /// Reads and changes are allowed; protected paths need approval.
    #[default]
    #[serde(rename = "secure-file-access")]
    SecureFileAccess,
    /// As `secure-file-access`, but deleting needs approval.
    #[serde(rename = "acceptEdits")]
    AcceptEdits,
    /// Changes are denied, regardless of the rules.
    #[serde(rename = "plan")]
    Plan,
    /// Operations that would need approval are denied.
    #[serde(rename = "dontAsk")]
    DontAsk,
    /// Nothing needs approval. The fence and deny rules hold.
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

    /// The name in settings.
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

    /// Parses a mode's name. The error lists the names.
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
    /// Permission mode for operations that no rule matches.
    pub mode: Mode,
    /// Rules that allow: each `Operation(pattern)`, `Operation` or `*`.
    pub allow: Vec<String>,
    /// Rules that need the user's approval.
    pub ask: Vec<String>,
    /// Rules that deny.
    pub deny: Vec<String>,
}

impl Permissions {
    /// Checks that every rule parses.
    pub fn check(&self) -> Result<(), BadRule> {
        Policy::new(self, Vec::new(), &[]).map(|_| ())
    }
}

/// The policy's decision on an operation.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Decision {
    Allow(Reason),
    Ask(Reason),
    Deny(Reason),
}

/// The reason for a decision of the policy.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Reason {
    /// A rule, as the user wrote it.
    Rule(String),
    /// The mode.
    Mode(Mode),
    /// The file may hold secrets.
    Secret,
    /// Code that is written there may be run.
    MakesCodeRun,
    /// The file belongs to Pinfold.
    Own,
    /// The user has paused changes. Each change needs approval until they are resumed.
    Paused,
    /// The file is in a read root.
    ReadRoot,
    /// The file is in none of the roots that the rules are relative to, because a root was moved while the call ran.
    RootMoved,
}

impl Reason {
    /// Whether it applies to any change, whatever its path.
    pub(crate) fn is_general(&self) -> bool {
        matches!(self, Self::Mode(_) | Self::Paused)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(rule) => write!(out, "the rule `{rule}`"),
            Self::Mode(mode) => write!(out, "the mode `{}`", mode.name()),
            Self::Secret => out.write_str("it may hold secrets"),
            Self::MakesCodeRun => out.write_str("what is written there may be run"),
            Self::Own => out.write_str("it is Pinfold's own"),
            Self::Paused => out.write_str("changes are paused"),
            Self::ReadRoot => out.write_str("its root is only read"),
            Self::RootMoved => out.write_str("its root was moved while the call ran"),
        }
    }
}

/// The compiled rules and the mode.
#[derive(Clone, Debug)]
pub(crate) struct Policy {
    mode: Mode,
    deny: Rules,
    ask: Rules,
    allow: Rules,
    /// The roots that patterns are relative to: those that the user gave, even if the workspace is narrower now.
    roots: Vec<PathBuf>,
    /// Pinfold's own files and directories, wherever they are.
    own: Vec<PathBuf>,
    /// The same, relative to each root that contains them. Empty for a root inside one of them.
    own_below_roots: Vec<PathBuf>,
}

impl Policy {
    /// Compiles the rules. `given` has the roots as the user gave them, since patterns may begin with one.
    pub(crate) fn new(
        permissions: &Permissions,
        roots: Vec<PathBuf>,
        given: &[PathBuf],
    ) -> Result<Self, BadRule> {
        let known: Vec<_> = roots.iter().chain(given).cloned().collect();
        Ok(Self {
            mode: permissions.mode,
            deny: Rules::broad("deny", &permissions.deny, &known)?,
            ask: Rules::broad("ask", &permissions.ask, &known)?,
            allow: Rules::exact("allow", &permissions.allow, &known)?,
            own: Vec::new(),
            own_below_roots: Vec::new(),
            roots,
        })
    }

    /// The roots that the rules are relative to.
    pub(crate) fn roots(&self) -> &[PathBuf] {
        &self.roots
    }

    /// The same rules, relative to other roots.
    pub(crate) fn with_roots(
        &self,
        permissions: &Permissions,
        roots: Vec<PathBuf>,
        given: &[PathBuf],
    ) -> Self {
        let policy = Self::new(permissions, roots, given);
        let mut policy = policy.expect("the rules were parsed when the session was opened");
        policy.deny_files(self.own.iter().cloned());
        policy
    }

    /// The same rules in another mode.
    pub(crate) fn in_mode(&self, mode: Mode) -> Self {
        Self { mode, ..self.clone() }
    }

    /// Decides on one operation on one path. `given` is the path as it was given; `real` is the resolved path without
    /// symlinks. One of them may be unknown.
    pub(crate) fn decide(
        &self,
        access: Access,
        given: Option<&Path>,
        real: Option<&Path>,
        directory: bool,
    ) -> Decision {
        if real.is_some_and(|real| self.below_roots(real).next().is_none()) {
            return Decision::Deny(Reason::RootMoved);
        }
        let mut known = given.into_iter().chain(real).flat_map(|path| self.below_roots(path));
        let plain = |below: &Path| self.no_rule_can_match(access, below.as_os_str().as_bytes());
        if self.allow.is_empty() && known.all(plain) {
            // The usual case: no rule can match, and the path is not protected.
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
        let may_be_protected = || {
            let mut paths = given.into_iter().chain(real).flat_map(|path| self.below_roots(path));
            paths.any(|below| protected::may_be_protected(access, below.as_os_str().as_bytes()))
        };
        if let Some(text) = self.ask.matches(access, &names) {
            // The user's approval of this rule for the session does not cover secrets.
            let reason = protected::matches(access, &names);
            return Decision::Ask(reason.unwrap_or_else(|| rule(text)));
        }
        if !self.allow.is_empty() {
            let real = real.into_iter().flat_map(|path| self.below_roots(path));
            if let Some(text) = self.allow.matches(access, &Names::new(real, directory)) {
                return Decision::Allow(rule(text));
            }
        }
        // The quick check suffices for most paths.
        if may_be_protected()
            && let Some(reason) = protected::matches(access, &names)
        {
            return Decision::Ask(reason);
        }
        self.by_mode(access)
    }

    /// The mode's decision, if nothing else applies to the path.
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

    /// Whether no deny or ask rule, own file or protected path can match an access to a path below a root. It is quick,
    /// since a walk calls it for every name. It may be false although nothing matches, but it is never true for a path
    /// that something matches.
    pub(crate) fn no_rule_can_match(&self, access: Access, below: &[u8]) -> bool {
        // Compares bytes. If a name only has the same beginning, `decide` sorts that out.
        let maybe_own = |own: &PathBuf| below.starts_with(own.as_os_str().as_bytes());
        self.deny.cannot_match(below)
            && self.ask.cannot_match(below)
            && !self.own_below_roots.iter().any(maybe_own)
            && !protected::may_be_protected(access, below)
    }

    /// Denies every access to Pinfold's own files.
    pub(crate) fn deny_files(&mut self, own: impl IntoIterator<Item = PathBuf>) {
        for own in own {
            let below = self.roots.iter().filter_map(|root| match own.strip_prefix(root) {
                Ok(below) => Some(below.to_owned()),
                Err(_) => root.starts_with(&own).then(PathBuf::new),
            });
            self.own_below_roots.extend(below);
            self.own.push(own);
        }
    }

    /// Whether operations that need approval are denied instead.
    pub(crate) fn asks_nobody(&self) -> bool {
        self.mode == Mode::DontAsk
    }

    /// The path relative to each root that contains it.
    fn below_roots<'p>(&self, path: &'p Path) -> impl Iterator<Item = &'p Path> {
        self.roots.iter().filter_map(move |root| path.strip_prefix(root).ok())
    }

    /// The rule that would allow an operation, which the user can add. Returns `None` for names that cannot be typed.
    pub(crate) fn allowing(&self, access: Access, real: &Path) -> Option<String> {
        let below = self.below_roots(real).max_by_key(|below| below.as_os_str().len());
        let pattern = below.unwrap_or(real).to_str()?;
        if pattern.is_empty() {
            return Some(access.name().to_owned());
        }
        let typed = |letter: char| letter == ' ' || !letter.is_whitespace() && !letter.is_control();
        let plain = pinfold_confine::escaped(pattern.as_bytes()).to_string() == pattern;
        (plain && pattern.chars().all(typed))
            .then(|| format!("{}(/{})", access.name(), rules::literal(pattern)))
    }
}

/// A path as it was given, made absolute below the first root. `.` and `..` are resolved without looking at the disk.
pub(crate) fn normalized(path: &str, first_root: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in first_root.join(OsStr::new(path)).components() {
        match part {
            std::path::Component::ParentDir => _ = normal.pop(),
            std::path::Component::CurDir => {}
            other => normal.push(other),
        }
    }
    normal
}

#[cfg(test)]
mod tests;
