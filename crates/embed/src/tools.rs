//! Tools, as a program in another language has them.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use pinfold::{CallOptions, Cancel, Error, Mode, Session};
use pinfold_confine::device_and_inode;
use pinfold_dialects::{Format, Toolbox, list, named_dialects, tools_of};
use serde_json::{Value, json};

use crate::approval::HostApprover;
use crate::context::Context;
use crate::options::Options;
use crate::{Host, pool, reply};

/// How many combinations of directory and mode are kept ready.
const VARIANTS: usize = 64;

/// The tools of one conversation.
#[derive(Debug)]
pub struct Tools {
    toolbox: Arc<Toolbox>,
    /// The same, for calls that start elsewhere or in another mode.
    variants: Mutex<HashMap<Variant, Arc<Toolbox>>>,
}

/// Where calls start, by path and by what it led to, and in which mode.
type Variant = (Option<PathBuf>, Option<(u64, u64)>, Option<Mode>);

/// A call.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The tool's name.
    pub tool: String,
    /// Its arguments, as JSON text.
    pub arguments: String,
    /// What holds for this call, as JSON text: `workdir`, `permission_mode`, `dry_run`, and
    /// `problem` if the call cannot be made. May be empty.
    pub context: String,
    /// Lets somebody end the call.
    pub cancel: Cancel,
}

impl Tools {
    /// Opens a session. `options` are JSON text: `root`, `dialect`, and settings by their names. What is
    /// wrong with them is said in words for the programmer.
    pub fn open(options: &str) -> Result<Self, String> {
        let Options { roots, dialects, settings } = Options::parse(options)?;
        let session = Session::with_settings(roots, settings).map_err(|error| error.to_string())?;
        let toolbox = Arc::new(Toolbox::new(session, &dialects));
        Ok(Self { toolbox, variants: Mutex::default() })
    }

    /// Makes a call, and waits for its answer: JSON text, whatever happens.
    pub fn call(&self, request: &Request, host: Option<impl Host>) -> String {
        let ready = Context::parse(&request.context).and_then(|mut context| {
            context.problem.take().map_or(Ok(()), Err)?;
            let toolbox = self.for_context(&context)?;
            let arguments: Value = serde_json::from_str(&request.arguments)
                .map_err(|error| format!("the arguments are not JSON: {}", problem(&error)))?;
            Ok((toolbox, arguments, context.dry_run))
        });
        match ready {
            Ok((toolbox, arguments, dry_run)) => {
                let approver = host.map(|host| Arc::new(HostApprover(host)) as _);
                let cancel = request.cancel.clone();
                let call = CallOptions::default()
                    .with_cancel(cancel)
                    .with_dry_run(dry_run)
                    .with_approver(approver);
                reply::text(toolbox.call_with(&request.tool, arguments, &call))
            }
            Err(problem) => self.refuse(request, Error::InvalidArgument(problem)),
        }
    }

    /// Makes a call on another thread. Its answer goes to `done`, there or, where there is no thread to be
    /// had, here.
    pub fn start(
        self: &Arc<Self>,
        request: Request,
        host: Option<impl Host>,
        done: impl FnOnce(String) + Send + 'static,
    ) {
        let tools = self.clone();
        pool::run(request.cancel.clone(), move |able| {
            done(if able {
                tools.call(&request, host)
            } else {
                let what = "the system has no thread left for this call; try it again".to_owned();
                tools.refuse(&request, Error::Internal { what })
            });
        });
    }

    /// The answer to a call that is not made.
    fn refuse(&self, request: &Request, error: Error) -> String {
        reply::text(self.toolbox.refuse_call(&request.tool, error, &CallOptions::default()))
    }

    /// The arguments of a call on one line, for a person.
    pub fn compact(&self, tool: &str, arguments: &str) -> String {
        match serde_json::from_str(arguments) {
            Ok(value) => self.toolbox.compact(tool, &value),
            Err(_) => arguments.to_owned(),
        }
    }

    /// The tools, each with its name, dialect, description, parameters and hints, as JSON text.
    pub fn describe(&self) -> String {
        descriptions(self.toolbox.tools())
    }

    /// The tools in the form of a provider, as JSON text.
    pub fn schemas(&self, format: &str) -> Result<String, String> {
        Ok(list(self.toolbox.tools(), format.parse::<Format>()?).to_string())
    }

    /// The tools for what a context says.
    fn for_context(&self, context: &Context) -> Result<Arc<Toolbox>, String> {
        // Relative to where the process is now, which may change.
        let workdir = context.workdir.as_ref().map(std::path::absolute);
        let workdir =
            workdir.transpose().map_err(|error| format!("the call's context: {error}"))?;
        let mode = context.mode()?;
        if workdir.is_none() && mode.is_none() {
            return Ok(self.toolbox.clone());
        }
        // What is at the path now may not be what was there before.
        let there = workdir.as_deref().and_then(device_and_inode);
        let key = (workdir.clone(), there, mode);
        let mut variants = self.variants.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = variants.get(&key) {
            return Ok(known.clone());
        }
        let mut session = None;
        if let Some(workdir) = &workdir {
            let started = self.toolbox.session().starting_at(workdir).ok_or_else(|| {
                let roots: Vec<_> = self.toolbox.session().workspace().roots().collect();
                let roots = roots.iter().map(|root| root.display().to_string());
                let roots = roots.collect::<Vec<_>>().join(", ");
                let workdir = workdir.display();
                format!("the call's context: `{workdir}` is no directory in the workspace, {roots}")
            })?;
            session = Some(started);
        }
        if let Some(mode) = mode {
            session = Some(session.as_ref().unwrap_or(self.toolbox.session()).in_mode(mode));
        }
        let toolbox = match session {
            Some(session) => Arc::new(self.toolbox.on(session)),
            None => self.toolbox.clone(),
        };
        if variants.len() >= VARIANTS {
            variants.clear();
        }
        variants.insert(key, toolbox.clone());
        Ok(toolbox)
    }
}

/// What is wrong with a text that is to be JSON. Languages whose strings are no Unicode can make such.
fn problem(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.contains("surrogate") || text.contains("hex escape") {
        true => "a string in them has half of a surrogate pair, which is no character".to_owned(),
        false => text,
    }
}

/// What is wrong with options, if something is, as far as that can be said without their roots.
pub fn check(options: &str) -> Result<(), String> {
    Options::parse(options).map(|_| ())
}

/// The tools of some dialects, as JSON text: see [`Tools::describe`].
pub fn describe(dialects: &[&str]) -> Result<String, String> {
    Ok(descriptions(&tools_of(&named_dialects(dialects.iter().copied())?)))
}

/// The tools of some dialects in the form of a provider, as JSON text.
pub fn schemas(format: &str, dialects: &[&str]) -> Result<String, String> {
    let tools = tools_of(&named_dialects(dialects.iter().copied())?);
    Ok(list(&tools, format.parse::<Format>()?).to_string())
}

fn descriptions(tools: &[pinfold_dialects::ToolInfo]) -> String {
    let described = tools.iter().map(|tool| {
        json!({
            "name": tool.entry.name,
            "title": tool.entry.title,
            "dialect": tool.dialect.name,
            "description": tool.description(),
            "parameters": tool.input(),
            "read_only": tool.entry.hints.read_only,
        })
    });
    Value::from_iter(described).to_string()
}
