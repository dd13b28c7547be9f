//! The flags and commands that would allow a refused call.

use pinfold::{Denial, Error};

/// The hint for an error of a server that asks viewers, if there is one.
pub(crate) fn with_viewers(error: &Error) -> Option<String> {
    let Error::Denied { denial: Denial::NoApprover { .. }, .. } = error else {
        return front_end_hint(error);
    };
    let flags = front_end_hint(error).map(|flags| format!("{flags}; or ")).unwrap_or_default();
    Some(format!("{flags}run pinfold watch or pinfold page to be asked"))
}

/// The flags and settings that help with an error, if there are any.
pub(crate) fn front_end_hint(error: &Error) -> Option<String> {
    match error {
        Error::Denied {
            denial:
                Denial::NoApprover { allow: Some(allow), .. }
                | Denial::DontAsk { allow: Some(allow), .. },
            ..
        } => {
            // The user may paste it into a shell, and the agent has chosen the file's name.
            let quoted = allow.replace('\'', "'\\''");
            Some(format!("`--allow '{quoted}'`, or `allow` in the permissions"))
        }
        Error::NoCommonRoot { .. } => Some(
            "start Pinfold with a `--root` that the client has open, or with `--client-roots ignore`"
                .into(),
        ),
        Error::RootReplaced { .. } => {
            Some("start the server again, or set `landlock = \"off\"`".into())
        }
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
    fn a_hint_is_safe_to_paste_into_a_shell() {
        let dir = tempfile::tempdir().unwrap();
        let permissions = Permissions {
            mode: Mode::Ask,
            ask: vec!["Edit(asked)".into()],
            ..Permissions::default()
        };
        let settings = Settings::default().with_permissions(permissions);
        let session = Session::with_settings([dir.path()], settings).unwrap();
        let hint =
            |path: &str| front_end_hint(&session.perform(&Write::new(path, "x")).unwrap_err());
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
