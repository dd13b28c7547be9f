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
        ".authinfo.gpg",
        ".rclone.conf",
        ".pulumi/credentials.json",
        ".snowsql/config",
    ] {
        assert!(asks(Access::Read, path), "{path}");
        assert!(may_be_protected(Access::Read, path.as_bytes()), "{path}");
    }
    for path in [
        ".env.example",
        "a/.env.example",
        "env",
        "x.pem.txt",
        "keys.rs",
        "README.md",
        "src/id.rs",
        "id_ed25519_github.pub",
        "id_rsa.pub",
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
                assert!(may_be_protected(access, path.as_bytes()), "{path}");
            }
        }
    }
}

#[test]
fn places_that_make_code_run_are_known_whether_they_are_there_or_not() {
    for path in [
        ".git/config",
        ".git/hooks/pre-commit",
        "docs/HEAD",
        "head.",
        "HEAD.bak",
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
        ".envrc.local",
        ".opencode.json",
        ".theia/tasks.json",
        ".github/workflows/ci.yml",
        "sub/.github/workflows/ci.yml",
    ] {
        assert!(asks(Access::Write, path), "{path}");
        assert!(asks(Access::Delete, path), "{path}");
        assert!(may_be_protected(Access::Delete, path.as_bytes()), "{path}");
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
        "lib/python3/site-packages/x.pth",
        ".gdbinit",
        ".pdbrc",
        ".rvmrc",
        ".mise/config.toml",
        ".config/mise.toml",
        ".direnvrc",
        ".cargo/env",
        ".github/hooks/x.json",
        ".claude-plugin/plugin.json",
        ".bsp/sbt.json",
        "rust-analyzer.toml",
        "hie.yaml",
        ".ycm_extra_conf.py",
        ".wgetrc",
        ".terraformrc",
        "_darcs/prefs/defaults",
        ".gitconfig.local",
        ".readthedocs.yaml",
        "buildspec-release.yml",
        "netlify.toml",
    ] {
        assert!(asks(Access::Write, path) && asks(Access::Delete, path), "{path}");
        assert!(may_be_protected(Access::Write, path.as_bytes()), "{path}");
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
    // The quick check suffices for most paths.
    for path in ["Makefile", "package.json", "src/id.rs", "build/lib.rs", "a/b.c/d"] {
        for access in [Access::Read, Access::Write] {
            assert!(!may_be_protected(access, path.as_bytes()), "{path}");
        }
    }
    // Reading needs approval for fewer names.
    assert!(may_be_protected(Access::Delete, b"tools/a.c"));
    assert!(!may_be_protected(Access::Read, b"tools/a.c"));
}

#[test]
fn backups_and_swap_files_count_as_the_file() {
    for (access, path) in [
        (Access::Read, "id_ed25519_github"),
        (Access::Read, "id_rsa-work"),
        (Access::Read, "terraform.tfstate.backup"),
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
        assert!(may_be_protected(access, path.as_bytes()), "{path}");
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
        assert!(may_be_protected(access, path.as_bytes()), "{path}");
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
