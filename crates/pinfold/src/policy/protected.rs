//! What is asked about unless the person has said otherwise: by name, at any depth, there or not.

use std::sync::LazyLock;

use super::fold::Names;
use super::rules::Rules;
use super::{Access, Reason};

/// Files that may hold secrets, asked about before they are read.
const SECRETS: &[&str] = &[
    ".env*",
    "!.env.example",
    // Private keys and what holds them.
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.ppk",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ecdsa_sk",
    "id_ed25519",
    "id_ed25519_sk",
    // Where programs keep what they log in with.
    ".ssh",
    ".aws",
    ".azure",
    ".gnupg",
    ".kube",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".pypirc",
    ".git-credentials",
    ".vault-token",
    ".htpasswd",
    ".docker/config.json",
    ".config/gcloud",
    ".config/gh",
];

/// Places that make code run, or tell another agent what to do, asked about before they are changed.
const RUN: &[&str] = &[
    ".git",
    ".gitconfig",
    ".githooks",
    ".husky",
    ".pre-commit-config.yaml",
    "lefthook.yml",
    // Agents and editors.
    ".mcp.json",
    ".claude",
    ".cursor",
    ".codex",
    ".gemini",
    ".vscode",
    ".idea",
    ".zed",
    ".windsurf",
    ".devcontainer",
    // Shells, and what they load on the way into a directory.
    ".envrc",
    ".direnv",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".ssh",
    // What others' machines run.
    ".github/workflows",
    ".gitlab-ci.yml",
    ".circleci",
    // Tools that run what their settings name.
    ".npmrc",
    ".cargo/config",
    ".cargo/config.toml",
];

/// The same for all: compiled when a path first looks as if it could be one of these.
static SECRET_RULES: LazyLock<Rules> = LazyLock::new(|| rules("Read", SECRETS));
static RUN_RULES: LazyLock<Rules> = LazyLock::new(|| rules("*", RUN));

fn rules(tool: &str, patterns: &[&str]) -> Rules {
    let anywhere = |pattern: &str| match pattern.strip_prefix('!') {
        Some(pattern) => format!("{tool}(!**/{pattern})"),
        None => format!("{tool}(**/{pattern})"),
    };
    let rules: Vec<_> = patterns.iter().map(|pattern| anywhere(pattern)).collect();
    Rules::broad("built-in", &rules, &[]).expect("these are good rules")
}

/// Why a person is asked about a file by itself, if so.
pub(super) fn matches(access: Access, names: &Names<'_>) -> Option<Reason> {
    match access {
        Access::Read => SECRET_RULES.matches(access, names).map(|_| Reason::Secret),
        Access::Write | Access::Delete => {
            RUN_RULES.matches(access, names).map(|_| Reason::MakesCodeRun)
        }
    }
}

/// Whether a path could be one that is asked about by itself. Wrong one way only, and quick.
pub(super) fn suspects(path: &[u8]) -> bool {
    let mut before = b'/';
    let mut name = 0;
    for (at, byte) in path.iter().copied().enumerate() {
        let hidden = before == b'/' && byte == b'.';
        let trails = byte == b'/' && matches!(before, b'.' | b' ');
        if hidden || trails || !byte.is_ascii() || byte.is_ascii_control() {
            return true;
        }
        if byte == b'/' {
            if odd_name(&path[name..at]) {
                return true;
            }
            name = at + 1;
        }
        before = byte;
    }
    odd_name(&path[name..])
}

/// Whether a name that is not hidden could be that of a secret.
fn odd_name(name: &[u8]) -> bool {
    /// How the names end or begin that are not hidden.
    const ENDS: [&[u8]; 8] =
        [b".pem", b".key", b".p12", b".pfx", b".ppk", b".jks", b".keystore", b".kdbx"];
    let begins =
        |with: &[u8]| name.get(..with.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(with));
    let dot = name.iter().rposition(|byte| *byte == b'.');
    let end = dot.map_or(&[][..], |dot| &name[dot..]);
    matches!(name.last(), Some(b'.' | b' '))
        || begins(b"id_")
        || begins(b"_netrc")
        || begins(b"lefthook.yml")
        || ENDS.iter().any(|with| end.eq_ignore_ascii_case(with))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn asks(access: Access, path: &str) -> bool {
        let names = Names::new([Path::new(path)].into_iter(), false);
        matches(access, &names).is_some()
    }

    #[test]
    fn secrets_are_known_by_name_at_any_depth() {
        for path in [
            ".env",
            "a/b/.env",
            ".env.local",
            ".ENV",
            ".Env.Production",
            "deploy/server.pem",
            "id_rsa",
            "x/.ssh/config",
            "x/.ssh/deep/er",
            ".aws/credentials",
            ".gnupg/private-keys-v1.d/k",
            ".netrc",
            ".env.",
            ".env ",
            "\u{FF0E}env",
            "home/.docker/config.json",
        ] {
            assert!(asks(Access::Read, path), "{path}");
            assert!(suspects(path.as_bytes()), "{path}");
        }
        for path in [
            ".env.example",
            "a/.env.example",
            "env",
            "x.pem.txt",
            "keys.rs",
            "README.md",
            "src/id.rs",
        ] {
            assert!(!asks(Access::Read, path), "{path}");
        }
    }

    #[test]
    fn every_entry_is_suspected_by_itself_and_as_a_directory() {
        for (access, patterns) in [(Access::Read, SECRETS), (Access::Write, RUN)] {
            for pattern in patterns.iter().filter(|pattern| !pattern.starts_with('!')) {
                let name = pattern.replace('*', "x");
                for path in [
                    name.clone(),
                    name.to_uppercase(),
                    format!("{name}/y"),
                    format!("a/{name}/b/y.txt"),
                ] {
                    assert!(asks(access, &path), "{path}");
                    assert!(suspects(path.as_bytes()), "{path}");
                }
            }
        }
    }

    #[test]
    fn places_that_make_code_run_are_known_whether_they_are_there_or_not() {
        for path in [
            ".git/config",
            ".git/hooks/pre-commit",
            "sub/.git",
            ".mcp.json",
            ".claude/settings.json",
            ".cursor/mcp.json",
            ".codex/config.toml",
            ".gemini/settings.json",
            ".VSCode/tasks.json",
            ".idea/x",
            ".husky/pre-commit",
            ".envrc",
            ".github/workflows/ci.yml",
            "sub/.github/workflows/ci.yml",
        ] {
            assert!(asks(Access::Write, path), "{path}");
            assert!(asks(Access::Delete, path), "{path}");
            assert!(suspects(path.as_bytes()), "{path}");
            assert!(!asks(Access::Read, ".gitignore"));
        }
        for path in [".gitignore", ".github/CODEOWNERS", "src/main.rs", "git/config", "Makefile"] {
            assert!(!asks(Access::Write, path), "{path}");
        }
    }
}
