//! `pinfold call`

use std::io::Read as _;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Args;
use pinfold::SeenSetting;
use pinfold_dialects::dialects;
use serde_json::{Value, json};

use crate::TOOL_ERROR;
use crate::options::Options;

/// Call one tool and print its answer as JSON
///
/// Exits with 0 if the tool succeeded, 1 if it answered with an error, 2 if the command itself could
/// not be understood. Without `--dialect`, tools of all dialects can be called. Each call is a
/// session of its own, so files need not be read before they are changed.
#[derive(Args)]
pub(crate) struct Call {
    /// The tool's name, e.g. `Read` or `file.read`; `pinfold tools --dialect all` lists them
    tool: String,

    /// The arguments as a JSON object, or `-` to read them from standard input [default: {}]
    #[arg(value_name = "JSON")]
    arguments: Option<String>,

    #[command(flatten)]
    options: Options,
}

impl Call {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let arguments = self.arguments()?;
        let toolbox = self.options.toolbox(&dialects(), |settings| {
            settings.seen = Some(SeenSetting::Off);
        })?;
        let answer = toolbox.call(&self.tool, arguments);
        crate::batch::print_line(&answer.to_json_text())?;
        Ok(if answer.failed() { ExitCode::from(TOOL_ERROR) } else { ExitCode::SUCCESS })
    }

    fn arguments(&self) -> Result<Value> {
        let text = match self.arguments.as_deref() {
            None => return Ok(json!({})),
            Some("-") => {
                let mut text = Vec::new();
                std::io::stdin().read_to_end(&mut text).context("cannot read standard input")?;
                text
            }
            Some(text) => text.as_bytes().to_vec(),
        };
        serde_json::from_slice(&text).context("the arguments are not JSON")
    }
}
