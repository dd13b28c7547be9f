//! Tools at work on a session.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use pinfold::{AuditTrace, CachedFile, CallOptions, Error, Session};
use serde_json::Value;

use crate::words::brief;
use crate::{Answer, Dialect, Entry, ToolContext, args};

/// The tools of one or more dialects, on one session.
#[derive(Debug)]
pub struct Toolbox {
    session: Arc<Session>,
    tools: Arc<[ToolInfo]>,
    /// In whose words an unknown tool is answered.
    first: &'static Dialect,
}

/// A tool with its schemas.
#[derive(Debug)]
pub struct ToolInfo {
    /// The dialect that it belongs to.
    pub dialect: &'static Dialect,
    /// The tool.
    pub entry: &'static Entry,
    /// What it does, and what its arguments must look like. Made when it is first wanted, since most tools
    /// of a short session are never called.
    manual: OnceLock<(String, Value)>,
}

impl Toolbox {
    /// Serves `dialects` on a session. Without any, the default one.
    pub fn new(session: impl Into<Arc<Session>>, dialects: &[&'static Dialect]) -> Self {
        let first = dialects.first().copied().unwrap_or(&crate::CLASSIC);
        Self { session: session.into(), tools: tools_of(dialects).into(), first }
    }

    /// The same tools on another session.
    #[must_use]
    pub fn on(&self, session: impl Into<Arc<Session>>) -> Self {
        Self { session: session.into(), tools: self.tools.clone(), first: self.first }
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The tools, in the order in which they are listed.
    pub fn tools(&self) -> &[ToolInfo] {
        &self.tools
    }

    /// Calls a tool by name.
    pub fn call(&self, name: &str, arguments: Value) -> Answer {
        self.call_with(name, arguments, &CallOptions::default())
    }

    /// Calls a tool by name, with something said for this call alone.
    pub fn call_with(&self, name: &str, arguments: Value, call: &CallOptions) -> Answer {
        self.call_and_describe(name, arguments, call, |_| {})
    }

    /// Calls a tool by name. Before it does something, `describe` gets the arguments on one line,
    /// for a person; not if they are wrong.
    pub fn call_and_describe(
        &self,
        name: &str,
        arguments: Value,
        call: &CallOptions,
        describe: impl FnOnce(String),
    ) -> Answer {
        let begin = Instant::now();
        let tool = self.find(name);
        let called = tool.map_or_else(|| brief(name), |tool| tool.entry.name.to_owned());
        let call =
            &CallOptions { tool: called, audit_trace: AuditTrace::default(), ..call.clone() };
        let outcome = match tool {
            None => Err(self.unknown(name)),
            Some(tool) => self.perform(tool, arguments, call, describe),
        };
        let code = outcome.as_ref().map_or_else(crate::code, |_| "ok");
        let answer = outcome.unwrap_or_else(|error| match tool {
            Some(tool) => tool.refuse(&error),
            None => self.refuse(&error),
        });
        if self.session.is_audited() {
            self.session.record(call, code, begin, answer.to_json_text().len());
        }
        answer
    }

    fn perform(
        &self,
        tool: &ToolInfo,
        arguments: Value,
        call: &CallOptions,
        describe: impl FnOnce(String),
    ) -> Result<Answer, Error> {
        let ctx = ToolContext { session: &self.session, call };
        let work = || {
            let arguments = tool.check(arguments)?;
            let ready = (tool.entry.ready)(arguments)?;
            describe(ready.compact(&ctx));
            ready.perform(&ctx)
        };
        // A mistake of ours must not end a server that others talk to.
        catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
            Err(Error::Internal { what: format!("`{}` panicked", tool.entry.name) })
        })
    }

    /// What a call reads, if it needs to wait for nothing but that: see [`Session::cached_file`].
    pub fn cached_file(&self, name: &str, arguments: &Value) -> Option<CachedFile> {
        let tool = self.find(name).filter(|tool| tool.entry.reads)?;
        let (session, call) = (&self.session, &CallOptions::default());
        let look = || {
            let ready = (tool.entry.ready)(tool.check(arguments.clone()).ok()?).ok()?;
            ready.cached_file(&ToolContext { session, call })
        };
        // A mistake of ours comes up again where it is answered.
        catch_unwind(AssertUnwindSafe(look)).ok().flatten()
    }

    /// The error for a name that no tool has.
    pub fn unknown(&self, name: &str) -> Error {
        let tools = self.tools.iter().map(|tool| tool.entry.name.to_owned()).collect();
        Error::UnknownTool { name: brief(name), tools }
    }

    /// The answer to something that did not come as far as a tool.
    pub fn refuse(&self, error: &Error) -> Answer {
        (self.first.fault)(error, true)
    }

    /// The arguments of a call on one line, for a person; the bare JSON if they are not right.
    pub fn compact(&self, name: &str, arguments: &Value) -> String {
        let call = CallOptions::default();
        let ctx = ToolContext { session: &self.session, call: &call };
        let compact = self.find(name).and_then(|tool| {
            let checked = tool.check(arguments.clone()).ok()?;
            Some((tool.entry.ready)(checked).ok()?.compact(&ctx))
        });
        compact.unwrap_or_else(|| arguments.to_string())
    }

    /// The tool with a name, also as exported to formats that know no dots.
    pub fn find(&self, name: &str) -> Option<&ToolInfo> {
        let exact = self.tools.iter().find(|tool| tool.entry.name == name);
        exact.or_else(|| {
            self.tools.iter().find(|tool| crate::export::without_dots(tool.entry.name) == name)
        })
    }
}

/// The tools of some dialects. Without any, those of the default one.
pub fn tools_of(dialects: &[&'static Dialect]) -> Vec<ToolInfo> {
    let dialects = if dialects.is_empty() { &[&crate::CLASSIC] } else { dialects };
    let tools =
        dialects.iter().flat_map(|dialect| dialect.tools.iter().map(|entry| (*dialect, entry)));
    tools.map(|(dialect, entry)| ToolInfo { dialect, entry, manual: OnceLock::new() }).collect()
}

impl ToolInfo {
    /// The arguments as the tool takes them, or everything that is wrong with them.
    pub fn check(&self, arguments: Value) -> Result<Value, Error> {
        args::check(self.input(), arguments)
    }

    /// The answer to a call that did not come as far as the tool, in the words of its dialect.
    pub fn refuse(&self, error: &Error) -> Answer {
        (self.dialect.fault)(error, self.entry.hints.read_only)
    }

    /// What it does, for the model.
    pub fn description(&self) -> &str {
        &self.manual().0
    }

    /// What its arguments must look like.
    pub fn input(&self) -> &Value {
        &self.manual().1
    }

    /// What its answers look like, in dialects that say so.
    pub fn output(&self) -> Option<Value> {
        (self.entry.output)()
    }

    fn manual(&self) -> &(String, Value) {
        self.manual.get_or_init(|| {
            let mut input = (self.entry.input)();
            let text = input.as_object_mut().and_then(|input| input.remove("description"));
            let description = match text {
                Some(Value::String(text)) => text,
                _ => String::new(),
            };
            (description, input)
        })
    }
}
