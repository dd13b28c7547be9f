//! The native part of the Python package: JSON text in, JSON text out, with the interpreter let go.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use pinfold_embed::{Host, Request, Tools};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// How long a call may take before signals are looked for, and from then on how often.
const PULSE: Duration = Duration::from_millis(50);

/// Ends a call.
#[pyclass(frozen)]
#[derive(Default)]
struct Cancel(pinfold::Cancel);

#[pymethods]
impl Cancel {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Asks the call to end soon.
    fn cancel(&self) {
        self.0.cancel();
    }

    /// Whether that was asked.
    fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
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

/// Asks by calling a Python function on the thread that does the work.
struct Function(Py<PyAny>);

impl Host for Function {
    fn ask(&self, question: &str) -> String {
        let decision = Python::try_attach(|py| match self.0.call1(py, (question,)) {
            Ok(decision) => decision.extract::<String>(py).unwrap_or_default(),
            Err(error) => {
                error.write_unraisable(py, None);
                String::new()
            }
        });
        // Without an interpreter, nobody is left to ask.
        decision.unwrap_or_else(|| "false".to_owned())
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
    #[pyo3(signature = (tool, arguments, context, cancel, ask=None))]
    fn call(
        &self,
        py: Python<'_>,
        tool: String,
        arguments: String,
        context: String,
        cancel: &Cancel,
        ask: Option<Py<PyAny>>,
    ) -> PyResult<String> {
        let interruption = Arc::new(Interruption::new());
        let beat = interruption.clone();
        let cancel = cancel.0.beating(move || beat.beat());
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

    /// Begins a call. Questions are put to `ask` and the answer to `done`, on another thread.
    #[pyo3(signature = (tool, arguments, context, cancel, ask, done))]
    #[allow(clippy::too_many_arguments, reason = "only the package's own layer calls it")]
    fn start(
        &self,
        tool: String,
        arguments: String,
        context: String,
        cancel: &Cancel,
        ask: Option<Py<PyAny>>,
        done: Py<PyAny>,
    ) {
        let request = Request { tool, arguments, context, cancel: cancel.0.clone() };
        let tools = self.0.clone();
        pinfold_embed::run(move || {
            let answer = tools.call(&request, ask.map(Function));
            Python::try_attach(|py| {
                if let Err(error) = done.call1(py, (answer,)) {
                    error.write_unraisable(py, None);
                }
                drop(done);
            });
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
    module.add_class::<Cancel>()?;
    module.add_class::<NativeTools>()?;
    module.add_function(wrap_pyfunction!(describe, module)?)?;
    module.add_function(wrap_pyfunction!(schemas, module)?)
}
