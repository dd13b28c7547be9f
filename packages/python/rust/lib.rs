//! The native part of the Python package: JSON text in, JSON text out, with the interpreter let go.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use pinfold_embed::{Host, Mailbox, Request, Tools};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// How long a call may take before signals such as Ctrl-C are looked for, and from then on how often.
const PULSE: Duration = Duration::from_millis(50);

/// Ends a call.
#[pyclass(frozen)]
#[derive(Default)]
struct Cancel {
    cancel: pinfold::Cancel,
    mailbox: Arc<Mailbox>,
}

#[pymethods]
impl Cancel {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Asks the call to end soon.
    fn cancel(&self) {
        self.cancel.cancel();
        self.mailbox.close();
    }

    /// Whether that was asked.
    fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }
}

/// What comes to the thread that waits for a call.
enum Event {
    Question(String),
    Answer(String),
}

/// Asks on the thread that waits for the call.
struct Waiting {
    events: Sender<Event>,
    mailbox: Arc<Mailbox>,
}

impl Host for Waiting {
    fn ask(&self, question: &str) -> String {
        match self.events.send(Event::Question(question.to_owned())) {
            Ok(()) => self.mailbox.take(),
            Err(_) => "false".to_owned(),
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

    /// Makes a call and waits for its answer. Questions are put to `ask` on this thread.
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
        let (events, mut incoming) = channel();
        let mailbox = cancel.mailbox.clone();
        let host = ask.is_some().then(|| Waiting { events: events.clone(), mailbox });
        let request = Request { tool, arguments, context, cancel: cancel.cancel.clone() };
        let tools = self.0.clone();
        pinfold_embed::run(move || {
            // Whoever waited may be gone.
            let _ = events.send(Event::Answer(tools.call(&request, host)));
        });
        loop {
            match next(py, &mut incoming) {
                Ok(Event::Answer(answer)) => return Ok(answer),
                Ok(Event::Question(question)) => {
                    let decision = ask.as_ref().map(|ask| ask.call1(py, (question,)));
                    let decision = decision.transpose().and_then(|decision| {
                        decision.map_or(Ok(String::new()), |decision| decision.extract(py))
                    });
                    match decision {
                        Ok(decision) => cancel.mailbox.put(decision),
                        Err(error) => return Err(give_up(py, cancel, &mut incoming, error)),
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    if let Err(error) = py.check_signals() {
                        return Err(give_up(py, cancel, &mut incoming, error));
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(PyRuntimeError::new_err("the call was lost"));
                }
            }
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
        let request = Request { tool, arguments, context, cancel: cancel.cancel.clone() };
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

/// Ends a call for which nobody will wait any more, and waits until it has ended: what it does after that
/// would surprise.
fn give_up(py: Python<'_>, cancel: &Cancel, incoming: &mut Receiver<Event>, error: PyErr) -> PyErr {
    cancel.cancel();
    while let Ok(Event::Question(_)) | Err(RecvTimeoutError::Timeout) = next(py, incoming) {}
    error
}

/// Waits for what comes next, without the interpreter.
fn next(py: Python<'_>, incoming: &mut Receiver<Event>) -> Result<Event, RecvTimeoutError> {
    py.detach(move || incoming.recv_timeout(PULSE))
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
