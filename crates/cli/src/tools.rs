//! `pinfold tools`

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use pinfold_dialects::{CLASSIC, Format, list, portable_tools_of, tools_of};

use crate::batch::print_line;
use crate::options::{DialectOptions, WorkspaceOptions};

/// List the tools with their descriptions and schemas
#[derive(Args)]
pub(crate) struct Tools {
    /// Output format
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "mcp",
        value_parser = PossibleValuesParser::new(Format::ALL.map(Format::name)).try_map(|name| name.parse::<Format>())
    )]
    format: Format,

    #[command(flatten)]
    dialects: DialectOptions,

    #[command(flatten)]
    workspace: WorkspaceOptions,
}

impl Tools {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let settings = self.workspace.configure(&[&self.dialects])?.settings;
        let dialects = self.dialects.or(&[&CLASSIC])?;
        let tools = if settings.portable_names {
            portable_tools_of(&dialects)
        } else {
            tools_of(&dialects)
        };
        print_line(&serde_json::to_string_pretty(&list(&tools, self.format))?)?;
        Ok(ExitCode::SUCCESS)
    }
}
