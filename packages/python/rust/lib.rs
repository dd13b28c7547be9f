//! The native part of the Python package: JSON text in, JSON text out, with the interpreter let go.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use pinfold_embed::{DecisionSlot, Host, Request, Tools};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// How long a call may take before signals are looked for, and from then on how often.
const PULSE: Duration = Duration::from_millis(50);

/// How many threads of ours are in the interpreter, or about to be. Python takes its threads apart while it
/// ends, so by then there must be none.
static INSIDE: AtomicUsize = AtomicUsize::new(0);

/// Whether the interpreter is ending.
static ENDING: AtomicBool = AtomicBool::new(false);

/// Does something in the interpreter, on a thread of ours. `None` if there is no interpreter any more.
fn enter<T>(work: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    INSIDE.fetch_add(1, Ordering::SeqCst);
    let outcome = match ENDING.load(Ordering::SeqCst) {
        true => None,
        false => Python::try_attach(work),
    };
    INSIDE.fetch_sub(1, Ordering::SeqCst);
    outcome
}

/// Keeps threads of ours out of the interpreter from now on, and waits for those that are in it. They are never
/// there for long.
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

/// A process that was forked has none of its parent's threads.
#[pyfunction]
fn forked() {
    INSIDE.store(0, Ordering::SeqCst);
}

/// One call: what it is ended by, and where decisions for it are left.
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

    /// Asks the call to end soon.
    fn cancel(&self) {
        self.cancel.cancel();
        self.decision.close();
        pinfold_embed::answer_cancelled();
    }

    /// Leaves the decision that the call waits for: JSON text.
    fn decide(&self, decision: String) {
        self.decision.put(decision);
    }
}

/// What interrupts a call that is made on this thread: a signal such as Ctrl-C, or what a callback raised that
/// is no mere failure.
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

    /// Whether something has come up. Signals are looked for on the thread that makes the call, every so often.
    fn beat(&self) -> bool {
        if thread::current().id() != self.thread {
            return false;
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.elapsed() < PULSE {
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

/// Asks on the thread that makes the call, which what is raised there ends.
struct Here {
    ask: Py<PyAny>,
    cancel: pinfold::Cancel,
    interruption: Arc<Interruption>,
}

impl Host for Here {
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

/// Has a Python function put the question somewhere, and waits for the decision.
struct Elsewhere {
    ask: Py<PyAny>,
    decision: Arc<DecisionSlot>,
}

impl Host for Elsewhere {
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

/// The tools of one conversation.
#[pyclass(frozen, name = "Tools")]
struct NativeTools(Arc<Tools>);

#[pymethods]
impl NativeTools {
    #[new]
    fn new(py: Python<'_>, options: &str) -> PyResult<Self> {
        let tools = py.detach(|| Tools::open(options)).map_err(PyValueError::new_err)?;
        Ok(Self(Arc::new(tools)))
    }

    /// Makes a call on this thread, and gives its answer. Questions are put to `ask`.
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
        let beat = interruption.clone();
        let cancel = call.cancel.with_poll(move || beat.beat());
        let host = ask.map(|ask| {
            let (cancel, interruption) = (cancel.clone(), interruption.clone());
            Here { ask, cancel, interruption }
        });
        let request = Request { tool, arguments, context, cancel };
        let answer = py.detach(|| self.0.call(&request, host));
        match interruption.take() {
            Some(error) => Err(error),
            None => Ok(answer),
        }
    }

    /// Begins a call on another thread. Questions are put to `ask`, whose decisions `call` is given, and the
    /// answer to `done`.
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
            // No thread could give the answer back, and nobody can be asked any more.
            let answer = py.detach(|| self.0.call(&request, None::<Elsewhere>));
            finish(py, done, answer);
            return;
        }
        let host = ask.map(|ask| Elsewhere { ask, decision: call.decision.clone() });
        self.0.start(request, host, move |answer| {
            enter(|py| finish(py, done, answer));
        });
    }

    /// The arguments of a call on one line, for a person.
    fn compact(&self, tool: &str, arguments: &str) -> String {
        self.0.compact(tool, arguments)
    }

    /// The tools, as JSON text.
    fn describe(&self) -> String {
        self.0.describe()
    }

    /// The tools in the form of a provider, as JSON text.
    fn schemas(&self, format: &str) -> PyResult<String> {
        self.0.schemas(format).map_err(PyValueError::new_err)
    }
}

fn finish(py: Python<'_>, done: Py<PyAny>, answer: String) {
    if let Err(error) = done.call1(py, (answer,)) {
        error.write_unraisable(py, None);
    }
}

/// What is wrong with options, as a `ValueError`.
#[pyfunction]
fn check(options: &str) -> PyResult<()> {
    pinfold_embed::check(options).map_err(PyValueError::new_err)
}

/// The tools of some dialects, as JSON text.
#[pyfunction]
fn describe(dialects: Vec<String>) -> PyResult<String> {
    let dialects: Vec<&str> = dialects.iter().map(String::as_str).collect();
    pinfold_embed::describe(&dialects).map_err(PyValueError::new_err)
}

/// The tools of some dialects in the form of a provider, as JSON text.
#[pyfunction]
fn schemas(format: &str, dialects: Vec<String>) -> PyResult<String> {
    let dialects: Vec<&str> = dialects.iter().map(String::as_str).collect();
    pinfold_embed::schemas(format, &dialects).map_err(PyValueError::new_err)
}

/// What `pinfold` is made of.
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
