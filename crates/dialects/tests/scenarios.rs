//! The scenario corpus through the library.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]

use pinfold::Session;
use pinfold_dialects::{Toolbox, named_dialects};
use pinfold_testkit::{FrontEnd, Stage, run_corpus};
use serde_json::Value;

struct Library(Toolbox);

impl FrontEnd for Library {
    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.0.call(tool, arguments.clone()).to_json()
    }
}

fn open(stage: &Stage) -> Option<Box<dyn FrontEnd>> {
    let settings = serde_json::from_value(stage.settings.clone().into()).unwrap();
    let session = Session::with_settings(&stage.roots, settings).unwrap();
    let dialects = named_dialects([stage.dialect.as_str()]).unwrap();
    Some(Box::new(Library(Toolbox::new(session, &dialects))))
}

fn main() {
    run_corpus(&[("library", open)]);
}
