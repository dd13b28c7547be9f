//! The tools of some dialects on a session. Finds tools, checks arguments and performs calls.

use std::borrow::Cow;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use pinfold::{CachedFile, CallOptions, Error, ReadBeforeWrite, Session};
use serde_json::Value;

use crate::hint::FailedCall;
use crate::phrases::shortened;
use crate::tool::ParsedCall;
use crate::{Answer, Dialect, ToolContext, ToolEntry, args, portable_names};

/// The tools of one or more dialects, on one session.
#[derive(Debug)]
pub struct Toolbox {
    session: Arc<Session>,
    tools: Arc<[ToolInfo]>,
    /// The dialect whose words the answer to an unknown tool has.
    first: &'static Dialect,
    front_end_hint: FrontEndHint,
}

/// A function that adds a hint of the front end to an error, for example the flag that would help.
pub type FrontEndHint = fn(&Error) -> Option<String>;

/// A tool with its schemas.
#[derive(Debug)]
pub struct ToolInfo {
    /// The dialect that it belongs to.
    pub dialect: &'static Dialect,
    /// The tool.
    pub entry: &'static ToolEntry,
    /// Whether it has only names that every framework accepts.
    portable: bool,
    /// Its description and schema. They are made when they are first needed, since a short session never calls most
    /// tools.
    listing: OnceLock<Listing>,
}

/// What a list of tools shows of a tool.
#[derive(Debug)]
struct Listing {
    description: String,
    input_schema: Value,
}

impl Toolbox {
    /// Serves `dialects` on a session. Without dialects, serves the default one.
    pub fn new(session: impl Into<Arc<Session>>, dialects: &[&'static Dialect]) -> Self {
        let first = dialects.first().copied().unwrap_or(&crate::CLASSIC);
        let session = session.into();
        let portable = session.settings().portable_names;
        Self {
            session,
            tools: named_tools_of(dialects, portable).into(),
            first,
            front_end_hint: |_| None,
        }
    }

    /// The same tools, with a function that adds hints of the front end to their errors.
    #[must_use]
    pub fn with_front_end_hint(self, front_end_hint: FrontEndHint) -> Self {
        Self { front_end_hint, ..self }
    }

    /// The same tools on another session.
    #[must_use]
    pub fn on(&self, session: impl Into<Arc<Session>>) -> Self {
        Self { session: session.into(), tools: self.tools.clone(), ..*self }
    }

    /// The tools of other dialects on the same session.
    #[must_use]
    pub fn with_dialects(&self, dialects: &[&'static Dialect]) -> Self {
        Self::new(self.session.clone(), dialects).with_front_end_hint(self.front_end_hint)
    }

    fn portable(&self) -> bool {
        self.session.settings().portable_names
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The tools, in the order of their list.
    pub fn tools(&self) -> &[ToolInfo] {
        &self.tools
    }

    /// Calls a tool by name.
    pub fn call(&self, name: &str, arguments: Value) -> Answer {
        self.call_with(name, arguments, &CallOptions::default())
    }

    /// Calls a tool by name, with options of this call.
    pub fn call_with(&self, name: &str, arguments: Value, call: &CallOptions) -> Answer {
        self.perform(&self.prepare(name, arguments), call).answer
    }

    /// Parses the arguments of a call. If they are invalid, [`Self::perform`] answers with the error.
    pub fn prepare(&self, name: &str, arguments: Value) -> PreparedCall {
        let Some(tool) = self.find(name) else {
            let parsed = Err(self.unknown(name).into());
            return PreparedCall { name: shortened(name), tool: None, parsed };
        };
        let (dialect, entry) = (tool.dialect, tool.entry);
        let parsed = guarded(entry.name, || (entry.parse)(tool.check(arguments)?));
        let parsed = parsed.map_err(Arc::new);
        PreparedCall { name: entry.name.to_owned(), tool: Some((dialect, entry)), parsed }
    }

    /// The arguments of a prepared call on one line, for the user. Returns `None` if they are invalid.
    pub fn compact_params_of(&self, prepared: &PreparedCall) -> Option<String> {
        let call = CallOptions::default();
        let ctx = self.context(prepared, &call);
        Some(prepared.parsed.as_ref().ok()?.compact_params(&ctx))
    }

    /// The context of a prepared call.
    fn context<'s>(&'s self, prepared: &PreparedCall, call: &'s CallOptions) -> ToolContext<'s> {
        let names = prepared.tool.map_or(&crate::names::CLASSIC_NAMES, |(_, entry)| entry.names);
        let requires_reads = match self.session.settings().read_before_write {
            Some(rule) => rule == ReadBeforeWrite::Require,
            None => self.tools.iter().any(|tool| tool.dialect.requires_reads),
        };
        ToolContext { session: &self.session, call, names, requires_reads }
    }

    /// The file that a prepared call reads, if it can be performed without waiting: see
    /// [`Session::cached_file`].
    pub fn cached_file(&self, prepared: &PreparedCall) -> Option<CachedFile> {
        prepared.tool.filter(|(_, entry)| entry.reads_one_file)?;
        let parsed = prepared.parsed.as_ref().ok()?;
        let call = CallOptions::default();
        let ctx = self.context(prepared, &call);
        guarded(&prepared.name, || Ok(parsed.cached_file(&ctx))).ok().flatten()
    }

    /// Performs a call.
    pub fn perform(&self, prepared: &PreparedCall, call: &CallOptions) -> Performed {
        let PreparedCall { name, tool, parsed } = prepared;
        let refuse = |error: &Error, error_text: Option<String>| {
            let (dialect, entry) = tool.map_or((self.first, None), |(d, entry)| (d, Some(entry)));
            let hint = (self.front_end_hint)(error);
            let answer = error_answer(dialect, entry, error, self.portable(), (error_text, hint));
            Performed { answer, result_code: crate::code(error) }
        };
        let work = |call: &CallOptions| {
            let ctx = self.context(prepared, call);
            match parsed {
                Err(error) => refuse(error, None),
                Ok(parsed) => match guarded(name, || parsed.perform(&ctx)) {
                    Err(error) => refuse(&error, parsed.error_text(&error, &ctx)),
                    Ok(answer) => Performed { answer, result_code: "ok" },
                },
            }
        };
        let outcome = |done: &Performed| (done.result_code, done.answer.to_json_text().len());
        let mut call = call.clone().with_tool(name);
        if self.session.watching_observer().is_some() {
            call = call.with_compact_params(self.compact_params_of(prepared));
        }
        self.session.audited(&call, work, outcome)
    }

    /// Answers a call with an error before its tool runs. The audit log has this call, too.
    pub fn refuse_call(
        &self,
        name: &str,
        error: impl Into<Arc<Error>>,
        call: &CallOptions,
    ) -> Performed {
        let tool = self.find(name).map(|tool| (tool.dialect, tool.entry));
        let name = tool.map_or_else(|| shortened(name), |(_, entry)| entry.name.to_owned());
        self.perform(&PreparedCall { name, tool, parsed: Err(error.into()) }, call)
    }

    /// Whether a call of an unknown tool gets a result: see [`Dialect::answers_unknown_tools`].
    pub fn answers_unknown_tools(&self) -> bool {
        self.first.answers_unknown_tools
    }

    /// The error for a name that no tool has.
    pub fn unknown(&self, name: &str) -> Error {
        let tools = self.tools.iter().map(|tool| tool.name().into_owned()).collect();
        Error::UnknownTool { name: shortened(name), tools }
    }

    /// The answer for an error outside a call. The audit log does not have it: see [`Self::refuse_call`].
    pub fn error_answer(&self, error: &Error) -> Answer {
        let hint = (self.front_end_hint)(error);
        error_answer(self.first, None, error, self.portable(), (None, hint))
    }

    /// The arguments of a call on one line, for the user. If they are invalid, returns the JSON text.
    pub fn compact_params(&self, name: &str, arguments: &Value) -> String {
        let prepared = self.prepare(name, arguments.clone());
        self.compact_params_of(&prepared).unwrap_or_else(|| arguments.to_string())
    }

    /// Finds a tool by its name, or by its name with `_` for `.`, such as `file_read`.
    pub fn find(&self, name: &str) -> Option<&ToolInfo> {
        let exact = self.tools.iter().find(|tool| tool.entry.name == name);
        exact.or_else(|| {
            self.tools.iter().find(|tool| crate::export::without_dots(tool.entry.name) == name)
        })
    }
}

/// Turns an error into an answer of a dialect. `entry` is the tool, if there is one.
fn error_answer(
    dialect: &Dialect,
    entry: Option<&ToolEntry>,
    error: &Error,
    portable: bool,
    (error_text, front_end_hint): (Option<String>, Option<String>),
) -> Answer {
    let tool = entry.map(|entry| entry.name);
    let read_only = entry.is_none_or(|entry| entry.annotations.read_only);
    let call = FailedCall { tool, read_only, portable, error_text, front_end_hint };
    (dialect.error_answer)(error, &call)
}

/// A call that was performed or refused.
#[derive(Debug)]
pub struct Performed {
    /// The answer, in the form of the tool's dialect.
    pub answer: Answer,
    /// `ok`, or the error's code. The codes are the same for all dialects.
    pub result_code: &'static str,
}

/// A call with parsed arguments: see [`Toolbox::prepare`].
pub struct PreparedCall {
    /// The tool's name. If no tool has the name in the call, that name, cut if it is long.
    name: String,
    tool: Option<(&'static Dialect, &'static ToolEntry)>,
    parsed: Result<Box<dyn ParsedCall>, Arc<Error>>,
}

impl fmt::Debug for PreparedCall {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("PreparedCall").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Runs a step of a call. A panic becomes an error, so that it does not end a server with other clients.
fn guarded<T>(name: &str, step: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(step))
        .unwrap_or_else(|_| Err(Error::Internal { what: format!("`{name}` panicked") }))
}

/// The tools of some dialects. Without dialects, those of the default one.
pub fn tools_of(dialects: &[&'static Dialect]) -> Vec<ToolInfo> {
    named_tools_of(dialects, false)
}

/// The same tools under names that every framework accepts: see `portable_names` in the settings.
pub fn portable_tools_of(dialects: &[&'static Dialect]) -> Vec<ToolInfo> {
    named_tools_of(dialects, true)
}

fn named_tools_of(dialects: &[&'static Dialect], portable: bool) -> Vec<ToolInfo> {
    let dialects = if dialects.is_empty() { &[&crate::CLASSIC] } else { dialects };
    let tools =
        dialects.iter().flat_map(|dialect| dialect.tools.iter().map(|entry| (*dialect, entry)));
    tools
        .map(|(dialect, entry)| ToolInfo { dialect, entry, portable, listing: OnceLock::new() })
        .collect()
}

impl ToolInfo {
    /// The name that it is listed under.
    pub fn name(&self) -> Cow<'static, str> {
        if self.portable {
            crate::export::without_dots(self.entry.name).into()
        } else {
            self.entry.name.into()
        }
    }

    /// The arguments in the form of the tool's struct, or an error with all problems.
    pub fn check(&self, arguments: Value) -> Result<Value, Error> {
        let mut checked = args::check(self.input(), arguments)?;
        if let Some(arguments) = checked.as_object_mut().filter(|_| self.portable) {
            portable_names::restore(arguments);
        }
        Ok(checked)
    }

    /// The description for the model.
    pub fn description(&self) -> &str {
        &self.listing().description
    }

    /// The schema of its arguments.
    pub fn input(&self) -> &Value {
        &self.listing().input_schema
    }

    /// The grammar of the text that OpenAI's models write instead of arguments, unless names have to be portable.
    pub(crate) fn grammar(&self) -> Option<(&'static str, &'static str)> {
        self.entry.openai_grammar.filter(|_| !self.portable)
    }

    /// The schema of its answers, in dialects that have one.
    pub fn output(&self) -> Option<Value> {
        (self.entry.output)()
    }

    fn listing(&self) -> &Listing {
        self.listing.get_or_init(|| {
            let mut input = (self.entry.input)();
            if let Some(properties) = input["properties"].as_object_mut().filter(|_| self.portable)
            {
                portable_names::rename(properties);
            }
            let text = input.as_object_mut().and_then(|input| input.remove("description"));
            let description = match text {
                Some(Value::String(text)) => text,
                _ => String::new(),
            };
            Listing { description, input_schema: input }
        })
    }
}
