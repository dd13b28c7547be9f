//! The scenario corpus through the command line: all of it through `batch`, single calls through `call`, and all
//! through `serve`, with `initialize` and stateless, over both transports.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test prepares real files")]

use std::process::Command;

use pinfold_testkit::mcp::{Lines, Web, alone, answer};
use pinfold_testkit::{FrontEnd, Process, Stage, run_corpus};
use serde_json::{Value, json};

fn pinfold(stage: &Stage, command: &str) -> Command {
    let config = stage.front_end_directory().join("config.toml");
    // Ids are random, and the library keeps no journal by default.
    let mut settings = stage.settings.clone();
    settings.entry("journal").or_insert(false.into());
    std::fs::write(&config, toml::to_string(&settings).unwrap()).unwrap();
    let mut process = Command::new(env!("CARGO_BIN_EXE_pinfold"));
    process.arg(command).arg("--config").arg(config).args(["--dialect", &stage.dialect]);
    for root in &stage.roots {
        process.arg("--root").arg(root);
    }
    process
}

fn batch(stage: &Stage) -> Option<Box<dyn FrontEnd>> {
    Some(Box::new(Process::start(&mut pinfold(stage, "batch"))))
}

struct Call(Command);

impl FrontEnd for Call {
    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let output = self.0.arg("--").arg(tool).arg(arguments.to_string()).output().unwrap();
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        let failed =
            answer["success"] == false || answer["error"].is_string() || answer["isError"] == true;
        assert_eq!(output.status.code(), Some(i32::from(failed)), "{answer}");
        answer
    }
}

fn call(stage: &Stage) -> Option<Box<dyn FrontEnd>> {
    let single = stage.calls.len() == 1 && !stage.about_read_before_write;
    single.then(|| Box::new(Call(pinfold(stage, "call"))) as Box<dyn FrontEnd>)
}

struct Served(Lines);

impl FrontEnd for Served {
    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        answer(&self.0.request("tools/call", json!({"name": tool, "arguments": arguments})))
    }
}

fn stdio(stage: &Stage) -> Option<Box<dyn FrontEnd>> {
    let mut serve = pinfold(stage, "serve");
    Some(Box::new(Served(Lines::initialized(&mut serve, json!({})))))
}

struct Alone(Web);

impl FrontEnd for Alone {
    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        let mut meta = alone("corpus");
        meta.insert("pinfold/session".into(), "corpus".into());
        answer(&self.0.alone("tools/call", params, meta).message())
    }
}

fn http(stage: &Stage) -> Option<Box<dyn FrontEnd>> {
    let mut serve = pinfold(stage, "serve");
    let token = stage.front_end_directory().join("token");
    serve.args(["--http", "127.0.0.1:0", "--token-file"]).arg(token);
    Some(Box::new(Alone(Web::start(&mut serve))))
}

fn main() {
    run_corpus(&[("batch", batch), ("call", call), ("stdio", stdio), ("http", http)]);
}
