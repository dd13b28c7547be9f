//! `pinfold tools`

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueEnum};
use pinfold_dialects::{CLASSIC, Format, list};

use crate::options::Options;

/// List the tools with their descriptions and schemas
#[derive(Args)]
pub(crate) struct Tools {
    /// Whose form the list has
    #[arg(long, value_name = "FORM", default_value = "mcp")]
    format: FormatOption,

    #[command(flatten)]
    options: Options,
}

#[derive(Clone, Copy, ValueEnum)]
enum FormatOption {
    Mcp,
    Openai,
    Anthropic,
    Gemini,
}

impl Tools {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let toolbox = self.options.toolbox(&[&CLASSIC], |_| {})?;
        let format = match self.format {
            FormatOption::Mcp => Format::Mcp,
            FormatOption::Openai => Format::OpenAi,
            FormatOption::Anthropic => Format::Anthropic,
            FormatOption::Gemini => Format::Gemini,
        };
        crate::batch::print_line(&serde_json::to_string_pretty(&list(toolbox.tools(), format))?)?;
        Ok(ExitCode::SUCCESS)
    }
}
