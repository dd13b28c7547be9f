//! The commands in `docs/DEPLOY.md`, run in order, with the directories and ports of this test.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// The servers that were started, until the test ends.
struct Servers(Vec<Child>);

impl Drop for Servers {
    fn drop(&mut self) {
        for server in &mut self.0 {
            _ = server.kill();
            _ = server.wait();
        }
    }
}

/// The directory and the address that replace those on the page.
struct Stage {
    dir: TempDir,
    address: String,
}

impl Stage {
    fn new() -> Self {
        let dir = TempDir::with_prefix("deploy-").unwrap();
        for name in ["etc/pinfold", "srv/website", "srv/handbook"] {
            fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        // An address of this process, so that no other test uses the page's ports. Linux listens on all of
        // 127.0.0.0/8, other systems only on the first address.
        let [.., high, low] = std::process::id().to_be_bytes();
        let address = if cfg!(target_os = "linux") {
            format!("127.80.{high}.{low}")
        } else {
            "127.0.0.1".to_owned()
        };
        Self { dir, address }
    }

    /// Replaces the page's directories and addresses by those of this stage.
    fn here(&self, text: &str) -> String {
        let own = self.dir.path().display();
        let text = text.replace("/etc/pinfold", &format!("{own}/etc/pinfold"));
        text.replace("/srv/", &format!("{own}/srv/"))
            .replace("127.0.0.1:", &format!("{}:", self.address))
    }

    fn shell(&self, line: &str) -> Command {
        let line = line.replacen(
            "pinfold",
            env!("CARGO_BIN_EXE_pinfold"),
            usize::from(line.starts_with("pinfold ")),
        );
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("exec {line}")]).stdin(Stdio::null());
        if line.contains(" | ") {
            shell = Command::new("sh");
            shell.args(["-c", &line]).stdin(Stdio::null());
        }
        shell.current_dir(self.dir.path()).env("XDG_STATE_HOME", self.dir.path().join("state"));
        shell.env("XDG_CONFIG_HOME", self.dir.path().join("config")).env_remove("PINFOLD_TOKEN");
        shell.env_remove("PINFOLD_LOG").env_remove("PINFOLD_CONFIG");
        shell
    }
}

/// Whether a command printed the same text as the page, apart from tokens and ids, which differ from run to run.
fn is_as_shown(printed: &str, shown: &str) -> bool {
    let is_random = |word: &str| {
        [10, 64].contains(&word.len())
            && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
            && word.bytes().any(|byte| byte.is_ascii_digit())
    };
    let is_end = |it: char| " \n`:".contains(it);
    let mut printed = printed.trim_end().split(is_end);
    // Only the page's own words have to look random, since an id may have no digit.
    let is_same = shown.trim_end().split(is_end).all(|shown| {
        printed
            .next()
            .is_some_and(|word| word == shown || is_random(shown) && word.len() == shown.len())
    });
    is_same && printed.next().is_none()
}

#[test]
fn the_commands_print_what_the_page_shows() {
    let page = include_str!("../../../docs/DEPLOY.md");
    let stage = Stage::new();
    let config = page.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    fs::write(stage.dir.path().join("etc/pinfold/config.toml"), stage.here(config)).unwrap();
    let (mut servers, mut commands) = (Servers(Vec::new()), 0);
    for block in page.split("```console\n").skip(1) {
        let block = stage.here(block.split_once("```").unwrap().0);
        for example in block.split("$ ").skip(1) {
            let (command, shown) = example.split_once('\n').unwrap();
            commands += 1;
            let Some(server) = command.strip_suffix(" &") else {
                let output = stage.shell(command).output().unwrap();
                assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{command}");
                let printed = String::from_utf8(output.stdout).unwrap();
                assert!(is_as_shown(&printed, shown), "{command}\n{printed}\ninstead of\n{shown}");
                continue;
            };
            let mut process = stage.shell(server).stderr(Stdio::piped()).spawn().unwrap();
            let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
            servers.0.push(process);
            for shown in shown.trim_end().lines() {
                assert_eq!(lines.next().unwrap().unwrap(), shown, "{command}");
            }
            // The rest of its output is read, so that it does not block.
            std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        }
    }
    assert!(commands >= 16, "{commands}");
}
