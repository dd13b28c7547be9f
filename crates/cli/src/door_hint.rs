//! The flags and commands that would have let a refused call succeed.

use pinfold::{Denial, Error};

/// What helps after an error of a server that asks viewers, if anything does.
pub(crate) fn with_viewers(error: &Error) -> Option<String> {
    let Error::Denied { denial: Denial::NoApprover { .. }, .. } = error else {
        return door_hint(error);
    };
    let flags = door_hint(error).map(|flags| format!("{flags}; or ")).unwrap_or_default();
    Some(format!("{flags}run pinfold watch or pinfold page to be asked"))
}

/// The flags that help after an error, if any do.
pub(crate) fn door_hint(error: &Error) -> Option<String> {
    match error {
        Error::Denied { denial: Denial::NoApprover { allow: Some(allow), .. }, .. } => {
            // The user may paste it into a shell, and the agent has chosen the file's name.
            let quoted = allow.replace('\'', "'\\''");
            Some(format!("`--allow '{quoted}'`, or `allow` in the permissions"))
        }
        Error::NothingLeft { .. } => Some(
            "start Pinfold with a `--root` that the client has open, or with `--client-roots ignore`"
                .into(),
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]

    use pinfold::operations::Write;
    use pinfold::{Mode, Permissions, Session, Settings};

    use super::*;

    #[test]
    fn what_the_user_is_told_to_type_is_safe() {
        let dir = tempfile::tempdir().unwrap();
        let permissions = Permissions {
            mode: Mode::Ask,
            ask: vec!["Edit(asked)".into()],
            ..Permissions::default()
        };
        let settings = Settings::default().with_permissions(permissions);
        let session = Session::with_settings([dir.path()], settings).unwrap();
        let hint = |path: &str| door_hint(&session.perform(&Write::new(path, "x")).unwrap_err());
        let quoted = hint("x'; touch PWNED; echo '").unwrap();
        assert!(quoted.contains(r"--allow 'Write(/x'\''; touch PWNED; echo '\'')'"), "{quoted}");
        assert_eq!(hint("x\u{1b}[2J"), None);
        assert_eq!(hint("asked"), None, "another rule would not help");
        let hint = |path: &str| with_viewers(&session.perform(&Write::new(path, "x")).unwrap_err());
        let viewers = "run pinfold watch or pinfold page to be asked";
        assert_eq!(hint("asked").as_deref(), Some(viewers));
        assert!(hint("x").unwrap().ends_with(&format!("`allow` in the permissions; or {viewers}")));
    }
}
