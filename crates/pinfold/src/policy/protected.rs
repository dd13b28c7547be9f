//! Paths that ask by default: by name, at any depth, whether the file exists or not.
//!
//! Two lists: files that may hold secrets ask before they are read, places that make code run ask before they
//! are changed. An editor's backup or swap file counts as the file that it was made of, and a FAT or NTFS short
//! name (`GIT~1`) as the long one. [`may_be_protected`] never says no to a path that [`matches`] would match.

use std::sync::LazyLock;

use super::fold::Names;
use super::rules::Rules;
use super::{Access, Reason};

/// Files that may hold secrets.
const SECRETS: &[&str] = &[
    ".env*",
    "!.env.example",
    // Private keys and key stores.
    "*.pem",
    "*.key",
    "*.p8",
    "*.p12",
    "*.pfx",
    "*.ppk",
    "*.jks",
    "*.keystore",
    "*.kdb",
    "*.kdbx",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ecdsa_sk",
    "id_ed25519",
    "id_ed25519_sk",
    "id_xmss",
    "ssh_host_*_key",
    // Credentials and histories in a home directory.
    ".ssh",
    ".aws",
    ".azure",
    ".oci",
    ".gnupg",
    ".password-store",
    ".local/share/keyrings",
    ".kube",
    ".docker/config.json",
    ".dockercfg",
    ".config/containers/auth.json",
    ".config/gcloud",
    ".config/gh",
    ".config/glab-cli",
    ".config/hub",
    ".config/git/credentials",
    ".config/op",
    ".config/rclone",
    ".git-credentials",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".my.cnf",
    ".mylogin.cnf",
    ".vault-token",
    ".htpasswd",
    ".s3cfg",
    ".boto",
    ".databrickscfg",
    ".terraformrc",
    ".terraform.d/credentials.tfrc.json",
    ".msmtprc",
    ".smbcredentials",
    ".*_history",
    // Package registries.
    ".npmrc",
    ".pypirc",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".composer/auth.json",
    ".config/composer/auth.json",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".gradle/gradle.properties",
    ".cache/huggingface/token",
    // Agents.
    ".claude.json",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".gemini/oauth_creds.json",
];

/// Places that make code run without anybody asking for it, or that configure another agent.
const RUN: &[&str] = &[
    // Version control and its hooks.
    ".git",
    ".gitconfig",
    ".config/git",
    ".githooks",
    ".husky",
    ".huskyrc*",
    ".pre-commit-config.*",
    ".pre-commit-hooks.*",
    "lefthook*",
    ".lefthook*",
    ".overcommit.yml",
    "simple-git-hooks.*",
    ".simple-git-hooks.*",
    "lint-staged.config.*",
    ".lintstagedrc*",
    ".hg",
    ".hgrc",
    ".jj",
    // Agents.
    ".mcp.json",
    ".claude",
    ".claude.json",
    ".cursor",
    ".codex",
    ".gemini",
    ".windsurf",
    ".codeium",
    ".continue",
    ".continuerc.json",
    ".aider.conf.yml",
    ".roo",
    ".cline",
    ".kiro",
    ".amazonq",
    ".qwen",
    ".opencode",
    "opencode.json",
    "opencode.jsonc",
    ".crush.json",
    "crush.json",
    ".goose",
    ".junie",
    ".trae",
    // Editors and development containers.
    ".vscode",
    "*.code-workspace",
    ".idea",
    ".fleet",
    ".zed",
    ".helix",
    ".config/helix",
    "*.sublime-project",
    ".vim",
    ".vimrc",
    "_vimrc",
    ".gvimrc",
    ".lvimrc",
    ".ideavimrc",
    ".exrc",
    ".nvimrc",
    ".nvim.lua",
    ".config/nvim",
    ".emacs",
    ".emacs.el",
    ".emacs.d",
    ".config/emacs",
    ".dir-locals.el",
    ".dir-locals-2.el",
    ".devcontainer",
    ".devcontainer.json",
    ".gitpod*",
    ".replit",
    ".codesandbox",
    ".idx",
    // Shells, and what they load on the way into a directory.
    ".envrc",
    ".direnv",
    ".autoenv*",
    ".mise.toml",
    ".mise.*.toml",
    "mise.toml",
    "mise.*.toml",
    ".config/mise",
    ".bash*",
    ".profile",
    ".zsh*",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".config/zsh",
    ".kshrc",
    ".mkshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".logout",
    ".inputrc",
    ".config/fish",
    ".config/nushell",
    ".config/powershell",
    "profile.ps1",
    "*_profile.ps1",
    ".tmux.conf",
    ".config/tmux",
    ".screenrc",
    ".wezterm.lua",
    ".config/wezterm",
    // Logins and sessions.
    ".ssh",
    ".rhosts",
    ".shosts",
    ".forward",
    ".procmailrc",
    ".pam_environment",
    ".xprofile",
    ".xinitrc",
    ".xsession*",
    ".config/autostart",
    ".config/environment.d",
    ".config/systemd",
    ".local/share/systemd",
    ".local/share/applications",
    ".local/bin",
    ".config/i3",
    ".config/sway",
    ".config/hypr",
    "LaunchAgents",
    "LaunchDaemons",
    "autorun.inf",
    // Debuggers, interpreters and database shells.
    ".gdbinit",
    ".gdbearlyinit",
    ".lldbinit*",
    ".pythonrc.py",
    ".pythonstartup",
    "sitecustomize.py",
    "usercustomize.py",
    ".ipython",
    ".jupyter",
    ".irbrc",
    ".pryrc",
    ".Rprofile",
    ".Renviron",
    ".ghci",
    ".ocamlinit",
    ".iex.exs",
    ".erlang",
    ".octaverc",
    ".sqliterc",
    ".psqlrc",
    ".lessfilter",
    // Package managers and build tools that run programs which their settings name.
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".yarn",
    ".pnp.*",
    ".pnpmfile.*",
    "bunfig.toml",
    ".bunfig.toml",
    ".cargo/config",
    ".cargo/config.toml",
    ".cargo/bin",
    ".bazelrc",
    ".bazeliskrc",
    ".buckconfig",
    ".mvn",
    ".gradle/init.gradle",
    ".gradle/init.gradle.kts",
    ".gradle/init.d",
    ".jvmopts",
    ".sbtopts",
    ".gemrc",
    ".bundle",
    ".pip",
    ".config/pip",
    ".config/uv",
    ".condarc",
    ".config/nix",
    ".aws",
    ".kube",
    ".gnupg",
    ".docker/config.json",
    ".docker/cli-plugins",
    // Continuous integration.
    ".github/workflows",
    ".github/actions",
    ".gitea/workflows",
    ".gitea/actions",
    ".forgejo/workflows",
    ".forgejo/actions",
    ".gitlab-ci*",
    ".gitlab/ci",
    ".circleci",
    ".travis.yml",
    ".drone.*",
    ".woodpecker",
    ".woodpecker.*",
    ".buildkite",
    ".cirrus.*",
    ".semaphore",
    ".teamcity",
    ".tekton",
    ".builds",
    ".build.yml",
    ".taskcluster.yml",
    ".zuul.yaml",
    ".zuul.d",
    ".packit.yaml",
    "Jenkinsfile*",
    "azure-pipelines*",
    ".azure-pipelines",
    ".azuredevops",
    "bitbucket-pipelines.yml",
    "appveyor.yml",
    ".appveyor.yml",
    "buildspec.yml",
    "cloudbuild.*",
    "codefresh.yml",
    "wercker.yml",
    "bamboo-specs",
];

/// What editors and installers put after the name of a file that they keep a copy of. Vim's swap files, and
/// numbered backups, are recognized apart.
const BACKUP_SUFFIXES: &[&str] = &[
    "~",
    ".bak",
    ".backup",
    ".bkp",
    ".old",
    ".orig",
    ".save",
    ".rej",
    ".tmp",
    ".temp",
    ".copy",
    ".kate-swp",
    ".dpkg-old",
    ".dpkg-new",
    ".dpkg-dist",
    ".rpmsave",
    ".rpmorig",
    ".rpmnew",
    "___jb_tmp___",
    "___jb_old___",
];

static SECRET_RULES: LazyLock<Rules> = LazyLock::new(|| rules("Read", SECRETS, str::to_owned));
static RUN_RULES: LazyLock<Rules> = LazyLock::new(|| rules("*", RUN, str::to_owned));
/// The same with each name long or short. Compiled only when a path looks like a short name.
static SHORT_SECRET_RULES: LazyLock<Rules> =
    LazyLock::new(|| rules("Read", SECRETS, long_or_short));
static SHORT_RUN_RULES: LazyLock<Rules> = LazyLock::new(|| rules("*", RUN, long_or_short));

fn rules(operation: &str, patterns: &[&str], alternatives: fn(&str) -> String) -> Rules {
    let anywhere = |pattern: &&str| {
        let (not, pattern) = match pattern.strip_prefix('!') {
            Some(pattern) => ("!", pattern),
            None => ("", *pattern),
        };
        let names: Vec<_> = pattern.split('/').map(alternatives).collect();
        format!("{operation}({not}**/{})", names.join("/"))
    };
    let rules: Vec<_> = patterns.iter().map(anywhere).collect();
    Rules::broad("built-in", &rules, &[]).expect("these are good rules")
}

/// A glob for a name and for its 8.3 short name: the first six characters without dots, `~` and a number,
/// and three characters of the extension.
fn long_or_short(name: &str) -> String {
    let visible = name.trim_start_matches('.');
    let (stem, extension) = visible.rsplit_once('.').unwrap_or((visible, ""));
    let stem: String = stem.chars().filter(|letter| *letter != '.').take(6).collect();
    let extension: String = extension.chars().take(3).collect();
    let dot = if extension.is_empty() { "" } else { "." };
    format!("{{{name},{stem}~[0-9]*{dot}{extension}}}")
}

/// The reason why a path asks by default, if it does.
pub(super) fn matches(access: Access, names: &Names<'_>) -> Option<Reason> {
    let (rules, short, reason) = match access {
        Access::Read => (&SECRET_RULES, &SHORT_SECRET_RULES, Reason::Secret),
        Access::Write | Access::Delete => (&RUN_RULES, &SHORT_RUN_RULES, Reason::MakesCodeRun),
    };
    let with_originals = names.with(originals);
    let listed = rules.matches(access, &with_originals).is_some()
        || names.folded.iter().any(|path| has_short_name(path.as_os_str().as_encoded_bytes()))
            && short.matches(access, &with_originals).is_some();
    listed.then_some(reason)
}

/// Whether a part of a path may be a short name: it has `~` before a digit.
fn has_short_name(path: &[u8]) -> bool {
    path.windows(2).any(|pair| pair[0] == b'~' && pair[1].is_ascii_digit())
}

/// The paths that a folded path may be a backup or swap file of.
fn originals(path: &str) -> Vec<String> {
    let mut found = Vec::new();
    // Vim puts a dot before the name of a swap file; whether the file itself has one cannot be told.
    for keep_dot in [true, false] {
        let names: Vec<_> = path.split('/').map(|name| original(name, keep_dot)).collect();
        found.push(names.join("/"));
    }
    found.dedup();
    found.retain(|original| original != path);
    found
}

/// A name without the marks of backup and swap files, of which it may have several.
fn original(name: &str, keep_dot: bool) -> &str {
    // The name of an NTFS stream comes after the file's.
    let mut rest = name.split(':').next().filter(|file| !file.is_empty()).unwrap_or(name);
    let mut has_extra_dot = false;
    while let Some(stripped) = without_mark(rest).filter(|stripped| !stripped.is_empty()) {
        has_extra_dot |= is_swap_of(rest, stripped);
        rest = stripped;
    }
    if has_extra_dot && !keep_dot { rest.strip_prefix('.').unwrap_or(rest) } else { rest }
}

/// A name without one mark of a backup or swap file, if it has one.
fn without_mark(name: &str) -> Option<&str> {
    let enclosed = || name.strip_prefix('#')?.strip_suffix('#');
    let suffixed = || BACKUP_SUFFIXES.iter().find_map(|suffix| name.strip_suffix(suffix));
    // Emacs numbers backups, `name.~1~`; the last `~` is a suffix.
    let numbered =
        || name.trim_end_matches(|letter: char| letter.is_ascii_digit()).strip_suffix(".~");
    let swap = || {
        let (stem, extension) = name.rsplit_once('.')?;
        (is_swap(extension.as_bytes()) || extension == "un").then_some(stem)
    };
    enclosed().or_else(|| name.strip_prefix(".#")).or_else(suffixed).or_else(numbered).or_else(swap)
}

/// Whether an extension is one that Vim gives to swap files: `swp`, and `swo` and so on where that is taken.
fn is_swap(extension: &[u8]) -> bool {
    matches!(extension, [b's' | b'S', b'w' | b'W', last] if last.is_ascii_alphabetic())
}

/// Whether the mark that was taken off is that of one of Vim's files.
fn is_swap_of(name: &str, stripped: &str) -> bool {
    name.strip_prefix(stripped)
        .is_some_and(|mark| mark == ".un" || is_swap(mark.as_bytes().get(1..).unwrap_or_default()))
}

/// What the names in the lists begin and end with, as far as they are not hidden.
struct Marks {
    /// The first letters, packed: by how many there are of them.
    beginnings: [(usize, Vec<u64>); 2],
    /// The extensions, packed.
    extensions: Vec<u64>,
}

static MARKS: LazyLock<Marks> = LazyLock::new(|| {
    let mut marks =
        Marks { beginnings: [(8, Vec::new()), (5, Vec::new())], extensions: Vec::new() };
    for pattern in SECRETS.iter().chain(RUN) {
        let first = pattern.split('/').next().unwrap_or_default();
        if let Some(rest) = first.strip_prefix('*') {
            marks.extensions.extend(extension(rest.as_bytes()).map(packed));
        } else if !first.starts_with(['.', '!']) {
            let literal = first.split('*').next().unwrap_or_default().as_bytes();
            let fits = marks.beginnings.iter_mut().find(|(letters, _)| literal.len() >= *letters);
            let (letters, beginnings) = fits.expect("no name in the lists is shorter");
            beginnings.push(packed(&literal[..*letters]));
        }
    }
    let suffixes = BACKUP_SUFFIXES.iter().filter_map(|suffix| extension(suffix.as_bytes()));
    marks.extensions.extend(suffixes.map(packed));
    marks
});

/// Up to eight letters as one number, whatever their case.
fn packed(letters: &[u8]) -> u64 {
    letters
        .iter()
        .take(8)
        .fold(0, |number, letter| number << 8 | u64::from(letter.to_ascii_lowercase()))
}

fn extension(name: &[u8]) -> Option<&[u8]> {
    name.iter().rposition(|byte| *byte == b'.').map(|dot| &name[dot + 1..])
}

/// Whether a path may be one that asks by default. Quick, since a walk calls it for every name, and never
/// wrong when it says no.
pub(super) fn may_be_protected(path: &[u8]) -> bool {
    let marks = &*MARKS;
    let mut before = b'/';
    let mut start = 0;
    for (at, byte) in path.iter().copied().enumerate() {
        let hidden = before == b'/' && byte == b'.';
        let trails = byte == b'/' && matches!(before, b'.' | b' ');
        // Folding changes what is not ASCII; the others mark backups, short names and streams.
        let odd = !byte.is_ascii() || byte.is_ascii_control() || matches!(byte, b'~' | b'#' | b':');
        if hidden || trails || odd {
            return true;
        }
        if byte == b'/' {
            if marks.suspect(&path[start..at]) {
                return true;
            }
            start = at + 1;
        }
        before = byte;
    }
    marks.suspect(&path[start..])
}

impl Marks {
    /// Whether a name that is not hidden may be in the lists.
    fn suspect(&self, name: &[u8]) -> bool {
        let begins = self.beginnings.iter().any(|(letters, beginnings)| {
            name.get(..*letters).is_some_and(|begin| beginnings.contains(&packed(begin)))
        });
        let ends = || {
            extension(name)
                .is_some_and(|end| is_swap(end) || self.extensions.contains(&packed(end)))
        };
        begins || matches!(name.last(), Some(b'.' | b' ')) || name.ends_with(b"___") || ends()
    }
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
            assert!(may_be_protected(path.as_bytes()), "{path}");
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
                    assert!(may_be_protected(path.as_bytes()), "{path}");
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
            assert!(may_be_protected(path.as_bytes()), "{path}");
            assert!(!asks(Access::Read, ".gitignore"));
        }
        for path in [".gitignore", ".github/CODEOWNERS", "src/main.rs", "git/config", "Makefile"] {
            assert!(!asks(Access::Write, path), "{path}");
        }
    }

    #[test]
    fn files_that_tools_run_by_themselves_ask_before_they_are_changed() {
        for path in [
            ".devcontainer.json",
            "lefthook.yaml",
            "lefthook-local.yml",
            ".lefthook.toml",
            ".zlogin",
            ".bash_logout",
            ".bash_aliases",
            "home/.config/fish/config.fish",
            ".config/git/config",
            ".github/actions/setup/action.yml",
            ".gitea/workflows/ci.yml",
            ".forgejo/workflows/ci.yml",
            ".yarnrc.yml",
            ".yarn/releases/yarn-4.cjs",
            ".pnpmfile.cjs",
            "team.code-workspace",
            ".pre-commit-config.yaml",
            ".gitconfig",
            ".npmrc",
            ".bazelrc",
            ".cargo/config.toml",
            ".vimrc",
            ".exrc",
            ".nvim.lua",
            ".emacs",
            ".dir-locals.el",
            ".zed/settings.json",
            ".windsurf/mcp.json",
            ".continue/config.yaml",
            ".config/autostart/x.desktop",
            ".config/systemd/user/x.service",
            ".circleci/config.yml",
            ".gitlab-ci.yml",
            ".drone.yml",
            ".buildkite/pipeline.yml",
            "Jenkinsfile",
            "ci/Jenkinsfile.release",
            "azure-pipelines.yml",
            ".woodpecker/x.yml",
            ".woodpecker.yml",
            "sitecustomize.py",
            ".gdbinit",
        ] {
            assert!(asks(Access::Write, path) && asks(Access::Delete, path), "{path}");
            assert!(may_be_protected(path.as_bytes()), "{path}");
        }
    }

    #[test]
    fn ordinary_files_do_not_ask() {
        for path in [
            "Makefile",
            "package.json",
            "build.rs",
            "Cargo.toml",
            "pyproject.toml",
            "conftest.py",
            "CLAUDE.md",
            "AGENTS.md",
            "GEMINI.md",
            ".cursorrules",
            ".gitignore",
            ".gitattributes",
            ".editorconfig",
            ".eslintrc.js",
            ".github/dependabot.yml",
            ".config/app.toml",
            "src/git.rs",
            "notes~",
            "main.rs.orig",
            "id.rs",
            "docs/profile.md",
            "a#b",
            "a:b",
        ] {
            assert!(!asks(Access::Write, path) && !asks(Access::Read, path), "{path}");
        }
        // A walk need not look twice at most of them.
        for path in ["Makefile", "package.json", "src/id.rs", "build/lib.rs", "a/b.c/d"] {
            assert!(!may_be_protected(path.as_bytes()), "{path}");
        }
    }

    #[test]
    fn backups_and_swap_files_count_as_the_file() {
        for (access, path) in [
            (Access::Read, "id_rsa~"),
            (Access::Read, "id_rsa.bak"),
            (Access::Read, "ID_RSA.BAK"),
            (Access::Read, "server.key~"),
            (Access::Read, "server.key.orig"),
            (Access::Read, "server.key.old.bak~"),
            (Access::Read, "server.pem.~12~"),
            (Access::Read, "..env.swp"),
            (Access::Read, ".id_rsa.swo"),
            (Access::Read, ".id_rsa.un~"),
            (Access::Read, "#id_rsa#"),
            (Access::Read, ".#id_rsa"),
            (Access::Read, "id_ed25519___jb_tmp___"),
            (Access::Read, "store.jks.dpkg-old"),
            (Access::Read, "AuthKey.p8"),
            (Access::Read, ".npmrc"),
            (Access::Read, ".pypirc"),
            (Access::Read, ".cargo/credentials.toml"),
            (Access::Read, ".cargo/credentials.toml~"),
            (Access::Read, ".docker/config.json"),
            (Access::Read, ".kube/config"),
            (Access::Read, ".env::$DATA"),
            (Access::Write, ".git~/hooks/pre-commit"),
            (Access::Write, ".git::$INDEX_ALLOCATION/config"),
            (Access::Write, ".bashrc~"),
            (Access::Write, "Jenkinsfile.bak"),
            (Access::Write, ".Jenkinsfile.swp"),
            (Access::Write, ".vscode.bak/tasks.json"),
        ] {
            assert!(asks(access, path), "{path}");
            assert!(may_be_protected(path.as_bytes()), "{path}");
        }
    }

    #[test]
    fn short_names_count_as_the_long_ones() {
        for (access, path) in [
            (Access::Write, "GIT~1/config"),
            (Access::Write, "git~2/hooks/pre-commit"),
            (Access::Write, "sub/GITHUB~1/WORKFL~1/ci.yml"),
            (Access::Write, ".github/WORKFL~1/ci.yml"),
            (Access::Write, "VSCODE~1/tasks.json"),
            (Access::Write, "DEVCON~1.JSO"),
            (Access::Write, "MCP~1.JSO"),
            (Access::Write, "LEFTHO~1.YML"),
            (Access::Write, "PROJEC~1.COD"),
            (Access::Read, "ENV~1"),
            (Access::Read, "ENV~1.LOC"),
            (Access::Read, "SSH~1/config"),
            (Access::Read, "ID_ED2~1"),
            (Access::Read, "SECRET~1.KDB"),
            (Access::Read, "CARGO~1/CREDEN~1.TOM"),
        ] {
            assert!(asks(access, path), "{path}");
            assert!(may_be_protected(path.as_bytes()), "{path}");
        }
        for path in ["SRC~1/main.rs", "README~1.MD", "x~1"] {
            assert!(!asks(Access::Write, path) && !asks(Access::Read, path), "{path}");
        }
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "a test reads the documentation")]
    fn the_documentation_lists_every_default() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/CONFIG.md");
        let Ok(text) = std::fs::read_to_string(path) else { return };
        for name in SECRETS.iter().chain(RUN).chain(BACKUP_SUFFIXES) {
            let name = name.trim_start_matches('!');
            assert!(text.contains(&format!("`{name}`")), "docs/CONFIG.md lacks `{name}`");
        }
    }
}
