//! What a program says for one call.

use std::path::PathBuf;

use pinfold::Mode;
use serde::Deserialize;

/// What holds for one call, besides what holds for its session.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Context {
    /// Where relative paths and searches start, inside the workspace.
    pub(crate) workdir: Option<PathBuf>,
    /// The mode, if not the session's.
    permission_mode: Option<String>,
    /// Whether changes are only described, if not as the session has it.
    pub(crate) dry_run: Option<bool>,
    /// Why the call cannot be made, if the package's own layer has found that out.
    pub(crate) problem: Option<String>,
}

impl Context {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        serde_json::from_str(text).map_err(|error| format!("the call's context: {error}"))
    }

    pub(crate) fn mode(&self) -> Result<Option<Mode>, String> {
        let mode = self.permission_mode.as_deref().map(str::parse);
        mode.transpose().map_err(|problem| {
            let name = self.permission_mode.as_deref().unwrap_or_default();
            format!("the call's context: there is no permission mode `{name}`; {problem}")
        })
    }
}
