//! Checks the workspaces of the configuration file, as `serve --http` opens them.

use super::Finding::{Bad, Good, Note};
use super::{Finding, journal, root_directory};
use crate::config::WorkspaceConfig;
use crate::options::SessionOptions;
use crate::token;

/// Checks `[workspaces.NAME]`: its dialects, roots, journal and tokens.
pub(super) fn check(options: &SessionOptions, name: &str, named: &WorkspaceConfig) -> Vec<Finding> {
    let table = format!("correct it in `[workspaces.{name}]`");
    let dialects = options.dialects.or_named(&named.keys.dialects);
    let open = || options.workspace.open_on(&named.keys.roots, named.settings.clone(), []);
    let mut findings = match dialects.and_then(|_| open()) {
        Err(error) => vec![Bad(format!("{error:#}"), table)],
        Ok(session) => {
            let roots = session.real_roots().map(|root| root_directory(&root));
            roots.chain([journal(&session)]).collect()
        }
    };
    findings.push(tokens(named));
    findings.into_iter().map(|finding| finding.of(name)).collect()
}

fn tokens(named: &WorkspaceConfig) -> Finding {
    let Some(file) = &named.keys.token_file else {
        let advice = "every start makes another token; set `token_file` to keep tokens";
        return Note("tokens: no file".into(), advice.into());
    };
    let shown = file.display();
    match token::count(file) {
        Ok(Some(1)) => Good(format!("tokens: 1 in {shown}")),
        Ok(Some(number)) => Good(format!("tokens: {number} in {shown}")),
        Ok(None) => Note(
            format!("tokens: {shown} does not exist; `serve` makes it with one token"),
            format!("make tokens with names and limits: `pinfold token new {shown} NAME`"),
        ),
        Err(error) => Bad(
            format!("tokens: {shown}: {error:#}"),
            "until then, every request to this workspace is refused".into(),
        ),
    }
}

impl Finding {
    /// The same, about a workspace of the configuration file.
    fn of(self, name: &str) -> Self {
        let of = |what: String| format!("workspace {name}: {what}");
        match self {
            Good(what) => Good(of(what)),
            Note(what, advice) => Note(of(what), advice),
            Bad(what, advice) => Bad(of(what), advice),
        }
    }
}
