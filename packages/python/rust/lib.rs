//! The native part of the Python package: takes and returns JSON text, and runs calls without the GIL.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use pinfold_embed::{DecisionSlot, Host, NameStyle, Request, Tools};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// How often a call that runs on the caller's thread checks for signals.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(50);

/// How many threads of the pool are in the interpreter, or about to enter it. There must be none when it is
/// finalized.
static INSIDE: AtomicUsize = AtomicUsize::new(0);

/// Whether the interpreter is ending.
static ENDING: AtomicBool = AtomicBool::new(false);

/// Attaches a thread of the pool to the interpreter for `work`. `None` if the interpreter is ending.
fn enter<T>(work: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    INSIDE.fetch_add(1, Ordering::SeqCst);
    let outcome = if ENDING.load(Ordering::SeqCst) { None } else { Python::try_attach(work) };
    INSIDE.fetch_sub(1, Ordering::SeqCst);
    outcome
}

/// Keeps threads of the pool out of the interpreter from now on, and waits for those that are in it. None stays
/// for long.
#[pyfunction]
fn end(py: Python<'_>) {
    ENDING.store(true, Ordering::SeqCst);
    let begin = Instant::now();
    py.detach(|| {
        while INSIDE.load(Ordering::SeqCst) > 0 && begin.elapsed() < Duration::from_secs(5) {
            thread::sleep(Duration::from_micros(100));
        }
    });
}

/// Called in a forked process, which has none of its parent's threads.
#[pyfunction]
fn forked() {
    INSIDE.store(0, Ordering::SeqCst);
}

/// One call: its cancellation, and the slot for decisions.
#[pyclass(frozen)]
#[derive(Default)]
struct Call {
    cancel: pinfold::Cancel,
    decision: Arc<DecisionSlot>,
}

#[pymethods]
impl Call {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Cancels the call.
    fn cancel(&self) {
        self.cancel.cancel();
        self.decision.close();
        pinfold_embed::answer_cancelled();
    }

    /// Passes on the decision that the call waits for, as JSON text.
    fn decide(&self, decision: String) {
        self.decision.put(decision);
    }
}

/// The exception that interrupts a call on the caller's thread: raised by a signal handler, such as
/// `KeyboardInterrupt`, or by the callback if it is no `Exception`.
struct Interruption {
    thread: ThreadId,
    last: Mutex<Instant>,
    raised: Mutex<Option<PyErr>>,
}

impl Interruption {
    fn new() -> Self {
        let thread = thread::current().id();
        Self { thread, last: Mutex::new(Instant::now()), raised: Mutex::default() }
    }

    /// Whether a signal handler has raised an exception. Checks only on the thread that made the call.
    fn check_signals(&self) -> bool {
        if thread::current().id() != self.thread {
            return false;
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.elapsed() < SIGNAL_INTERVAL {
            return false;
        }
        *last = Instant::now();
        match Python::try_attach(|py| py.check_signals()) {
            Some(Err(error)) => {
                self.raise(error);
                true
            }
            _ => false,
        }
    }

    fn raise(&self, error: PyErr) {
        *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    fn take(&self) -> Option<PyErr> {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Calls the approval callback on the caller's thread. An exception that it raises ends the call.
struct BlockingHost {
    ask: Py<PyAny>,
    cancel: pinfold::Cancel,
    interruption: Arc<Interruption>,
}

impl Host for BlockingHost {
    fn ask(&self, question: &str) -> String {
        let decision = Python::try_attach(|py| {
            let decision = self.ask.call1(py, (question,));
            decision.and_then(|decision| decision.extract::<String>(py))
        });
        match decision {
            Some(Ok(decision)) => decision,
            Some(Err(error)) => {
                self.interruption.raise(error);
                self.cancel.cancel();
                "false".to_owned()
            }
            None => "false".to_owned(),
        }
    }
}

/// Passes approval requests to a Python function, and waits for the decision in the slot.
struct AsyncHost {
    ask: Py<PyAny>,
    decision: Arc<DecisionSlot>,
}

impl Host for AsyncHost {
    fn ask(&self, question: &str) -> String {
        let put = enter(|py| match self.ask.call1(py, (question,)) {
            Ok(_) => true,
            Err(error) => {
                error.write_unraisable(py, None);
                false
            }
        });
        match put {
            Some(true) => self.decision.take(),
            _ => "false".to_owned(),
        }
    }
}

/// The tools of one session.
#[pyclass(frozen, name = "Tools")]
struct NativeTools(Arc<Tools>);

#[pymethods]
impl NativeTools {
    #[new]
    fn new(py: Python<'_>, options: &str) -> PyResult<Self> {
        let tools =
            py.detach(|| Tools::open(options, NameStyle::Snake)).map_err(PyValueError::new_err)?;
        Ok(Self(Arc::new(tools)))
    }

    /// Calls a tool on this thread, and returns its result. Approval requests go to `ask`.
    #[pyo3(signature = (tool, arguments, context, call, ask=None))]
    fn call(
        &self,
        py: Python<'_>,
        tool: String,
        arguments: String,
        context: String,
        call: &Call,
        ask: Option<Py<PyAny>>,
    ) -> PyResult<String> {
        let interruption = Arc::new(Interruption::new());
        let signals = interruption.clone();
        let cancel = call.cancel.with_poll(move || signals.check_signals());
        let host = ask.map(|ask| {
            let (cancel, interruption) = (cancel.clone(), interruption.clone());
            BlockingHost { ask, cancel, interruption }
        });
        let request = Request { tool, arguments, context, cancel };
        let answer = py.detach(|| self.0.call(&request, host));
        match interruption.take() {
            Some(error) => Err(error),
            None => Ok(answer),
        }
    }

    /// Starts a call on another thread. Approval requests go to `ask`, which passes decisions to `call`; the result
    /// goes to `done`.
    #[allow(clippy::too_many_arguments, reason = "only the package's own layer calls it")]
    fn start(
        &self,
        py: Python<'_>,
        tool: String,
        arguments: String,
        context: String,
        call: &Call,
        ask: Option<Py<PyAny>>,
        done: Py<PyAny>,
    ) {
        let request = Request { tool, arguments, context, cancel: call.cancel.clone() };
        if ENDING.load(Ordering::SeqCst) {
            // No thread may enter the interpreter any more, so the call runs here and every approval is denied.
            let answer = py.detach(|| self.0.call(&request, None::<AsyncHost>));
            finish(py, done, answer);
            return;
        }
        let host = ask.map(|ask| AsyncHost { ask, decision: call.decision.clone() });
        self.0.start(request, host, move |answer| {
            enter(|py| finish(py, done, answer));
        });
    }

    /// The arguments of a call on one line, for the user.
    fn compact_params(&self, tool: &str, arguments: &str) -> String {
        self.0.compact_params(tool, arguments)
    }

    /// The tools, as JSON text.
    fn describe(&self) -> String {
        self.0.describe()
    }

    /// The tools in the format of a model provider, as JSON text.
    fn schemas(&self, format: &str) -> PyResult<String> {
        self.0.schemas(format).map_err(PyValueError::new_err)
    }
}

fn finish(py: Python<'_>, done: Py<PyAny>, answer: String) {
    if let Err(error) = done.call1(py, (answer,)) {
        error.write_unraisable(py, None);
    }
}

/// Raises a `ValueError` if the options are invalid.
#[pyfunction]
fn check(options: &str) -> PyResult<()> {
    pinfold_embed::check(options, NameStyle::Snake).map_err(PyValueError::new_err)
}

/// The tools of some dialects, as JSON text.
#[pyfunction]
fn describe(dialects: Vec<String>) -> PyResult<String> {
    let dialects: Vec<&str> = dialects.iter().map(String::as_str).collect();
    pinfold_embed::describe(&dialects).map_err(PyValueError::new_err)
}

/// The tools of some dialects in the format of a model provider, as JSON text.
#[pyfunction]
fn schemas(format: &str, dialects: Vec<String>) -> PyResult<String> {
    let dialects: Vec<&str> = dialects.iter().map(String::as_str).collect();
    pinfold_embed::schemas(format, &dialects).map_err(PyValueError::new_err)
}

/// The module `pinfold._native`.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Call>()?;
    module.add_class::<NativeTools>()?;
    module.add_function(wrap_pyfunction!(check, module)?)?;
    module.add_function(wrap_pyfunction!(end, module)?)?;
    module.add_function(wrap_pyfunction!(forked, module)?)?;
    module.add_function(wrap_pyfunction!(describe, module)?)?;
    module.add_function(wrap_pyfunction!(schemas, module)?)
}
