//! `pinfold doctor`

mod named;

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use clap::Args;
use pinfold::operations::Find;
use pinfold::{CallOptions, Cancel, Session};
use pinfold_confine::{
    Error, OpenMethod, file_system_type, listen_in, make_socket_directory, may_write,
    remove_secret, remove_socket, write_secret,
};
use pinfold_sandbox::FileRestriction;
use serde_json::{Value, json};

use crate::batch::print_line;
use crate::options::SessionOptions;
use crate::sandbox::{self, Landlock, SandboxOptions};
use crate::serve::FeedOptions;
use crate::token::state_directory;

/// Check the installation and the configuration, and suggest fixes
///
/// Takes the options of `serve`, and checks the workspaces of the configuration file, too. Exits with 1 if something
/// does not work. Changes nothing in the workspace.
#[derive(Args)]
pub(crate) struct Doctor {
    #[command(flatten)]
    options: SessionOptions,

    #[command(flatten)]
    sandbox: SandboxOptions,

    #[command(flatten)]
    feed: FeedOptions,
}

/// The maximum time for the server's answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// The maximum time for walks of the roots, which show what searches cache.
const WALK_TIMEOUT: Duration = Duration::from_secs(3);

/// The outcome of a check.
enum Finding {
    Good(String),
    /// It works, but the user may want to change it. Has the finding and the advice.
    Note(String, String),
    /// It does not work. Has the problem and the advice.
    Bad(String, String),
}

use Finding::{Bad, Good, Note};

impl Doctor {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let mut failed = false;
        let mut report = |finding| match finding {
            Good(what) => print_line(&format!("ok    {what}")),
            Note(what, advice) => print_line(&format!("note  {what}\n      {advice}")),
            Bad(what, advice) => {
                failed = true;
                print_line(&format!("BAD   {what}\n      {advice}"))
            }
        };
        report(Good(format!("pinfold {}", env!("CARGO_PKG_VERSION"))))?;
        let configuration = self.configuration();
        let configured = !matches!(configuration, Bad(..));
        report(configuration)?;
        if configured {
            match self.options.open_for_user() {
                Err(error) => {
                    let advice = "name a directory that exists: `--root DIR`";
                    report(Bad(error.to_string(), advice.into()))?;
                }
                Ok(session) => {
                    for (what, path) in self.options.workspace.files_in_use(&session) {
                        report(Good(format!("{what}: {path}")))?;
                    }
                    report(kernel(&session))?;
                    session.real_roots().try_for_each(|root| report(root_directory(&root)))?;
                    report(journal(&session))?;
                    search(&session).into_iter().try_for_each(&mut report)?;
                    report(self.landlock(&session))?;
                    report(self.feed())?;
                    report(self.server(&session))?;
                }
            }
            self.named_workspaces().into_iter().try_for_each(&mut report)?;
        }
        report(state())?;
        Ok(if failed { ExitCode::from(crate::TOOL_ERROR) } else { ExitCode::SUCCESS })
    }

    fn configuration(&self) -> Finding {
        match self.options.configure() {
            Ok(_) => Good("configuration: no problem".into()),
            Err(error) => {
                Bad(format!("configuration: {error:#}"), "correct or remove that line".into())
            }
        }
    }

    /// Checks the workspaces that `serve --http` with the same options has.
    fn named_workspaces(&self) -> Vec<Finding> {
        let chosen = &self.options.workspace;
        if chosen.workspace.is_some() || !chosen.roots.is_empty() {
            return Vec::new();
        }
        let config = self.options.configure().unwrap_or_default();
        let named = config.workspaces.iter();
        named.flat_map(|(name, named)| named::check(&self.options, name, named)).collect()
    }

    /// Checks whether a server with the same options is restricted to its own files.
    fn landlock(&self, session: &Session) -> Finding {
        let setting = self.options.configure().map(|config| self.sandbox.landlock(&config.serve));
        if setting.unwrap_or_default() == Landlock::Off {
            return Note(
                "landlock: off, so only Pinfold itself keeps a server inside the roots".into(),
                "remove `landlock = \"off\"` or `--landlock off`".into(),
            );
        }
        match sandbox::check(session) {
            FileRestriction::Enforced(version) => Good(format!(
                "landlock: works (version {version}), so the kernel also keeps a server inside the roots"
            )),
            FileRestriction::Unavailable(reason) => Note(
                format!("landlock: does not work: {reason}"),
                "only Pinfold itself keeps a server inside the roots; use a newer kernel, or a \
                 container that allows Landlock"
                    .into(),
            ),
        }
    }

    /// Checks whether viewers can watch a server with the same options.
    fn feed(&self) -> Finding {
        let config = self.options.configure().unwrap_or_default();
        let Some(directory) = self.feed.directory(&config.serve) else {
            return Note(
                "feed: off, so nobody can watch a server or answer its approval requests".into(),
                "remove `feed = false` or `--no-feed`".into(),
            );
        };
        let shown = directory.display();
        let listen = || {
            make_socket_directory(&directory)?;
            let (_listener, socket) =
                listen_in(&directory, &format!("{}-doctor", std::process::id()))?;
            remove_socket(&socket)
        };
        match listen() {
            Ok(()) => Good(format!("feed: {shown}; `pinfold watch` shows what servers do")),
            Err(error) => Note(
                format!(
                    "feed: no server can be watched, because no socket can be made in {shown}: {error}"
                ),
                "choose a directory of your own with a short path: `--feed DIR`".into(),
            ),
        }
    }

    /// Starts a server with the same options, and calls it.
    fn server(&self, session: &Session) -> Finding {
        match self.call_server(session) {
            Ok(tools) => Good(format!("server: answers, with {tools} tools")),
            Err(error) => Bad(
                format!("server: {error:#}"),
                "run `PINFOLD_LOG=debug pinfold serve` with the same options, and read its log"
                    .into(),
            ),
        }
    }

    fn call_server(&self, session: &Session) -> Result<usize> {
        let program = std::env::current_exe().context("cannot find this program")?;
        // `serve` has every option of this command.
        let options = std::env::args_os().skip(2);
        let mut serve = Command::new(program);
        serve.arg("serve").args(options).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = Server(serve.spawn().context("cannot start it")?);
        let mut input = process.0.stdin.take().context("it has no input")?;
        let output = process.0.stdout.take().context("it has no output")?;
        let (send, receive) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    break;
                }
            }
        });
        let mut ask = |method: &str, params: Value| -> Result<Value> {
            let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
            writeln!(input, "{request}").context("it does not read its input")?;
            let line = receive.recv_timeout(ANSWER_TIMEOUT);
            let line = line.map_err(|_| anyhow!("it does not answer `{method}`"))?;
            let answer: Value = serde_json::from_str(&line).context("its answer is not JSON")?;
            let result = answer.get("result").cloned();
            result.ok_or_else(|| anyhow!("it answers `{method}` with {}", answer["error"]))
        };
        let client = json!({"name": "pinfold doctor", "version": env!("CARGO_PKG_VERSION")});
        ask(
            "initialize",
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}),
        )?;
        let list = ask("tools/list", json!({}))?;
        let tools = list["tools"].as_array().context("it lists no tools")?;
        let name = tools.iter().filter_map(|tool| tool["name"].as_str());
        let lists = |name: &&str| matches!(*name, "LS" | "file.list" | "list_directory");
        if let Some(name) = name.clone().find(lists) {
            let root = session.real_roots().next().context("there is no root")?;
            let result = ask("tools/call", json!({"name": name, "arguments": {"path": root}}))?;
            if result["isError"] != false {
                return Err(anyhow!(
                    "`{name}` of the root failed: {}",
                    result["content"][0]["text"]
                ));
            }
        }
        Ok(tools.len())
    }
}

/// A server process. At the end of the check, its input is closed; if it does not end then, it is killed.
struct Server(Child);

/// The maximum time for a server to end and to remove its socket.
const END_TIMEOUT: Duration = Duration::from_secs(2);

impl Drop for Server {
    fn drop(&mut self) {
        let begin = Instant::now();
        while begin.elapsed() < END_TIMEOUT && matches!(self.0.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(5));
        }
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

fn kernel(session: &Session) -> Finding {
    match session.open_method() {
        OpenMethod::Kernel => Good("kernel: opens a path below a root in one call".into()),
        OpenMethod::NameByName => Note(
            "kernel: `openat2` is missing or a seccomp filter forbids it; paths are walked name by name"
                .into(),
            "this is as safe, but slower; use Linux 5.6 or newer, or another seccomp profile"
                .into(),
        ),
    }
}

fn root_directory(root: &Path) -> Finding {
    let shown = root.display();
    let home = etcetera::home_dir().ok();
    if root == Path::new("/") || home.is_some_and(|home| home.starts_with(root)) {
        return Note(
            format!("root {shown}: contains your home directory, with keys and mail"),
            "choose the directory of a project: `--root DIR`".into(),
        );
    }
    let file_system = file_system_type(root);
    let on = file_system.as_ref().map(|name| format!(", on {name}")).unwrap_or_default();
    match may_write(root) {
        Err(Error::ReadOnly) => Note(
            format!("root {shown}: not writable, because the file system is mounted read-only"),
            "to change files in it, mount it with `rw`".into(),
        ),
        Err(_) => Note(
            format!("root {shown}: not writable"),
            "to change files in it, give your user write permission".into(),
        ),
        Ok(()) => match file_system.as_deref().and_then(limits_of) {
            Some(limits) => Note(format!("root {shown}: writable{on}"), limits),
            None => Good(format!("root {shown}: writable{on}")),
        },
    }
}

/// The promises that do not hold on a type of file system, if there are any. `docs/FILESYSTEMS.md` has all of them.
fn limits_of(file_system: &str) -> Option<String> {
    let provided = |by: &str| {
        format!(
            "{by} provides its files, so searches compare them with the disk each time, and see what others change \
             only when the kernel does; if it cannot exchange two files, others find nothing under a file's name for a \
             moment while it is replaced"
        )
    };
    match file_system {
        "nfs" | "nfs4" | "cifs" | "smb3" | "ceph" | "9p" | "virtiofs" => {
            Some(provided("another machine"))
        }
        "fuse" | "fuseblk" => Some(provided("another process")),
        other if other.starts_with("fuse.") => Some(provided("another process")),
        _ => None,
    }
}

fn journal(session: &Session) -> Finding {
    let Some(journal) = session.journal() else {
        let advice = "changes cannot be undone; leave out `--no-journal` or `journal = false`";
        return Note("journal: none".into(), advice.into());
    };
    let directory = journal.directory();
    let shown = directory.display();
    if session.real_roots().any(|root| directory.starts_with(root)) {
        return Bad(
            format!("journal: {shown} is inside a root, where tools could change it"),
            "choose a directory outside: `--journal DIR`".into(),
        );
    }
    probe(
        directory,
        "journal",
        "give your user write permission, or choose another: `--journal DIR`",
    )
}

/// The search status of the roots after two walks. Directories that the first walk finds are watched from the second
/// one on.
fn search(session: &Session) -> Vec<Finding> {
    let cancel = Cancel::default();
    let call = CallOptions::default().with_cancel(cancel.clone());
    std::thread::spawn(move || {
        std::thread::sleep(WALK_TIMEOUT);
        cancel.cancel();
    });
    let everything = Find::new("**/*").with_max_files(1);
    if (0..2).any(|_| session.perform_with(&everything, &call).is_err()) {
        let seconds = WALK_TIMEOUT.as_secs();
        return vec![Good(format!("search: a walk of all roots takes more than {seconds} s"))];
    }
    let finding = |sentence: String| {
        let note = format!("search: {sentence}");
        if sentence.contains("max_user_watches") {
            let advice = "searches are correct, but take longer; raise the limit with `sysctl`";
            Note(note, advice.into())
        } else {
            Good(note)
        }
    };
    session.search_status().into_iter().map(finding).collect()
}

fn state() -> Finding {
    match state_directory() {
        Ok(directory) => {
            probe(&directory, "state", "give your user write permission, or set XDG_STATE_HOME")
        }
        Err(error) => Bad(format!("state: {error}"), "set HOME, or XDG_STATE_HOME".into()),
    }
}

/// Creates a file in one of Pinfold's own directories and removes it.
fn probe(directory: &Path, what: &str, advice: &str) -> Finding {
    let file: PathBuf = directory.join(format!("doctor-{}", std::process::id()));
    let shown = directory.display();
    match write_secret(&file, "", true).and_then(|()| remove_secret(&file)) {
        Ok(()) => Good(format!("{what}: {shown} is writable")),
        Err(error) => Bad(format!("{what}: cannot write to {shown}: {error}"), advice.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::limits_of;

    #[test]
    fn file_systems_that_others_provide_have_limits() {
        for (name, by) in [("nfs4", "machine"), ("fuse.bindfs", "process"), ("fuseblk", "process")]
        {
            let limits = limits_of(name).unwrap();
            assert!(limits.starts_with(&format!("another {by} provides")), "{limits}");
            assert!(limits.contains("only when the kernel does"), "{limits}");
            assert!(limits.contains("nothing under a file's name for a moment"), "{limits}");
        }
        assert!(
            ["ext4", "xfs", "btrfs", "tmpfs", "overlay"].iter().all(|it| limits_of(it).is_none())
        );
    }
}
