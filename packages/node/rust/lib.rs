//! The native part of the npm package: JSON text in, JSON text out, off the event loop.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use napi::bindgen_prelude::{Function, Object};
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi::{CleanupEnvHook, Env, Error, JsDeferred, Result, Status};
use napi_derive::napi;
use pinfold::Cancel;
use pinfold_embed::{DecisionSlot, Host, Request, Tools};

/// The tools of one conversation.
#[napi]
pub struct NativeSession(Arc<Tools>);

/// One call: what it is ended by, and where decisions for it are left.
#[napi]
#[derive(Clone, Default)]
pub struct NativeCall {
    cancel: Cancel,
    decision: Arc<DecisionSlot>,
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
        self.decision.close();
        pinfold_embed::answer_cancelled();
    }

    /// Leaves the decision that the call waits for: JSON text.
    #[napi]
    pub fn decide(&self, decision: String) {
        self.decision.put(decision);
    }
}

type Ask = ThreadsafeFunction<String, (), String, Status, false, true>;
type Resolver = Box<dyn FnOnce(Env) -> Result<String>>;

/// What leads from a call's thread to the event loop. It must not be touched once the loop's environment has
/// begun to end, which takes it apart: so whoever does anything with it holds the lock.
struct Ways {
    ask: Option<Ask>,
    answer: Option<JsDeferred<String, Resolver>>,
}

#[derive(Clone)]
struct Loop(Arc<Mutex<Ways>>);

impl Loop {
    fn lock(&self) -> MutexGuard<'_, Ways> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The environment ends: nothing leads there any more. What it takes apart itself is left to it.
    fn ends(&self) {
        let mut ways = self.lock();
        std::mem::forget(ways.ask.take());
        std::mem::forget(ways.answer.take());
    }

    /// Gives the answer, and ends the ways.
    fn answer(&self, text: String, number: u64) {
        let mut ways = self.lock();
        ways.ask = None;
        if let Some(deferred) = ways.answer.take() {
            deferred.resolve(Box::new(move |env| {
                let hook = UNDER_WAY.with_borrow_mut(|calls| calls.remove(&number));
                hook.map_or(Ok(()), |hook| env.remove_env_cleanup_hook(hook))?;
                Ok(text)
            }));
        }
    }
}

/// Asks on the event loop, and waits for the decision.
struct Asking {
    event_loop: Loop,
    decision: Arc<DecisionSlot>,
}

impl Host for Asking {
    fn ask(&self, question: &str) -> String {
        let ways = self.event_loop.lock();
        let status = ways
            .ask
            .as_ref()
            .map(|ask| ask.call(question.to_owned(), ThreadsafeFunctionCallMode::NonBlocking));
        drop(ways);
        match status {
            Some(Status::Ok) => self.decision.take(),
            // The event loop is ending: there is nobody left to ask.
            _ => "false".to_owned(),
        }
    }
}

/// What an environment has to end when it ends itself.
type Hook = CleanupEnvHook<(Loop, NativeCall)>;

thread_local! {
    /// The calls that this thread's event loop waits for.
    static UNDER_WAY: RefCell<HashMap<u64, Hook>> = RefCell::default();
}

static CALLS: AtomicU64 = AtomicU64::new(0);

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
        let asks = ask.is_some();
        let ask = ask.map(|ask| ask.build_threadsafe_function().weak::<true>().build());
        let (deferred, promise) = env.create_deferred()?;
        let ways = Ways { ask: ask.transpose()?, answer: Some(deferred) };
        let event_loop = Loop(Arc::new(Mutex::new(ways)));
        // What was made last is ended first, so this comes before the ways are taken apart.
        let hook =
            env.add_env_cleanup_hook((event_loop.clone(), call.clone()), |(ways, call)| {
                ways.ends();
                call.cancel();
            })?;
        let number = CALLS.fetch_add(1, Ordering::Relaxed);
        UNDER_WAY.with_borrow_mut(|calls| calls.insert(number, hook));
        let decision = call.decision.clone();
        let host = asks.then(|| Asking { event_loop: event_loop.clone(), decision });
        let request = Request { tool, arguments, context, cancel: call.cancel.clone() };
        self.0.start(request, host, move |answer| event_loop.answer(answer, number));
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
