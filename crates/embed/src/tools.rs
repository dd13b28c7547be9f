//! Tools, as a program in another language has them.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use pinfold::{Call, Cancel, Error, Mode, Session};
use pinfold_dialects::{Format, Toolbox, equip, list, named_dialects};
use serde_json::{Value, json};

use crate::asking::Asker;
use crate::context::Context;
use crate::options::Options;
use crate::{Host, reply};

/// How many combinations of directory and mode are kept ready.
const VARIANTS: usize = 64;

/// The tools of one conversation.
#[derive(Debug)]
pub struct Tools {
    toolbox: Arc<Toolbox>,
    /// The same, for calls that start elsewhere or in another mode.
    variants: Mutex<HashMap<Variant, Arc<Toolbox>>>,
}

/// Where calls start, and in which mode.
type Variant = (Option<PathBuf>, Option<Mode>);

/// A call.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The tool's name.
    pub tool: String,
    /// Its arguments, as JSON text.
    pub arguments: String,
    /// What holds for this call, as JSON text: `workdir`, `permission_mode`, `dry_run`, and
    /// `problem` if the arguments could not be written. May be empty.
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
        let begin = Instant::now();
        let ready = Context::parse(&request.context).and_then(|context| {
            let toolbox = self.for_context(&context)?;
            let arguments = match &context.problem {
                Some(problem) => Err(problem.clone()),
                None => serde_json::from_str(&request.arguments).map_err(|error| error.to_string()),
            };
            let arguments: Value =
                arguments.map_err(|problem| format!("the arguments are not JSON: {problem}"))?;
            Ok((toolbox, arguments, context.dry_run))
        });
        let mut call = Call { cancel: request.cancel.clone(), ..Call::default() };
        match ready {
            Ok((toolbox, arguments, dry_run)) => {
                call.dry_run = dry_run;
                call.approver = host.map(|host| Arc::new(Asker(host)) as _);
                reply::text(toolbox.call_with(&request.tool, arguments, &call))
            }
            Err(problem) => {
                let error = Error::InvalidArgument(problem);
                let answer = match self.toolbox.find(&request.tool) {
                    Some(tool) => tool.refuse(&error),
                    None => self.toolbox.refuse(&error),
                };
                let text = reply::text(answer);
                call.tool.clone_from(&request.tool);
                let code = pinfold_dialects::code(&error);
                self.toolbox.session().record(&call, code, begin, text.len());
                text
            }
        }
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
        let key = (workdir.clone(), mode);
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

/// The tools of some dialects, as JSON text: see [`Tools::describe`].
pub fn describe(dialects: &[&str]) -> Result<String, String> {
    Ok(descriptions(&equip(&named_dialects(dialects.iter().copied())?)))
}

/// The tools of some dialects in the form of a provider, as JSON text.
pub fn schemas(format: &str, dialects: &[&str]) -> Result<String, String> {
    let tools = equip(&named_dialects(dialects.iter().copied())?);
    Ok(list(&tools, format.parse::<Format>()?).to_string())
}

fn descriptions(tools: &[pinfold_dialects::Equipped]) -> String {
    let described = tools.iter().map(|tool| {
        json!({
            "name": tool.entry.name,
            "title": tool.entry.title,
            "dialect": tool.dialect.name,
            "description": tool.description,
            "parameters": tool.input,
            "read_only": tool.entry.hints.read_only,
        })
    });
    Value::from_iter(described).to_string()
}
