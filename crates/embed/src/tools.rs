//! The tools of a session, called with JSON text.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use pinfold::{CallOptions, Cancel, Error, Mode, Session};
use pinfold_confine::device_and_inode;
use pinfold_dialects::{
    Format, PATCH, ToolInfo, Toolbox, hosted_patch, list, named_dialects, tools_of,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::approval::HostApprover;
use crate::options::Options;
use crate::{Host, NameStyle, history, pool, reply};

/// The maximum number of combinations of directory and mode with a toolbox.
const MAX_VARIANTS: usize = 64;

/// The tools of one session.
#[derive(Debug)]
pub struct Tools {
    toolbox: Arc<Toolbox>,
    /// The toolboxes for calls with another working directory or mode.
    variants: Mutex<HashMap<Variant, Arc<Toolbox>>>,
}

/// The working directory, its device and inode, and the mode.
type Variant = (Option<PathBuf>, Option<(u64, u64)>, Option<Mode>);

/// A call.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The tool's name.
    pub tool: String,
    /// Its arguments, as JSON text.
    pub arguments: String,
    /// The context, as JSON text: `workdir`, `permission_mode`, `dry_run`, `operation` (`checkpoint`, `rewind` or
    /// `hosted_patch`) to perform that instead of calling a tool, and `problem` if the call cannot be made. May be empty.
    pub context: String,
    /// Cancels the call.
    pub cancel: Cancel,
}

impl Tools {
    /// Opens a session. `options` are JSON text: `root`, `dialect`, and settings by their names. The error is for
    /// the programmer.
    pub fn open(options: &str, style: NameStyle) -> Result<Self, String> {
        let Options { roots, dialects, settings } = Options::parse(options, style)?;
        let session = Session::with_settings(roots, settings).map_err(|error| error.to_string())?;
        let toolbox = Arc::new(Toolbox::new(session, &dialects));
        Ok(Self { toolbox, variants: Mutex::default() })
    }

    /// Calls a tool, and returns its result as JSON text. A failure is a result, too.
    pub fn call(&self, request: &Request, host: Option<impl Host>) -> String {
        let ready = Context::parse(&request.context).and_then(|mut context| {
            context.problem.take().map_or(Ok(()), Err)?;
            let toolbox = self.for_context(&context)?;
            let arguments: Value = serde_json::from_str(&request.arguments)
                .map_err(|error| format!("the arguments are not JSON: {}", problem(&error)))?;
            Ok((toolbox, arguments, context))
        });
        match ready {
            Ok((toolbox, arguments, Context { dry_run, operation, .. })) => {
                let approver = host.map(|host| Arc::new(HostApprover(host)) as _);
                let cancel = request.cancel.clone();
                let call = CallOptions::default()
                    .with_cancel(cancel)
                    .with_dry_run(dry_run)
                    .with_approver(approver);
                let session = toolbox.session();
                match operation {
                    Some(Operation::Checkpoint) => history::checkpoint(session, &arguments),
                    Some(Operation::Rewind) => history::rewind(session, &arguments, &call),
                    Some(Operation::HostedPatch) => apply(&toolbox, &arguments, &call),
                    None => reply::text(toolbox.call_with(&request.tool, arguments, &call)),
                }
            }
            Err(problem) => self.refuse(request, Error::InvalidArgument(problem)),
        }
    }

    /// Calls a tool on another thread, which passes the result to `done`. If the system cannot start a thread, calls
    /// `done` on this one with an error.
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

    /// The result of a refused call.
    fn refuse(&self, request: &Request, error: Error) -> String {
        let options = CallOptions::default();
        reply::text(self.toolbox.refuse_call(&request.tool, error, &options).answer)
    }

    /// The arguments of a call on one line, for the user.
    pub fn compact_params(&self, tool: &str, arguments: &str) -> String {
        match serde_json::from_str(arguments) {
            Ok(value) => self.toolbox.compact_params(tool, &value),
            Err(_) => arguments.to_owned(),
        }
    }

    /// The tools, each with its name, dialect, description, parameters and hints, as JSON text.
    pub fn describe(&self) -> String {
        descriptions(self.toolbox.tools())
    }

    /// The tools in the format of a model provider, as JSON text.
    pub fn schemas(&self, format: &str) -> Result<String, String> {
        Ok(list(self.toolbox.tools(), format.parse::<Format>()?).to_string())
    }

    /// The toolbox for the working directory and mode of a context.
    fn for_context(&self, context: &Context) -> Result<Arc<Toolbox>, String> {
        // A relative path starts at the current directory, which may change.
        let workdir = context.workdir.as_ref().map(std::path::absolute);
        let workdir =
            workdir.transpose().map_err(|error| format!("the call's context: {error}"))?;
        let mode = context.mode()?;
        if workdir.is_none() && mode.is_none() {
            return Ok(self.toolbox.clone());
        }
        // Another directory may be at this path by now.
        let inode = workdir.as_deref().and_then(device_and_inode);
        let key = (workdir.clone(), inode, mode);
        let mut variants = self.variants.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = variants.get(&key) {
            return Ok(known.clone());
        }
        let mut session = None;
        if let Some(workdir) = &workdir {
            let started = self.toolbox.session().starting_at(workdir).ok_or_else(|| {
                let roots: Vec<_> = self.toolbox.session().roots().collect();
                let roots = roots.iter().map(|root| root.display().to_string());
                let roots = roots.collect::<Vec<_>>().join(", ");
                let workdir = workdir.display();
                format!(
                    "the call's context: `{workdir}` is not a directory in the workspace, {roots}"
                )
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
        if variants.len() >= MAX_VARIANTS {
            variants.clear();
        }
        variants.insert(key, toolbox.clone());
        Ok(toolbox)
    }
}

/// An operation that a call performs instead of calling a tool. Models cannot name it.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Operation {
    Checkpoint,
    Rewind,
    /// Applies an operation of OpenAI's hosted `apply_patch`, or the item that has it as `operation`.
    HostedPatch,
}

/// Applies an operation of OpenAI's hosted `apply_patch`, like `apply_patch` of the dialect `patch`, whether or not
/// the session serves that dialect.
fn apply(toolbox: &Toolbox, item: &Value, call: &CallOptions) -> String {
    let toolbox = toolbox.with_dialects(&[&PATCH]);
    let tool = "apply_patch";
    reply::text(match hosted_patch(item.get("operation").unwrap_or(item)) {
        Ok(patch) => toolbox.call_with(tool, json!({ "input": patch }), call),
        Err(problem) => toolbox.refuse_call(tool, Error::InvalidArgument(problem), call).answer,
    })
}

/// The context of a call.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, deny_unknown_fields)]
struct Context {
    /// The start of relative paths and searches, inside the workspace.
    workdir: Option<PathBuf>,
    /// The permission mode; by default the session's.
    permission_mode: Option<String>,
    /// Whether this is a dry run; by default the session's setting.
    dry_run: Option<bool>,
    /// The operation to perform instead of calling a tool.
    operation: Option<Operation>,
    /// The reason why the call cannot be made, if the package's own layer has found one.
    problem: Option<String>,
}

impl Context {
    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        serde_json::from_str(text).map_err(|error| format!("the call's context: {error}"))
    }

    fn mode(&self) -> Result<Option<Mode>, String> {
        let mode = self.permission_mode.as_deref().map(str::parse);
        mode.transpose().map_err(|problem| {
            let name = self.permission_mode.as_deref().unwrap_or_default();
            format!("the call's context: there is no permission mode `{name}`; {problem}")
        })
    }
}

/// The reason why a text is not JSON. Strings of other languages can have lone surrogates, and `serde_json` does not
/// say that these are in a string.
fn problem(error: &serde_json::Error) -> String {
    let text = error.to_string();
    if text.contains("surrogate") || text.contains("hex escape") {
        "a string in them has half of a surrogate pair, which is no character".to_owned()
    } else {
        text
    }
}

/// Checks options, except that the roots exist.
pub fn check(options: &str, style: NameStyle) -> Result<(), String> {
    Options::parse(options, style).map(|_| ())
}

/// The tools of some dialects, as JSON text: see [`Tools::describe`].
pub fn describe(dialects: &[&str]) -> Result<String, String> {
    Ok(descriptions(&tools_of(&named_dialects(dialects.iter().copied())?)))
}

/// The tools of some dialects in the format of a model provider, as JSON text.
pub fn schemas(format: &str, dialects: &[&str]) -> Result<String, String> {
    let tools = tools_of(&named_dialects(dialects.iter().copied())?);
    Ok(list(&tools, format.parse::<Format>()?).to_string())
}

fn descriptions(tools: &[ToolInfo]) -> String {
    let described = tools.iter().map(|tool| {
        json!({
            "name": tool.entry.name,
            "title": tool.entry.title,
            "dialect": tool.dialect.name,
            "description": tool.description(),
            "parameters": tool.input(),
            "read_only": tool.entry.annotations.read_only,
        })
    });
    Value::from_iter(described).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lone_surrogate_is_named_as_such() {
        for text in [r#""\ud800""#, r#""\udc00""#, r#""\ud800\u0041""#, r#""\ud800x""#] {
            let error = serde_json::from_str::<Value>(text).unwrap_err();
            assert!(problem(&error).contains("half of a surrogate pair"), "{text}: {error}");
        }
        let error = serde_json::from_str::<Value>("[1,").unwrap_err();
        assert_eq!(problem(&error), error.to_string());
    }
}
