//! `pinfold call`

use std::io::Read as _;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use pinfold::ReadBeforeWrite;
use pinfold_dialects::core_dialects;
use pinfold_mcp::limits::MAX_MESSAGE_BYTES;
use serde_json::{Value, json};

use crate::TOOL_ERROR;
use crate::options::SessionOptions;

/// Call one tool and print its result as JSON
///
/// Exits with 0 if the tool succeeded, 1 if it returned an error, and 2 for a usage error. Without
/// `--dialect`, the tools of `classic`, `dotted` and `scoped` can be called. Each call is its own session, so a file can
/// be changed without reading it first.
#[derive(Args)]
pub(crate) struct Call {
    /// Name of the tool, such as `Read` or `file.read`; `pinfold tools --dialect all` lists them
    tool: String,

    /// Arguments as a JSON object, or `-` to read them from standard input [default: {}]
    #[arg(value_name = "JSON")]
    arguments: Option<String>,

    #[command(flatten)]
    options: SessionOptions,
}

impl Call {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let arguments = self.arguments()?;
        let mut settings = self.options.configure()?.settings;
        settings.read_before_write = Some(ReadBeforeWrite::Off);
        let toolbox = self.options.toolbox(settings, &core_dialects())?;
        let answer = toolbox.call(&self.tool, arguments);
        crate::batch::print_line(&answer.to_json_text())?;
        Ok(if answer.failed() { ExitCode::from(TOOL_ERROR) } else { ExitCode::SUCCESS })
    }

    fn arguments(&self) -> Result<Value> {
        let text = match self.arguments.as_deref() {
            None => return Ok(json!({})),
            Some("-") => {
                let mut text = Vec::new();
                let read =
                    std::io::stdin().take(MAX_MESSAGE_BYTES as u64 + 1).read_to_end(&mut text);
                if read.context("cannot read standard input")? > MAX_MESSAGE_BYTES {
                    bail!(
                        "the arguments can have at most {MAX_MESSAGE_BYTES} bytes; make several calls"
                    );
                }
                text
            }
            Some(text) => text.as_bytes().to_vec(),
        };
        serde_json::from_slice(&text).context("the arguments are not JSON")
    }
}
