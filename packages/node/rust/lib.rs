//! The native part of the npm package: JSON text in, JSON text out, off the event loop.

use std::sync::Arc;

use napi::bindgen_prelude::{Function, Object};
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi::{Env, Error, Result, Status};
use napi_derive::napi;
use pinfold::Cancel;
use pinfold_embed::{Host, Mailbox, Request, Tools};

/// The tools of one conversation.
#[napi]
pub struct NativeSession(Arc<Tools>);

/// One call: what it is ended by, and where decisions for it are left.
#[napi]
#[derive(Default)]
pub struct NativeCall {
    cancel: Cancel,
    mailbox: Arc<Mailbox>,
}

#[napi]
impl NativeCall {
    /// A call that has not begun.
    #[napi(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks the call to end soon.
    #[napi]
    pub fn cancel(&self) {
        self.cancel.cancel();
        self.mailbox.close();
    }

    /// Leaves the decision that the call waits for: JSON text.
    #[napi]
    pub fn decide(&self, decision: String) {
        self.mailbox.put(decision);
    }
}

type Ask = ThreadsafeFunction<String, (), String, Status, false, true>;

/// Asks on the event loop, and waits for what is left in the mailbox.
struct Loop {
    ask: Ask,
    mailbox: Arc<Mailbox>,
}

impl Host for Loop {
    fn ask(&self, question: &str) -> String {
        let status = self.ask.call(question.to_owned(), ThreadsafeFunctionCallMode::NonBlocking);
        match status {
            Status::Ok => self.mailbox.take(),
            // The event loop is ending: there is nobody left to ask.
            _ => "false".to_owned(),
        }
    }
}

#[napi]
impl NativeSession {
    /// Opens a session; `options` are JSON text.
    #[napi(constructor)]
    pub fn new(options: String) -> Result<Self> {
        Ok(Self(Arc::new(Tools::open(&options).map_err(invalid)?)))
    }

    /// Begins a call. The promise is for its answer, as JSON text.
    #[napi(ts_return_type = "Promise<string>")]
    pub fn start<'e>(
        &self,
        env: &'e Env,
        tool: String,
        arguments: String,
        context: String,
        call: &NativeCall,
        ask: Option<Function<'_, String, ()>>,
    ) -> Result<Object<'e>> {
        let host = ask.map(|ask| {
            let ask: Ask = ask.build_threadsafe_function().weak::<true>().build()?;
            Ok::<_, Error>(Loop { ask, mailbox: call.mailbox.clone() })
        });
        let host = host.transpose()?;
        let (deferred, promise) = env.create_deferred()?;
        let tools = self.0.clone();
        let request = Request { tool, arguments, context, cancel: call.cancel.clone() };
        pinfold_embed::run(move || {
            let answer = tools.call(&request, host);
            deferred.resolve(move |_| Ok(answer));
        });
        Ok(promise)
    }

    /// The arguments of a call on one line, for a person.
    #[napi]
    pub fn compact(&self, tool: String, arguments: String) -> String {
        self.0.compact(&tool, &arguments)
    }

    /// The tools, as JSON text.
    #[napi]
    pub fn describe(&self) -> String {
        self.0.describe()
    }

    /// The tools in the form of a provider, as JSON text.
    #[napi]
    pub fn schemas(&self, format: String) -> Result<String> {
        self.0.schemas(&format).map_err(invalid)
    }
}

/// The tools of some dialects in the form of a provider, as JSON text.
#[napi]
pub fn schemas(format: String, dialects: Vec<String>) -> Result<String> {
    let dialects: Vec<&str> = dialects.iter().map(String::as_str).collect();
    pinfold_embed::schemas(&format, &dialects).map_err(invalid)
}

fn invalid(problem: String) -> Error {
    Error::new(Status::InvalidArg, problem)
}
