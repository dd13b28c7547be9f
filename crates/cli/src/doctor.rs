//! `pinfold doctor`

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use clap::Args;
use pinfold::Session;
use pinfold_confine::{OpenMethod, may_write, remove_secret, write_secret};
use serde_json::{Value, json};

use crate::batch::print_line;
use crate::options::SessionOptions;
use crate::token::state_directory;

/// Check what could keep Pinfold from working, and say what to do about it
///
/// Takes the options that all commands have, and exits with 1 if something is wrong. Nothing in the
/// workspace is changed.
#[derive(Args)]
pub(crate) struct Doctor {
    #[command(flatten)]
    options: SessionOptions,
}

/// How long the server may take to answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a check found.
enum Finding {
    Good(String),
    /// It works, but a person may want it otherwise.
    Odd(String, String),
    /// It does not work; what it is, and what to do.
    Bad(String, String),
}

use Finding::{Bad, Good, Odd};

impl Doctor {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let mut sick = false;
        let mut say = |finding| match finding {
            Good(what) => print_line(&format!("ok    {what}")),
            Odd(what, advice) => print_line(&format!("note  {what}\n      {advice}")),
            Bad(what, advice) => {
                sick = true;
                print_line(&format!("BAD   {what}\n      {advice}"))
            }
        };
        say(Good(format!("pinfold {}", env!("CARGO_PKG_VERSION"))))?;
        let configured = self.configuration();
        let healthy = !matches!(configured, Bad(..));
        say(configured)?;
        if healthy {
            match self.options.open_for_user() {
                Err(error) => {
                    let advice = "name a directory that exists: `--root DIR`";
                    say(Bad(error.to_string(), advice.into()))?;
                }
                Ok(session) => {
                    say(kernel(&session))?;
                    session.real_roots().try_for_each(|root| say(root_directory(&root)))?;
                    say(journal(&session))?;
                    say(self.server(&session))?;
                }
            }
        }
        say(state())?;
        Ok(if sick { ExitCode::from(crate::TOOL_ERROR) } else { ExitCode::SUCCESS })
    }

    fn configuration(&self) -> Finding {
        let file = self.options.workspace.config_file();
        let file = file.map_or("none".into(), |file| file.display().to_string());
        match self.options.configure() {
            Ok(_) => Good(format!("configuration: {file}, where it exists")),
            Err(error) => {
                Bad(format!("configuration: {error:#}"), "mend that line, or remove it".into())
            }
        }
    }

    /// A conversation with a server that runs with the same options.
    fn server(&self, session: &Session) -> Finding {
        match self.converse(session) {
            Ok(tools) => Good(format!("server: it answers, and has {tools} tools")),
            Err(error) => Bad(
                format!("server: {error:#}"),
                "run `PINFOLD_LOG=debug pinfold serve` with the same options, and see what it says"
                    .into(),
            ),
        }
    }

    fn converse(&self, session: &Session) -> Result<usize> {
        let program = std::env::current_exe().context("cannot find this program")?;
        // Every option of this command is one of that one, too.
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
            writeln!(input, "{request}").context("it takes no request")?;
            let line = receive.recv_timeout(PATIENCE);
            let line = line.map_err(|_| anyhow!("it does not answer `{method}`"))?;
            let answer: Value = serde_json::from_str(&line).context("it answers nonsense")?;
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
        let looks = |name: &&str| matches!(*name, "LS" | "file.list" | "list_directory");
        if let Some(name) = name.clone().find(looks) {
            let root = session.real_roots().next().context("there is no root")?;
            let result = ask("tools/call", json!({"name": name, "arguments": {"path": root}}))?;
            if result["isError"] != false {
                return Err(anyhow!("`{name}` of the root says: {}", result["content"][0]["text"]));
            }
        }
        Ok(tools.len())
    }
}

/// A process that does not outlive the check.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

fn kernel(session: &Session) -> Finding {
    match session.workspace().open_method() {
        OpenMethod::Openat2 => Good("kernel: it walks paths itself (openat2)".into()),
        OpenMethod::Walk => Odd(
            "kernel: it has no openat2, or a filter forbids it, so paths are walked name by name"
                .into(),
            "it is as safe, but slower; Linux 5.6 or newer, or another seccomp profile, has it"
                .into(),
        ),
    }
}

fn root_directory(root: &Path) -> Finding {
    let shown = root.display();
    let home = etcetera::home_dir().ok();
    if root == Path::new("/") || home.is_some_and(|home| home.starts_with(root)) {
        return Odd(
            format!("root {shown}: that is all that is yours, keys and mail included"),
            "name the directory of a project: `--root DIR`".into(),
        );
    }
    match may_write(root) {
        true => Good(format!("root {shown}: can be read and changed")),
        false => Odd(
            format!("root {shown}: can be read, but not changed"),
            "if files in it should be changed, let your user write to it".into(),
        ),
    }
}

fn journal(session: &Session) -> Finding {
    let Some(journal) = session.journal() else {
        let advice = "changes cannot be undone; leave out `--no-journal` or `journal = false`";
        return Odd("journal: there is none".into(), advice.into());
    };
    let directory = journal.directory();
    let shown = directory.display();
    if session.real_roots().any(|root| directory.starts_with(root)) {
        return Bad(
            format!("journal: {shown} lies inside a root, where the tools can change it"),
            "name a directory outside: `--journal DIR`".into(),
        );
    }
    probe(directory, "journal", "let your user write there, or name another: `--journal DIR`")
}

fn state() -> Finding {
    match state_directory() {
        Ok(directory) => {
            probe(&directory, "state", "let your user write there, or set XDG_STATE_HOME")
        }
        Err(error) => Bad(format!("state: {error}"), "set HOME, or XDG_STATE_HOME".into()),
    }
}

/// Whether a directory of our own can be written to.
fn probe(directory: &Path, what: &str, advice: &str) -> Finding {
    let file: PathBuf = directory.join(format!("doctor-{}", std::process::id()));
    let shown = directory.display();
    match write_secret(&file, "", true).and_then(|()| remove_secret(&file)) {
        Ok(()) => Good(format!("{what}: {shown} can be written to")),
        Err(error) => Bad(format!("{what}: cannot write to {shown}: {error}"), advice.into()),
    }
}
