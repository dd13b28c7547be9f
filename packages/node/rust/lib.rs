//! The native part of the npm package: takes and returns JSON text, and runs calls off the event loop.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use napi::bindgen_prelude::{Function, Object};
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi::{CleanupEnvHook, Env, Error, JsDeferred, Result, Status};
use napi_derive::napi;
use pinfold::Cancel;
use pinfold_embed::{DecisionSlot, Host, NameStyle, Request, Tools};

/// The tools of one session.
#[napi]
pub struct NativeSession(Arc<Tools>);

/// One call: its cancellation, and the slot for decisions.
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

    /// Cancels the call.
    #[napi]
    pub fn cancel(&self) {
        self.cancel.cancel();
        self.decision.close();
        pinfold_embed::answer_cancelled();
    }

    /// Passes on the decision that the call waits for, as JSON text.
    #[napi]
    pub fn decide(&self, decision: String) {
        self.decision.put(decision);
    }
}

type Ask = ThreadsafeFunction<String, (), String, Status, false, true>;
type Resolver = Box<dyn FnOnce(Env) -> Result<String>>;

/// The handles by which a call's thread reaches the event loop. The end of the loop's environment frees them, so
/// they may be used only under the lock, which [`Loop::end`] takes first.
struct Handles {
    ask: Option<Ask>,
    answer: Option<JsDeferred<String, Resolver>>,
}

#[derive(Clone)]
struct Loop(Arc<Mutex<Handles>>);

impl Loop {
    fn lock(&self) -> MutexGuard<'_, Handles> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The environment ends. It frees the handles itself, so they are forgotten here.
    fn end(&self) {
        let mut handles = self.lock();
        std::mem::forget(handles.ask.take());
        std::mem::forget(handles.answer.take());
    }

    /// Resolves the promise, and drops the handles.
    fn answer(&self, text: String, number: u64) {
        let mut handles = self.lock();
        handles.ask = None;
        if let Some(deferred) = handles.answer.take() {
            deferred.resolve(Box::new(move |env| {
                let hook = RUNNING_CALLS.with_borrow_mut(|calls| calls.remove(&number));
                hook.map_or(Ok(()), |hook| env.remove_env_cleanup_hook(hook))?;
                Ok(text)
            }));
        }
    }
}

/// Calls the approval callback on the event loop, and waits for the decision.
struct EventLoopHost {
    event_loop: Loop,
    decision: Arc<DecisionSlot>,
}

impl Host for EventLoopHost {
    fn ask(&self, question: &str) -> String {
        let handles = self.event_loop.lock();
        let status = handles
            .ask
            .as_ref()
            .map(|ask| ask.call(question.to_owned(), ThreadsafeFunctionCallMode::NonBlocking));
        drop(handles);
        match status {
            Some(Status::Ok) => self.decision.take(),
            // The event loop is ending and runs no callback any more.
            _ => "false".to_owned(),
        }
    }
}

/// Runs when the environment ends.
type Hook = CleanupEnvHook<(Loop, NativeCall)>;

thread_local! {
    /// The calls that this thread's event loop waits for.
    static RUNNING_CALLS: RefCell<HashMap<u64, Hook>> = RefCell::default();
}

static CALLS: AtomicU64 = AtomicU64::new(0);

#[napi]
impl NativeSession {
    /// Opens a session; `options` are JSON text.
    #[napi(constructor)]
    pub fn new(options: String) -> Result<Self> {
        Ok(Self(Arc::new(Tools::open(&options, NameStyle::Camel).map_err(invalid)?)))
    }

    /// Starts a call. Returns a promise of its result, as JSON text.
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
        let handles = Handles { ask: ask.transpose()?, answer: Some(deferred) };
        let event_loop = Loop(Arc::new(Mutex::new(handles)));
        // Hooks run in reverse order, so this one runs before the environment frees the handles.
        let hook =
            env.add_env_cleanup_hook((event_loop.clone(), call.clone()), |(event_loop, call)| {
                event_loop.end();
                call.cancel();
            })?;
        let number = CALLS.fetch_add(1, Ordering::Relaxed);
        RUNNING_CALLS.with_borrow_mut(|calls| calls.insert(number, hook));
        let decision = call.decision.clone();
        let host = asks.then(|| EventLoopHost { event_loop: event_loop.clone(), decision });
        let request = Request { tool, arguments, context, cancel: call.cancel.clone() };
        self.0.start(request, host, move |answer| event_loop.answer(answer, number));
        Ok(promise)
    }

    /// The arguments of a call on one line, for the user.
    #[napi]
    pub fn compact_params(&self, tool: String, arguments: String) -> String {
        self.0.compact_params(&tool, &arguments)
    }

    /// The tools, as JSON text.
    #[napi]
    pub fn describe(&self) -> String {
        self.0.describe()
    }

    /// The tools in the format of a model provider, as JSON text.
    #[napi]
    pub fn schemas(&self, format: String) -> Result<String> {
        self.0.schemas(&format).map_err(invalid)
    }
}

/// The tools of some dialects in the format of a model provider, as JSON text.
#[napi]
pub fn schemas(format: String, dialects: Vec<String>) -> Result<String> {
    let dialects: Vec<&str> = dialects.iter().map(String::as_str).collect();
    pinfold_embed::schemas(&format, &dialects).map_err(invalid)
}

fn invalid(problem: String) -> Error {
    Error::new(Status::InvalidArg, problem)
}
