//! Tools at work on a session.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use pinfold::{AtHand, Call, Error, Session, Trace};
use serde_json::Value;

use crate::words::brief;
use crate::{Answer, Desk, Dialect, Entry, args};

/// The tools of one or more dialects, on one session.
#[derive(Debug)]
pub struct Toolbox {
    session: Arc<Session>,
    tools: Arc<[Equipped]>,
    /// In whose words an unknown tool is answered.
    first: &'static Dialect,
}

/// A tool with its schemas.
#[derive(Debug)]
pub struct Equipped {
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
        Self { session: session.into(), tools: equip(dialects).into(), first }
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
    pub fn tools(&self) -> &[Equipped] {
        &self.tools
    }

    /// Calls a tool by name.
    pub fn call(&self, name: &str, arguments: Value) -> Answer {
        self.call_with(name, arguments, &Call::default())
    }

    /// Calls a tool by name, with something said for this call alone.
    pub fn call_with(&self, name: &str, arguments: Value, call: &Call) -> Answer {
        self.call_and_describe(name, arguments, call, |_| {})
    }

    /// Calls a tool by name. Before it does something, `describe` gets the arguments on one line,
    /// for a person; not if they are wrong.
    pub fn call_and_describe(
        &self,
        name: &str,
        arguments: Value,
        call: &Call,
        describe: impl FnOnce(String),
    ) -> Answer {
        let begin = Instant::now();
        let tool = self.find(name);
        let called = tool.map_or_else(|| brief(name), |tool| tool.entry.name.to_owned());
        let call = &Call { tool: called, trace: Trace::default(), ..call.clone() };
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
        tool: &Equipped,
        arguments: Value,
        call: &Call,
        describe: impl FnOnce(String),
    ) -> Result<Answer, Error> {
        let desk = Desk { session: &self.session, call };
        let work = || {
            let arguments = tool.check(arguments)?;
            let ready = (tool.entry.ready)(arguments)?;
            describe(ready.compact(&desk));
            ready.perform(&desk)
        };
        // A mistake of ours must not end a server that others talk to.
        catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
            Err(Error::Internal { what: format!("`{}` panicked", tool.entry.name) })
        })
    }

    /// What a call reads, if it needs to wait for nothing but that: see [`Session::at_hand`].
    pub fn at_hand(&self, name: &str, arguments: &Value) -> Option<AtHand> {
        let tool = self.find(name).filter(|tool| tool.entry.reads)?;
        let (session, call) = (&self.session, &Call::default());
        let look = || {
            let ready = (tool.entry.ready)(tool.check(arguments.clone()).ok()?).ok()?;
            ready.at_hand(&Desk { session, call })
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
        let call = Call::default();
        let desk = Desk { session: &self.session, call: &call };
        let compact = self.find(name).and_then(|tool| {
            let checked = tool.check(arguments.clone()).ok()?;
            Some((tool.entry.ready)(checked).ok()?.compact(&desk))
        });
        compact.unwrap_or_else(|| arguments.to_string())
    }

    /// The tool with a name, also as exported to formats that know no dots.
    pub fn find(&self, name: &str) -> Option<&Equipped> {
        let exact = self.tools.iter().find(|tool| tool.entry.name == name);
        exact.or_else(|| {
            self.tools.iter().find(|tool| crate::export::without_dots(tool.entry.name) == name)
        })
    }
}

/// The tools of some dialects. Without any, those of the default one.
pub fn equip(dialects: &[&'static Dialect]) -> Vec<Equipped> {
    let dialects = if dialects.is_empty() { &[&crate::CLASSIC] } else { dialects };
    let tools =
        dialects.iter().flat_map(|dialect| dialect.tools.iter().map(|entry| (*dialect, entry)));
    tools.map(|(dialect, entry)| Equipped { dialect, entry, manual: OnceLock::new() }).collect()
}

impl Equipped {
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
